//! Loads and stores by one word, and what is told of their data.

use super::*;
use arch::pmu::find;
use pmu_model::{Pmu as Registers_, Timing};
use protocol::record::SourceCount;

/// Each model with a counter that the event of loads can be on: there is no table here that says so.
const LOADS: [(Model, &str); 8] = [
    (Model::Nehalem, "mem-loads:counter=3"),
    (Model::Haswell, "mem-loads:counter=3"),
    (Model::Skylake, "mem-loads:counter=2"),
    (Model::IceLake, "mem-loads:counter=7"),
    (Model::SapphireRapids, "mem-loads:counter=1"),
    (Model::GoldenCove, "mem-loads:counter=1"),
    (Model::ArrowLake, "mem-loads:counter=2"),
    (Model::Gracemont, "mem-loads:counter=1"),
];

/// Turns of these instructions, sampled by `text`.
fn of(text: &'static str, body: &'static [u8]) -> Sampling<'static> {
    let mut item = item(&[event(text, 64)], 2000);
    item.workload.tasks[0].body = Cow::Borrowed(body);
    item
}

/// Source, class, count, sum and longest latency of the rows.
fn rows(sources: &[SourceCount]) -> Vec<(&str, u32, u64, u64, u32)> {
    fn row(one: &SourceCount) -> (&str, u32, u64, u64, u32) {
        let level = one.source.split(',').next().unwrap();
        assert_eq!((one.event, one.task), (0, 0));
        assert_eq!(one.latency, one.count * u64::from(one.longest), "{one:?}");
        (level, one.least, one.count, one.latency, one.longest)
    }
    sources.iter().map(row).collect()
}

#[test]
fn s1_m5_mem_loads_tells_levels_and_latencies_and_keeps_fast_loads_away() {
    for (model, text) in LOADS {
        // Three near ones, then one out of memory with a page walk; the 64th of all of them is a far one, or one before it.
        let (result, _) = run(&mut Host::new(model), &of(text, &[LOAD, LOAD, FAR]));
        let one = &result.events[0];
        assert_eq!((&*one.event, one.samples), (text, 6000 / 64), "{model:?}: {one:?}");
        let mut seen = rows(&result.sources);
        seen.sort_unstable();
        let [near, far] = &seen[..] else { panic!("{model:?}: {:?}", result.sources) };
        assert_eq!((near.0, near.1, near.4), ("L1", 4, 4), "{model:?}");
        assert_eq!((far.0, far.1, far.4), ("memory", 128, 234), "{model:?}");
        assert_eq!((near.2, far.2), (62, 31), "{model:?}");
        let walk = result.sources.iter().find(|one| one.source.starts_with("memory")).unwrap();
        let told = model != Model::Nehalem;
        assert_eq!(walk.tlb_miss, told.then_some(true), "{model:?}");
        // By address: the far ones with their sum.
        let at = result.data.iter().find(|row| row.address.0 == FAR_DATA).unwrap();
        assert_eq!(
            (at.count, at.latency, at.longest),
            (31, Some(31 * 234), Some(234)),
            "{model:?}"
        );
        assert!(result.latencies.is_some() && result.sources_elsewhere == 0);
        for (threshold, samples) in [("30", 2000 / 64), ("234", 0)] {
            let text: &'static str = format!("{text}:ldlat={threshold}").leak();
            let (result, _) = run(&mut Host::new(model), &of(text, &[LOAD, LOAD, FAR]));
            assert_eq!(result.events[0].samples, samples, "{model:?} {text}: {result:?}");
            assert!(result.addresses.iter().all(|row| row.count == samples), "{model:?}");
        }
    }
}

#[test]
fn s1_single_samples_have_their_source_and_latency() {
    let mut item = of("mem-loads:counter=1", &[LOAD, LOAD, FAR]);
    (item.keep, item.capacity) = (Keep::Samples, 100);
    let (_, chunks) = run(&mut Host::new(Model::SapphireRapids), &item);
    let chunk = &chunks[0];
    assert_eq!((chunk.data.len(), chunk.latencies.len(), chunk.sources.len()), (93, 93, 93));
    for ((address, latency), source) in chunk.data.iter().zip(&chunk.latencies).zip(&chunk.sources)
    {
        let name = &chunk.source_names[*source as usize - 1];
        let far = address.0 == FAR_DATA;
        let expected = if far { (234, "memory, snoop hit") } else { (4, "L1") };
        assert_eq!((*latency, name.as_str()), expected);
    }
}

/// The words that ask for precision change nothing: these are precise in any case.
#[test]
fn s1_mem_loads_are_precise_with_and_without_the_word() {
    for text in ["mem-loads:counter=2:p", "mem-loads:counter=2:pp"] {
        let (result, _) = run(&mut Host::new(Model::Skylake), &of(text, &[LOAD, LOAD, FAR]));
        assert_eq!(result.events[0].samples, 6000 / 64, "{text}");
    }
}

/// Rows are of their own event and their own task.
#[test]
fn s1_accesses_are_those_of_their_event_and_of_their_task() {
    let both = [event("r01c0:counter=1", 640), event("mem-loads:counter=2", 64)];
    let mut item = item(&both, 2000);
    item.precise = true;
    item.workload.tasks[0].body = Cow::Borrowed(&[LOAD, LOAD, FAR]);
    item.workload.tasks.extend_from_within(..);
    item.workload.tasks.iter_mut().for_each(|task| task.ring = TaskRing::User);
    let (result, _) = run(&mut Host::new(Model::Skylake), &item);
    let sources = result.sources.iter().filter(|row| row.event == 1);
    assert_eq!(sources.map(|row| row.count).sum::<u64>(), result.events[1].samples, "{result:?}");
    let rows = |event| result.data.iter().filter(move |row| row.event == event);
    let counts = [0, 1].map(|event| rows(event).map(|row| row.count).sum::<u64>());
    assert_eq!(counts, [result.events[0].samples, result.events[1].samples], "{result:?}");
    let mut tasks: Vec<u32> = result.data.iter().map(|row| row.task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    assert_eq!(tasks, [0, 1], "{result:?}");
}

/// What finds no place among the sources is counted.
#[test]
fn s1_sources_without_a_place_are_counted() {
    let mut host = Host::new(Model::SapphireRapids);
    host.few_sources = true;
    let (result, _) = run(&mut host, &of("mem-loads:counter=1", &[LOAD, LOAD, FAR]));
    let [one] = &result.sources[..] else { panic!("{result:?}") };
    assert!(one.count > 0 && result.sources_elsewhere > 0, "{result:?}");
    assert_eq!(one.count + result.sources_elsewhere, result.events[0].samples);
}

/// A record of single samples has a thousand words at most, of which a sample with its data takes four.
#[test]
fn s1_records_of_single_samples_stay_short() {
    let mut item = of("mem-loads:counter=1", &[LOAD, LOAD, FAR]);
    (item.keep, item.capacity, item.workload.tasks[0].turns) = (Keep::Samples, 1000, 20_000);
    let (_, chunks) = run(&mut Host::new(Model::SapphireRapids), &item);
    let sizes: Vec<usize> = chunks.iter().map(|chunk| chunk.data.len()).collect();
    assert_eq!(sizes, [250, 250, 250, 187]);
}

#[test]
fn s1_mem_stores_tell_what_their_processor_has() {
    for (model, level, latency) in [
        (Model::Haswell, "not L1", 0),
        (Model::Skylake, "not L1", 0),
        (Model::IceLake, "not L1", 0),
        (Model::SapphireRapids, "memory", 204),
        (Model::ArrowLake, "memory", 204),
        (Model::Gracemont, "memory", 204),
    ] {
        let (result, _) = run(&mut Host::new(model), &of("mem-stores", &[LOAD, STORE]));
        assert_eq!(result.events[0].samples, 31, "{model:?}: {result:?}");
        let seen = rows(&result.sources);
        assert_eq!((seen[0].0, seen[0].2, seen[0].4), (level, 31, latency), "{model:?}");
        assert!(result.sources.iter().all(|one| one.store), "{model:?}");
        assert_eq!(result.data.len(), 1, "{model:?}");
        assert_eq!(result.data[0].latency.is_some(), latency > 0, "{model:?}");
        assert_eq!(result.data[0].address.0, FAR_DATA + 8);
    }
}

#[test]
fn s1_golden_cove_counts_the_auxiliary_event_beside() {
    for (model, beside) in [(Model::SapphireRapids, true), (Model::IceLake, false)] {
        let (result, _) = run(&mut Host::new(model), &of("mem-loads", &[FAR]));
        let said = result.events[0].remarks.iter().any(|remark| remark.contains("0x03/0x82"));
        assert_eq!(said, beside, "{model:?}: {:?}", result.events[0].remarks);
    }
    // The first four counters are in use.
    let text = "r00c4:counter=0,r00c4:counter=1,r00c4:counter=2,r00c4:counter=3";
    let mut all: Vec<_> = text.split(',').map(|one| event(one, 100)).collect();
    all.push(event("mem-loads", 64));
    let mut item = item(&all, 100);
    item.workload.tasks[0].body = Cow::Borrowed(&[FAR]);
    let said = match measure(&mut Host::new(Model::SapphireRapids), 0, &item, &mut (), &mut |_| ())
    {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(said.contains("none of them is free"), "{said}");
}

#[test]
fn c7_s1_requests_of_one_word_are_refused_with_the_nearest() {
    for (model, text, part) in [
        (Model::Core2, "mem-loads", "MEM_LOAD_RETIRED.L1D_MISS"),
        (Model::Core2, "mem-stores", "the nearest is the event `stores`"),
        (Model::Nehalem, "mem-stores", "the nearest is the event `stores`"),
        (Model::Skylake, "mem-loads:ldlat=2", "the least is 3"),
        (Model::Skylake, "mem-loads:ldlat=70000", "from 3 to 65535"),
        (Model::Skylake, "mem-stores:ldlat=30", "is nothing that"),
        (Model::Zen4, "mem-loads:u", "every ring"),
    ] {
        let said = match measure(&mut Host::new(model), 0, &of(text, &[LOAD]), &mut (), &mut |_| ())
        {
            Err(Unmeasured::Refused(text)) => text,
            other => panic!("{model:?} {text}: {other:?}"),
        };
        assert!(said.contains(part), "{model:?} {text}: {said}");
        assert!(said.starts_with(text), "as the job has it: {said}");
    }
}

/// A recorded Sandy Bridge: leaf 1 with the debug store, leaf 0xA of version 3 with four counters.
fn sandy_bridge() -> Host {
    use pmu_model::{Recording, recording::Answer};
    const NAME: [u32; 3] = [0x756e_6547, 0x6c65_746e, 0x4965_6e69];
    let answer = |leaf, registers| Answer { leaf, subleaf: 0, registers };
    let [b, d, c] = NAME;
    let answers = vec![
        answer(0, [0xd, b, c, d]),
        answer(1, [0x0002_06a7, 0, 1 << 15 | 1 << 2, 1 << 21 | 1 << 9 | 1 << 5]),
        answer(0xa, [0x0730_0403, 0, 0, 0x603]),
        answer(0x8000_0000, [0x8000_0008, 0, 0, 0]),
        answer(0x8000_0001, [0, 0, 0, 1 << 29]),
    ];
    let recording = Recording::of(Vec::leak(answers)).unwrap();
    let host = pmu_model::Host::EXAMPLE;
    let mut pmu = Registers_::recorded(Box::leak(Box::new(recording)), host, Timing::DEFAULT);
    let has = find(&mut pmu).expect("a PMU");
    Host::of(pmu, has)
}

#[test]
fn s1_m5_mem_stores_of_sandy_bridge_are_precise_stores() {
    let mut host = sandy_bridge();
    let (result, _) = run(&mut host, &of("mem-stores", &[LOAD, STORE, 0x90]));
    let one = &result.events[0];
    assert_eq!((one.samples, one.lost), (2000 / 64, 0), "{result:?}");
    assert_eq!(one.counter.as_deref(), Some("counter 3"));
    // Of the instruction after the store, as format 1 has no other.
    assert!(result.addresses.iter().all(|row| row.address.0 == AT + 2), "{result:?}");
    let [row] = &result.data[..] else { panic!("{result:?}") };
    assert_eq!((row.address.0, row.count), (FAR_DATA + 8, 2000 / 64));
    let [source] = &result.sources[..] else { panic!("{result:?}") };
    assert_eq!((source.source.as_str(), source.store, source.latency), ("not L1", true, 0));
    assert_eq!((source.tlb_miss, source.locked), (Some(false), Some(false)), "both are told");
    // Other counters have no such event.
    let elsewhere = of("mem-stores:counter=2", &[STORE]);
    match measure(&mut sandy_bridge(), 0, &elsewhere, &mut (), &mut |_| ()) {
        Err(Unmeasured::Refused(text)) => assert!(text.contains("only counter 3"), "{text}"),
        other => panic!("{other:?}"),
    }
    // The processors after it say whether the first level had the line, and no more.
    let (result, _) = run(&mut Host::new(Model::Haswell), &of("mem-stores", &[STORE]));
    assert_eq!((result.sources[0].tlb_miss, result.sources[0].locked), (None, None));
}
