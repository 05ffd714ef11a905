//! Where configuration space is in memory, by ACPI's table MCFG: PCI Firmware Specification 3.3, 4.1.2. There a function has 4096 bytes of
//! it, of which the ports reach the first 256.

use alloc::vec::Vec;

/// Some buses of a segment group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment {
    /// The group's number. The ports reach that of number 0.
    pub number: u16,
    /// The first bus.
    pub first: u8,
    /// The last bus.
    pub last: u8,
    /// The physical address of bus 0, also if the first bus is another; `None`: by ports only.
    pub base: Option<u64>,
}

/// A machine without the table.
pub const BY_PORTS: Segment = Segment { number: 0, first: 0, last: 255, base: None };

/// The table's header and 8 reserved bytes, and each entry.
const HEADER: usize = 44;
const ENTRY: usize = 16;

impl Segment {
    /// The entries of a table, which begins with its header. One that is none is passed over.
    #[must_use]
    pub fn listed(mcfg: &[u8]) -> Vec<Self> {
        let entries = mcfg.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY);
        let entry = |bytes: &[u8]| {
            let base = u64::from_le_bytes(bytes[..8].try_into().ok()?);
            let number = u16::from_le_bytes(bytes[8..10].try_into().ok()?);
            let (first, last) = (bytes[10], bytes[11]);
            // Bits 27:0 of an address are the bus, the function and the register.
            let end = base.checked_add(1 << 28)?;
            let is_one = base != 0 && base & 0xf_ffff == 0 && first <= last && end < 1 << 52;
            is_one.then_some(Self { number, first, last, base: Some(base) })
        };
        entries.filter_map(entry).collect()
    }

    /// The physical address of a register, if it is in memory.
    #[must_use]
    pub fn address(&self, bus: u8, device: u8, function: u8, offset: u16) -> Option<u64> {
        let within = (self.first..=self.last).contains(&bus);
        let place = u64::from(bus) << 20
            | u64::from(device & 31) << 15
            | u64::from(function & 7) << 12
            | u64::from(offset & 0xfff);
        within.then_some(self.base? + place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn table(entries: &[(u64, u16, u8, u8)]) -> Vec<u8> {
        let mut table = vec![0; HEADER];
        for (base, number, first, last) in entries {
            table.extend(base.to_le_bytes());
            table.extend(number.to_le_bytes());
            table.extend([*first, *last, 0, 0, 0, 0]);
        }
        table
    }

    #[test]
    fn s3_mcfg_says_where_configuration_space_is() {
        let listed =
            Segment::listed(&table(&[(0xe000_0000, 0, 0, 0x7f), (0x20_0000_0000, 1, 0x80, 0xff)]));
        let [first, second] = listed[..] else { panic!("{listed:?}") };
        assert_eq!(first.address(0x7e, 10, 2, 0xa0), Some(0xe7e5_20a0));
        assert_eq!(first.address(0x80, 0, 0, 0), None, "a bus of another group");
        assert_eq!((second.number, second.address(0x80, 31, 7, 0xffc)), (1, Some(0x20_080f_fffc)));
        assert_eq!(BY_PORTS.address(0, 0, 0, 0), None);
    }

    #[test]
    fn s3_entries_that_are_none_are_passed_over() {
        let good = (0xe000_0000, 0, 0, 0xff);
        for bad in [
            (0, 0, 0, 0xff),
            (0xe000_1000, 0, 0, 0xff),
            (0xe000_0000, 0, 2, 1),
            (u64::MAX << 20, 0, 0, 0),
        ] {
            assert_eq!(Segment::listed(&table(&[bad, good])).len(), 1, "{bad:x?}");
        }
        assert_eq!(Segment::listed(&table(&[good])[..HEADER + ENTRY - 1]), []);
        assert_eq!(Segment::listed(&[0; 10]), []);
    }

    /// The MiB of a base, more often than by chance at both ends.
    fn mib() -> impl Strategy<Value = u32> {
        prop_oneof![0u32..4, any::<u32>(), u32::MAX - 512..=u32::MAX]
    }

    proptest! {
        /// Bases as a machine has them, multiples of 1 MiB, up to and beyond the last address that there is.
        #[test]
        fn s3_any_entries_have_registers_below_the_largest_address(
            entries in proptest::collection::vec((mib(), any::<u16>(), any::<u8>(), any::<u8>()), 0..12),
            bus: u8, rest: u16,
        ) {
            let entries: Vec<_> = entries
                .into_iter()
                .map(|(mib, number, first, last)| (u64::from(mib) << 20, number, first, last))
                .collect();
            let listed = Segment::listed(&table(&entries));
            // The last address is below 2^52, and an entry's buses take 256 MiB.
            let is_one = |&&(base, _, first, last): &&(u64, u16, u8, u8)| {
                base != 0 && base < (1 << 52) - (1 << 28) && first <= last
            };
            prop_assert_eq!(listed.len(), entries.iter().filter(is_one).count());
            for segment in listed {
                let at = segment.address(bus, rest as u8, (rest >> 8) as u8, rest);
                prop_assert!(at.is_none_or(|at| at < 1 << 52));
                prop_assert_eq!(at.is_some(), segment.first <= bus && bus <= segment.last);
            }
        }
    }
}
