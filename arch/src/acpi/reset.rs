//! The reset register: ACPI specification 6.5, 4.8.3.6 and 5.2.9.

use super::bytes::word;
use crate::pci::Function;

/// Where it is in the FADT: flags, of which one says that there is one; its generic address; the value to write.
const FLAGS: usize = 112;
const RESET_REG_SUP: u32 = 1 << 10;
const REGISTER: usize = 116;
const VALUE: usize = 128;

/// Where a byte is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// An I/O port.
    Port(u16),
    /// A physical address below 4 GiB.
    Memory(u32),
    /// PCI configuration space of a function on bus 0, and the offset.
    Pci(Function, u16),
}

/// How the machine is reset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reset {
    /// Where.
    pub place: Place,
    /// What is written.
    pub value: u8,
}

impl Reset {
    /// What a FADT, which begins with its header, says of it.
    #[must_use]
    pub fn read(fadt: &[u8]) -> Option<Self> {
        if word(fadt, FLAGS) & RESET_REG_SUP == 0 {
            return None;
        }
        let value = *fadt.get(VALUE)?;
        let at = u64::from_le_bytes(fadt[REGISTER + 4..].get(..8)?.try_into().ok()?);
        let place = match fadt[REGISTER] {
            0 if at != 0 => Place::Memory(u32::try_from(at).ok()?),
            1 => Place::Port(u16::try_from(at).ok()?),
            // Device, function and offset, of 16 bits each.
            2 => {
                let (device, function) = ((at >> 32) as u16, (at >> 16) as u16);
                let offset = at as u16;
                if at >> 48 != 0 || device > 31 || function > 7 || offset > 0xff {
                    return None;
                }
                let function = Function { bus: 0, device: device as u8, function: function as u8 };
                Place::Pci(function, offset)
            }
            _ => return None,
        };
        Some(Self { place, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fadt(space: u8, address: u64) -> Vec<u8> {
        let mut table = vec![0; 244];
        table[FLAGS + 1] = 4;
        (table[REGISTER], table[VALUE]) = (space, 0x0e);
        table[REGISTER + 4..REGISTER + 12].copy_from_slice(&address.to_le_bytes());
        table
    }

    fn place(space: u8, address: u64) -> Option<Place> {
        let reset = Reset::read(&fadt(space, address))?;
        assert_eq!(reset.value, 0x0e);
        Some(reset.place)
    }

    #[test]
    fn the_register_is_a_port_memory_or_in_pci_space() {
        assert_eq!(place(1, 0xcf9), Some(Place::Port(0xcf9)));
        assert_eq!(place(0, 0xfed0_3000), Some(Place::Memory(0xfed0_3000)));
        let function = Function { bus: 0, device: 31, function: 3 };
        assert_eq!(place(2, 31 << 32 | 3 << 16 | 0x40), Some(Place::Pci(function, 0x40)));
    }

    #[test]
    fn what_cannot_be_reached_or_is_not_there_is_none() {
        let no = [
            (0, 0),
            (0, 1 << 32),
            (1, 0x1_0000),
            (2, 32 << 32),
            (2, 8 << 16),
            (2, 0x100),
            (2, 1 << 48),
            (3, 1),
        ];
        for (space, address) in no {
            assert_eq!(place(space, address), None, "{space}, {address:#x}");
        }
        let mut table = fadt(1, 0xcf9);
        for end in 0..=VALUE {
            assert_eq!(Reset::read(&table[..end]), None, "{end}");
        }
        table[FLAGS + 1] = 0;
        assert_eq!(Reset::read(&table), None);
    }
}
