//! Channel 2 of the 8254 timer, the one after the speaker gate: it counts down while nothing else in
//! the machine depends on it. Intel 8254 data sheet; port 0x61 as in the PC AT reference.

use x86_64::instructions::port::Port;

/// Rate of the 8254 in Hz: 14.31818 MHz / 12.
pub const HZ: u64 = 1_193_182;
const CHANNEL_2: u16 = 0x42;
const COMMAND: u16 = 0x43;
const GATE: u16 = 0x61;
/// Channel 2, low byte then high byte, mode 0 (terminal count), binary.
const ONE_SHOT: u8 = 0b1011_0000;
/// Latches channel 2's count.
const LATCH: u8 = 0b1000_0000;

/// A countdown from 65,535: 55 ms until it wraps.
pub struct Countdown {
    channel: Port<u8>,
    command: Port<u8>,
}

impl Countdown {
    /// Starts it.
    pub fn start() -> Self {
        let mut countdown = Self { channel: Port::new(CHANNEL_2), command: Port::new(COMMAND) };
        let mut gate = Port::<u8>::new(GATE);
        // SAFETY: fixed ports of every PC; reads of ports without a device give all ones, and the caller
        // notices that the count stands still. Gate on, speaker off.
        unsafe {
            let value = gate.read();
            gate.write(value & !0b10 | 0b01);
            countdown.command.write(ONE_SHOT);
            countdown.channel.write(0xff);
            countdown.channel.write(0xff);
        }
        countdown
    }

    /// Ticks since the start.
    pub fn elapsed(&mut self) -> u64 {
        // SAFETY: as in `start`.
        let (low, high) = unsafe {
            self.command.write(LATCH);
            (self.channel.read(), self.channel.read())
        };
        u64::from(0xffff - u16::from_le_bytes([low, high]))
    }
}
