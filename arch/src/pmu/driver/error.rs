//! What the driver refuses.

use crate::msr::Msr;
use crate::pmu::capabilities::Counter;
use thiserror::Error;

/// Why something was not done.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum PmuError {
    /// The processor does not have the counter.
    #[error("{0} does not exist on this processor")]
    NoCounter(Counter),
    /// The processor or the counter does not have the attribute.
    #[error("{counter} has no {attribute}: {reason}")]
    Attribute { counter: Counter, attribute: &'static str, reason: &'static str },
    /// An event code or unit mask that is too large.
    #[error("{what} {value:#x} is too large for {counter}; the maximum is {max:#x}")]
    TooLarge { counter: Counter, what: &'static str, value: u64, max: u64 },
    /// A value that the counter cannot be given.
    #[error("{counter} cannot be set to {value:#x}: {reason}")]
    Value { counter: Counter, value: u64, reason: &'static str },
    /// The processor cannot do it at all.
    #[error("this processor has no {0}")]
    Unsupported(&'static str),
    /// DEBUGCTL lost what was written: somebody else uses it.
    #[error("DEBUGCTL (MSR 0x1d9) does not hold {value:#x}; it reads {found:#x}")]
    Freeze { value: u64, found: u64 },
    /// A register that should be there raised an exception at a read.
    #[error("reading MSR {:#x} raised an exception", .0.0)]
    Read(Msr),
    /// A register did not take a value.
    #[error("writing {value:#x} to MSR {:#x} raised an exception", msr.0)]
    Write { msr: Msr, value: u64 },
    /// RDPMC raised an exception.
    #[error("RDPMC with ECX = {0:#x} raised an exception")]
    Rdpmc(u32),
}
