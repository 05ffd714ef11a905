//! The main counter of the HPET: IA-PC HPET specification 1.0a, 2.3.

use crate::memory::layout;

/// Offsets: capabilities, configuration, main counter.
const CAPABILITIES: u64 = 0;
const CONFIGURATION: u64 = 0x10;
const COUNTER: u64 = 0xf0;
/// Configuration: the counter runs.
const RUNS: u64 = 1;
/// Capabilities: the counter has 64 bits.
const WIDE: u64 = 1 << 13;
/// The longest period that the specification allows, in femtoseconds.
const LONGEST_PERIOD: u64 = 100_000_000;

/// The HPET of a machine.
pub struct Hpet {
    at: u64,
    /// Its configuration as it was found.
    found: u64,
}

impl Hpet {
    /// The one at this physical address, with its counter running. `None`: nothing there counts.
    ///
    /// # Safety
    /// ACPI says that it is there, physical memory is mapped, and nobody else uses it.
    #[must_use]
    pub unsafe fn start(address: u64) -> Option<Self> {
        let mut hpet = Self { at: layout::PHYSICAL + address, found: 0 };
        hpet.period_fs()?;
        hpet.found = hpet.read(CONFIGURATION);
        hpet.write(CONFIGURATION, hpet.found | RUNS);
        Some(hpet)
    }

    fn read(&self, register: u64) -> u64 {
        // SAFETY: `start`'s caller promised the registers.
        unsafe { ((self.at + register) as *const u64).read_volatile() }
    }

    fn write(&self, register: u64, value: u64) {
        // SAFETY: as above; no timer of it raises interrupts that were not set up before.
        unsafe { ((self.at + register) as *mut u64).write_volatile(value) };
    }

    /// Femtoseconds from count to count, if that is what the specification allows.
    fn period_fs(&self) -> Option<u64> {
        let period = self.read(CAPABILITIES) >> 32;
        (1..=LONGEST_PERIOD).contains(&period).then_some(period)
    }

    /// The rate that it says it has, in Hz.
    #[must_use]
    pub fn told_hz(&self) -> u64 {
        self.period_fs().map_or(0, |period| 1_000_000_000_000_000 / period)
    }

    /// The count: 32 or 64 bits.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.read(COUNTER) & self.mask()
    }

    /// The greatest count.
    #[must_use]
    pub fn mask(&self) -> u64 {
        if self.read(CAPABILITIES) & WIDE != 0 { u64::MAX } else { u32::MAX.into() }
    }

    /// Leaves it as it was found.
    pub fn stop(self) {
        self.write(CONFIGURATION, self.found);
    }
}
