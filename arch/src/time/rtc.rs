//! The second of the real-time clock: Motorola MC146818 data sheet, registers 0 and A.

use x86_64::instructions::port::Port;

const INDEX: u16 = 0x70;
const DATA: u16 = 0x71;
/// The seconds.
const SECONDS: u8 = 0;
/// Index bit 7 masks NMIs on PCs; it is left clear, as the firmware leaves it.
const NO_DEVICE: u8 = 0xff;

/// The seconds as the clock has them; `None` without a clock. In the 2 ms of an update they may be anything, so that one look
/// that differs is not an edge yet.
#[must_use]
pub fn seconds() -> Option<u8> {
    let (mut index, mut data) = (Port::<u8>::new(INDEX), Port::<u8>::new(DATA));
    // SAFETY: fixed ports of every PC; reading register 0 changes nothing.
    let value = unsafe {
        index.write(SECONDS);
        data.read()
    };
    (value != NO_DEVICE).then_some(value)
}
