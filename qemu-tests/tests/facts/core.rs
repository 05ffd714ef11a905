//! What a core is beside its predictor, by parameters, and what is told of it.

use super::predictor::core;
use pmu_model::uarch::Parameters;
use protocol::record::ForwardFact;

#[test]
fn d1_instruction_caches_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "l1i=32k/8@12"),
        ("zen4", "l1i=24k/3@7,line=128"),
        ("goldencove", "l1i=48k/12@19,line=32,returns=24"),
    ] {
        let really = Parameters::parse(parameters).unwrap();
        let fact = core(&format!("{model},{parameters}")).code;
        let code = really.code.unwrap();
        let told = (fact.bytes().map(u64::from), fact.ways, fact.line);
        assert_eq!(told, (Some(code.bytes), Some(code.ways), Some(really.line)), "{fact:?}");
        assert_eq!((fact.miss_tenths, fact.doubtful), (u64::from(code.cycles) * 10, 0), "{fact:?}");
    }
}

#[test]
fn d1_store_buffers_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "stores=56,forward=1/2/3/11/6/5"),
        ("zen4", "stores=64,forward=0/7/1/14/9/2,line=128,memory=300"),
        ("goldencove", "stores=112,forward=5/5/5/19/5/4,memory=250"),
    ] {
        let really = Parameters::parse(parameters).unwrap();
        let fact = core(&format!("{model},{parameters}")).stores;
        assert_eq!(fact.entries, Some(really.stores), "{fact:?}");
        let told = |name: &str| {
            let is_own = |one: &&ForwardFact| one.name() == name;
            let found = fact.forward.iter().find(is_own);
            found.unwrap_or_else(|| panic!("no {name}: {fact:?}")).tenths
        };
        let names = [
            "forward 8 of 8",
            "forward 4 of 8",
            "forward 4 of 8 at 4",
            "forward 8 of 8 at 4",
            "forward 8 of 8 across lines",
            "4K aliasing",
        ];
        let cycles = really.forward.list().map(|cycles| [i64::from(cycles) * 10; 3]);
        assert_eq!(names.map(told), cycles, "{fact:?}");
        assert_eq!(told("forward 8 of 4"), told("forward 8 of 8 at 4"));
        assert_eq!(told("forward 1 of 8 at 5"), told("forward 4 of 8 at 4"));
    }
}

#[test]
fn d1_widths_of_issue_by_parameters_are_told() {
    for (pmu, width) in [
        ("skylake,ports=alu:0156,issue=4", Some(4)),
        ("zen4,ports=alu:0123/branch:0,issue=7", Some(7)),
        ("goldencove,ports=alu:0156", None),
        ("goldencove,mispredict=9", Some(1)),
    ] {
        let fact = core(pmu).issue;
        assert_eq!(fact.width, width, "{pmu}: {fact:?}");
        assert_eq!(fact.width.is_none(), fact.reason.is_some(), "{pmu}: {fact:?}");
    }
}

#[test]
fn d1_front_ends_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "ports=alu:0156,issue=4,uops=1536/8/6/32@3"),
        ("zen4", "ports=alu:0123,issue=8,uops=4096/8/8/64@4,loop=144@6"),
        ("goldencove", "ports=alu:0156,issue=4,loop=64@3"),
        ("goldencove", "ports=alu:0156,issue=6"),
    ] {
        let core = core(&format!("{model},{parameters}"));
        let [uops, _, _, _, decode, looped, outside] =
            Parameters::parse(parameters).unwrap().front.list().map(u32::from);
        let fact = core.front;
        let is_there = |number: u32| Some(number).filter(|number| *number > 0);
        assert_eq!(fact.uop_cache, is_there(uops), "{parameters}: {fact:?}");
        assert_eq!(fact.loop_buffer, is_there(looped), "{parameters}: {fact:?}");
        // Without a micro-op cache all comes as what is outside the loop buffer.
        assert_eq!(fact.decode, is_there(decode).or(is_there(outside)), "{parameters}: {fact:?}");
        assert_eq!(fact.uop_cache.is_none(), fact.reason.is_some(), "{parameters}: {fact:?}");
        assert_eq!(fact.decode.is_none(), fact.decode_reason.is_some(), "{parameters}: {fact:?}");
        let issue = Parameters::parse(parameters).unwrap().ports.unwrap().issue;
        assert_eq!(core.issue.width, Some(issue.into()), "{parameters}: {:?}", core.issue);
        assert!(fact.loops.iter().all(|one| one.doubtful == 0), "{parameters}: {fact:?}");
    }
}

#[test]
fn d1_tables_of_direct_jumps_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "direct=512/4@8"),
        ("zen4", "direct=1536/3@5,returns=32"),
        ("goldencove", "direct=2048/8@11,l1i=64k/8@14"),
        ("goldencove", "direct=8192/8@3,l1i=32k/8@14"),
    ] {
        let really = Parameters::parse(parameters).unwrap();
        let fact = core(&format!("{model},{parameters}")).direct;
        // What does not fit into the instruction cache is not determined.
        let fits =
            |entries: &u32| really.code.is_none_or(|code| code.bytes > 16 * u64::from(*entries));
        let entries = really.direct.map(|direct| direct.entries).filter(fits);
        assert_eq!(fact.entries, entries, "{parameters}: {fact:?}");
        assert_eq!(fact.entries.is_none(), fact.reason.is_some(), "{parameters}: {fact:?}");
        assert!(fact.loops.iter().all(|one| one.doubtful == 0), "{parameters}: {fact:?}");
        let cycles = really.direct.map_or(0, |_| u64::from(really.direct_cycles) * 10);
        // The first steps are the table's, if it is smaller than the cache.
        let costs = fact.loops.iter().filter(|_| entries.is_some());
        let costs = costs.filter_map(|one| one.steps.first());
        for [jumps, before, after] in costs {
            let most = 10 + cycles + cycles / jumps + 1;
            assert!(*before == 10 && *after <= most, "{parameters}: {fact:?}");
        }
    }
}

#[test]
fn d1_the_width_of_retirement_is_told_by_counter_masks() {
    // An instruction retires in each cycle, so that a counter mask of two counts nothing.
    for pmu in ["skylake,rob=224,memory=300", "zen4,mispredict=9", "goldencove,memory=300"] {
        let fact = core(pmu).retire;
        assert_eq!((fact.width, fact.reason.as_ref()), (Some(1), None), "{pmu}: {fact:?}");
        let [[1, each], [2, 0]] = fact.evidence[..] else { panic!("{pmu}: {fact:?}") };
        assert!(each >= 480, "{pmu}: {fact:?}");
    }
}

#[test]
fn d1_windows_with_parameters_are_told() {
    for (model, parameters) in [
        ("skylake", "rob=224,registers=168,vectors=160,loads=72,scheduler=97,memory=500"),
        ("zen4", "rob=320,registers=224,vectors=192,memory=900,line=128,l1d=48k/12"),
        ("goldencove", "memory=300"),
    ] {
        let really = Parameters::parse(parameters).unwrap();
        let facts = core(&format!("{model},{parameters}")).window;
        let told: Vec<u32> = facts.iter().map(|one| one.entries.unwrap_or(0)).collect();
        assert_eq!(told, really.window.list().map(u32::from), "{facts:?}");
        assert!(facts.iter().all(|one| one.entries.is_none() == one.reason.is_some()), "{facts:?}");
    }
}

#[test]
fn d1_on_the_emulated_machine_no_hazard_is_seen() {
    let hazards = core("goldencove,split=9").hazards;
    let names = ["denormal result", "SSE after AVX", "self-modified code", "split lock"];
    assert!(hazards.iter().map(|one| one.name.as_str()).eq(names), "{hazards:?}");
    for one in &hazards {
        // What cannot be tried is said.
        assert_eq!(one.tenths.is_none(), one.reason.is_some(), "{one:?}");
        assert!(one.tenths.is_none_or(|tenths| tenths == [0; 3]), "{one:?}");
    }
    assert!(hazards.iter().filter(|one| one.tenths.is_some()).count() >= 3, "{hazards:?}");
}
