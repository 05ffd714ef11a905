//! Serial lines: 16550s, whose registers are I/O ports or memory.

mod divisor;

use crate::memory::{Mapped, layout};
use core::arch::asm;
use core::fmt;
use thiserror::Error;
use uart_16550::backend::Backend;
use uart_16550::spec::FIFO_SIZE;
use uart_16550::spec::registers::{LSR, MCR, offsets};
use uart_16550::{BaudRate, Config, Uart16550};
use x86_64::instructions::port::Port;

/// I/O ports of COM1 to COM4.
pub const COM: [u16; 4] = [0x3f8, 0x2f8, 0x3e8, 0x2e8];

/// Where a UART's registers are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// At I/O ports from this one on.
    Port(u16),
    /// In memory: the physical address of the first, and bytes from one to the next.
    Memory {
        /// Physical address.
        address: u64,
        /// Bytes: 1, 2 or 4. Registers are read and written with that width.
        stride: u8,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Port(port) => write!(f, "port {port:#x}"),
            Self::Memory { address, .. } => write!(f, "address {address:#x}"),
        }
    }
}

/// Why there is no serial line.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum UartError {
    /// Nothing answers.
    #[error("no UART responds at {0}")]
    Absent(Place),
    /// Something answers that changes the bytes it loops back.
    #[error("the UART at {0} does not pass its loopback test")]
    Broken(Place),
    /// Something answers whose transmitter never becomes empty.
    #[error("the UART at {0} never becomes ready")]
    Stuck(Place),
    /// It lies where no memory is mapped.
    #[error("the UART at {0} is beyond the mapped memory")]
    Beyond(Place),
}

/// A transmitter gives up on a UART that does not become ready: at 300 baud a FIFO of 16 bytes takes
/// 0.6 s; a status read takes about a microsecond on hardware.
const MAX_POLLS: u32 = 5_000_000;
/// Status reads until a byte has come back in loopback mode: at 300 baud it takes 33 ms.
const MAX_LOOPBACK_POLLS: u32 = 200_000;
/// The registers of a 16550.
const REGISTERS: u64 = 8;

/// What a line status register says of bytes that were lost or damaged.
const WRONG: LSR = LSR::OVERRUN_ERROR
    .union(LSR::PARITY_ERROR)
    .union(LSR::FRAMING_ERROR)
    .union(LSR::BREAK_INTERRUPT);

/// What a UART has received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// A byte.
    Byte(u8),
    /// The UART had no room for one.
    Overrun,
    /// One that is not as it was sent, or a break.
    Damaged,
}

/// The registers.
struct Registers(Place);

impl Backend for Registers {
    #[inline]
    unsafe fn read(&mut self, register: u8) -> u8 {
        // SAFETY: the caller of `Uart::open` promises that they are a UART's or nobody's.
        unsafe {
            match self.0 {
                Place::Port(port) => Port::<u8>::new(port + u16::from(register)).read(),
                Place::Memory { address, stride } => {
                    let at = layout::PHYSICAL + address + u64::from(register) * u64::from(stride);
                    match stride {
                        4 => (at as *const u32).read_volatile() as u8,
                        2 => (at as *const u16).read_volatile() as u8,
                        _ => (at as *const u8).read_volatile(),
                    }
                }
            }
        }
    }

    #[inline]
    unsafe fn write(&mut self, register: u8, value: u8) {
        // SAFETY: as for reading.
        unsafe {
            match self.0 {
                Place::Port(port) => Port::new(port + u16::from(register)).write(value),
                Place::Memory { address, stride } => {
                    let at = layout::PHYSICAL + address + u64::from(register) * u64::from(stride);
                    match stride {
                        4 => (at as *mut u32).write_volatile(value.into()),
                        2 => (at as *mut u16).write_volatile(value.into()),
                        _ => (at as *mut u8).write_volatile(value),
                    }
                }
            }
        }
    }
}

/// Bits per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rate {
    /// As many, of a UART with the IBM PC's clock.
    Baud(u32),
    /// Those that the machine's firmware set; as many, if it set none.
    Found(u32),
}

/// A working serial line.
pub struct Uart {
    device: Uart16550<Registers>,
    place: Place,
    /// The firmware's divisor, if that is kept.
    divisor: Option<u16>,
    polls: u32,
    /// What the line status register said that was not told yet: it forgets when it is read.
    received: LSR,
    /// Bytes that the transmitter never took.
    lost: u64,
    dead: bool,
}

impl Uart {
    /// Finds the UART at `place`, sets it to `rate`, 8 data bits, no parity, 1 stop bit, and tests it in
    /// loopback mode. Does not hang on an absent one. Physical memory is mapped as `mapped` says; without it, nothing is.
    ///
    /// # Errors
    /// There is none, or it does not work.
    ///
    /// # Safety
    /// Nobody else may use the registers, and memory at `place` must be a device's.
    pub unsafe fn open(
        place: Place,
        rate: Rate,
        mapped: Option<&Mapped>,
    ) -> Result<Self, UartError> {
        let end = match place {
            Place::Port(port) => {
                u64::from(port).checked_add(REGISTERS).filter(|&end| end <= 1 << 16)
            }
            Place::Memory { address, stride } => {
                let end = address.checked_add(REGISTERS * u64::from(stride));
                end.filter(|&end| mapped.is_some_and(|mapped| mapped.has(address, end)))
            }
        };
        if end.is_none() {
            return Err(UartError::Beyond(place));
        }
        // SAFETY: passed on.
        let mut device = unsafe { Uart16550::new_with_backend(Registers(place)) };
        if !device.check_present() {
            return Err(UartError::Absent(place));
        }
        // What is set up next waits for it without an end.
        if !becomes_empty(&mut device) {
            return Err(UartError::Stuck(place));
        }
        let (Rate::Baud(baud) | Rate::Found(baud)) = rate;
        let is_kept = matches!(rate, Rate::Found(_));
        // SAFETY: passed on.
        let divisor = unsafe { is_kept.then(|| divisor::found(device.backend_mut())).flatten() };
        let config = Config { baud_rate: BaudRate::from_integer(baud), ..Config::default() };
        device.init(config).map_err(|_| UartError::Absent(place))?;
        if let Some(divisor) = divisor {
            // SAFETY: passed on.
            unsafe { divisor::keep(device.backend_mut(), divisor) };
        }
        if changes_bytes(device.backend_mut()) {
            return Err(UartError::Broken(place));
        }
        Ok(Self { device, place, divisor, polls: 0, received: LSR::empty(), lost: 0, dead: false })
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// The divisor of the machine's firmware, if the line has its rate by that.
    #[must_use]
    pub fn divisor(&self) -> Option<u16> {
        self.divisor
    }

    /// Offers bytes to the line, and returns how many are done with: as many as it has room for now. What a device
    /// does not take within a generous time is counted as lost, and a device that took none is not waited for again.
    pub fn offer(&mut self, bytes: &[u8]) -> usize {
        if self.dead {
            self.lost += bytes.len() as u64;
            return bytes.len();
        }
        let sent = match self.place {
            Place::Port(port) => self.burst(port, bytes),
            Place::Memory { .. } => self.device.send_bytes(bytes),
        };
        self.polls = if sent == 0 && !bytes.is_empty() { self.polls + 1 } else { 0 };
        self.dead = self.polls > MAX_POLLS;
        sent
    }

    /// What `send_bytes` of the library does, by one string instruction for as much as the FIFO holds: below a hypervisor that is one
    /// exit and not one for each byte. As often as the line, which may be a virtual one, has room at once.
    fn burst(&mut self, port: u16, bytes: &[u8]) -> usize {
        let most = if self.device.fifo_enabled() { FIFO_SIZE } else { 1 };
        let mut rest = bytes;
        loop {
            // SAFETY: the line status register of the device. Flow control is off: `open` requests none.
            let status = LSR::from_bits_retain(unsafe {
                self.device.backend_mut().read(offsets::LSR as u8)
            });
            self.received |= status & WRONG;
            if rest.is_empty() || !status.contains(LSR::THR_EMPTY) {
                return bytes.len() - rest.len();
            }
            let count = rest.len().min(most);
            // SAFETY: the data register of a UART that has room for so many bytes, which are in `rest`; the direction flag is
            // clear (System V ABI 3.2.1).
            unsafe {
                asm!(
                    "rep outsb",
                    in("dx") port + offsets::DATA as u16,
                    inout("rsi") rest.as_ptr() => _, inout("rcx") count => _,
                    options(nostack, preserves_flags, readonly),
                );
            }
            rest = &rest[count..];
        }
    }

    /// What has come in next, if something has.
    pub fn receive(&mut self) -> Option<Received> {
        // SAFETY: the line status register of the device.
        let status = unsafe { self.device.backend_mut().read(offsets::LSR as u8) };
        // All ones: nothing is there any more.
        if status == u8::MAX {
            return None;
        }
        let status = LSR::from_bits_retain(status);
        self.received |= status & WRONG;
        // It is told of the byte that is there, which may be the one that was lost: the line is not whole in any case.
        if self.received.contains(LSR::OVERRUN_ERROR) {
            self.received.remove(LSR::OVERRUN_ERROR);
            return Some(Received::Overrun);
        }
        if !status.contains(LSR::DATA_READY) {
            return None;
        }
        // SAFETY: the data register of the device, which has a byte.
        let byte = unsafe { self.device.backend_mut().read(offsets::DATA as u8) };
        match core::mem::replace(&mut self.received, LSR::empty()).is_empty() {
            true => Some(Received::Byte(byte)),
            false => Some(Received::Damaged),
        }
    }

    /// Bytes that could not be sent.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Waits until the last byte has left the shift register, at most as long as for a byte that is sent.
    pub fn drain(&mut self) {
        if !self.dead {
            becomes_empty(&mut self.device);
        }
    }
}

fn becomes_empty(device: &mut Uart16550<Registers>) -> bool {
    (0..MAX_POLLS).any(|_| {
        // SAFETY: a register of the device.
        let status = unsafe { device.backend_mut().read(offsets::LSR as u8) };
        // All ones: nothing is there any more.
        status != u8::MAX && LSR::from_bits_retain(status).contains(LSR::TRANSMITTER_EMPTY)
    })
}

/// Whether the device, in loopback mode, returns another byte than it was given.
///
/// The library's test waits for the byte without an end. Devices that emulate a 16550 (BMCs, serial over LAN) may have no
/// loopback: one that returns nothing is taken for working.
fn changes_bytes(registers: &mut impl Backend) -> bool {
    const BYTE: u8 = 0x5a;
    // SAFETY: registers of the device, which `Uart::open` has set up; nobody else uses it, and its interrupts are off meanwhile.
    unsafe {
        let (mcr, ier) = (registers.read(offsets::MCR as u8), registers.read(offsets::IER as u8));
        registers.write(offsets::IER as u8, 0);
        registers.write(offsets::MCR as u8, MCR::LOOP_BACK.bits());
        // What the line left in the FIFO.
        let left = (0..=FIFO_SIZE).map_while(|_| received(registers)).count();
        registers.write(offsets::DATA as u8, BYTE);
        let returned = (0..MAX_LOOPBACK_POLLS).find_map(|_| received(registers));
        registers.write(offsets::MCR as u8, mcr);
        registers.write(offsets::IER as u8, ier);
        // A device that always says that there is data says nothing of the byte.
        left <= FIFO_SIZE && returned.is_some_and(|returned| returned != BYTE)
    }
}

/// The next byte, if one is there.
///
/// # Safety
/// Nobody else uses the device.
unsafe fn received(registers: &mut impl Backend) -> Option<u8> {
    // SAFETY: passed on.
    unsafe {
        let status = LSR::from_bits_retain(registers.read(offsets::LSR as u8));
        status.contains(LSR::DATA_READY).then(|| registers.read(offsets::DATA as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A 16550 in loopback mode.
    #[derive(Default)]
    struct Device {
        registers: [u8; 8],
        fifo: VecDeque<u8>,
        /// What it does to a byte; `None`: it has no loopback.
        returns: Option<fn(u8) -> u8>,
        always_ready: bool,
        reads: u32,
    }

    impl Backend for Device {
        unsafe fn read(&mut self, register: u8) -> u8 {
            self.reads += 1;
            match usize::from(register) {
                offsets::DATA => self.fifo.pop_front().unwrap_or(0xee),
                offsets::LSR => u8::from(self.always_ready || !self.fifo.is_empty()) | 0x60,
                other => self.registers[other],
            }
        }
        unsafe fn write(&mut self, register: u8, value: u8) {
            let loops = self.registers[offsets::MCR] & MCR::LOOP_BACK.bits() != 0;
            match (usize::from(register), self.returns) {
                (offsets::DATA, Some(returns)) if loops => self.fifo.push_back(returns(value)),
                (offsets::DATA, _) => {}
                (other, _) => self.registers[other] = value,
            }
        }
    }

    #[test]
    fn a_device_without_a_loopback_is_taken_and_none_is_waited_for_without_an_end() {
        let bad = |device: Device| {
            let mut device = device;
            device.registers[offsets::MCR] = 0x0b;
            device.registers[offsets::IER] = 1;
            let bad = changes_bytes(&mut device);
            assert_eq!([device.registers[offsets::MCR], device.registers[offsets::IER]], [0x0b, 1]);
            assert!(device.reads < 2 * MAX_LOOPBACK_POLLS, "{}", device.reads);
            bad
        };
        let returns =
            |returns: fn(u8) -> u8| Device { returns: Some(returns), ..Device::default() };
        assert!(!bad(returns(|byte| byte)));
        assert!(!bad(Device { fifo: VecDeque::from([1, 2, 3]), ..returns(|byte| byte) }));
        assert!(bad(returns(|byte| byte ^ 0x10)));
        assert!(!bad(Device::default()), "it returns nothing");
        assert!(!bad(Device { always_ready: true, ..Device::default() }));
    }
}
