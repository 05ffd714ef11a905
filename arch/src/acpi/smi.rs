//! How a system management interrupt is raised: the FADT's SMI_CMD (ACPI specification 6.5, 5.2.9).

use super::bytes::word;

/// The FADT's bytes that have a meaning at that port: ACPI_ENABLE, ACPI_DISABLE, S4BIOS_REQ, PSTATE_CNT, CST_CNT.
const COMMANDS: [usize; 5] = [52, 53, 54, 55, 95];
/// The first value that is tried. SeaBIOS knows 0 and 0xb5 (`src/fw/smm.c`); UEFI's services begin at 0.
const FIRST: u8 = 0xd0;

/// The port, and a value that requests nothing: none of those that the table names. `None`: the table has no port. It begins with its
/// header.
#[must_use]
pub fn command(fadt: &[u8]) -> Option<(u16, u8)> {
    let port = u16::try_from(word(fadt, 48)).ok().filter(|port| *port != 0)?;
    let taken = COMMANDS.map(|at| fadt.get(at).copied().unwrap_or(0));
    (FIRST..).find(|value| !taken.contains(value)).map(|value| (port, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d4_a_planted_smi_asks_for_nothing() {
        // As on QEMU's pc: port 0xb2, 0xf1 and 0xf0 switch ACPI on and off.
        let mut fadt = [0; 116];
        (fadt[48], fadt[52], fadt[53]) = (0xb2, 0xf1, 0xf0);
        assert_eq!(command(&fadt), Some((0xb2, 0xd0)));
        (fadt[52], fadt[55], fadt[95]) = (0xd0, 0xd1, 0xd3);
        assert_eq!(command(&fadt), Some((0xb2, 0xd2)));
        // A hardware-reduced machine has no such port, and a table of nonsense neither.
        assert_eq!((command(&[0; 116]), command(&[0xff; 116]), command(&[])), (None, None, None));
    }
}
