//! A PMU that is announced wrongly: each bit of the leaves that announce it, turned over.

use crate::outcome::Outcome;
use recorded::{Leaves, cores};

/// The leaves: Intel's, its extension, AMD's.
const LEAVES: [u32; 3] = [0xa, 0x23, 0x8000_0022];

/// The cores, one of each way to announce a PMU.
pub const CORES: [&str; 6] = [
    "intel-x86-64-core-intel-core2-duo-cpu-p8400",
    "intel-x86-64-skylake-intel-core-i5-6400t-cpu",
    "intel-x86-64-golden-cove-12th-gen-intel-core-i7-12700h-e-core",
    "intel-x86-64-lion-cove-intel-core-ultra-5-245k-p-core",
    "amd-zen2-amd-ryzen-threadripper-pro-3955wx-16-cores",
    "amd-zen4-amd-ryzen-5-7600x-6-core-processor",
];

/// On counters of both kinds, and the one that takes two counters on AMD. By number: names cost time and say no more.
const EVENTS: [&str; 5] = ["r00c0", "r003c", "fixed0", "fixed3", "r0003"];

/// The core with each bit of those leaves turned over in turn.
pub fn turned(leaves: &Leaves) -> impl Iterator<Item = Leaves> + '_ {
    let answers = leaves.all().filter(|(leaf, _)| LEAVES.contains(&leaf.leaf));
    answers.flat_map(move |(leaf, answer)| {
        (0..128).map(move |bit| {
            let mut turned = answer;
            turned[bit / 32] ^= 1 << (bit % 32);
            let mut all = leaves.clone();
            all.set(leaf.leaf, leaf.subleaf, turned);
            all
        })
    })
}

#[test]
fn c6_each_bit_of_the_leaves_of_a_pmu_turned_over_is_an_answer_or_an_error() {
    for name in CORES {
        let core = cores::named(name).unwrap_or_else(|| panic!("{name}"));
        let mut differ = 0;
        let as_it_is = Outcome::with(&core.leaves, &EVENTS);
        for (number, leaves) in turned(&core.leaves).enumerate() {
            let outcome = Outcome::with(&leaves, &EVENTS);
            if let Err(why) = &outcome.pmu {
                assert!(!why.is_empty(), "{name}: bit {number}");
            }
            differ += usize::from(outcome.pmu != as_it_is.pmu);
        }
        // Leaf 0xA is not AMD's, and says nothing there.
        let says = core.leaves.recorded(0x8000_0022, 0).is_some() || name.starts_with("intel");
        assert_eq!(differ > 0, says, "{name}");
    }
}
