//! A buffer of architectural PEBS in made-up memory.

use super::pebs::instruction;
use super::{EN, OS, USR, pmu, read, write};
use core::ops::RangeInclusive;
use pmu_model::{Delta, GuestMemory, Model, Outcome, Pmu, Ring};

/// Where the buffer lies, by its physical address.
pub const BASE: u64 = 0x1_2345_6000;
/// IA32_PEBS_INDEX: the buffer is full, and records are written.
pub const FULL: u64 = 1 << 31;
pub const ON: u64 = 1 << 32;
/// CFG_C: records, and their groups.
pub const RECORDS: u64 = 1 << 63;
pub const AUX: u64 = 1 << 62;
pub const GPR: u64 = 1 << 61;
pub const XMM: u64 = 1 << 49;
pub const YMM_UPPER: u64 = 1 << 50;
/// The header of a record: 64-bit mode, and that another fragment follows.
pub const MODE_64: u64 = 1 << 30;
pub const CONTINUED: u64 = 1 << 31;
/// Retired instructions, in all rings.
pub const INSTRUCTIONS: u64 = 0xC0 | EN | USR | OS;

/// Memory from the buffer's first page on, more than it has.
pub struct Buffer(Vec<u64>);

impl Buffer {
    pub fn new() -> Self {
        Self(vec![0; 4 * 4096 / 8])
    }

    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// Words written from this byte on.
    pub fn beyond(&self, byte: usize) -> usize {
        self.0[byte / 8..].iter().filter(|word| **word != 0).count()
    }
}

impl GuestMemory for Buffer {
    fn read(&mut self, linear: u64) -> Option<u64> {
        panic!("nothing is read, and nothing has a linear address: {linear:#x}");
    }

    fn write(&mut self, linear: u64, _: u64) -> Option<()> {
        panic!("the buffer has a physical address: {linear:#x}");
    }

    fn write_physical(&mut self, physical: u64, value: u64) -> Option<()> {
        let byte = usize::try_from(physical.checked_sub(BASE)?).ok()?;
        *self.0.get_mut(byte / 8)? = value;
        Some(())
    }
}

/// Panther Lake with a buffer of a page whose threshold is its end, and records switched on.
pub fn machine() -> (Pmu, Buffer) {
    let mut pmu = pmu(Model::CougarCove);
    write(&mut pmu, 0x3F4, BASE);
    write(&mut pmu, 0x3F5, ON | 256 << 36);
    (pmu, Buffer::new())
}

/// `event` on general-purpose counter `n`, a record at each `period`th, with these groups.
pub fn arm(pmu: &mut Pmu, n: u32, event: u64, period: u32, groups: u64) {
    let reload = 1u32.wrapping_sub(period);
    write(pmu, 0x1903 + 4 * n, RECORDS | groups | u64::from(reload));
    write(pmu, 0x1901 + 4 * n, event);
    write(pmu, 0xC1 + n, reload.into());
}

/// The instruction with this number retires in user mode.
pub fn step(pmu: &mut Pmu, buffer: &mut Buffer, number: u64) -> Outcome {
    instruction(pmu, buffer, number, Delta::step(Ring::User))
}

/// Those with these numbers do.
pub fn run(pmu: &mut Pmu, buffer: &mut Buffer, numbers: RangeInclusive<u64>) {
    for number in numbers {
        step(pmu, buffer, number);
    }
}

/// Bytes in the buffer, as IA32_PEBS_INDEX says.
pub fn offset(pmu: &mut Pmu) -> u64 {
    read(pmu, 0x3F5) & 0x7FF_FFF0
}
