//! The divisor that the machine's firmware gave a UART. Many UARTs that are not COM1 to COM4 have another clock than the IBM PC's (1.8432
//! MHz): AMD's 48 MHz, cards 14.7456, 62.5 or 125 MHz. What their firmware has set up has the right rate; what it is, it does not say.

use uart_16550::backend::Backend;
use uart_16550::spec::registers::{LCR, offsets};

/// Words of 8 bits: after a reset they have 5, so that somebody set the UART up (PC16550D data sheet, table II).
const EIGHT_BITS: u8 = 0b11;

/// The divisor, if the firmware set one.
///
/// # Safety
/// The registers must be those of a UART that is used by nobody else.
pub(super) unsafe fn found(registers: &mut impl Backend) -> Option<u16> {
    // SAFETY: the caller's promise.
    unsafe {
        let line = registers.read(offsets::LCR as u8);
        let set_up = line & EIGHT_BITS == EIGHT_BITS && line != u8::MAX;
        let divisor = set_up.then(|| {
            registers.write(offsets::LCR as u8, line | LCR::DLAB.bits());
            let bytes = [offsets::DLL, offsets::DLM].map(|at| registers.read(at as u8));
            registers.write(offsets::LCR as u8, line);
            u16::from_le_bytes(bytes)
        });
        divisor.filter(|divisor| *divisor != 0)
    }
}

/// Sets it again.
///
/// # Safety
/// As for [`found`].
pub(super) unsafe fn keep(registers: &mut impl Backend, divisor: u16) {
    // SAFETY: the caller's promise.
    unsafe {
        let line = registers.read(offsets::LCR as u8);
        registers.write(offsets::LCR as u8, line | LCR::DLAB.bits());
        for (at, byte) in [offsets::DLL, offsets::DLM].into_iter().zip(divisor.to_le_bytes()) {
            registers.write(at as u8, byte);
        }
        registers.write(offsets::LCR as u8, line & !LCR::DLAB.bits());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uart_16550::{BaudRate, Config, Uart16550};

    /// Registers, and divisor latches behind the first two.
    #[derive(Default)]
    struct Model {
        held: [u8; 8],
        latches: [u8; 2],
    }

    impl Model {
        fn place(&mut self, register: u8) -> &mut u8 {
            let latched = self.held[offsets::LCR] & LCR::DLAB.bits() != 0 && register < 2;
            let bank = if latched { &mut self.latches[..] } else { &mut self.held };
            &mut bank[usize::from(register)]
        }
    }

    impl Backend for Model {
        unsafe fn read(&mut self, register: u8) -> u8 {
            match usize::from(register) {
                // Nothing came, and all has left.
                offsets::LSR => 0x60,
                _ => *self.place(register),
            }
        }
        unsafe fn write(&mut self, register: u8, value: u8) {
            *self.place(register) = value;
        }
    }

    fn model(line: u8, divisor: u16) -> Model {
        let mut model = Model { latches: divisor.to_le_bytes(), ..Model::default() };
        model.held[offsets::LCR] = line;
        model
    }

    #[test]
    fn x5_the_firmwares_divisor_outlives_the_set_up() {
        // 115,200 baud of AMD's 48 MHz: 26.
        for divisor in [26_u16, 0x1234] {
            let mut registers = model(0x03, divisor);
            // SAFETY: a model.
            let found = unsafe { found(&mut registers) };
            assert_eq!((found, registers.held[offsets::LCR]), (Some(divisor), 0x03));
            // SAFETY: a model.
            let mut device = unsafe { Uart16550::new_with_backend(registers) };
            let baud_rate = BaudRate::from_integer(115_200);
            device.init(Config { baud_rate, ..Config::default() }).unwrap();
            // SAFETY: a model.
            unsafe {
                assert_eq!(device.backend_mut().latches, [1, 0]);
                keep(device.backend_mut(), divisor);
                assert_eq!(device.backend_mut().latches, divisor.to_le_bytes());
                assert_eq!(device.backend_mut().held[offsets::LCR], 0x03, "8N1, and no latches");
            }
        }
    }

    #[test]
    fn x5_a_port_that_nobody_set_up_has_no_divisor() {
        // As after a reset, without a divisor, and nothing at all.
        for (line, divisor) in [(0, 26), (0x03, 0), (0xff, 0xffff)] {
            // SAFETY: a model.
            assert_eq!(unsafe { found(&mut model(line, divisor)) }, None, "{line:#x}");
        }
    }
}
