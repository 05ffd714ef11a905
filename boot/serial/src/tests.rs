use super::*;
extern crate std;
use std::vec::Vec;

/// A UART without a loopback.
#[derive(Default)]
struct Device {
    scratch: u8,
    sent: Vec<u8>,
    /// Writes to the registers of its set-up.
    set_up: Vec<[u8; 2]>,
    /// It answers.
    is_there: bool,
    /// Its transmitter becomes empty so often.
    takes: u32,
    reads: u32,
}

impl Backend for &mut Device {
    unsafe fn read(&mut self, register: u8) -> u8 {
        self.reads += 1;
        match usize::from(register) {
            _ if !self.is_there => u8::MAX,
            offsets::SPR => self.scratch,
            offsets::LSR if self.takes > 0 => {
                self.takes -= 1;
                (LSR::THR_EMPTY | LSR::TRANSMITTER_EMPTY).bits()
            }
            _ => 0,
        }
    }

    unsafe fn write(&mut self, register: u8, value: u8) {
        let sets_divisor = self.set_up.last() == Some(&[offsets::LCR as u8, LCR::DLAB.bits()]);
        match usize::from(register) {
            offsets::SPR => self.scratch = value,
            offsets::DATA if !sets_divisor => self.sent.push(value),
            _ => self.set_up.push([register, value]),
        }
    }
}

/// What arrives of a text on a UART that takes so many bytes, and how it was set up.
fn said(is_there: bool, takes: u32) -> (Vec<u8>, Vec<[u8; 2]>) {
    let mut device = Device { is_there, takes, ..Device::default() };
    // SAFETY: the registers are a model's.
    say_on(unsafe { Uart16550::new_with_backend(&mut device) }, format_args!("a\n{}", "bc"));
    assert!(device.reads < MAX_POLLS + 100, "it is waited for once: {}", device.reads);
    (device.sent, device.set_up)
}

#[test]
fn a_uart_that_returns_nothing_or_stops_is_not_waited_for_without_an_end() {
    let (sent, set_up) = said(true, u32::MAX);
    assert_eq!(sent, b"a\r\nbc", "there is no loopback");
    assert_eq!(set_up, [[3, 0x80], [0, 1], [1, 0], [3, 3], [1, 0], [2, 1], [4, 3]]);
    assert_eq!(said(true, 0), (Vec::new(), Vec::new()), "its transmitter is never empty");
    assert_eq!(said(true, 1 + 2).0, b"a\r", "it takes no more");
    assert_eq!(said(false, 0), (Vec::new(), Vec::new()), "nothing is there");
}
