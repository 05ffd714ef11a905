//! Counts and the machine's own figures in one consistent read.

use super::{CountingError, Counts};
use arch::msr::Msr;
use arch::pmu::Registers;
use thiserror::Error;

/// Interrupts and exceptions there can be.
pub const VECTORS: usize = 256;
/// Reads that are begun before giving up.
pub const MAX_TRIES: u32 = 1000;
/// IA32_MPERF (SDM vol. 3, 14.2): the TSC's rate while not halted; the same number on AMD (APM vol. 2, 17.2).
const MPERF: Msr = Msr(0xe7);
/// IA32_APERF: cycles while not halted.
const APERF: Msr = Msr(0xe8);
/// MSR_SMI_COUNT, Nehalem and later (SDM vol. 4, table 2-15).
const SMI_COUNT: Msr = Msr(0x34);

/// Where the figures come from.
pub trait Sources {
    /// Changes with every interrupt, exception and context switch on this processor.
    fn sequence(&mut self) -> u64;
    /// The TSC.
    fn tsc(&mut self) -> u64;
    /// The registers that count on their own.
    fn clocks(&mut self) -> Clocks;
    /// Of these, system management interrupts alone.
    fn smi_count(&mut self) -> Option<u64>;
    /// What the kernel has counted, put where it stays: it is large.
    fn events(&mut self, to: &mut Events);
    /// The session's counts.
    ///
    /// # Errors
    /// The buffer is another set's, or a register cannot be read.
    fn counts(&mut self, counts: &mut Counts) -> Result<(), CountingError>;
}

/// Registers that count without being told to; `None` where the processor has none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Clocks {
    /// Cycles while not halted.
    pub aperf: Option<u64>,
    /// The same at the TSC's rate.
    pub mperf: Option<u64>,
    /// System management interrupts since reset.
    pub smi_count: Option<u64>,
}

impl Clocks {
    /// Reads what is there: APERF and MPERF if CPUID leaf 6, ECX bit 0, says so (SDM vol. 3, 14.2), as some hypervisors
    /// answer for any register. One that faults is taken as not there.
    pub fn read(registers: &mut dyn Registers) -> Self {
        let has_clocks = registers.cpuid(0, 0).eax >= 6 && registers.cpuid(6, 0).ecx & 1 != 0;
        let mut read = |there: bool, msr| registers.rdmsr(msr).ok().filter(|_| there);
        Self {
            aperf: read(has_clocks, APERF),
            mperf: read(has_clocks, MPERF),
            smi_count: read(true, SMI_COUNT),
        }
    }

    /// Reads those that were there before, so that none faults: a fault is an exception that would be counted.
    #[must_use]
    pub fn again(&self, registers: &mut dyn Registers) -> Self {
        let mut read = |was: Option<u64>, msr| was.and_then(|_| registers.rdmsr(msr).ok());
        let (aperf, mperf) = (read(self.aperf, APERF), read(self.mperf, MPERF));
        Self { aperf, mperf, smi_count: self.smi_count_again(registers) }
    }

    /// The same of the system management interrupts alone.
    #[must_use]
    pub fn smi_count_again(&self, registers: &mut dyn Registers) -> Option<u64> {
        self.smi_count.and_then(|_| registers.rdmsr(SMI_COUNT).ok())
    }
}

/// What the kernel has counted since boot.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Events {
    /// Exceptions (vectors 0 to 31) and interrupts, by vector.
    pub taken: [u64; VECTORS],
    /// Context switches.
    pub context_switches: u64,
}

impl Events {
    /// Nothing has come.
    pub const NONE: Self = Self { taken: [0; VECTORS], context_switches: 0 };
}

/// All of it at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Snapshot {
    /// The TSC before the first and after the last figure was read.
    pub tsc: [u64; 2],
    /// The registers.
    pub clocks: Clocks,
    /// The kernel's figures.
    pub events: Events,
    /// Reads that were begun again because something came in between.
    pub retries: u32,
}

impl Snapshot {
    /// Room for one.
    pub const EMPTY: Self = Self {
        tsc: [0; 2],
        clocks: Clocks { aperf: None, mperf: None, smi_count: None },
        events: Events::NONE,
        retries: 0,
    };
}

/// Why there is no snapshot.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SnapshotError {
    /// Something came in between each time.
    #[error("no consistent read in {MAX_TRIES} tries: interrupts come faster than one takes")]
    Unsettled,
    /// The counts.
    #[error(transparent)]
    Counting(#[from] CountingError),
}

/// Reads everything, counts into `counts` and the rest into `to`, and begins again if an interrupt, an exception, a context
/// switch or a system management interrupt came in between.
///
/// # Errors
/// One came each time, or the counts cannot be read.
pub fn take(
    sources: &mut dyn Sources,
    counts: &mut Counts,
    to: &mut Snapshot,
) -> Result<(), SnapshotError> {
    for retries in 0..MAX_TRIES {
        let (sequence, smi_count) = (sources.sequence(), sources.smi_count());
        let begin = sources.tsc();
        sources.events(&mut to.events);
        sources.counts(counts)?;
        to.clocks = sources.clocks();
        let end = sources.tsc();
        if sources.sequence() == sequence && sources.smi_count() == smi_count {
            (to.tsc, to.retries) = ([begin, end], retries);
            return Ok(());
        }
    }
    Err(SnapshotError::Unsettled)
}
