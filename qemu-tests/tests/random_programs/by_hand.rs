//! Programs whose accesses and branches are counted by hand: the generator writes what it means to, and the guest counts it.

use super::draw::{Drawn, build};
use super::machine::{Way, run};
use super::piece::*;
use super::plan::{CounterPlan, EventPlan, PmuPlan};
use pmu_model::Model;

/// Names of Skylake's, in the order of the counters.
const EVENTS: [&str; 4] = [
    "MEM_INST_RETIRED.ALL_LOADS",
    "MEM_INST_RETIRED.ALL_STORES",
    "BR_INST_RETIRED.ALL_BRANCHES",
    "BR_INST_RETIRED.NEAR_CALL",
];

fn program(number: u64, main: Vec<Piece>) -> Drawn {
    let counter = |name| CounterPlan {
        event: EventPlan::Named(name),
        rings: 3,
        cmask: 0,
        invert: false,
        edge: false,
        period: None,
    };
    let counters = EVENTS.into_iter().map(counter).collect();
    let plan =
        PmuPlan { counters, fixed: None, nmi: false, freeze: false, records: false, timed: false };
    let code = Code {
        main,
        functions: vec![Vec::new()],
        data: vec![(0, true); super::assemble::DATA_PAGES],
        offset: 0,
        frames: 0,
        seed: 1,
        timer: None,
    };
    build(number, Model::Skylake, code, plan)
}

#[test]
fn what_programs_count_is_what_their_parts_are() {
    let at = |spot| Place { page: 0, spot, form: Addressing::Base };
    let load = Piece::Access(0, at(Spot::At(0)));
    let strings = Strings {
        kind: StringKind::Movs,
        size: 0,
        repeated: true,
        backward: false,
        source: at(Spot::At(0)),
        destination: at(Spot::At(256)),
        count: 130,
    };
    let cases: [(Piece, [u64; 4]); 8] = [
        // PUSH and POP of the loop's counter; ten loads; ten jumps.
        (Piece::Loop(LoopKind::DecJnz, 10, vec![load.clone()]), [11, 1, 10, 0]),
        // The counter's PUSH and POP as well, and one pair of each round.
        (Piece::Loop(LoopKind::Loop, 10, vec![load.clone()]), [21, 11, 10, 0]),
        (Piece::Call(CallKind::Direct, 0), [1, 1, 2, 1]),
        // The address comes from a table.
        (Piece::Call(CallKind::Alias, 0), [2, 1, 2, 1]),
        // Five calls and returns, five jumps, and one over the function.
        (Piece::Deep(5), [5, 5, 16, 5]),
        // 130 bytes from the start of a line: three lines.
        (Piece::Strings(strings), [3, 3, 0, 0]),
        // INT, and IRET with the five words of its frame; what INT pushes is no access of the model's.
        (Piece::Service, [5, 0, 2, 0]),
        (Piece::Stack(2, at(Spot::At(8))), [2, 2, 0, 0]),
    ];
    let programs: Vec<_> = std::iter::once(Vec::new())
        .chain(cases.iter().map(|(piece, _)| vec![piece.clone()]))
        .zip(0..)
        .map(|(main, number)| program(number, main))
        .collect();
    for way in [Way::Stepping, Way::Plugin] {
        let reports = run(Model::Skylake, way, &programs);
        super::report::whole(&programs, &reports);
        for ((piece, expected), report) in cases.iter().zip(&reports[1..]) {
            let counts = report.counts.iter().zip(&reports[0].counts);
            let seen: Vec<u64> = counts.map(|(with, without)| with - without).collect();
            assert_eq!(seen, expected, "{way:?} {piece:?}");
        }
    }
}
