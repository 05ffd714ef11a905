//! Texts, words and bounds of parameters.

use super::*;
use proptest::prelude::*;

#[test]
fn d1_what_is_given_stands_and_the_rest_is_the_default() {
    let text = "l1d=24k/6,l2=512k/8:qlru_h00_m1_r2_u1@15,l3=8m/16@42,dtlb=64/4,stlb=none,line=64,btb=512/4";
    let all = Parameters::parse(text).unwrap();
    let first = all.caches[0].unwrap();
    assert_eq!((first.bytes, first.ways, all.sets(&first)), (24 << 10, 6, 64));
    assert_eq!((first.policy, first.cycles), (Policy::Lru, 4));
    assert_eq!(all.caches[1].unwrap().policy.to_string(), "qlru_h00_m1_r2_u1");
    assert_eq!((all.caches[2].unwrap().cycles, all.stlb), (42, None));
    assert_eq!(all.btb, TlbShape { entries: 512, ways: 4 });
    assert_eq!(all.walk_cycles, Parameters::DEFAULT.walk_cycles);
    let coded = Parameters::parse("l1i=48k/12@11").unwrap();
    let code = coded.code.unwrap();
    assert_eq!((code.bytes, code.ways, code.cycles), (48 << 10, 12, 11));
    assert_eq!(Parameters::parse("l1i=none").unwrap().code, None);
    assert_eq!(Parameters::parse("stlb=64/4@9,stlb=none"), Parameters::parse("stlb=none"));
    let stored = Parameters::parse("forward=5/6/7/13/12/9,stores=56").unwrap();
    assert_eq!((stored.forward.list(), stored.stores), ([5, 6, 7, 13, 12, 9], 56));
    assert_eq!(Parameters::parse("stores=none").unwrap().stores, 0);
    let windowed =
        Parameters::parse("rob=224,loads=72,vectors=160,registers=168,scheduler=97").unwrap();
    assert_eq!(windowed.window.list(), [224, 168, 160, 72, 97]);
    // Another reorder buffer has nothing but that.
    let other = Parameters::parse("rob=224,loads=72,rob=64").unwrap();
    assert_eq!(other.window.list(), [64, 0, 0, 0, 0]);
    assert_eq!(Parameters::parse("rob=64,rob=none"), Ok(Parameters::DEFAULT));
    let moving = Parameters::parse("transfer=4/9/26/4000").unwrap();
    assert_eq!(moving.transfer.list(), [4, 9, 26, 4000]);
    let fetching = Parameters::parse("prefetch=1/0/3/16/2").unwrap();
    assert_eq!(fetching.prefetch.list(), [1, 0, 3, 16, 2]);
    let direct = Parameters::parse("direct=4096/8@9").unwrap();
    assert_eq!(direct.direct, Some(TlbShape { entries: 4096, ways: 8 }));
    assert_eq!(direct.direct_cycles, 9);
    assert_eq!(Parameters::parse("direct=64/4@9,direct=none"), Ok(Parameters::DEFAULT));
    let ported = Parameters::parse("ports=alu:0156/mul:1,issue=4").unwrap();
    assert_eq!(ported.ports.map(|ports| ports.issue), Some(4));
    let front = "ports=alu:0156,issue=6,uops=1536/8/6/32@4,loop=64@5";
    let fronted = Parameters::parse(front).unwrap();
    assert_eq!(fronted.front.list(), [1536, 8, 6, 32, 4, 64, 5]);
    let none = Parameters::parse(&format!("{front},uops=none,loop=none")).unwrap();
    assert_eq!(none.front, FrontEndShape::NONE);
    let some = [all, coded, stored, windowed, moving, fetching, direct, ported, fronted, none];
    for all in some.into_iter().chain([Parameters::DEFAULT]) {
        assert_eq!(Parameters::parse(&all.to_string()), Ok(all));
        assert_eq!(Parameters::of_words(&all.words()), Some(all));
    }
    assert_eq!(Parameters::of_words(&[0; Parameters::WORDS]), None);
}

#[test]
fn d1_what_is_wrong_is_named() {
    for (text, reason) in [
        ("l1d=24k/5", SETS),
        ("l1d=32k/8:lfu", POLICY),
        ("l1d=24k/6:plru", POLICY),
        ("l2=1m", CACHE),
        ("l1d=none", "each level"),
        ("l1i=32k/8:fifo", CODE),
        ("l1i=32k/7", SETS),
        ("forward=1/2/3/4/5", FORWARD),
        ("forward=1/2/3/4/5/4001", FORWARD),
        ("stores=129", "1 to 128"),
        ("stores=0", "1 to 128"),
        ("rob=15", WINDOW),
        ("rob=1025", WINDOW),
        ("rob=0", WINDOW),
        ("loads=16", WINDOW),
        ("rob=64,loads=65", WINDOW),
        ("rob=64,scheduler=1", WINDOW),
        ("transfer=1/2/3", TRANSFER),
        ("transfer=1/2/3/4/5", TRANSFER),
        ("transfer=1/2/3/4001", TRANSFER),
        ("prefetch=1/1/3/4", PREFETCH),
        ("prefetch=1/1/3/4/2/1", PREFETCH),
        ("prefetch=1/1/3/4/5", PREFETCH),
        ("prefetch=2/0/0/0/0", PREFETCH),
        ("l2=none,l3=8m/16", "each level"),
        ("dtlb=64/5", "power of two"),
        ("dtlb=0/1", "power of two"),
        ("dtlb=64", TLB),
        ("line=63", "32, 64 or 128"),
        ("memory=0", CYCLES),
        ("returns=65", "1 to 64"),
        ("btb=2048/2", BTB),
        ("btb=96/4", BTB),
        ("btb=64/32", BTB),
        ("btb=64", BTB),
        ("direct=4096/3@8", DIRECT),
        ("direct=4096/8@0", DIRECT),
        ("direct=32768/8", DIRECT),
        ("ports=3", "ports are CLASS:UOPS"),
        ("ports=alu:0,issue=17", "1 to 16"),
        ("issue=4", "after ports"),
        ("uops=1536/8/6/32@3", "after ports and issue"),
        ("loop=64@3", "after ports and issue"),
        ("ports=alu:0,issue=4,uops=1536/8/6/32@4", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=1536/8/6/32", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=1536/8/6/16@3", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=1536/8/7/32@3", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=1536/4/6/64@3", "every two bytes"),
        ("ports=alu:0,issue=4,uops=1536/7/6/32@3", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=1536/8/6/32/1@3", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=128/4/8/32@3", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=0/0/0/0@0", front_end::UOPS),
        ("ports=alu:0,issue=4,loop=161@3", front_end::LOOP),
        ("ports=alu:0,issue=4,loop=64@4", front_end::LOOP),
        ("ports=alu:0,issue=4,loop=0@0", front_end::LOOP),
        ("ports=alu:0,issue=4,loop=64@3,uops=1536/8/6/32@3", front_end::UOPS),
        ("ports=alu:0,issue=4,uops=1536/8/6/32@3,issue=3", front_end::UOPS),
        ("port=3", "the keys are"),
        ("", "the keys are"),
        ("l1d=32k/8,", "the keys are"),
    ] {
        let error = Parameters::parse(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

/// Parameters of every kind, each text with others that are beside the defaults.
const GOOD: [&str; 6] = [
    "l1d=24k/6,l2=512k/8:qlru_h00_m1_r2_u1@15,l3=8m/16@42,dtlb=64/4,stlb=none,line=64,btb=512/4",
    "l1i=48k/12@11,forward=5/6/7/13/12/9,stores=56",
    "rob=224,loads=72,vectors=160,registers=168,scheduler=97,memory=300",
    "transfer=4/9/26/4000,prefetch=1/0/3/16/2,line=32",
    "direct=4096/8@9,returns=20,mispredict=12",
    "ports=alu:0156/mul:1,issue=6,uops=1536/8/6/32@4,loop=64@5",
];

/// A field of a word: small values say more.
fn field() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), 1u16..100, any::<u16>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_and_no_words_make_it_panic(text in "(l1d|l1i|l2|stlb|line|forward|stores|transfer|prefetch|rob|loads|direct|uops|loop|ports=alu:0,issue=9,uops|ports=alu:0,issue=9,loop)?=?[0-9a-z/:@,=]{0,40}", words: [u64; Parameters::WORDS]) {
        let _ = Parameters::parse(&text);
        let _ = Parameters::of_words(&words);
    }

    /// Words of good parameters, of which some bits are others: what is still taken for parameters is what a text can say, and
    /// comes back as the same words.
    #[test]
    fn what_words_are_taken_for_can_be_said(
        text in proptest::sample::select(&GOOD[..]),
        changes in proptest::collection::vec((0..Parameters::WORDS, 0u32..64, field(), any::<bool>()), 0..3),
    ) {
        let mut words = Parameters::parse(text).unwrap().words();
        for (at, bit, to, flips) in changes {
            let place = bit / 16 * 16;
            words[at] = match flips {
                true => words[at] ^ 1 << bit,
                false => words[at] & !(0xffff << place) | u64::from(to) << place,
            };
        }
        if let Some(all) = Parameters::of_words(&words) {
            let text = all.to_string();
            prop_assert_eq!(Parameters::parse(&text), Ok(all), "{}", text);
            prop_assert_eq!(all.words(), words, "{}", text);
        }
    }
}
