//! Blind recovery: a predictor with parameters that a test draws, and what is determined of it. The programs run as they are, instruction
//! by instruction.

use facts::pipeline::{code, hazards, instruction_cache, measure, predictor, stores, width};
use machine::{BYTES, Modelled};
use pmu_model::uarch::forward::Forward;
use pmu_model::uarch::parameters::{CacheShape, Parameters, TlbShape};
use pmu_model::uarch::replacement::Policy;
use protocol::record::{CodeCacheFact, ForwardFact, ReturnsFact, TargetsFact, Times};

#[path = "predictor/direct.rs"]
mod direct;
#[path = "predictor/front.rs"]
mod front;
#[path = "predictor/machine.rs"]
mod machine;
#[path = "predictor/retire.rs"]
mod retire;
#[path = "predictor/window.rs"]
mod window;

/// Always the same numbers for the same start, each less than what is given.
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |most| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    }
}

/// What is determined of a predictor.
type Told = (Times, ReturnsFact, TargetsFact);

/// What is found is what there is; returns which of the two figures are determined.
fn check(parameters: &Parameters, facts: &Told) -> [bool; 2] {
    let tenths = u64::from(parameters.mispredict_cycles) * 10;
    let (times, returns, told) = facts;
    assert_eq!((times.least, times.most), (tenths, tenths), "{parameters}");
    if let Some(entries) = returns.entries {
        assert_eq!(entries, parameters.returns, "{parameters}");
    }
    let btb = parameters.btb;
    if let Some(entries) = told.entries() {
        assert_eq!((entries, told.ways), (btb.entries, Some(btb.ways)), "{parameters}");
    }
    assert_eq!(returns.entries.is_none(), returns.reason.is_some());
    assert_eq!(told.ways.is_none(), told.reason.is_some());
    [returns.entries.is_some(), told.ways.is_some()]
}

#[test]
fn d1_blind_recovery_of_200_random_predictors() {
    let mut draw = numbers(23);
    let mut told = [0; 2];
    for _ in 0..200 {
        let ways = 1 + draw(16) as u32;
        let most = (1024 / ways).ilog2();
        let sets = 1 << draw(u64::from(most) + 1);
        let parameters = Parameters {
            mispredict_cycles: 1 + draw(30) as u32,
            returns: 1 + draw(64) as u32,
            btb: TlbShape { entries: sets * ways, ways },
            ..Parameters::DEFAULT
        };
        let facts = predictor(&mut Modelled::new(&parameters));
        let is_told = check(&parameters, &facts);
        // One entry looks as none at all.
        assert_eq!(is_told[0], parameters.returns > 1, "{parameters}: {:?}", facts.1);
        assert!(is_told[1], "{parameters}: {:?}", facts.2);
        told = [0, 1].map(|at| told[at] + u32::from(is_told[at]));
    }
    println!("returns told of 200: {}, targets: {}", told[0], told[1]);
}

#[test]
fn d1_where_a_misprediction_costs_nothing_nothing_is_told() {
    let parameters = Parameters { mispredict_cycles: 0, ..Parameters::DEFAULT };
    let facts = predictor(&mut Modelled::new(&parameters));
    assert_eq!(check(&parameters, &facts), [false; 2]);
}

#[test]
fn d1_a_clock_that_differs_from_try_to_try_tells_nothing() {
    let parameters = Parameters::DEFAULT;
    let mut noisy = Modelled { noise: 20_000, ..Modelled::new(&parameters) };
    let facts = measure(&mut noisy);
    assert!(facts.mispredict_tenths.most > facts.mispredict_tenths.least, "{facts:?}");
    assert_eq!((facts.returns.entries, facts.targets.ways), (None, None), "{facts:?}");
    assert!(facts.returns.reason.is_some() && facts.targets.reason.is_some());
    // A little of it does no harm.
    let mut quiet = Modelled { noise: 60, ..Modelled::new(&parameters) };
    let facts = measure(&mut quiet);
    assert_eq!(facts.returns.entries, Some(parameters.returns), "{facts:?}");
    assert_eq!(facts.targets.entries(), Some(parameters.btb.entries), "{facts:?}");
}

/// An instruction cache as a test draws it: at most 16 ways, whose sets repeat at no more than 16 KiB.
fn drawn(draw: &mut impl FnMut(u64) -> u64) -> Parameters {
    let line = 32 << draw(3);
    let (ways, cycles) = (1 + draw(16) as u32, 2 + draw(40) as u32);
    // At least the 1 KiB of code that is compared with, and the page beside it.
    let sets = (0..10).map(|step| 1 << step).filter(|sets| {
        let bytes = sets * line * u64::from(ways);
        sets * line <= 16 << 10 && bytes >= 4096
    });
    let sets: Vec<u64> = sets.collect();
    let bytes = sets[draw(sets.len() as u64) as usize] * line * u64::from(ways);
    let code = CacheShape { bytes, ways, policy: Policy::Lru, cycles };
    Parameters { line: line as u32, code: Some(code), ..Parameters::DEFAULT }
}

#[test]
fn d1_blind_recovery_of_200_random_instruction_caches() {
    let mut draw = numbers(77);
    for _ in 0..200 {
        let parameters = drawn(&mut draw);
        let code = parameters.code.unwrap();
        let fact = instruction_cache(&mut Modelled::new(&parameters));
        let text = format!("{parameters}: {fact:?}");
        assert_eq!(fact.bytes().map(u64::from), Some(code.bytes), "{text}");
        assert_eq!((fact.ways, fact.line), (Some(code.ways), Some(parameters.line)), "{text}");
        assert_eq!((fact.miss_tenths, fact.doubtful), (u64::from(code.cycles) * 10, 0), "{text}");
    }
}

#[test]
fn d1_where_code_takes_no_time_no_instruction_cache_is_told() {
    let fact = instruction_cache(&mut Modelled::new(&Parameters::DEFAULT));
    assert!(fact.reason.as_ref().is_some_and(|why| why.contains("costs nothing")), "{fact:?}");
    assert_eq!(fact, CodeCacheFact { reason: fact.reason.clone(), ..CodeCacheFact::default() });
    // More lines of a set than are tried.
    let code = CacheShape { bytes: 64 * 4096, ways: 64, policy: Policy::Lru, cycles: 9 };
    let parameters = Parameters { code: Some(code), ..Parameters::DEFAULT };
    let fact = instruction_cache(&mut Modelled::new(&parameters));
    assert!(fact.bytes().is_none() && fact.line.is_none() && fact.reason.is_some(), "{fact:?}");
}

/// What a case has to take, by the parameters.
fn expected(forward: &Forward, fact: &ForwardFact) -> u16 {
    match (fact.offset, fact.store, fact.load) {
        (4096.., ..) => forward.alias,
        _ if fact.crosses => forward.cross,
        (offset, store, load) if offset as u32 + load > store => forward.wide,
        (0, store, load) if store == load => forward.same,
        (0, ..) => forward.narrow,
        _ => forward.offset,
    }
}

#[test]
fn d1_blind_recovery_of_200_random_store_buffers() {
    assert_eq!(code::data(BYTES), BYTES / 2);
    let mut draw = numbers(5);
    let mut told = 0;
    for _ in 0..200 {
        let parameters = Parameters {
            line: 32 << draw(3),
            memory_cycles: 60 + draw(300) as u32,
            forward: Forward::of([0; 6].map(|_: u16| draw(40) as u16)),
            stores: 1 + draw(127) as u32,
            ..Parameters::DEFAULT
        };
        let fact = stores(&mut Modelled::new(&parameters));
        for case in &fact.forward {
            let tenths = i64::from(expected(&parameters.forward, case)) * 10;
            assert_eq!(case.tenths, [tenths; 3], "{parameters}: {case:?}");
        }
        // It waits for the first store, if that is not written before: by more than a quarter of what each one after it waits.
        let sure = parameters.stores * 4 / 3 + 4 < parameters.memory_cycles;
        let is_right = fact.entries == Some(parameters.stores);
        assert!(is_right || !sure && fact.entries.is_none(), "{parameters}: {fact:?}");
        assert_eq!(fact.entries.is_none(), fact.reason.is_some(), "{parameters}: {fact:?}");
        told += u32::from(fact.entries == Some(parameters.stores));
    }
    println!("entries told of 200: {told}");
}

#[test]
fn d1_where_stores_wait_for_nothing_no_store_buffer_is_told() {
    let fact = stores(&mut Modelled::new(&Parameters::DEFAULT));
    assert!(fact.entries.is_none(), "{fact:?}");
    assert!(fact.reason.is_some_and(|why| why.contains("hardly longer")));
    assert_eq!(fact.forward.len(), 8);
    assert!(fact.forward.iter().all(|case| case.tenths == [0; 3]), "{:?}", fact.forward);
}

#[test]
fn d1_every_width_of_issue_up_to_16_is_told() {
    let of =
        |issue, core| width(&mut Modelled { issue, core, ..Modelled::new(&Parameters::DEFAULT) });
    for issue in 1..=16 {
        let fact = of(Some(issue), true);
        assert_eq!((fact.width, fact.reason.as_ref()), (Some(issue as u32), None), "{fact:?}");
    }
    // An instruction takes a cycle.
    assert_eq!(of(None, true).width, Some(1));
    let free = of(Some(0), true);
    assert!(
        free.width.is_none() && free.reason.as_ref().is_some_and(|why| why.contains("no longer"))
    );
    let ticks = of(Some(4), false);
    assert!(ticks.width.is_none() && ticks.reason.as_ref().is_some_and(|why| why.contains("TSC")));
}

#[test]
fn d1_what_code_costs_by_its_operands_and_what_is_before_it_is_told() {
    let names = ["denormal result", "SSE after AVX", "self-modified code", "split lock"];
    for planted in [[0; 4], [140, 70, 250, 1000], [0, 3, 0, 0], [7, 0, 0, 0]] {
        let mut machine = Modelled { planted, ..Modelled::new(&Parameters::DEFAULT) };
        let told = hazards(&mut machine);
        assert!(told.iter().map(|one| one.name.as_str()).eq(names));
        let tenths: Vec<_> = told.iter().map(|one| one.tenths).collect();
        let all = planted.map(|cycles| Some([cycles as i64 * 10; 3]));
        assert_eq!(tenths, all, "{told:?}");
    }
}
