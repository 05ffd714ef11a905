//! PCI configuration space, as far as finding serial ports takes it (PCI Local Bus Specification 3.0); [`devices`] has the rest.

pub mod devices;
pub mod native;
pub mod segments;

use crate::uart::Place;
use alloc::vec::Vec;
use core::fmt;
use x86_64::instructions::port::Port;

/// A function of a device.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Function {
    /// Bus, from 0 to 255.
    pub bus: u8,
    /// Device, from 0 to 31.
    pub device: u8,
    /// Function, from 0 to 7.
    pub function: u8,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PCI {:02x}:{:02x}.{}", self.bus, self.device, self.function)
    }
}

impl Function {
    /// The word for the address port: configuration mechanism 1, 3.2.2.3.2.
    #[must_use]
    pub fn select(self, offset: u16) -> u32 {
        let Self { bus, device, function } = self;
        1 << 31
            | u32::from(bus) << 16
            | u32::from(device & 31) << 11
            | u32::from(function & 7) << 8
            | u32::from(offset & 0xfc)
    }
}

/// Ports of configuration mechanism 1.
pub const ADDRESS_PORT: u16 = 0xcf8;
/// The first of four data ports.
pub const DATA_PORT: u16 = 0xcfc;

/// Offsets of a function's registers: 6.1 and 6.2.
const ID: u16 = 0x00;
const COMMAND: u16 = 0x04;
const CLASS: u16 = 0x08;
const HEADER: u16 = 0x0c;
const BASE_ADDRESSES: [u16; 6] = [0x10, 0x14, 0x18, 0x1c, 0x20, 0x24];
/// The upper half of [`CLASS`]: a serial controller (appendix D.8).
const SERIAL: u32 = 0x0700;
/// Its programming interfaces that are at least a 16450: 16450, 16550, and up to 16950.
const INTERFACES: core::ops::RangeInclusive<u8> = 1..=6;
/// In [`COMMAND`]: the function answers at its ports, and at its memory.
const ANSWERS_PORTS: u32 = 1 << 0;
const ANSWERS_MEMORY: u32 = 1 << 1;

/// Where a serial controller has its UARTs: at its I/O ports, or in memory if it has none. `registers`: class and base addresses.
#[must_use]
fn uarts(class: u32, bases: [u32; 6]) -> Vec<Place> {
    if class >> 16 != SERIAL || !INTERFACES.contains(&((class >> 8) as u8)) {
        return Vec::new();
    }
    let port = |base: &u32| {
        let port = u16::try_from(base & !3).ok().filter(|&port| port != 0);
        (base & 1 == 1).then_some(Place::Port(port?))
    };
    let ports: Vec<Place> = bases.iter().filter_map(port).collect();
    if !ports.is_empty() {
        return ports;
    }
    // Bits 2 and 1: 2 means that the next register is the upper half.
    let upper = if bases[0] >> 1 & 3 == 2 { u64::from(bases[1]) << 32 } else { 0 };
    let address = upper | u64::from(bases[0] & !0xf);
    let memory = Place::Memory { address, stride: 1 };
    if address == 0 { Vec::new() } else { Vec::from([memory]) }
}

/// The serial ports of all PCI functions, in the order of their numbers. Has them answer.
///
/// # Safety
/// Nobody else may use PCI configuration space.
#[must_use]
pub unsafe fn serial_ports() -> Vec<(Function, Place)> {
    let mut found = Vec::new();
    for (bus, device) in (0..=255).flat_map(|bus| (0..32).map(move |device| (bus, device))) {
        let mut functions = 1;
        let mut function = 0;
        while function < functions {
            let at = Function { bus, device, function };
            function += 1;
            // SAFETY: the caller's promise; reading has no effect.
            let read = |offset| unsafe { read(at, offset) };
            if read(ID) as u16 == u16::MAX {
                continue;
            }
            // Bit 23: the device has more functions than one.
            if at.function == 0 && read(HEADER) & 1 << 23 != 0 {
                functions = 8;
            }
            let places = uarts(read(CLASS), BASE_ADDRESSES.map(read));
            for place in places {
                let answers = match place {
                    Place::Port(_) => ANSWERS_PORTS,
                    Place::Memory { .. } => ANSWERS_MEMORY,
                };
                // The upper half has bits that are cleared by writing ones.
                let command = read(COMMAND) & 0xffff;
                // SAFETY: the caller's promise; its addresses are those that the machine's firmware gave it.
                unsafe { write(at, COMMAND, command | answers) };
                found.push((at, place));
            }
        }
    }
    found
}

unsafe fn read(at: Function, offset: u16) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        Port::<u32>::new(ADDRESS_PORT).write(at.select(offset));
        Port::<u32>::new(DATA_PORT).read()
    }
}

unsafe fn write(at: Function, offset: u16, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        Port::<u32>::new(ADDRESS_PORT).write(at.select(offset));
        Port::<u32>::new(DATA_PORT).write(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_controllers_have_ports_or_memory() {
        // Intel AMT's serial over LAN: a port, and memory that is not a UART.
        let amt = [0xf0a1, 0xfe53_0000, 0, 0, 0, 0];
        assert_eq!(uarts(0x0700_0200, amt), [Place::Port(0xf0a0)]);
        let two = [0xc001, 0xc009, 0, 0, 0, 0];
        assert_eq!(uarts(0x0700_0201, two), [Place::Port(0xc000), Place::Port(0xc008)]);
        let far = [0x4, 0x1, 0, 0, 0, 0];
        let place = |address| [Place::Memory { address, stride: 1 }];
        assert_eq!(uarts(0x0700_0200, far), place(0x1_0000_0000));
        assert_eq!(uarts(0x0700_0200, [0xfe00_0000, 8, 0, 0, 0, 0]), place(0xfe00_0000));
    }

    #[test]
    fn others_and_those_without_an_address_are_none() {
        assert_eq!(uarts(0x0703_0200, [0xc001; 6]), [], "a modem");
        assert_eq!(uarts(0x0700_0000, [0xc001; 6]), [], "an 8250, without a scratch register");
        assert_eq!(uarts(0x0700_0200, [0; 6]), []);
        assert_eq!(uarts(0x0700_0200, [1; 6]), [], "no port was given to it");
    }

    #[test]
    fn a_function_is_selected_by_its_numbers() {
        let at = Function { bus: 0, device: 0x16, function: 3 };
        assert_eq!(at.select(0x10), 0x8000_b310);
        assert_eq!(at.to_string(), "PCI 00:16.3");
    }
}
