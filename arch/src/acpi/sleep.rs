//! The writes by which a machine goes to sleep: ACPI specification 6.5, 4.8.3 and 16.1.7.

/// SLP_EN, and where SLP_TYP is in PM1_CNT; SCI_EN, which says that the hardware is in ACPI mode.
const SLEEP_ENABLE: u16 = 1 << 13;
const SLEEP_TYPE_SHIFT: u32 = 10;
const SLEEP_TYPE_MASK: u16 = 7 << SLEEP_TYPE_SHIFT;
const ACPI_MODE: u16 = 1;
/// WAK_STS in PM1_STS, which a one clears.
const WAKE_STATUS: u16 = 1 << 15;
/// Looks until ACPI mode is on, each after a pause.
const LOOKS: u32 = 30;

/// The ports.
pub trait Ports {
    /// Reads a register of 16 bits.
    fn read(&mut self, port: u16) -> u16;
    /// Writes one.
    fn write(&mut self, port: u16, value: u16);
    /// Writes a command of 8 bits.
    fn command(&mut self, port: u16, value: u8);
    /// Gives the machine time.
    fn pause(&mut self);
}

/// What the tables say of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Registers {
    /// Port of PM1_CNT, and SLP_TYP for it: of the first block, and of the second, if there is one.
    pub control: [Option<(u16, u8)>; 2],
    /// Ports of PM1_STS.
    pub status: [Option<u16>; 2],
    /// Port and command that switch to ACPI mode.
    pub acpi_mode: Option<(u16, u8)>,
}

impl Registers {
    /// Writes what sends the machine to sleep; where it is still there, switches to ACPI mode and writes that again. Returns only if
    /// that does not help.
    pub fn sleep(&self, ports: &mut impl Ports) {
        self.enter(ports);
        ports.pause();
        let Some((first, _)) = self.control[0] else { return };
        let Some((port, command)) = self.acpi_mode else { return };
        if ports.read(first) & ACPI_MODE != 0 {
            return;
        }
        ports.command(port, command);
        let on = (0..LOOKS).any(|_| {
            ports.pause();
            ports.read(first) & ACPI_MODE != 0
        });
        if on {
            self.enter(ports);
            ports.pause();
        }
    }

    /// SLP_TYP to both, and then SLP_EN: some hardware takes no notice of both bits in one write (ACPICA, `hwsleep.c`).
    fn enter(&self, ports: &mut impl Ports) {
        for port in self.status.into_iter().flatten() {
            ports.write(port, WAKE_STATUS);
        }
        let values = self.control.map(|block| {
            let (port, kind) = block?;
            let kept = ports.read(port) & !SLEEP_TYPE_MASK & !SLEEP_ENABLE;
            Some((port, kept | u16::from(kind & 7) << SLEEP_TYPE_SHIFT))
        });
        for bits in [0, SLEEP_ENABLE] {
            for (port, value) in values.into_iter().flatten() {
                ports.write(port, value | bits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Registers that hold what is written, and what was written.
    #[derive(Default)]
    struct Model {
        held: BTreeMap<u16, u16>,
        done: Vec<(u16, u16)>,
        /// Pauses after the command until ACPI mode is on.
        takes: u32,
        pauses: Option<u32>,
    }

    impl Ports for Model {
        fn read(&mut self, port: u16) -> u16 {
            self.held.get(&port).copied().unwrap_or(0)
        }
        fn write(&mut self, port: u16, value: u16) {
            self.done.push((port, value));
            self.held.insert(port, value);
        }
        fn command(&mut self, port: u16, value: u8) {
            self.done.push((port, value.into()));
            self.pauses = Some(0);
        }
        fn pause(&mut self) {
            let Some(pauses) = &mut self.pauses else { return };
            *pauses += 1;
            if *pauses == self.takes {
                *self.held.entry(0x604).or_default() |= ACPI_MODE;
            }
        }
    }

    const BOTH: Registers = Registers {
        control: [Some((0x604, 5)), Some((0x704, 7))],
        status: [Some(0x600), Some(0x700)],
        acpi_mode: Some((0xb2, 0xf1)),
    };
    const WAKE: [(u16, u16); 2] = [(0x600, 0x8000), (0x700, 0x8000)];

    #[test]
    fn the_type_is_written_to_both_before_the_machine_is_sent_off() {
        let mut model =
            Model { held: [(0x604, 0x2401), (0x704, 0x0800)].into(), ..Model::default() };
        BOTH.sleep(&mut model);
        let writes = [(0x604, 0x1401), (0x704, 0x1c00), (0x604, 0x3401), (0x704, 0x3c00)];
        assert_eq!(
            model.done,
            [&WAKE[..], &writes].concat(),
            "in ACPI mode there is no second try"
        );
    }

    #[test]
    fn a_machine_that_is_not_in_acpi_mode_is_switched_to_it_and_sent_off_again() {
        let mut model = Model { takes: 3, ..Model::default() };
        BOTH.sleep(&mut model);
        let first = [(0x604, 0x1400), (0x704, 0x1c00), (0x604, 0x3400), (0x704, 0x3c00)];
        let second = [(0x604, 0x1401), (0x704, 0x1c00), (0x604, 0x3401), (0x704, 0x3c00)];
        let all = [&WAKE[..], &first, &[(0xb2, 0xf1)], &WAKE, &second].concat();
        assert_eq!(model.done, all);
        // It never becomes so; there is no such command; one block alone.
        let mut model = Model::default();
        BOTH.sleep(&mut model);
        assert_eq!(model.done, all[..7]);
        let one =
            Registers { control: [Some((0x604, 0)), None], status: [None; 2], acpi_mode: None };
        let mut model = Model::default();
        one.sleep(&mut model);
        assert_eq!(model.done, [(0x604, 0), (0x604, 0x2000)]);
    }
}
