//! What a loader has to say, on COM1. It says why it does not go on, so it waits for no UART without an end: the constructors of
//! `uart_16550` do, for an empty transmitter and for a byte that is looped back, which some emulated UARTs (BMCs, serial over LAN)
//! never return.
#![no_std]
#![warn(missing_docs)]

use core::fmt::{Arguments, Result, Write};
use uart_16550::Uart16550;
use uart_16550::backend::Backend;
use uart_16550::spec::registers::{FCR, IER, LCR, LSR, MCR, offsets};

/// The I/O port of COM1.
const COM1: u16 = 0x3f8;
/// 115,200 bits a second, of the IBM PC's clock.
const DIVISOR: u8 = 1;
/// Words of 8 bits, no parity, 1 stop bit.
const EIGHT_BITS: u8 = 0b11;
/// Status reads until a UART is given up: at 300 baud, which it may still have, a FIFO of 16 bytes takes 0.6 s, and a read takes
/// about a microsecond on hardware.
const MAX_POLLS: u32 = 5_000_000;

/// Says `text` on COM1, if there is one.
///
/// # Safety
/// Nobody else uses COM1 meanwhile.
pub unsafe fn say(text: Arguments) {
    // SAFETY: passed on.
    if let Ok(uart) = unsafe { Uart16550::new_port(COM1) } {
        say_on(uart, text);
    }
}

fn say_on(uart: Uart16550<impl Backend>, text: Arguments) {
    if let Some(mut line) = Line::open(uart) {
        // What does not get through has no other way.
        let _ = line.write_fmt(text);
    }
}

/// A UART that is set up.
struct Line<B: Backend>(Uart16550<B>);

impl<B: Backend> Line<B> {
    /// Sets it up; `None` if nothing answers, or its transmitter never becomes empty.
    fn open(mut uart: Uart16550<B>) -> Option<Self> {
        if !uart.check_present() {
            return None;
        }
        let mut line = Self(uart);
        // What the machine's firmware still sends is not cut off.
        line.waits_for(LSR::TRANSMITTER_EMPTY).then_some(())?;
        line.write(offsets::LCR, LCR::DLAB.bits());
        line.write(offsets::DLL, DIVISOR);
        line.write(offsets::DLM, 0);
        line.write(offsets::LCR, EIGHT_BITS);
        line.write(offsets::IER, IER::empty().bits());
        line.write(offsets::FCR, FCR::FIFO_ENABLE.bits());
        line.write(offsets::MCR, (MCR::DTR | MCR::RTS).bits());
        Some(line)
    }

    fn waits_for(&mut self, state: LSR) -> bool {
        (0..MAX_POLLS).any(|_| {
            // SAFETY: a register of the UART; who made that says so.
            let status = unsafe { self.0.backend_mut().read(offsets::LSR as u8) };
            // All ones: nothing is there any more.
            status != u8::MAX && LSR::from_bits_retain(status).contains(state)
        })
    }

    fn write(&mut self, register: usize, value: u8) {
        // SAFETY: as for reading; the values are those of its set-up, and characters.
        unsafe { self.0.backend_mut().write(register as u8, value) };
    }

    fn send(&mut self, byte: u8) -> Result {
        self.waits_for(LSR::THR_EMPTY).then_some(()).ok_or(core::fmt::Error)?;
        self.write(offsets::DATA, byte);
        Ok(())
    }
}

impl<B: Backend> Write for Line<B> {
    /// Fails at the first byte that the UART does not take: the rest of the text is not waited for.
    fn write_str(&mut self, text: &str) -> Result {
        text.bytes().try_for_each(|byte| {
            if byte == b'\n' {
                self.send(b'\r')?;
            }
            self.send(byte)
        })
    }
}

#[cfg(test)]
mod tests;
