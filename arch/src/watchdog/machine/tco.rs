//! The TCO timer of Intel's chipsets from ICH6 to the 9 series: Intel I/O Controller Hub 9 data sheet (316972), 13.9 (TCO
//! registers), 13.1 (LPC bridge) and 10.1.75 (GCS). When it expires twice, the machine is reset. Later chipsets have their
//! registers elsewhere; where ACPI describes the timer, that is used.

use super::Access;
use crate::pci::{ADDRESS_PORT, DATA_PORT, Function};

/// The LPC bridge, and offsets in its configuration: identity, PMBASE, ACPI_CNTL, RCBA.
const LPC: Function = Function { bus: 0, device: 31, function: 0 };
const ID: u16 = 0;
const PMBASE: u16 = 0x40;
const ACPI_CNTL: u16 = 0x44;
const RCBA: u16 = 0xf0;
const INTEL: u32 = 0x8086;
/// Devices, first and last, of ICH6, ICH7, ICH8, ICH9, ICH10, and the 5 to 9 series.
const DEVICES: [[u32; 2]; 10] = [
    [0x2640, 0x2642],
    [0x27b8, 0x27bd],
    [0x2810, 0x2815],
    [0x2910, 0x2919],
    [0x3a10, 0x3a1a],
    [0x3b00, 0x3b1f],
    [0x1c40, 0x1c5f],
    [0x1e40, 0x1e5f],
    [0x8c40, 0x8c5f],
    [0x8cc0, 0x8cdf],
];
/// ACPI_CNTL and RCBA: what they name is decoded.
const ACPI_ENABLE: u32 = 1 << 7;
const RCBA_ENABLE: u32 = 1;
/// Offset of the general control and status from RCBA, and its bit that keeps the timer from resetting.
const GCS: u64 = 0x3410;
const NO_REBOOT: u32 = 1 << 5;
/// Offset of SMI_EN from PMBASE, and its bit that gives the timer's first expiry to the firmware.
const SMI_EN: u64 = 0x30;
const TCO_EN: u32 = 1 << 13;
/// Offset of the TCO registers from PMBASE, and theirs: reload, status 1 and 2, control, initial value.
const TCO: u64 = 0x60;
const RELOAD: u64 = 0;
const STATUS: [u64; 2] = [4, 6];
const CONTROL: u64 = 8;
const INITIAL: u64 = 0x12;
/// Control: the timer is halted; the control is locked. Status: it expired, and expired twice.
const HALTED: u32 = 1 << 11;
const LOCKED: u32 = 1 << 12;
const EXPIRED: u32 = 1 << 3;
const TWICE: u32 = 1 << 1;
/// Milliseconds of a count, and the counts that it takes; one of them is spent before each of its two expiries.
const COUNT_MS: u64 = 600;
const COUNTS: [u64; 2] = [4, 0x3ff];

/// The timer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tco {
    /// I/O port of the power management registers.
    pm: u64,
    /// Physical address of the general control and status.
    gcs: u64,
}

fn configuration(access: &mut impl Access, offset: u16) -> u32 {
    access.write(true, ADDRESS_PORT.into(), 4, LPC.select(offset));
    access.read(true, DATA_PORT.into(), 4)
}

impl Tco {
    /// Looks for it. `None`: another chipset, it is not switched on, or a strap of the board keeps it from resetting.
    pub fn find(access: &mut impl Access) -> Option<Self> {
        let id = configuration(access, ID);
        let device = id >> 16;
        let known = DEVICES.iter().any(|[first, last]| (first..=last).contains(&&device));
        if id & 0xffff != INTEL || !known {
            return None;
        }
        let pm = u64::from(configuration(access, PMBASE) & 0xff80);
        let rcba = configuration(access, RCBA);
        if configuration(access, ACPI_CNTL) & ACPI_ENABLE == 0 || pm == 0 || rcba & RCBA_ENABLE == 0
        {
            return None;
        }
        let found = Self { pm, gcs: u64::from(rcba & !0x3fff) + GCS };
        if found.control(access) & LOCKED != 0 {
            return None;
        }
        // It runs from the machine's reset on, and would reset it before it is set.
        found.halt(access, true);
        let gcs = access.read(false, found.gcs, 4);
        access.write(false, found.gcs, 4, gcs & !NO_REBOOT);
        // With the strap the bit stays.
        (access.read(false, found.gcs, 4) & NO_REBOOT == 0).then_some(found)
    }

    fn control(&self, access: &mut impl Access) -> u32 {
        access.read(true, self.pm + TCO + CONTROL, 2)
    }

    fn halt(&self, access: &mut impl Access, halted: bool) {
        let control = self.control(access) & !HALTED;
        let control = control | if halted { HALTED } else { 0 };
        access.write(true, self.pm + TCO + CONTROL, 2, control);
    }

    /// See [`super::Watchdog::arm`].
    pub fn arm(&self, access: &mut impl Access, ms: u64) -> bool {
        let [least, most] = COUNTS;
        let counts = ms.div_ceil(2 * COUNT_MS).clamp(least, most);
        self.halt(access, true);
        let enabled = access.read(true, self.pm + SMI_EN, 4);
        access.write(true, self.pm + SMI_EN, 4, enabled & !TCO_EN);
        // Written ones clear.
        for (register, bit) in STATUS.into_iter().zip([EXPIRED, TWICE]) {
            access.write(true, self.pm + TCO + register, 2, bit);
        }
        let kept = access.read(true, self.pm + TCO + INITIAL, 2) & !0x3ff;
        access.write(true, self.pm + TCO + INITIAL, 2, kept | counts as u32);
        self.reload(access);
        self.halt(access, false);
        self.control(access) & HALTED == 0
    }

    /// See [`super::Watchdog::reload`].
    pub fn reload(&self, access: &mut impl Access) {
        access.write(true, self.pm + TCO + RELOAD, 2, 1);
    }

    /// See [`super::Watchdog::stop`].
    pub fn stop(&self, access: &mut impl Access) {
        self.halt(access, true);
    }
}

#[cfg(test)]
mod tests {
    use super::super::wdat::tests::Model;
    use super::*;

    /// A chipset: configuration space through its two ports, and registers.
    struct Chipset {
        configuration: [(u16, u32); 4],
        selected: u32,
        registers: Model,
        strap: bool,
    }

    const PM: u64 = 0x600;
    const AT: u64 = 0xfed1_c000;

    fn chipset() -> Chipset {
        let configuration =
            [(ID, 0x2918_8086), (PMBASE, 0x601), (ACPI_CNTL, 0x80), (RCBA, 0xfed1_c001)];
        let mut registers = Model::default();
        registers.held.insert((false, AT + GCS), NO_REBOOT | 1);
        registers.held.insert((true, PM + SMI_EN), TCO_EN | 1);
        registers.held.insert((true, PM + TCO + INITIAL), 0xfc04);
        Chipset { configuration, selected: 0, registers, strap: false }
    }

    impl Access for Chipset {
        fn read(&mut self, is_port: bool, address: u64, bytes: u8) -> u32 {
            if is_port && address == u64::from(DATA_PORT) {
                let offset = self.selected as u16 & 0xfc;
                let found = self.configuration.iter().find(|(at, _)| *at == offset);
                return found.map_or(u32::MAX, |(_, value)| *value);
            }
            let value = self.registers.read(is_port, address, bytes);
            if self.strap && address == AT + GCS { value | NO_REBOOT } else { value }
        }
        fn write(&mut self, is_port: bool, address: u64, bytes: u8, value: u32) {
            if is_port && address == u64::from(ADDRESS_PORT) {
                assert_eq!(value & !0xfc, LPC.select(0));
                self.selected = value;
                return;
            }
            self.registers.write(is_port, address, bytes, value);
        }
    }

    #[test]
    fn x1_the_timer_is_set_for_two_expiries_and_runs() {
        let mut chipset = chipset();
        let tco = Tco::find(&mut chipset).unwrap();
        assert_eq!(tco, Tco { pm: PM, gcs: AT + GCS });
        let held = |chipset: &Chipset, port: u64| chipset.registers.held[&(true, PM + port)];
        assert_eq!(chipset.registers.held[&(false, AT + GCS)], 1, "it may reset");
        assert!(tco.arm(&mut chipset, 30_000));
        assert_eq!(held(&chipset, TCO + INITIAL), 0xfc00 | 25, "twice 25 counts of 600 ms");
        assert_eq!(held(&chipset, SMI_EN), 1, "no SMI takes its first expiry");
        assert_eq!(held(&chipset, TCO + CONTROL) & HALTED, 0);
        assert_eq!((held(&chipset, TCO + 4), held(&chipset, TCO + 6)), (EXPIRED, TWICE));
        tco.stop(&mut chipset);
        assert_eq!(held(&chipset, TCO + CONTROL) & HALTED, HALTED);
        for (ms, counts) in [(0, 4), (u64::MAX, 0x3ff)] {
            tco.arm(&mut chipset, ms);
            assert_eq!(held(&chipset, TCO + INITIAL) & 0x3ff, counts);
        }
    }

    #[test]
    fn x1_other_chipsets_straps_and_locks_leave_it_alone() {
        let none = |change: &dyn Fn(&mut Chipset)| {
            let mut chipset = chipset();
            change(&mut chipset);
            assert_eq!(Tco::find(&mut chipset), None);
        };
        none(&|chipset| chipset.configuration[0].1 = 0x7000_8086);
        none(&|chipset| chipset.configuration[0].1 = 0x2918_1022);
        none(&|chipset| chipset.configuration[0].1 = u32::MAX);
        none(&|chipset| chipset.configuration[1].1 = 1);
        none(&|chipset| chipset.configuration[2].1 = 0);
        none(&|chipset| chipset.configuration[3].1 = 0xfed1_c000);
        none(&|chipset| chipset.strap = true);
        none(&|chipset| {
            chipset.registers.held.insert((true, PM + TCO + CONTROL), LOCKED);
        });
    }
}
