//! Words of each processor, and what they mean.

use super::*;
use crate::cpu::CoreType;
use crate::pmu::driver::Selection;
use crate::pmu::numbers;
use crate::pmu::pebs::Access;
use proptest::prelude::*;

const EVERY: [Encoding; 12] = [
    Encoding::Unknown,
    Encoding::Nehalem,
    Encoding::SandyBridge,
    Encoding::Skylake,
    Encoding::SkylakeServer,
    Encoding::Gracemont,
    Encoding::Crestmont,
    Encoding::LionCove,
    Encoding::Family10h,
    Encoding::Zen,
    Encoding::Zen3,
    Encoding::Zen4,
];

fn words(encoding: Encoding) -> Words {
    Words { encoding, ..Words::default() }
}

fn read(encoding: Encoding, source: u64) -> DataSource {
    let access = Access { address: 0x1000, source, latency: 0, transaction: 0 };
    let words = words(encoding);
    words.source(&words.datum(&access, Told::Load)).unwrap()
}

#[test]
fn s1_intels_codes_mean_what_its_tables_and_linux_say() {
    use Encoding::*;
    let level = |encoding, code| read(encoding, code).to_string();
    for encoding in [Nehalem, SandyBridge, Skylake, SkylakeServer, Gracemont] {
        let seen = [1, 2, 3, 4, 0xa, 0xe, 0xf].map(|code| level(encoding, code));
        let expected = ["L1", "LFB", "L2", "L3", "memory, snoop hit", "I/O", "uncached"];
        assert_eq!(seen, expected, "{encoding:?}");
    }
    assert_eq!(level(SandyBridge, 7), "L3, snoop hit modified");
    assert_eq!([level(SandyBridge, 5), level(Nehalem, 5)], ["L3, snoop missed", "L3, snoop hit"]);
    assert_eq!([level(SandyBridge, 0xc), level(SandyBridge, 0xd)], ["memory", "remote memory"]);
    assert_eq!(level(Skylake, 0xc), "remote cache, forwarded");
    assert_eq!(
        [level(Skylake, 8), level(SkylakeServer, 8)].map(|text| text
            .split(',')
            .next()
            .unwrap()
            .to_string()),
        ["memory-side cache", "persistent memory"]
    );
    assert_eq!(
        [level(Gracemont, 8), level(Crestmont, 8)],
        ["L3, forwarded", "L3, snoop hit modified"]
    );
    assert_eq!(
        [Nehalem, Gracemont, SandyBridge].map(|one| level(one, 6)),
        ["L3, snoop hit modified", "L3, snoop hit modified", "L3, snoop hit"]
    );
    for encoding in [Skylake, SkylakeServer] {
        let remote = [0xb, 0xc, 0xd].map(|code| level(encoding, code));
        let expected =
            ["remote memory", "remote cache, forwarded", "remote cache, snoop hit modified"];
        assert_eq!(remote, expected, "{encoding:?}");
    }
    // Linux, `cmt_latency_data` and its table.
    assert_eq!(
        [7, 0xa, 0xb, 0xc, 0xd].map(|code| level(Crestmont, code)),
        [
            "L3, forwarded",
            "memory",
            "remote memory",
            "remote memory, forwarded",
            "remote memory, snoop hit modified"
        ]
    );
    assert!(!read(Skylake, 1).store, "a load");
    let lion_cove = [1, 3, 5, 6, 8, 0xc, 0x10, 0x11, 0x12, 0xff].map(|code| level(LionCove, code));
    assert_eq!(
        lion_cove,
        [
            "L1",
            "LFB",
            "L2",
            "L2 buffer",
            "L3",
            "L3, forwarded",
            "memory-side cache",
            "memory",
            "unknown",
            "unknown"
        ]
    );
}

#[test]
fn s1_intels_flags_stand_where_each_has_them() {
    use Encoding::*;
    let flags = |encoding, word| {
        let seen = read(encoding, word);
        (seen.level, seen.tlb_miss, seen.locked)
    };
    let both = (Level::L1, Some(true), Some(true));
    assert_eq!(flags(Nehalem, 0x31), (Level::L1, None, None));
    assert_eq!(flags(SandyBridge, 0x31), both);
    assert_eq!(flags(Gracemont, 0x21), (Level::L1, Some(true), Some(false)));
    assert_eq!(flags(Unknown, 0x31), (Level::Unknown, None, None));
    assert_eq!(flags(Crestmont, 0x41), (Level::L1, Some(true), Some(false)));
    assert_eq!(flags(LionCove, 0xc01), both);
}

#[test]
fn s1_an_event_tells_what_its_processor_records() {
    let latency = Selection { extra: Some((numbers::LOAD_LATENCY, 3)), ..Selection::of(0xcd, 1) };
    let old = Words::of_intel(0x5e, None);
    let new = Words::of_intel(0x8f, None);
    assert_eq!(old.told(&latency, true), Told::Load);
    assert_eq!(old.told(&Selection::of(0xd0, 0x82), true), Told::StoreHit);
    assert_eq!(old.told(&Selection::of(0xd0, 0x82), false), Told::Nothing);
    assert_eq!(old.told(&Selection::of(0xd0, 0x81), true), Told::Nothing);
    assert_eq!(
        [old, new].map(|one| one.told(&Selection::of(0xcd, 2), true)),
        [Told::Nothing, Told::Store]
    );
    let access = Access { address: 8, source: 1, latency: 0x12_0000_0034, transaction: 0 };
    let both = |words: Words, told| {
        let datum = words.datum(&access, told);
        (datum.latency, datum.other)
    };
    assert_eq!([both(old, Told::Load), both(new, Told::Load)], [(0x34, 0), (0x12, 0x34)]);
    assert_eq!(both(new, Told::StoreHit), (0, 0));
    assert_eq!(both(Words::of_intel(0xff, None), Told::Load), (0, 0), "in a layout not known");
    assert_eq!(new.datum(&access, Told::Nothing), Datum::at(8));
    let hit = |source| {
        let datum = old.datum(&Access { source, ..access }, Told::StoreHit);
        old.source(&datum).unwrap()
    };
    assert_eq!([hit(1).level, hit(0).level], [Level::L1, Level::NotL1]);
    assert!(hit(0x11).store && hit(0x11).tlb_miss.is_none());
    // Precise stores say more.
    let sandy = Words::of_intel(0x2a, None);
    assert_eq!(sandy.told(&Selection::of(0xcd, 2), false), Told::StoreHit);
    let precise = |source| {
        let datum = sandy.datum(&Access { source, ..access }, Told::StoreHit);
        let seen = sandy.source(&datum).unwrap();
        (seen.level, seen.tlb_miss, seen.locked, datum.latency)
    };
    assert_eq!(precise(0x21), (Level::L1, Some(false), Some(true), 0));
    assert_eq!(precise(0x10), (Level::NotL1, Some(true), Some(false), 0));
    // Goldmont, and the small cores of Alder Lake.
    for (model, core) in [(0x5c, None), (0x97, Some(CoreType::Atom))] {
        let small = Words::of_intel(model, core);
        assert_eq!(small.told(&Selection::of(0xd0, 0x82), true), Told::Nothing, "{model:#x}");
    }
}

#[test]
fn s1_each_model_has_its_encoding() {
    use Encoding::*;
    for (model, core, encoding, splits, auxiliary) in [
        (0x1a, None, Nehalem, false, false),
        (0x2a, None, SandyBridge, false, false),
        (0x3c, None, SandyBridge, false, false),
        (0x5e, None, Skylake, false, false),
        (0x7e, None, Skylake, false, false),
        (0x6a, None, SkylakeServer, false, false),
        (0x8f, None, SkylakeServer, true, true),
        (0xad, None, SkylakeServer, true, false),
        (0x97, Some(CoreType::Core), Skylake, true, true),
        (0x97, Some(CoreType::Atom), Gracemont, true, false),
        (0xbe, None, Gracemont, true, false),
        (0xaa, Some(CoreType::Atom), Crestmont, true, false),
        (0xaf, None, Crestmont, true, false),
        (0xb6, None, Crestmont, true, false),
        (0xdd, None, Crestmont, true, false),
        (0xaa, Some(CoreType::Core), Skylake, true, false),
        (0xc6, Some(CoreType::Core), LionCove, true, false),
        (0xc6, Some(CoreType::Atom), Crestmont, true, false),
        (0xcc, Some(CoreType::Core), LionCove, true, false),
        (0x5c, None, Unknown, false, false),
    ] {
        let words = Words::of_intel(model, core);
        let seen = (words.encoding, words.splits, words.auxiliary);
        assert_eq!(seen, (encoding, splits, auxiliary), "{model:#x}");
    }
    let of = |family, ibs| Words::of_amd(family, ibs).encoding;
    let seen = [of(0x10, 0x1f), of(0x17, 0xff), of(0x19, 0x3ff), of(0x19, 0xbff)];
    assert_eq!(seen, [Family10h, Zen, Zen3, Zen4]);
}

#[test]
fn s1_ibs_tells_level_latency_and_translation_where_they_are_valid() {
    const MISS: u64 = 1 << 7 | 1 << 20;
    let of = |encoding, data_2, data_3| {
        let datum = ibs_datum(data_2, data_3, 0x40).unwrap();
        (words(encoding).source(&datum).unwrap(), datum)
    };
    assert_eq!(ibs_datum(3, MISS, 0x40), None, "neither loads nor stores");
    let text = |encoding, data_2, data_3| of(encoding, data_2, data_3).0.to_string();
    let load = 1 | MISS;
    for (encoding, code, expected) in [
        (Encoding::Family10h, 0, "L2"),
        (Encoding::Family10h, 1, "L3"),
        (Encoding::Family10h, 0x22, "cache of another core complex"),
        (Encoding::Family10h, 0x32, "remote cache"),
        (Encoding::Family10h, 3, "memory"),
        (Encoding::Zen, 0x22, "L3"),
        (Encoding::Zen, 2, "L3, snoop hit modified"),
        (Encoding::Zen3, 2, "L3"),
        (Encoding::Zen, 4, "remote cache"),
        (Encoding::Zen, 0x32, "remote cache"),
        (Encoding::Zen3, 0x12, "remote cache"),
        (Encoding::Zen, 0x13, "remote memory"),
        (Encoding::Zen4, 0x21, "L3"),
        (Encoding::Zen4, 1, "L3, snoop hit modified"),
        (Encoding::Zen4, 0x22, "cache of another core complex"),
        (Encoding::Zen4, 0x25, "remote cache"),
        (Encoding::Zen4, 6, "persistent memory"),
        (Encoding::Zen4, 7, "I/O"),
        (Encoding::Zen4, 0x40, "extension memory"),
        (Encoding::Zen4, 0x44, "memory of a peer"),
        (Encoding::Zen4, 0xc0, "unknown"),
        (Encoding::Zen, 1, "unknown"),
    ] {
        assert_eq!(text(encoding, code, load), expected, "{encoding:?} {code:#x}");
    }
    assert_eq!(text(Encoding::Zen4, 3, 1), "L1");
    assert_eq!(text(Encoding::Zen4, 3, 1 | 1 << 7), "L2");
    assert_eq!(text(Encoding::Zen4, 3, load | 1 << 14), "uncached");
    assert_eq!(text(Encoding::Zen4, 0, load | 1 << 16), "LFB");
    assert_eq!(
        text(Encoding::Zen4, 3, load | 1 << 16),
        "memory",
        "what is told of a load comes first"
    );
    // Zen 3's erratum: neither the source nor the second level is told.
    assert_eq!(text(Encoding::Zen3, 3, load | 1 << 16), "LFB");
    assert_eq!(text(Encoding::Zen3, 3, 1 | 1 << 7 | 1 << 21), "unknown");
    assert_eq!(text(Encoding::Zen3, 3, load), "memory");
    // The TLB's word is of valid addresses.
    let translation = |data_3| of(Encoding::Zen4, 3, data_3).0.tlb_miss;
    let both = 1 << 2 | 1 << 3;
    let seen = [both, both | 1 << 17, 1 << 3 | 1 << 17].map(|bits| translation(1 | bits));
    assert_eq!(seen, [None, Some(true), Some(false)]);
    let locked = [load, load | 1 << 15].map(|bits| of(Encoding::Zen4, 3, bits).0.locked);
    assert_eq!(locked, [Some(false), Some(true)]);
    // The source is of loads alone.
    assert_eq!(text(Encoding::Zen4, 3, 2 | MISS), "not L1");
    assert_eq!(text(Encoding::Zen4, 3, 2 | MISS | 1 << 16), "LFB");
    assert_eq!([1, 2, 3].map(|flags| of(Encoding::Zen4, 3, flags).0.store), [false, true, false]);
    let latencies = |data_3| {
        let (_, datum) = of(Encoding::Zen4, 3, data_3 | 200 << 32 | 30 << 48);
        [datum.latency, datum.other]
    };
    assert_eq!(latencies(load | 1 << 2), [200, 30]);
    assert_eq!(latencies(load), [200, 0]);
    assert_eq!(latencies(load | 1 << 21), [0, 0], "not of prefetches by software");
    assert_eq!(latencies(1 | 1 << 2), [0, 30]);
    assert_eq!(latencies(2 | MISS | 1 << 2), [0, 0], "of loads");
    assert_eq!(latencies(load | 1 << 14), [0, 0], "of cached ones");
}

#[test]
fn a_latency_has_the_class_of_its_power_of_two() {
    let class = |latency| Datum { latency, ..Datum::default() }.class();
    assert_eq!([0, 1, 2, 3, 4, 255, 256, u32::MAX].map(class), [0, 1, 2, 2, 3, 8, 9, 32]);
}

proptest! {
    /// Whatever the registers hold, something is said of it, and of what is not told nothing.
    #[test]
    fn every_word_means_something(data_2: u64, data_3: u64, source: u64, latency: u64) {
        for encoding in EVERY {
            let words = Words { splits: latency & 1 != 0, ..words(encoding) };
            if let Some(datum) = ibs_datum(data_2, data_3, 1) {
                prop_assert!(words.source(&datum).is_some());
            }
            let access = Access { address: 1, source, latency, transaction: 0 };
            for told in [Told::Load, Told::Store, Told::StoreHit] {
                prop_assert!(words.source(&words.datum(&access, told)).is_some());
            }
            prop_assert_eq!(words.source(&words.datum(&access, Told::Nothing)), None);
        }
    }
}
