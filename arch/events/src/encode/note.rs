//! What to know about a request that can be had.

use core::fmt;

/// A remark on the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The vendor wants another name to be used.
    Deprecated,
    /// The sources do not agree on its code.
    Doubtful,
    /// The last piece of the name was read as a modifier, though unit masks have this name too.
    AnyThread,
    /// Without PEBS the event means little.
    OnlyPrecise,
    /// Bits of a raw code that perf leaves out: modes, interrupt, enable.
    IgnoredBits(u64),
    /// Without a counter mask, invert and edge mean nothing.
    NoCounterMask,
    /// Whether this code can be precise is not known.
    PrecisionUnknown,
    /// The other hyper-thread's counter of the same number may be corrupted: BJ122, BV98, HSD29.
    CorruptsSibling,
    /// Latencies are right only while event 03H/82H is counted together with it on counter 0.
    NeedsAuxiliary,
    /// A function word without EN: the counter will stand still.
    NotEnabled,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deprecated => f.write_str("the name is deprecated"),
            Self::Doubtful => f.write_str(
                "doubtful: the sources do not agree on its code (perfmon's or the kernel's is used, \
                 libpfm4 has another)",
            ),
            Self::AnyThread => f.write_str(
                "\"any\" at the end is read as AnyThread (both hyper-threads), not as a unit mask",
            ),
            Self::OnlyPrecise => f.write_str("the event is meaningful only with :p"),
            Self::IgnoredBits(bits) => {
                write!(f, "bits {bits:#x} of the raw code are ignored, as perf does")
            }
            Self::NoCounterMask => {
                f.write_str("invert and edge have no effect without a counter mask")
            }
            Self::PrecisionUnknown => {
                f.write_str("it is not known whether this code can be precise")
            }
            Self::CorruptsSibling => f.write_str(
                "it may corrupt the same counter of the other hyper-thread (BJ122, BV98, HSD29)",
            ),
            Self::NeedsAuxiliary => {
                f.write_str("latencies are right only while event 0x03/0x82 is counted too")
            }
            Self::NotEnabled => f.write_str("the function word has no EN bit: nothing is counted"),
        }
    }
}
