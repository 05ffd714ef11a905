//! The serial ports that ACPI names: the console's in the SPCR table, debuggers' in DBG2 (Microsoft, "Serial Port Console
//! Redirection Table" revision 4, "Debug Port Table 2" revision 1).

use super::bytes::{half, word};
use crate::uart::Place;
use alloc::vec::Vec;

/// Bytes of a table's header.
const HEADER: usize = 36;
/// SPCR: kind of interface, and where its generic address is.
const SPCR_KIND: usize = 36;
const SPCR_ADDRESS: usize = 40;
/// DBG2: offset of the first device, and how many there are.
const DBG2_OFFSET: usize = 36;
const DBG2_COUNT: usize = 40;
/// In a device of DBG2: its length, its type and subtype, and where its generic address is.
const DEVICE_LENGTH: usize = 1;
const DEVICE_TYPE: usize = 12;
const DEVICE_SUBTYPE: usize = 14;
const DEVICE_ADDRESS: usize = 18;
/// The type of a serial port.
const SERIAL: u16 = 0x8000;
/// Kinds of interfaces that are 16550s, the same in both tables: full 16550, 16450, and 16550 by its generic address.
const KINDS: [u16; 3] = [0x00, 0x01, 0x12];

/// The console's port, of an SPCR table.
#[must_use]
pub fn console(table: &[u8]) -> Option<Place> {
    let table = whole(table)?;
    let kind = u16::from(*table.get(SPCR_KIND)?);
    KINDS.contains(&kind).then(|| place(table.get(SPCR_ADDRESS..)?)).flatten()
}

/// The debuggers' ports, of a DBG2 table.
#[must_use]
pub fn debug(table: &[u8]) -> Vec<Place> {
    let Some(table) = whole(table) else { return Vec::new() };
    let (mut at, count) = (word(table, DBG2_OFFSET), word(table, DBG2_COUNT));
    let mut places = Vec::new();
    // A device has 22 bytes at least, so a damaged count ends with the table.
    for _ in 0..count {
        let Some(device) = table.get(at as usize..).filter(|rest| rest.len() >= 22) else { break };
        let kinds = (half(device, DEVICE_TYPE), half(device, DEVICE_SUBTYPE));
        if kinds.0 == SERIAL && KINDS.contains(&kinds.1) {
            let address = device.get(usize::from(half(device, DEVICE_ADDRESS))..);
            places.extend(address.and_then(place));
        }
        at = at.saturating_add(u32::from(half(device, DEVICE_LENGTH).max(1)));
    }
    places
}

/// The table, cut to the length that it names, if it is all there and its bytes add up to zero.
fn whole(table: &[u8]) -> Option<&[u8]> {
    let table = table.get(..word(table, 4) as usize).filter(|table| table.len() > HEADER)?;
    let sum = table.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    (sum == 0).then_some(table)
}

/// A generic address (ACPI specification, 5.2.3.2) as a UART's place. Address 0 means that there is none.
fn place(address: &[u8]) -> Option<Place> {
    let address = address.get(..12)?;
    let (space, access) = (address[0], address[3]);
    let at = u64::from_le_bytes(address[4..].try_into().ok()?);
    // The width of an access is also the distance from register to register; 0 means bytes.
    let stride = match access {
        0 | 1 => 1,
        2 => 2,
        3 => 4,
        _ => return None,
    };
    match space {
        0 if at != 0 => Some(Place::Memory { address: at, stride }),
        1 if at != 0 => Some(Place::Port(u16::try_from(at).ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table with its length and checksum.
    fn table(signature: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let length = (HEADER + content.len()) as u32;
        let mut table = [&signature[..], &length.to_le_bytes(), &[0; 28], content].concat();
        table[9] = table.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
        table
    }

    fn address(space: u8, access: u8, at: u64) -> Vec<u8> {
        [&[space, 8, 0, access], &at.to_le_bytes()[..]].concat()
    }

    fn spcr(kind: u8, address: &[u8]) -> Vec<u8> {
        table(b"SPCR", &[&[kind, 0, 0, 0], address, &[0; 28]].concat())
    }

    #[test]
    fn the_consoles_port_is_a_port_or_memory() {
        assert_eq!(console(&spcr(0, &address(1, 1, 0x2f8))), Some(Place::Port(0x2f8)));
        let memory = Place::Memory { address: 0xfe03_4000, stride: 4 };
        assert_eq!(console(&spcr(0x12, &address(0, 3, 0xfe03_4000))), Some(memory));
        // An ARM PL011; a port beyond the port space; none at all.
        assert_eq!(console(&spcr(3, &address(0, 3, 0xfe03_4000))), None);
        assert_eq!(console(&spcr(0, &address(1, 1, 0x1_0000))), None);
        assert_eq!(console(&spcr(0, &address(0, 0, 0))), None);
    }

    #[test]
    fn a_table_with_a_wrong_sum_or_without_its_end_does_not_count() {
        let good = spcr(0, &address(1, 1, 0x2f8));
        let mut bad = good.clone();
        bad[60] ^= 1;
        assert_eq!(console(&bad), None);
        assert_eq!(console(&good[..good.len() - 1]), None);
        // What follows a table is none of it.
        assert!(console(&[&good[..], &[1; 9]].concat()).is_some());
    }

    fn device(kind: u16, subtype: u16, address: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&subtype.to_le_bytes());
        bytes.extend_from_slice(&[0, 0, 22, 0, 0, 0]);
        bytes.extend_from_slice(address);
        let length = (bytes.len() as u16).to_le_bytes();
        bytes[1..3].copy_from_slice(&length);
        bytes
    }

    /// What follows the header of a DBG2 table with two serial ports and another debugger between them.
    fn three_devices() -> Vec<u8> {
        let devices = [
            device(0x8000, 0, &address(1, 1, 0x3e8)),
            device(0x8003, 0, &address(1, 1, 0x123)),
            device(0x8000, 0x12, &address(0, 1, 0xfe00_0000)),
        ];
        [&44_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), &devices.concat()].concat()
    }

    #[test]
    fn debuggers_ports_are_the_serial_ones() {
        let memory = Place::Memory { address: 0xfe00_0000, stride: 1 };
        assert_eq!(debug(&table(b"DBG2", &three_devices())), [Place::Port(0x3e8), memory]);
    }

    proptest! {
        #[test]
        fn no_table_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let made = table(b"DBG2", &bytes);
            let (_, _) = (console(&made), debug(&made));
            let (_, _) = (console(&bytes), debug(&bytes));
        }

        /// A few bytes of a good table are changed or its end is missing, and the checksum is right again: it is read as far as it goes.
        #[test]
        fn no_damaged_table_makes_it_panic(
            changes in prop::collection::vec((0..three_devices().len(), any::<u8>()), 0..6),
            end in prop::option::of(0..three_devices().len()),
        ) {
            let mut content = three_devices();
            for (at, to) in changes {
                content[at] = to;
            }
            content.truncate(end.unwrap_or(content.len()));
            let made = table(b"DBG2", &content);
            // Wherever a wrong length leads to, the next device begins behind this one's first byte.
            prop_assert!(debug(&made).len() <= made.len());
            let _ = console(&made);
        }
    }
}
