//! Serial lines: 16550s, whose registers are I/O ports or memory.

use crate::memory::layout;
use core::arch::asm;
use core::fmt;
use thiserror::Error;
use uart_16550::backend::Backend;
use uart_16550::spec::FIFO_SIZE;
use uart_16550::spec::registers::{LSR, offsets};
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
    /// Something answers, but is not a working 16550.
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
/// The registers of a 16550.
const REGISTERS: u64 = 8;

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

/// A working serial line.
pub struct Uart {
    device: Uart16550<Registers>,
    place: Place,
    polls: u32,
    /// Bytes that the transmitter never took.
    lost: u64,
    dead: bool,
}

impl Uart {
    /// Finds the UART at `place`, sets it to `baud`, 8 data bits, no parity, 1 stop bit, and tests it in
    /// loopback mode. Does not hang on an absent one. Physical memory is mapped below `mapped_bytes`.
    ///
    /// # Errors
    /// There is none, or it does not work.
    ///
    /// # Safety
    /// Nobody else may use the registers, and memory at `place` must be a device's.
    pub unsafe fn open(place: Place, baud: u32, mapped_bytes: u64) -> Result<Self, UartError> {
        let end = match place {
            Place::Port(port) => {
                u64::from(port).checked_add(REGISTERS).filter(|&end| end <= 1 << 16)
            }
            Place::Memory { address, stride } => {
                let end = address.checked_add(REGISTERS * u64::from(stride));
                end.filter(|&end| end <= mapped_bytes)
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
        let config = Config { baud_rate: BaudRate::from_integer(baud), ..Config::default() };
        device.init(config).map_err(|_| UartError::Absent(place))?;
        device.test_loopback().map_err(|_| UartError::Broken(place))?;
        Ok(Self { device, place, polls: 0, lost: 0, dead: false })
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
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

    /// What `send_bytes` of the library does, by one string instruction: below a hypervisor that is one exit and not one for
    /// each byte.
    fn burst(&mut self, port: u16, bytes: &[u8]) -> usize {
        // SAFETY: the line status register of the device. Flow control is off: `open` requests none.
        let status =
            LSR::from_bits_retain(unsafe { self.device.backend_mut().read(offsets::LSR as u8) });
        if bytes.is_empty() || !status.contains(LSR::THR_EMPTY) {
            return 0;
        }
        let count = bytes.len().min(if self.device.fifo_enabled() { FIFO_SIZE } else { 1 });
        // SAFETY: the data register of a UART that has room for so many bytes, which are in `bytes`; the direction flag is
        // clear (System V ABI 3.2.1).
        unsafe {
            asm!(
                "rep outsb",
                in("dx") port + offsets::DATA as u16,
                inout("rsi") bytes.as_ptr() => _, inout("rcx") count => _,
                options(nostack, preserves_flags, readonly),
            );
        }
        count
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
