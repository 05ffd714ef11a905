//! Tables of any words.

use super::*;
use alloc::vec;
use proptest::prelude::*;

/// A global entry: type 0, the stride, so many units.
fn global(stride: u64, units: u64) -> [u64; 3] {
    [stride << 8 | units << 16, 0x2ff0, 0]
}

fn parsed(table: &[u64]) -> Result<Vec<Unit>, TableError> {
    units(|word| table.get(word as usize).copied())
}

/// Counters, control, width, counter, and access.
fn about(counters: u64, control: u64, width: u64, counter: u64, access: u64) -> u64 {
    counters | control << 8 | width << 16 | counter << 24 | access << 62
}

#[test]
fn s3_a_table_lists_units_by_type_and_number() {
    let mut table = global(4, 4).to_vec();
    table.push(0);
    for entry in [
        [about(4, 2, 48, 8, 0), 0x2000, 0, 0],
        [about(4, 0x40, 48, 8, 1), 0xfb82_2800, 3 << 16 | 6, 9],
        // PCI 0001:7e:0c.3, register 0x438.
        [
            about(3, 0x30, 44, 8, 2),
            1 << 28 | 0x7e << 20 | 0xc << 15 | 3 << 12 | 0x438,
            1 << 16 | 8,
            9,
        ],
        [0, 0, 0, 0],
    ] {
        table.extend(entry);
    }
    let found = parsed(&table).unwrap();
    let [agent, channel, link] = found[..] else { panic!("{found:?}") };
    assert_eq!([agent.kind, channel.kind, link.kind], [0, 6, 8]);
    assert_eq!([agent.number, channel.number, link.number], [0, 3, 1]);
    assert_eq!((agent.own, agent.counters, agent.width), (Register::Msr(0x2000), 4, 48));
    assert_eq!(agent.pair(3), [Register::Msr(0x2005), Register::Msr(0x200b)]);
    let memory = |at: u64, size| Register::Memory(0xfb82_2800 + at, size);
    assert_eq!(channel.own, memory(0, Size::Dword));
    assert_eq!(channel.pair(1), [memory(0x44, Size::Dword), memory(0x10, Size::Qword)]);
    let place = Address { segment: 1, bus: 0x7e, device: 0xc, function: 3 };
    assert_eq!(link.own, Register::Config(place, 0x438, Size::Dword));
    let config = |offset| Register::Config(place, offset, Size::Qword);
    assert_eq!(link.pair(2), [config(0x478), config(0x450)]);
    assert_eq!((link.counters, link.width), (3, 44));
    assert_eq!(link.own.to_string(), "PCI 0001:7e:0c.3, register 0x438");
}

#[test]
fn s3_tables_that_are_none_are_refused() {
    for (table, why) in [
        (vec![], TableError::Unread),
        (vec![0, 0, 0], TableError::Global(0, 0)),
        (vec![0x300, 0, 0], TableError::Global(0x300, 0)),
        (vec![u64::MAX; 3], TableError::Global(u64::MAX, u64::MAX)),
        (vec![0x300, 1, u64::MAX], TableError::Global(0x300, 1)),
        (global(2, 1).to_vec(), TableError::Stride(2)),
        (global(3, 1).to_vec(), TableError::Unread),
    ] {
        assert_eq!(parsed(&table), Err(why), "{table:x?}");
    }
    assert_eq!(parsed(&global(3, 0)), Ok(vec![]));
}

#[test]
fn s3_entries_that_cannot_be_are_passed_over() {
    let good = [about(4, 2, 48, 8, 0), 0x2000, 7];
    let count = |entry: [u64; 3]| {
        let table: Vec<u64> = [global(3, 2), entry, good].concat();
        parsed(&table).unwrap().len()
    };
    assert_eq!(count([about(4, 2, 48, 8, 0), 0x3000, 7 | 1 << 16]), 2);
    for bad in [
        // The same unit twice.
        good,
        [u64::MAX, 0x2000, 1],
        [about(4, 2, 48, 8, 0), u64::MAX, 1],
        [about(4, 2, 48, 8, 0), 0x2000, u64::MAX],
        [about(4, 2, 48, 8, 3), 0x2000, 1],
        [about(0, 2, 48, 8, 0), 0x2000, 1],
        [about(4, 0, 48, 8, 0), 0x2000, 1],
        [about(4, 2, 48, 0, 0), 0x2000, 1],
        [about(4, 2, 0, 8, 0), 0x2000, 1],
        [about(4, 2, 64, 8, 0), 0x2000, 1],
        [about(4, 2, 48, 8, 0), 1 << 32, 1],
        // Registers that are not aligned, or beyond what there is.
        [about(4, 0x40, 48, 4, 1), 0xfb82_2800, 1],
        [about(4, 0x42, 48, 8, 1), 0xfb82_2800, 1],
        [about(4, 0x40, 48, 8, 1), 1 << 52, 1],
        [about(4, 0x40, 48, 8, 1), u64::MAX - 7, 1],
        [about(4, 0x30, 48, 8, 2), 0x7e0_0ff0, 1],
        [about(4, 0x31, 48, 8, 2), 0x7e0_0438, 1],
    ] {
        assert_eq!(count(bad), 1, "{bad:x?}");
    }
}

/// Registers of a unit are where an access to them cannot go wrong.
fn check(unit: &Unit) -> Result<(), TestCaseError> {
    prop_assert!((1..=63).contains(&unit.width));
    for number in 0..unit.counters {
        for register in unit.pair(number).into_iter().chain([unit.own]) {
            match register {
                Register::Msr(_) => {}
                Register::Memory(at, size) => {
                    prop_assert_eq!(at % if size == Size::Dword { 4 } else { 8 }, 0);
                    prop_assert!(at < (1 << 52) + 0x1000);
                }
                Register::Config(at, offset, size) => {
                    let bytes = if size == Size::Dword { 4 } else { 8 };
                    prop_assert!(offset % 4 == 0 && offset + bytes <= 0x1000, "{offset:#x}");
                    prop_assert!(at.device < 32 && at.function < 8 && at.segment < 8);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn s3_any_words_list_units_with_registers_that_may_be(
        head in (0_u64..8, 0_u64..20),
        words in proptest::collection::vec(prop_oneof![
            any::<u64>(),
            Just(0),
            (0_u64..9, 0_u64..0x50, 40_u64..66, 0_u64..0x50, 0_u64..4)
                .prop_map(|(counters, control, width, counter, access)| about(counters, control, width, counter, access)),
            0_u64..1 << 31,
        ], 0..80),
    ) {
        let table: Vec<u64> = global(head.0, head.1).into_iter().chain(words).collect();
        for unit in parsed(&table).unwrap_or_default() {
            check(&unit)?;
        }
    }

    #[test]
    fn s3_an_entry_is_read_back(
        counters in 1_u8..16, control in 1_u64..32, width in 1_u8..64, counter in 1_u64..32,
        access in 0_u64..3, kind: u16, number: u16,
    ) {
        let [control, counter] = [control * 8, counter * 8].map(|offset| offset & 0xff);
        prop_assume!(control != 0 && counter != 0);
        let entry = [
            about(counters.into(), control, width.into(), counter, access),
            0x1234_5008,
            u64::from(kind) | u64::from(number) << 16,
        ];
        let table: Vec<u64> = [global(3, 1), entry].concat();
        let [unit] = parsed(&table).unwrap()[..] else { panic!() };
        prop_assert_eq!([unit.kind, unit.number], [kind, number]);
        prop_assert_eq!([unit.counters, unit.width], [counters, width]);
        check(&unit)?;
    }
}
