//! One counter in the control block.

/// One counter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Slot {
    /// The counter's MSR, to be set to `preset` at each overflow; 0: it just continues, unless something is carried over.
    pub reload: u32,
    /// The counter's MSR, to look at for an overflow where there is no status register; 0: the counter is not in use.
    pub look_at: u32,
    /// Where it starts from.
    pub preset: u64,
    /// How often it overflowed.
    pub overflows: u64,
    /// Of these, how many found the log full.
    pub dropped: u64,
    /// Periods that went by without an overflow of their own, because throttling had made the period longer.
    pub throttled: u64,
    /// How often the preset's period was doubled.
    pub level: u8,
    /// The same of the period that the counter runs now: a preset takes effect at the next overflow.
    pub(in crate::pmu::pmi) running: u8,
    /// It counts in ring 0.
    pub(in crate::pmu::pmi) ring_0: bool,
    /// A write of the counter extends its sign from bit 31.
    pub(in crate::pmu::pmi) extends_sign: bool,
    /// Most of what it has counted since an overflow that is added to the preset.
    pub(in crate::pmu::pmi) carry: u32,
    /// Bits of the counter's value.
    pub(in crate::pmu::pmi) width: u64,
    /// What it has counted since its overflows and no period has had yet.
    pub(in crate::pmu::pmi) owed: u64,
}

impl Slot {
    /// How often the period that the counter runs now was doubled.
    #[must_use]
    pub const fn running(&self) -> u32 {
        self.running as u32
    }
}
