use super::*;
use crate::pmu::registers::PerfCapabilities;
use proptest::prelude::*;

const FORMATS: [Format; 7] = Format::ALL;

/// Words that state where they stood.
fn counting() -> Vec<u64> {
    (0..64).map(|n| 0x100 + n).collect()
}

#[test]
fn m9_records_of_each_format_have_their_fields_where_the_manual_draws_them() {
    let words = counting();
    for (format, size) in [
        (Format::Core, 144),
        (Format::Nehalem, 176),
        (Format::Haswell, 192),
        (Format::Skylake, 200),
    ] {
        let (record, count) = decode(format, &words).unwrap();
        assert_eq!((8 * count, format.words()), (size, count), "{format:?}");
        // Flags and address; then AX, BX, CX, DX, SI, DI, BP, SP, R8 to R15.
        let [ax, cx, dx, bx, sp, bp, si, di, rest @ ..] = record.registers.unwrap();
        let memory = [ax, bx, cx, dx, si, di, bp, sp].map(|word| word - 0x100);
        assert_eq!(memory, [2, 3, 4, 5, 6, 7, 8, 9], "{format:?}");
        assert_eq!(rest, core::array::from_fn(|n| 0x10a + n as u64), "{format:?}");
        let newer = format != Format::Core;
        assert_eq!(record.counters, if newer { 0x112 } else { 0 }, "{format:?}");
        let transaction = if size > 176 { 0x117 } else { 0 };
        let access = Access { address: 0x113, source: 0x114, latency: 0x115, transaction };
        assert_eq!(record.access, newer.then_some(access), "{format:?}");
        assert_eq!(record.ip, if format.is_exact() { 0x116 } else { 0x101 }, "{format:?}");
        assert_eq!(record.tsc, (size == 200).then_some(0x118), "{format:?}");
    }
}

#[test]
fn s1_an_adaptive_record_has_the_groups_that_it_states() {
    let mut words = counting();
    let mut with = |contents: u64, size: u64| {
        words[0] = (8 * size) << 48 | contents;
        decode(Format::Adaptive, &words)
    };
    let (basic, count) = with(0, 4).unwrap();
    assert_eq!((basic.ip, basic.counters, basic.tsc, count), (0x101, 0x102, Some(0x103), 4));
    assert_eq!((basic.access, basic.registers), (None, None));
    let (both, count) = with(3, 26).unwrap();
    assert_eq!(count, 26);
    let access = Access { address: 0x104, source: 0x105, latency: 0x106, transaction: 0x107 };
    // Flags and address are the first of the registers'.
    let registers = core::array::from_fn(|n| 0x10a + n as u64);
    assert_eq!((both.access, both.registers), (Some(access), Some(registers)));
    assert_eq!(Format::Adaptive.words(), 26, "basic group, memory, general registers");
    // Two branches and the vector registers after them.
    assert_eq!(with(1 << 24 | 0b1110, 4 + 18 + 32 + 6).unwrap().1, 60);
    let contents = 1 << 24 | 0b1110;
    for there in [59, 61] {
        let said = with(contents, there as u64);
        assert_eq!(said, Err(Malformed::Groups { contents: contents as u32, there }));
    }
    let unknown = Malformed::Unknown { format: 4, unknown: 0x10 };
    assert_eq!(with(0x10, 4), Err(unknown), "counters came with format 6");
    assert_eq!(with(0x40, 4), Err(Malformed::Unknown { format: 4, unknown: 0x40 }));
    assert_eq!(with(0, 3), Err(Malformed::Size { bytes: 24 }));
    assert_eq!(with(0, 65), Err(Malformed::Short { format: 4, needed: 65, there: 64 }));
    words[0] = 33 << 48;
    assert_eq!(decode(Format::Adaptive, &words), Err(Malformed::Size { bytes: 33 }));
}

#[test]
fn a_format_is_what_perf_capabilities_say_and_later_ones_are_not_taken_for_it() {
    let of = |bits: u64| Format::of(PerfCapabilities::from_bits_retain(bits));
    assert_eq!(of(0x10c2), Some(Format::Core));
    assert_eq!(of(0x33c5), Some(Format::Skylake));
    assert_eq!(of(0x74c5), Some(Format::Adaptive));
    assert_eq!((of(0x75c5), of(0x76c5)), (Some(Format::Adaptive32), Some(Format::Snapshot)));
    // Without the baseline; a later one; architectural PEBS.
    assert_eq!([0x34c5, 0x35c5, 0x36c5, 0x77c5, 0x7fc5].map(of), [None; 5]);
    let counters = |format: Format| (format.counters(0x3ff), format.fixed_counters(0x7f));
    let all = [Format::Core, Format::Skylake, Format::Adaptive, Format::Adaptive32];
    assert_eq!(all.map(counters), [(1, 0), (0xf, 0), (0xff, 0xf), (0x3ff, 0x7f)]);
    assert!((0..).zip(Format::ALL).all(|(number, format)| format.number() == number));
    assert!(Format::core_has(0xcb, 8) && !Format::core_has(0xc4, 0));
}

/// SDM vol. 3, PEBS of the Silvermont, Goldmont and Goldmont Plus microarchitectures; the heading numbers of vol. 4, chapter 2.
#[test]
fn s1_models_with_precise_samples_on_counter_0_alone_are_known() {
    // Silvermont, Airmont, Knights Landing and Mill, Goldmont.
    let alone = [0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d, 0x75, 0x57, 0x85, 0x5c, 0x5f];
    assert_eq!(alone.map(counters_of), [1; 11]);
    // Goldmont Plus, Haswell, Skylake, Tremont.
    assert_eq!([0x7a, 0x3c, 0x5e, 0x96].map(counters_of), [u32::MAX; 4]);
}

/// Writes a record as a processor would.
fn written(store: &mut Store, words: &[u64]) {
    // SAFETY: the store's own memory, and the words fit.
    unsafe {
        let area = &mut *store.area();
        (area.index as *mut u64).copy_from_nonoverlapping(words.as_ptr(), words.len());
        area.index += 8 * words.len() as u64;
    }
}

#[test]
fn draining_takes_all_records_in_order_and_leaves_the_buffer_empty() {
    for format in FORMATS {
        let mut store = Store::new(format, 5, 4);
        let mut drain = Drain::new(&mut store, 0b11);
        let mut words = counting();
        words.truncate(format.words());
        for round in 0..2 {
            for n in 1..=4 {
                words[0] = (8 * words.len() as u64) << 48 | 3;
                words[1] = n;
                if words.len() > 22 {
                    words[22] = n;
                }
                // The second counter's.
                let counters = if format.is_adaptive() { 2 } else { 18 };
                if let Some(word) = words.get_mut(counters) {
                    *word = 0b110;
                }
                written(&mut store, &words);
            }
            let mut seen = Vec::new();
            drain.run(|taken| seen.push((taken.record.ip, taken.counters)));
            let counters = if format == Format::Core { 0b11 } else { 0b10 };
            assert_eq!(seen, (1..=4).map(|n| (n, counters)).collect::<Vec<_>>(), "{format:?}");
            assert_eq!((drain.records, drain.full), (4 * (round + 1), 0), "{format:?}");
        }
        drain.run(|_| panic!("it is empty"));
        for _ in 0..5 {
            written(&mut store, &words);
        }
        drain.run(|_| ());
        assert_eq!((drain.records, drain.full, drain.malformed), (13, 1, 0), "{format:?}");
        assert!(!store.is_overrun(), "{format:?}");
        for _ in 0..6 {
            written(&mut store, &words);
        }
        assert!(store.is_overrun(), "{format:?}");
        drain.clear();
        assert_eq!((drain.records, drain.full), (0, 0));
    }
}

/// Up to Ice Lake the latency is one figure; where it is split, one of the instruction and one of the caches.
#[test]
fn s1_the_latency_is_whole_or_split() {
    let access = Access { latency: 0x0123_0000_0456, ..Access::default() };
    assert_eq!((access.instruction_latency(), access.cache_latency()), (0x456, 0x123));
    let whole = Access { latency: 0x1_2345, ..Access::default() };
    assert_eq!(whole.load_latency(), 0x1_2345);
}

#[test]
fn s1_a_store_has_room_for_records_of_the_groups_asked_for_that_the_format_has() {
    let groups = Format::Snapshot.groups();
    let config = DataConfig { groups, branches: 32, general: 0xff, fixed: 0xf };
    let words = |format| Store::with_groups(format, config, 4, 2).record_words();
    let common = 4 + 4 + 18 + 32 + 3 * 32;
    assert_eq!(words(Format::Skylake), 25);
    assert_eq!(words(Format::Adaptive), common);
    assert_eq!(words(Format::Snapshot), common + 2 + 12 + 2);
    assert!(config.fits(Format::Snapshot) && !config.fits(Format::Adaptive));
    assert_eq!(config.bits(), 0x000f_00ff_1f00_003f);
    assert_eq!(DataConfig::BASIC.bits(), 0);
    let beyond = DataConfig { groups: Groups::BEYOND_XMM, ..DataConfig::BASIC };
    assert_eq!((beyond.bits(), beyond.fits(Format::Snapshot)), (0, false));
    assert!(beyond.fits(Format::Architectural));
}

#[test]
fn s1_the_area_of_format_5_has_its_reset_values_elsewhere() {
    for (format, places) in
        [(Format::Adaptive, [8 + 7, 8 + 8 + 3]), (Format::Snapshot, [8 + 9, 8 + 32 + 6])]
    {
        let mut store = Store::new(format, 4, 2);
        store.set_reset(crate::pmu::Counter::General(7), 70);
        store.set_reset(crate::pmu::Counter::General(9), 90);
        store.set_reset(crate::pmu::Counter::Fixed(3), 300);
        store.set_reset(crate::pmu::Counter::Fixed(6), 600);
        // SAFETY: the area, which is as long.
        let words = unsafe { core::slice::from_raw_parts(store.address() as *const u64, 56) };
        let set: Vec<_> = (0..).zip(words).skip(8).filter(|(_, word)| **word != 0).collect();
        let [general, fixed] = places;
        assert!(set.iter().any(|(at, _)| *at == general) && set.iter().any(|(at, _)| *at == fixed));
        let expected =
            if format == Format::Adaptive { vec![70, 300] } else { vec![70, 90, 300, 600] };
        assert_eq!(set.iter().map(|(_, word)| **word).collect::<Vec<_>>(), expected, "{format:?}");
    }
}

#[test]
fn what_is_no_record_is_given_up_and_counted() {
    let mut store = Store::new(Format::Adaptive, 4, 2);
    let mut drain = Drain::new(&mut store, 1);
    written(&mut store, &[32 << 48, 7, 1, 0]);
    written(&mut store, &[7 << 48, 8, 1, 0]);
    let mut seen = 0;
    drain.run(|_| seen += 1);
    assert_eq!((seen, drain.records, drain.malformed), (1, 1, 1));
    drain.run(|_| panic!("the rest was given up"));
}

#[test]
fn the_area_is_what_the_processor_reads() {
    let mut store = Store::new(Format::Skylake, 10, 7);
    store.set_reset(crate::pmu::Counter::General(3), 33);
    store.set_reset(crate::pmu::Counter::Fixed(1), 91);
    store.set_reset(crate::pmu::Counter::General(8), 1);
    assert_eq!(store.address() % 64, 0);
    // SAFETY: the area, which is longer than that.
    let words = unsafe { core::slice::from_raw_parts(store.address() as *const u64, 20) };
    let base = words[4];
    assert_eq!(words[..4], [0; 4]);
    assert_eq!(words[5..8], [base, base + 2000, base + 1400]);
    assert_eq!(words[8..20], [0, 0, 0, 33, 0, 0, 0, 0, 0, 91, 0, 0]);
}

proptest! {
    /// A record of any groups is read back as it was written, and refused one word shorter or longer.
    #[test]
    fn s1_what_is_encoded_is_decoded(
        all in prop::collection::vec(any::<u64>(), 4 + 18 + 32 + 3 * 256 + 34), ip: u64, counters: u64, tsc: u64,
        retire_latency: u16, groups in 0u32..64, entries in 1usize..=256, masks: (u16, u8), format in 4usize..7,
    ) {
        let format = Format::ALL[format];
        let groups = Groups::from_bits_truncate(groups) & format.groups();
        let (memory, rest) = all.split_first_chunk::<4>().unwrap();
        let (general, rest) = rest.split_first_chunk::<18>().unwrap();
        let (vectors, rest) = rest.split_first_chunk::<32>().unwrap();
        let (branches, rest) = rest.split_at(3 * 256);
        let (of_general, of_fixed) = match groups.contains(Groups::COUNTERS) {
            true => (u32::from(masks.0), u32::from(masks.1)),
            false => (0, 0),
        };
        let values = &rest[..(of_general.count_ones() + of_fixed.count_ones()) as usize];
        let metrics = groups.contains(Groups::METRICS).then_some([rest[32], rest[33]]);
        let [address, source, latency, transaction] = *memory;
        let [flags, next, ref registers @ ..] = *general;
        let snapshot = Snapshot { general: of_general, fixed: of_fixed, values, metrics };
        let is_empty = values.is_empty() && metrics.is_none();
        let record = Adaptive {
            ip, counters, tsc, retire_latency: Some(retire_latency),
            access: groups.contains(Groups::MEMORY).then_some(Access { address, source, latency, transaction }),
            general: groups.contains(Groups::GENERAL).then_some(General { flags, next, registers: *registers }),
            vectors: groups.contains(Groups::VECTORS).then_some(vectors),
            snapshot: (!is_empty).then_some(snapshot),
            branches: if groups.contains(Groups::BRANCHES) { &branches.as_chunks().0[..entries] } else { &[] },
        };
        let mut words = record.encode();
        prop_assert_eq!(Adaptive::decode(format, &words), Ok((record, words.len())));
        let config = DataConfig {
            groups: record.groups(), branches: entries as u16, general: masks.0, fixed: masks.1,
        };
        prop_assert_eq!(config.words(), words.len());
        prop_assert_eq!(DataConfig::from_bits(config.bits()).map(DataConfig::words), Some(words.len()));
        // What every format has is the same by the other way.
        let (plain, _) = decode(format, &words).unwrap();
        prop_assert_eq!((plain.ip, plain.access, plain.tsc), (ip, record.access, Some(tsc)));
        if groups.contains(Groups::BRANCHES) {
            let first = record.branch_records().next().unwrap();
            prop_assert_eq!(&[first.from, first.to, first.info][..], &branches[..3]);
        }
        for there in [words.len() - 1, words.len() + 1] {
            words.resize(there, 0);
            words[0] = words[0] & 0xffff_ffff_ffff | (8 * there as u64) << 48;
            prop_assert!(Adaptive::decode(format, &words).is_err());
        }
    }

    #[test]
    fn s1_a_data_configuration_is_what_its_register_has(bits: u64) {
        if let Some(config) = DataConfig::from_bits(bits) {
            prop_assert_eq!(config.bits() & !bits, 0);
            prop_assert_eq!(DataConfig::from_bits(config.bits()), Some(config));
        }
        let known = bits & 0x00ff_ffff_ff00_003f;
        prop_assert!(DataConfig::from_bits(known).is_some());
        prop_assert_eq!(DataConfig::from_bits(known | 1 << 56), None);
        prop_assert_eq!(DataConfig::from_bits(known | 1 << 6), None);
    }

    /// Whatever is in memory, decoding ends, takes at least a basic record and never more than is there.
    #[test]
    fn any_words_are_a_record_or_refused(
        format in prop::sample::select(FORMATS.to_vec()),
        head in any::<u64>(), small in any::<bool>(), rest in prop::collection::vec(any::<u64>(), 0..300),
    ) {
        let head = if small { head & 0x01ff_0000_0100_000f } else { head };
        let words: Vec<u64> = std::iter::once(head).chain(rest).collect();
        match decode(format, &words) {
            Ok((record, count)) => {
                prop_assert!(count >= 4 && count <= words.len());
                if format.is_adaptive() {
                    // What was understood of it is written and read back the same.
                    let (seen, _) = Adaptive::decode(format, &words).unwrap();
                    let again = seen.encode();
                    prop_assert_eq!(Adaptive::decode(format, &again), Ok((seen, again.len())));
                    prop_assert_eq!(seen.record(), record);
                }
                prop_assert_eq!(record.access.is_some(), format != Format::Core && (!format.is_adaptive() || head & 1 != 0));
            }
            Err(why) => prop_assert!(!why.to_string().is_empty()),
        }
    }
}

/// MSR_PEBS_DATA_CFG (SDM vol. 4; Linux, `PEBS_DATACFG_*`): groups in bits 5:0, branch records in 31:24,
/// general-purpose counters in 47:32, fixed ones in 55:48.
#[test]
fn a_configuration_has_the_bits_of_its_fields_and_no_other() {
    let known = (0..64).filter(|bit| DataConfig::from_bits(1 << bit).is_some());
    assert_eq!(known.fold(0, |bits: u64, bit| bits | 1 << bit), 0x00ff_ffff_ff00_003f);
}

/// Sizes in words (Linux, `struct arch_pebs_*`): 2 of the header, 6 of the basic group, 8 of the access, 20 of registers, 2 and 32
/// of vectors, 6 and 3 for each branch, 2 and 1 for each counter.
#[test]
fn s1_architectural_records_have_the_words_of_their_groups() {
    let words = |groups, branches| {
        DataConfig { groups, branches, general: 0b111, fixed: 0b1 }.architectural_words()
    };
    assert_eq!(words(Groups::empty(), 0), 8);
    assert_eq!(words(Groups::MEMORY, 0), 16);
    assert_eq!(words(Groups::GENERAL, 0), 28);
    assert_eq!(words(Groups::VECTORS, 0), 42);
    // Two words of state once, and the groups' own.
    assert_eq!(words(Groups::YMM_UPPER, 0), 8 + 2 + 32);
    assert_eq!(words(Groups::VECTORS | Groups::YMM_UPPER, 0), 8 + 2 + 64);
    assert_eq!(words(Groups::MASKS, 0), 8 + 2 + 8);
    assert_eq!(words(Groups::ANY_VECTORS, 0), 8 + 2 + 32 + 32 + 8 + 64 + 128);
    assert_eq!(words(Groups::BRANCHES, 8), 8 + 6 + 24);
    assert_eq!(words(Groups::COUNTERS, 0), 8 + 2 + 4);
    assert_eq!(words(Groups::MEMORY | Groups::VECTORS | Groups::BRANCHES, 3), 8 + 8 + 34 + 16);
}

/// Both kinds of counter with the same bits.
#[test]
fn s1_a_record_with_counters_of_both_kinds_states_them() {
    let snapshot = Snapshot { general: 0b1, fixed: 0b1, values: &[7, 8], metrics: None };
    let record =
        Adaptive { snapshot: Some(snapshot), retire_latency: Some(0), ..Adaptive::default() };
    assert_eq!(record.groups(), Groups::COUNTERS);
    let words = record.encode();
    assert_eq!(Adaptive::decode(Format::Snapshot, &words), Ok((record, words.len())));
}

/// The SDM's figure of the debug store has places for eight and four counters up to format 4, then for 32 and 16.
#[test]
fn s1_a_counter_without_a_place_in_the_area_has_no_reset_value() {
    for (format, last) in [(Format::Adaptive, 3), (Format::Snapshot, 15)] {
        let mut store = Store::new(format, 4, 2);
        store.set_reset(crate::pmu::Counter::Fixed(last), 1);
        store.set_reset(crate::pmu::Counter::Fixed(last + 1), 2);
        // SAFETY: the area, which is as long.
        let words = unsafe { core::slice::from_raw_parts(store.address() as *const u64, 56) };
        assert_eq!(words[8..].iter().sum::<u64>(), 1, "{format:?}");
    }
}

#[test]
fn s1_each_counter_of_architectural_pebs_starts_from_its_own_value() {
    let mut store = Store::with_groups(Format::Architectural, DataConfig::BASIC, 4, 2);
    let all = [
        crate::pmu::Counter::General(1),
        crate::pmu::Counter::Fixed(0),
        crate::pmu::Counter::Fixed(2),
    ];
    for (value, counter) in (5..).zip(all) {
        store.set_reset(counter, value);
    }
    assert_eq!(all.map(|counter| store.contents(counter).bits() & 0xffff_ffff), [5, 6, 7]);
}

/// Two records of 22 words, and shorter ones in it: as many as leave room for a whole one, and one more.
#[test]
fn m11_a_buffer_is_full_where_the_next_record_does_not_fit() {
    let config = DataConfig { groups: Groups::GENERAL, ..DataConfig::BASIC };
    for (records, full) in [(5, 0), (6, 1)] {
        let mut store = Store::with_groups(Format::Adaptive, config, 2, 2);
        let mut drain = Drain::new(&mut store, 1);
        (0..records).for_each(|_| written(&mut store, &[32 << 48, 7, 1, 0]));
        drain.run(|_| ());
        assert_eq!((drain.records, drain.full, drain.malformed), (records, full, 0));
    }
}
