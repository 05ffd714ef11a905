//! A register of the uncore, wherever it is.

use crate::msr::Msr;
use crate::pci::devices::{Address, Size};
use crate::pmu::access::Registers;
use core::fmt;

/// Where a register is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Register {
    /// An MSR.
    Msr(u32),
    /// In the configuration space of a PCI function, from an offset on.
    Config(Address, u16, Size),
    /// In memory, at a physical address.
    Memory(u64, Size),
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Msr(number) => write!(f, "MSR {number:#x}"),
            Self::Config(at, offset, _) => write!(f, "{at}, register {offset:#x}"),
            Self::Memory(at, _) => write!(f, "memory {at:#x}"),
        }
    }
}

/// How often the upper half is read that changes meanwhile: it does so once in 2^32 counts.
const READS: usize = 3;

impl Register {
    /// What it reads; `None`: nothing reaches it.
    pub(super) fn read(self, registers: &mut dyn Registers) -> Option<u64> {
        match self {
            Self::Msr(number) => registers.rdmsr(Msr(number)).ok(),
            Self::Memory(at, size) => registers.devices()?.memory(at, size),
            Self::Config(at, offset, Size::Dword) => {
                registers.devices()?.config(at, offset).map(u64::from)
            }
            Self::Config(at, offset, Size::Qword) => {
                let devices = registers.devices()?;
                let mut high = devices.config(at, offset + 4)?;
                // Both halves of the same value: the lower one may go over in between.
                for _ in 0..READS {
                    let low = devices.config(at, offset)?;
                    let again = devices.config(at, offset + 4)?;
                    if again == high {
                        return Some(u64::from(high) << 32 | u64::from(low));
                    }
                    high = again;
                }
                None
            }
        }
    }

    /// Writes it. Whether something takes it.
    pub(super) fn write(self, value: u64, registers: &mut dyn Registers) -> bool {
        match self {
            Self::Msr(number) => registers.wrmsr(Msr(number), value).is_ok(),
            Self::Memory(at, size) => {
                registers.devices().is_some_and(|devices| devices.set_memory(at, size, value))
            }
            Self::Config(at, offset, size) => registers.devices().is_some_and(|devices| {
                // The lower half has a control's enable, so it is the last (Linux, `spr_uncore_pci_enable_event`).
                let high =
                    size == Size::Dword || devices.set_config(at, offset + 4, (value >> 32) as u32);
                high && devices.set_config(at, offset, value as u32)
            }),
        }
    }
}
