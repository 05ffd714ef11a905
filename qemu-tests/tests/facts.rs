//! Fact sheets: what is told of the emulated PMU's caches and TLBs is what they were given.

use ::facts::judge::{self, Told};
use pmu_model::uarch::Parameters;
use pmu_model::uarch::prefetcher::PrefetcherShape;
use protocol::record::{FactsResult, FactsTimer, Record};
use qemu_tests::xtask;
use serde_json::Value;

mod bandwidth;
mod between;
mod core;
mod predictor;

const JOB: &str = "[[facts]]\nname = \"this machine\"\nmemory = \"64M\"\nparts = [\"memory\"]\n";

/// The fact sheet of a model with these parameters.
fn sheet(pmu: &str) -> FactsResult {
    run(JOB, &["--pmu", pmu])
}

/// The fact sheet of a job.
fn run(job: &str, options: &[&str]) -> FactsResult {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    let run = ["run", "job.toml", "--timeout", "240", "--format", "json"];
    let called = xtask(folder.path(), &[&run, options].concat());
    assert_eq!(called.code, 0, "{called:#?}");
    let json: Value = serde_json::from_str(&called.out).unwrap();
    let records = json["records"].as_array().unwrap();
    let find = records.iter().find_map(|record| match serde_json::from_value(record.clone()) {
        Ok(Record::Facts(facts)) => Some(facts),
        _ => None,
    });
    find.unwrap_or_else(|| panic!("no fact sheet: {json:#}"))
}

/// What every sheet has to tell of the caches, whatever they are.
fn is_told(facts: &FactsResult, parameters: &str) {
    let really = Parameters::parse(parameters).unwrap();
    assert_eq!((facts.timer, facts.emulated), (FactsTimer::CoreCycles, true));
    let memory = facts.memory.as_ref().unwrap();
    assert_eq!(memory.line, Some(really.line));
    assert_eq!(memory.memory_tenths, u64::from(really.memory_cycles) * 10);
    let caches: Vec<_> = really.caches.iter().flatten().collect();
    assert_eq!(memory.caches.len(), caches.len(), "{memory:#?}");
    for (level, (fact, cache)) in memory.caches.iter().zip(caches).enumerate() {
        assert_eq!(fact.tenths, Some(u64::from(cache.cycles) * 10), "{fact:?}");
        assert_eq!((fact.bytes(), fact.ways), (Some(cache.bytes), Some(cache.ways)), "{fact:?}");
        match judge::policies(&memory.caches, level) {
            // This variant of quad-age LRU is MRU by another name: a hit and a line that comes get age 0, and when nothing else is
            // left all others get age 3.
            Told::OneOf(mut left) => {
                left.retain(|one| one.to_string() != "qlru_h00_m0_r0_u1");
                assert_eq!(left, [cache.policy]);
            }
            told => panic!("level {level}: {told:?}"),
        }
    }
    let first = memory.tlbs.iter().find(|tlb| (tlb.level, tlb.page) == (1, 4096)).unwrap();
    let entries = first.ways.zip(first.sets).map(|(ways, sets)| (ways * sets, ways));
    assert_eq!(entries, Some((really.dtlb.entries, really.dtlb.ways)));
    assert_eq!(first.walk_tenths, u64::from(really.walk_cycles) * 10);
    let crossings = [really.split_cycles, really.cross_cycles].map(|cycles| u64::from(cycles) * 10);
    assert_eq!(memory.crossing_tenths, crossings);
    // What fits into the first cache takes its time, and what is sixteen times the last one nearly that of memory.
    let curve = |bytes| memory.curve.iter().find(|point| point.bytes == bytes).unwrap().tenths;
    assert_eq!(curve(4096), memory.first_tenths);
    assert!(curve(32 << 20) > memory.memory_tenths * 8 / 10, "{:?}", memory.curve);
    // Prefetchers bring some lines of a walk in random order as well.
    let sorted = memory.curve.is_sorted_by_key(|point| point.tenths);
    assert!(sorted || really.prefetch != PrefetcherShape::NONE, "{:?}", memory.curve);
}

#[test]
fn d1_an_intel_model_with_two_caches_is_told() {
    let parameters = "l1d=24k/6,l2=256k/8:plru@12,dtlb=64/4,split=7,walk=25,prefetch=1/1/3/9/2";
    let facts = sheet(&format!("skylake,{parameters}"));
    is_told(&facts, parameters);
    let prefetch = facts.memory.unwrap().prefetch.unwrap();
    assert_eq!((prefetch.pairs(), prefetch.crosses_pages()), (Some(true), Some([false; 2])));
    let seen = |stride| prefetch.stream(stride).map(|one| one.map(|one| (one.after, one.ahead)));
    assert_eq!(seen(1)[0], Some((2, 1)), "{prefetch:?}");
    for stride in [-1, 2, -2] {
        assert_eq!(seen(stride), [None, Some((3, 9))], "{prefetch:?}");
    }
    for stride in [3, -3, 4, -4] {
        assert_eq!(seen(stride), [None, None], "{prefetch:?}");
    }
}

#[test]
fn d1_an_amd_model_with_three_caches_is_told() {
    let parameters =
        "l1d=32k/8:fifo@5,l2=128k/4:mru@14,l3=1m/16@44,memory=250,dtlb=32/32,stlb=256/4@8";
    let facts = sheet(&format!("zen4,{parameters}"));
    is_told(&facts, parameters);
    let memory = facts.memory.unwrap();
    let prefetch = memory.prefetch.unwrap();
    assert_eq!((prefetch.pairs(), prefetch.crosses_pages()), (Some(false), None));
    assert_eq!(prefetch.strides().count(), 8);
    assert!(prefetch.strides().all(|stride| prefetch.stream(stride) == [None, None]));
    let second = memory.tlbs.iter().find(|tlb| (tlb.level, tlb.page) == (2, 4096)).unwrap();
    assert_eq!((second.ways, second.sets, second.tenths), (Some(4), Some(64), Some(80)));
}
