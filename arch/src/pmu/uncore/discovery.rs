//! The uncore's discovery tables: from Sapphire Rapids on a package lists its units, and where their registers are. A PCI function has a
//! capability (DVSEC) that names a base address register; there the table is in memory.
//!
//! Linux, `arch/x86/events/intel/uncore_discovery.h` and `.c`, which has the bits. Numbers only.

use super::Refusal;
use super::packages::Packages;
use super::register::Register;
use crate::pci::devices::{Address, Devices, Size};
use crate::pmu::access::Registers;
use alloc::vec::Vec;
use thiserror::Error;

/// How the registers of a unit are reached: the two upper bits of its entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Access {
    Msr,
    Memory,
    Config,
}

/// A unit that a table lists.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unit {
    /// What it is: 0 caching agents, 1 IIO, 2 IRP, 4 power control, 6 memory controllers, 7 M2M, 8 links (Linux, `spr_uncores`,
    /// `gnr_uncores`).
    pub kind: u16,
    /// Which one.
    pub number: u16,
    /// Its own control.
    pub own: Register,
    /// The first control and the first counter.
    first: [Register; 2],
    /// How many counters it has.
    pub counters: u8,
    /// Their width in bits.
    pub width: u8,
}

/// Why a table lists nothing.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum TableError {
    /// Its memory cannot be read.
    #[error("it cannot be read")]
    Unread,
    /// The first entry is empty, or all ones.
    #[error("its first entry is {0:#x}, {1:#x}")]
    Global(u64, u64),
    /// Entries are shorter than what they have to hold.
    #[error("an entry of it has {0} words of 64 bits")]
    Stride(u8),
}

/// Words of 64 bits that an entry has to have.
const WORDS: u8 = 3;
/// Linux, `uncore_pci_event_ctl`: controls in configuration space are 8 bytes apart, in memory 4; counters are 8 bytes apart in both.
const APART: [u16; 2] = [4, 8];

impl Unit {
    /// The unit of an entry; `None`: it is empty, or its registers cannot be where it says.
    fn of([about, at, names]: [u64; 3]) -> Option<Self> {
        if [about, at].contains(&0) || [about, at, names].contains(&u64::MAX) {
            return None;
        }
        let [counters, control, width, counter, ..] = about.to_le_bytes();
        let access = match about >> 62 {
            0 => Access::Msr,
            1 => Access::Memory,
            2 => Access::Config,
            _ => return None,
        };
        if counters == 0 || !(1..=63).contains(&width) || control == 0 || counter == 0 {
            return None;
        }
        let [own, control, counter] = match access {
            Access::Msr => {
                let own = u32::try_from(at).ok()?;
                own.checked_add(2 * u32::from(u8::MAX))?;
                [0, control, counter].map(|offset| Register::Msr(own + u32::from(offset)))
            }
            Access::Memory => {
                if at >> 52 != 0 || at % 4 != 0 || control % 4 != 0 {
                    return None;
                }
                if (at + u64::from(counter)) % 8 != 0 {
                    return None;
                }
                let [own, control] = [0, control]
                    .map(|offset| Register::Memory(at + u64::from(offset), Size::Dword));
                [own, control, Register::Memory(at + u64::from(counter), Size::Qword)]
            }
            Access::Config => {
                let (function, offset) = config(at);
                let last = offset + 8 * u16::from(counters) + u16::from(control.max(counter));
                if (offset | u16::from(control) | u16::from(counter)) % 4 != 0 || last > 0x1000 {
                    return None;
                }
                let at = |more, size| Register::Config(function, offset + u16::from(more), size);
                [at(0, Size::Dword), at(control, Size::Qword), at(counter, Size::Qword)]
            }
        };
        let [kind, number] = [names as u16, (names >> 16) as u16];
        Some(Self { kind, number, own, first: [control, counter], counters, width })
    }

    /// A control and its counter; the number is below [`Unit::counters`].
    #[must_use]
    pub fn pair(&self, number: u8) -> [Register; 2] {
        let number = u16::from(number);
        let [control, counter] = self.first;
        let after = |register, apart: u16| match register {
            Register::Msr(first) => Register::Msr(first + u32::from(number)),
            Register::Memory(first, size) => {
                Register::Memory(first + u64::from(number * apart), size)
            }
            Register::Config(at, first, size) => Register::Config(at, first + number * apart, size),
        };
        let controls = match control {
            Register::Memory(..) => APART[0],
            _ => APART[1],
        };
        [after(control, controls), after(counter, 8)]
    }
}

/// The function and the register that an entry's address means (Linux, `UNCORE_DISCOVERY_PCI_*`).
fn config(at: u64) -> (Address, u16) {
    let field = |shift: u32, mask: u64| at >> shift & mask;
    let address = Address {
        segment: field(28, 7) as u16,
        bus: field(20, 0xff) as u8,
        device: field(15, 31) as u8,
        function: field(12, 7) as u8,
    };
    (address, field(0, 0xfff) as u16)
}

/// The units of a table; `word` reads a word of 64 bits of it. A unit that is listed twice is there once.
///
/// # Errors
/// Why it lists none.
pub fn units(mut word: impl FnMut(u64) -> Option<u64>) -> Result<Vec<Unit>, TableError> {
    let mut entry = |first: u64| {
        let words = [0, 1, 2].map(|more| word(first + more));
        let [Some(first), Some(second), Some(third)] = words else {
            return Err(TableError::Unread);
        };
        Ok([first, second, third])
    };
    let [about, control, more] = entry(0)?;
    if [about, control].contains(&0) || [about, control, more].contains(&u64::MAX) {
        return Err(TableError::Global(about, control));
    }
    let stride = (about >> 8) as u8;
    if stride < WORDS {
        return Err(TableError::Stride(stride));
    }
    let mut found: Vec<Unit> = Vec::new();
    for number in 1..=about >> 16 & 0x3ff {
        let Some(unit) = Unit::of(entry(number * u64::from(stride))?) else { continue };
        if found.iter().all(|other| (other.kind, other.number) != (unit.kind, unit.number)) {
            found.push(unit);
        }
    }
    Ok(found)
}

/// The device that has nothing else (Linux, `UNCORE_DISCOVERY_TABLE_DEVICE`). Without it any function may have a table.
const TABLE_DEVICE: u16 = 0x09a7;
/// PCI Express 6.0, 7.6.3: the first extended capability; 7.9.6: that of the designated vendor, with its id in the third word.
const CAPABILITIES: u16 = 0x100;
const DVSEC: u32 = 0x23;
/// Linux, `UNCORE_DISCOVERY_DVSEC_ID_PMON`.
const COUNTERS: u32 = 1;
/// More capabilities than these are a chain without an end.
const MOST_CAPABILITIES: usize = (0x1000 - 0x100) / 4;

/// Where the table is that a function names.
fn table(devices: &mut dyn Devices, at: Address) -> Option<u64> {
    let mut offset = CAPABILITIES;
    for _ in 0..MOST_CAPABILITIES {
        let header = devices.config(at, offset)?;
        if header == 0 || header == u32::MAX {
            return None;
        }
        if header & 0xffff == DVSEC && devices.config(at, offset + 8)? & 0xffff == COUNTERS {
            // Bits 2:0 are the base address register; an offset to it, which nobody has, is not known.
            let place = devices.config(at, offset + 0xc)?;
            return (place <= 5).then(|| base(devices, at, place as u16)).flatten();
        }
        offset = (header >> 20) as u16 & 0xffc;
        if !(CAPABILITIES..=0xff0).contains(&offset) {
            return None;
        }
    }
    None
}

/// The address in a base address register (PCI 3.0, 6.2.5.1): in memory, of 32 or 64 bits.
fn base(devices: &mut dyn Devices, at: Address, number: u16) -> Option<u64> {
    let low = devices.config(at, 0x10 + 4 * number)?;
    let upper = match low & 0xf {
        0 => 0,
        4 if number < 5 => devices.config(at, 0x14 + 4 * number)?,
        _ => return None,
    };
    let address = u64::from(upper) << 32 | u64::from(low & !0xf);
    let may_be = address != 0 && address >> 52 == 0 && address != 0xffff_fff0;
    may_be.then_some(address)
}

/// The units that this processor's package lists.
pub(super) fn listed(registers: &mut dyn Registers) -> Result<Vec<Unit>, Refusal> {
    let packages = Packages::read(registers)?;
    let devices = registers.devices().ok_or(Refusal::NoDevices)?;
    let functions = crate::pci::devices::functions(devices);
    let mut tables = |only: Option<u16>| -> Vec<u64> {
        let all = functions.iter().filter(|(_, id)| only.is_none_or(|only| only == *id));
        all.filter_map(|(at, _)| table(devices, *at)).collect()
    };
    let mut found = tables(Some(TABLE_DEVICE));
    if found.is_empty() {
        found = tables(None);
    }
    if found.is_empty() {
        return Err(Refusal::NoTable);
    }
    // As Linux takes it that has no other source: in the order of the packages.
    let (tables, all) = (found.len() as u32, packages.all);
    if tables != all {
        return Err(Refusal::Tables { tables, packages: all });
    }
    let at = found[packages.own as usize];
    units(|word| devices.memory(at + 8 * word, Size::Qword))
        .map_err(|error| Refusal::Table(at, error))
}

#[cfg(test)]
mod tests;
