//! Which memory is near to which processor, by the SRAT table (ACPI specification 6.5, 5.2.16). It is read from its bytes: the `acpi`
//! crate (6.1.1) takes two bytes for an entry's length, which has one.

use super::bytes::{entries, word};
use crate::memory::Region;

/// The table's revision; from 2 on domains have 32 bits, before 8 (5.2.16.1, 5.2.16.2).
const REVISION: usize = 8;
/// Where the entries begin.
const ENTRIES: usize = 48;
/// Kinds of entries: a processor by its APIC's id of 8 bits; memory; a processor by its id of 32 bits.
const LOCAL_APIC: u8 = 0;
const MEMORY: u8 = 1;
const LOCAL_X2APIC: u8 = 2;
const ENABLED: u32 = 1;
/// Most ranges of one domain, and most domains: the largest machines have 64 nodes.
const MOST_RANGES: usize = 16;
const MOST_DOMAINS: usize = 64;

/// The memory of one processor's domain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Near {
    /// Number of the domain.
    pub domain: u32,
    /// How many domains with memory there are.
    pub domains: u32,
    ranges: [Region; MOST_RANGES],
    count: usize,
}

impl Near {
    /// Reads the table, which begins with its header, for the processor with that APIC id. `None`: it does not name the processor.
    #[must_use]
    pub fn read(srat: &[u8], apic_id: u32) -> Option<Self> {
        let wide = srat.get(REVISION).is_some_and(|revision| *revision >= 2);
        let known = |domain: u32| if wide { domain } else { domain & 0xff };
        let own = entries(srat, ENTRIES).find_map(|entry| {
            let (id, domain, flags) = match *entry {
                [LOCAL_APIC, _, low, id, _, _, _, _, _, a, b, c, ..] => {
                    (u32::from(id), u32::from_le_bytes([low, a, b, c]), word(entry, 4))
                }
                [LOCAL_X2APIC, ..] if entry.len() >= 16 => {
                    (word(entry, 8), word(entry, 4), word(entry, 12))
                }
                _ => return None,
            };
            (id == apic_id && flags & ENABLED != 0).then(|| known(domain))
        })?;
        let none = Region { start: 0, end: 0 };
        let mut near = Self { domain: own, domains: 0, ranges: [none; MOST_RANGES], count: 0 };
        let mut seen = [0; MOST_DOMAINS];
        for entry in entries(srat, ENTRIES) {
            let long =
                |at: usize| u64::from(word(entry, at)) | u64::from(word(entry, at + 4)) << 32;
            let (start, bytes) = (long(8), long(16));
            if entry[0] != MEMORY
                || entry.len() < 32
                || word(entry, 28) & ENABLED == 0
                || bytes == 0
            {
                continue;
            }
            let domain = known(word(entry, 2));
            let before = near.domains as usize;
            if before < MOST_DOMAINS && !seen[..before].contains(&domain) {
                seen[before] = domain;
                near.domains += 1;
            }
            if domain == own && near.count < MOST_RANGES {
                near.ranges[near.count] = Region { start, end: start.saturating_add(bytes) };
                near.count += 1;
            }
        }
        Some(near)
    }

    /// Its ranges.
    #[must_use]
    pub fn ranges(&self) -> &[Region] {
        &self.ranges[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;

    fn processor(apic_id: u8, domain: u32, flags: u8) -> Vec<u8> {
        let [low, high @ ..] = domain.to_le_bytes();
        [&[0, 16, low, apic_id, flags, 0, 0, 0, 0], &high[..], &[0; 4]].concat()
    }

    fn x2apic(apic_id: u32, domain: u32) -> Vec<u8> {
        let words = [domain, apic_id, 1, 0, 0].map(u32::to_le_bytes).concat();
        [&[2, 24, 0, 0], &words[..]].concat()
    }

    fn memory(domain: u32, start: u64, bytes: u64, flags: u8) -> Vec<u8> {
        let mut entry = vec![1, 40];
        entry.extend(domain.to_le_bytes());
        entry.extend([0; 2]);
        entry.extend([start, bytes].map(u64::to_le_bytes).concat());
        entry.extend([0, 0, 0, 0, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        entry
    }

    fn table(revision: u8, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut table = vec![0; ENTRIES];
        table[REVISION] = revision;
        table.extend(entries.concat());
        table
    }

    fn region(start: u64, end: u64) -> Region {
        Region { start, end }
    }

    /// Two sockets; memory that could be plugged in later is none.
    fn two() -> Vec<Vec<u8>> {
        vec![
            processor(0, 0, 1),
            processor(2, 0x0102_0304, 1),
            processor(4, 7, 0),
            x2apic(0x300, 0x0102_0304),
            memory(0, 0, 0xa_0000, 1),
            memory(0, 1 << 20, 2 * GIB, 1),
            memory(0, 4 * GIB, GIB, 1),
            vec![9, 3, 0],
            memory(0x0102_0304, 5 * GIB, 4 * GIB, 1),
            memory(7, 16 * GIB, GIB, 2),
            memory(7, 16 * GIB, 0, 1),
        ]
    }

    #[test]
    fn a_processors_memory_is_that_of_its_domain() {
        let table = table(3, &two());
        let first = Near::read(&table, 0).unwrap();
        assert_eq!((first.domain, first.domains), (0, 2));
        let low = [region(0, 0xa_0000), region(1 << 20, (1 << 20) + 2 * GIB)];
        assert_eq!(first.ranges(), [low[0], low[1], region(4 * GIB, 5 * GIB)]);
        for apic_id in [2, 0x300] {
            let second = Near::read(&table, apic_id).unwrap();
            assert_eq!((second.domain, second.domains), (0x0102_0304, 2));
            assert_eq!(second.ranges(), [region(5 * GIB, 9 * GIB)]);
        }
        assert_eq!(Near::read(&table, 4), None, "not enabled");
        assert_eq!(Near::read(&table, 1), None, "not listed");
    }

    #[test]
    fn old_tables_have_domains_of_eight_bits() {
        let near = Near::read(&table(1, &two()), 2).unwrap();
        assert_eq!((near.domain, near.domains), (4, 2));
        assert_eq!(near.ranges(), [region(5 * GIB, 9 * GIB)]);
    }

    proptest! {
        #[test]
        fn no_table_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), end in 0..300_usize) {
            let made = table(3, &two());
            let _ = Near::read(&made[..end.min(made.len())], 0);
            let mut wrong = made;
            for (at, byte) in bytes.iter().enumerate().filter(|(at, _)| at % 3 == 0) {
                wrong[ENTRIES + at] ^= byte;
            }
            let _ = Near::read(&wrong, 0);
            let _ = Near::read(&bytes, 0);
        }
    }
}
