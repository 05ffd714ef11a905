//! The serial line: a 16550 at the port of COM1.

use thiserror::Error;
use uart_16550::backend::PioBackend;
use uart_16550::{BaudRate, Config, Uart16550};

/// I/O port of COM1.
pub const COM1: u16 = 0x3f8;

/// Why there is no serial line.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum UartError {
    /// Nothing answers at the port.
    #[error("no UART answers at port {0:#x}")]
    Absent(u16),
    /// Something answers, but is no working 16550.
    #[error("the UART at port {0:#x} does not pass its loopback test")]
    Broken(u16),
}

/// A transmitter gives up on a UART that does not become ready: at 300 baud a FIFO of 16 bytes takes
/// 0.6 s; a status read takes about a microsecond on hardware.
const MAX_POLLS: u32 = 5_000_000;

/// A working serial line.
pub struct Uart {
    device: Uart16550<PioBackend>,
    /// Bytes that the transmitter never took.
    lost: u64,
    dead: bool,
}

impl Uart {
    /// Finds the UART at `port`, sets it to `baud`, 8 data bits, no parity, 1 stop bit, and tests it in
    /// loopback mode. Does not hang on an absent one.
    ///
    /// # Errors
    /// There is none, or it does not work.
    ///
    /// # Safety
    /// Nobody else may use the port.
    pub unsafe fn open(port: u16, baud: u32) -> Result<Self, UartError> {
        // SAFETY: passed on.
        let device = unsafe { Uart16550::new_port(port) };
        let mut device = device.map_err(|_| UartError::Absent(port))?;
        if !device.check_present() {
            return Err(UartError::Absent(port));
        }
        let config = Config { baud_rate: BaudRate::from_integer(baud), ..Config::default() };
        device.init(config).map_err(|_| UartError::Absent(port))?;
        device.test_loopback().map_err(|_| UartError::Broken(port))?;
        Ok(Self { device, lost: 0, dead: false })
    }

    /// Sends all bytes, waiting for the line. Bytes that the device does not take within a generous time
    /// are counted as lost, and a device that took none is not waited for again.
    pub fn send(&mut self, mut bytes: &[u8]) {
        let mut polls = 0;
        while !bytes.is_empty() {
            if self.dead {
                self.lost += bytes.len() as u64;
                return;
            }
            let sent = self.device.send_bytes(bytes);
            bytes = &bytes[sent..];
            polls = if sent == 0 { polls + 1 } else { 0 };
            self.dead = polls > MAX_POLLS;
        }
    }

    /// Bytes that could not be sent.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Waits until the last byte has left the shift register, at most as long as [`Uart::send`] would.
    pub fn drain(&mut self) {
        for _ in 0..MAX_POLLS {
            if self.dead
                || self.device.lsr().contains(uart_16550::spec::registers::LSR::TRANSMITTER_EMPTY)
            {
                return;
            }
        }
    }
}
