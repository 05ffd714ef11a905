//! Access to registers of devices: in configuration space, and in memory. Host tests have a machine of their own for it.

use super::Function;
use super::segments::Segment;
use alloc::vec::Vec;
use core::fmt;

/// A function of any segment group.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Address {
    /// Segment group.
    pub segment: u16,
    /// Bus.
    pub bus: u8,
    /// Device, up to 31.
    pub device: u8,
    /// Function, up to 7.
    pub function: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { segment, bus, device, function } = *self;
        match segment {
            0 => write!(f, "{}", Function { bus, device, function }),
            _ => write!(f, "PCI {segment:04x}:{bus:02x}:{device:02x}.{function}"),
        }
    }
}

/// Width of a register in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Size {
    /// 32 bits.
    Dword,
    /// 64 bits.
    Qword,
}

/// Registers of the machine's devices. Reading a register of an absent function gives all ones; writing does nothing then.
pub trait Devices {
    /// The buses that there may be.
    fn segments(&self) -> Vec<Segment>;

    /// The APIC ids of the processors that the machine lists.
    fn apic_ids(&self) -> Vec<u32>;

    /// A register in configuration space, at a multiple of 4 below 4096. `None`: nothing reaches it.
    fn config(&mut self, at: Address, offset: u16) -> Option<u32>;

    /// Writes one. Whether something reaches it.
    fn set_config(&mut self, at: Address, offset: u16, value: u32) -> bool;

    /// A register in memory, aligned to its size. `None`: there is cached memory, or nothing reaches it.
    fn memory(&mut self, at: u64, size: Size) -> Option<u64>;

    /// Writes one. Whether something reaches it.
    fn set_memory(&mut self, at: u64, size: Size, value: u64) -> bool;
}

/// Vendor of all that is looked for.
const INTEL: u32 = 0x8086;
/// The register of both ids (PCI 3.0, 6.1), and of the header's type: bit 23 means more functions than one.
const ID: u16 = 0;
const HEADER: u16 = 0xc;
const MANY: u32 = 1 << 23;

/// The device id of Intel's function there, if there is one.
pub fn intel(devices: &mut dyn Devices, at: Address) -> Option<u16> {
    let id = devices.config(at, ID)?;
    (id & 0xffff == INTEL).then_some((id >> 16) as u16)
}

/// All functions of Intel's, with their device ids, in the order of their addresses.
#[must_use]
pub fn functions(devices: &mut dyn Devices) -> Vec<(Address, u16)> {
    let mut found = Vec::new();
    for Segment { number, first, last, .. } in devices.segments() {
        let places = (first..=last).flat_map(|bus| (0..32).map(move |device| (bus, device)));
        for (bus, device) in places {
            let mut count = 1;
            let mut function = 0;
            while function < count {
                let at = Address { segment: number, bus, device, function };
                function += 1;
                if at.function == 0 {
                    match devices.config(at, ID) {
                        Some(id) if id & 0xffff != 0xffff => {}
                        _ => break,
                    }
                    if devices.config(at, HEADER).is_some_and(|header| header & MANY != 0) {
                        count = 8;
                    }
                }
                if let Some(id) = intel(devices, at) {
                    found.push((at, id));
                }
            }
        }
    }
    found.sort_unstable();
    found
}
