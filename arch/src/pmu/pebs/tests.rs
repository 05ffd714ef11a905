use super::*;
use crate::pmu::registers::PerfCapabilities;
use proptest::prelude::*;

const FORMATS: [Format; 5] =
    [Format::Core, Format::Nehalem, Format::Haswell, Format::Skylake, Format::Adaptive];

/// Words that tell where they stood.
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
        let access = Access { address: 0x113, source: 0x114, latency: 0x115 };
        assert_eq!(record.access, newer.then_some(access), "{format:?}");
        assert_eq!(record.ip, if format.is_exact() { 0x116 } else { 0x101 }, "{format:?}");
        assert_eq!(record.tsc, (size == 200).then_some(0x118), "{format:?}");
    }
}

#[test]
fn m9_an_adaptive_record_has_the_groups_that_it_states() {
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
    let access = Access { address: 0x104, source: 0x105, latency: 0x106 };
    // The fourth word of the memory group is about transactions; flags and address are the first of the registers'.
    let registers = core::array::from_fn(|n| 0x10a + n as u64);
    assert_eq!((both.access, both.registers), (Some(access), Some(registers)));
    assert_eq!(Format::Adaptive.words(), 8, "basic group and memory");
    // Two branches and the vector registers behind them.
    assert_eq!(with(1 << 24 | 0b1110, 4 + 18 + 32 + 6).unwrap().1, 60);
    let contents = 1 << 24 | 0b1110;
    assert_eq!(with(contents, 59), Err(Malformed::Groups { contents, needed: 60, there: 59 }));
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
    // 4 without the baseline; 5; architectural PEBS.
    assert_eq!((of(0x34c5), of(0x75c5), of(0x7fc5)), (None, None, None));
    let counters = |format: Format| format.counters(0x3ff);
    assert_eq!([Format::Core, Format::Skylake, Format::Adaptive].map(counters), [1, 0xf, 0xff]);
    assert!(Format::core_has(0xcb, 8) && !Format::core_has(0xc4, 0));
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
                words[0] = (8 * words.len() as u64) << 48 | 1;
                words[1] = n;
                if words.len() > 22 {
                    words[22] = n;
                }
                // The second counter's.
                let counters = if format == Format::Adaptive { 2 } else { 18 };
                if let Some(word) = words.get_mut(counters) {
                    *word = 0b110;
                }
                written(&mut store, &words);
            }
            let mut seen = Vec::new();
            drain.run(|record, counters| seen.push((record.ip, counters)));
            let counters = if format == Format::Core { 0b11 } else { 0b10 };
            assert_eq!(seen, (1..=4).map(|n| (n, counters)).collect::<Vec<_>>(), "{format:?}");
            assert_eq!((drain.records, drain.full), (4 * (round + 1), 0), "{format:?}");
        }
        drain.run(|_, _| panic!("it is empty"));
        for _ in 0..5 {
            written(&mut store, &words);
        }
        drain.run(|_, _| ());
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

#[test]
fn what_is_no_record_is_given_up_and_counted() {
    let mut store = Store::new(Format::Adaptive, 4, 2);
    let mut drain = Drain::new(&mut store, 1);
    written(&mut store, &[32 << 48, 7, 1, 0]);
    written(&mut store, &[7 << 48, 8, 1, 0]);
    let mut seen = 0;
    drain.run(|_, _| seen += 1);
    assert_eq!((seen, drain.records, drain.malformed), (1, 1, 1));
    drain.run(|_, _| panic!("the rest was given up"));
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
    /// Whatever lies in memory, decoding ends, takes at least a basic record and never more than is there.
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
                prop_assert_eq!(record.access.is_some(), format != Format::Core && (format != Format::Adaptive || head & 1 != 0));
            }
            Err(why) => prop_assert!(!why.to_string().is_empty()),
        }
    }
}
