//! Blind recovery of what is in flight at once.

use super::{Modelled, numbers};
use facts::pipeline::window;
use pmu_model::uarch::Parameters;
use pmu_model::uarch::window::WindowShape;
use protocol::record::WindowFact;

const NAMES: [&str; 5] = [
    "reorder buffer",
    "registers in flight",
    "vector registers in flight",
    "load queue",
    "scheduler",
];

/// What must be determined of a shape, if memory is slow enough.
fn expected(shape: WindowShape) -> [Option<u32>; 5] {
    let own = shape.list().map(|entries| Some(u32::from(entries)).filter(|entries| *entries > 0));
    let [rob, registers, vectors, loads, scheduler] = own;
    let less =
        |one: Option<u32>, most: Option<u32>| one.filter(|one| most.is_none_or(|most| *one < most));
    let both = rob.min(registers.or(rob));
    // The loads write none.
    let vectors = less(vectors, rob.map(|rob| rob - 2));
    let scheduler = less(scheduler, both.map(|most| most - 1));
    [rob, less(registers, rob), vectors, less(loads, both), scheduler]
}

fn told(facts: &[WindowFact]) -> [Option<u32>; 5] {
    assert!(facts.iter().map(|one| one.name.as_str()).eq(NAMES));
    for one in facts {
        assert_eq!(one.entries.is_none(), one.reason.is_some(), "{one:?}");
    }
    core::array::from_fn(|at| facts[at].entries)
}

#[test]
fn d1_blind_recovery_of_200_random_windows() {
    let mut draw = numbers(41);
    let (mut found, mut untold) = ([0; 5], [0; 5]);
    for _ in 0..200 {
        let most = if draw(4) == 0 { 1009 } else { 300 };
        let rob = 16 + draw(most) as u16;
        let mut other = || if draw(5) == 0 { 0 } else { 2 + draw(u64::from(rob) - 1) as u16 };
        let window = WindowShape::of([rob, other(), other(), other(), other()]);
        let parameters = Parameters {
            line: 32 << draw(3),
            memory_cycles: 60 + draw(1600) as u32,
            window,
            ..Parameters::DEFAULT
        };
        let facts = window_of(&parameters);
        let (told, expected) = (told(&facts), expected(window));
        for at in 0..5 {
            // With fewer instructions than cycles of memory between the loads, by a third, there is a clear step.
            let last = expected[at].unwrap_or(u32::from(rob));
            let sure = last * 3 / 2 + 40 < parameters.memory_cycles;
            let is_right = told[at] == expected[at];
            assert!(
                is_right || !sure && told[at].is_none(),
                "{parameters}: {}: {:?}, really {:?}: {:?}",
                NAMES[at],
                told[at],
                expected[at],
                facts[at]
            );
            found[at] += u32::from(told[at].is_some());
            untold[at] += u32::from(told[at].is_none());
        }
    }
    println!("{NAMES:?}: found {found:?}, not told {untold:?} of 200");
}

fn window_of(parameters: &Parameters) -> Vec<WindowFact> {
    window(&mut Modelled::new(parameters))
}

#[test]
fn d1_where_every_load_is_waited_for_no_window_is_told() {
    let facts = window_of(&Parameters::DEFAULT);
    assert_eq!(told(&facts), [None; 5]);
    assert!(
        facts.iter().all(|one| one.reason.as_ref().is_some_and(|why| why.contains("as long as")))
    );
}

#[test]
fn d1_a_window_that_memory_does_not_fill_is_not_told() {
    let of = |rob, memory_cycles| {
        let window = WindowShape { rob, ..WindowShape::NONE };
        let parameters = Parameters { memory_cycles, window, ..Parameters::DEFAULT };
        window_of(&parameters).remove(0)
    };
    for (rob, memory) in [(300, 250), (64, 60), (1000, 1001), (40, 64)] {
        let fact = of(rob, memory);
        assert!(fact.entries.is_none_or(|entries| entries == u32::from(rob)), "{fact:?}");
        assert!(fact.entries.is_none() || rob < 64, "{rob} {memory}: {fact:?}");
    }
    // The last one that can be determined.
    assert_eq!(of(1024, 4000).entries, Some(1024));
    assert_eq!(of(16, 4000).entries, Some(16));
}
