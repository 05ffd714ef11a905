//! Programs whose accesses and branches are counted by hand: the generator writes what it means to, and the guest counts it.

use super::draw::{Drawn, build};
use super::fragment::*;
use super::machine::{Way, run};
use super::plan::{CounterPlan, EventPlan, PmuPlan};
use super::report::Report;
use pmu_model::Model;
use std::collections::HashMap;

/// Names of Skylake's, in the order of the counters.
pub(super) const EVENTS: [&str; 4] = [
    "MEM_INST_RETIRED.ALL_LOADS",
    "MEM_INST_RETIRED.ALL_STORES",
    "BR_INST_RETIRED.ALL_BRANCHES",
    "BR_INST_RETIRED.NEAR_CALL",
];

/// Runs the programs, of which the first has nothing and each other one a case, which adds what is expected of it.
fn each_adds<const N: usize>(
    way: Way,
    cases: &[(Fragment, [u64; N])],
    programs: &[Drawn],
) -> Vec<Report> {
    let reports = run(Model::Skylake, way, programs);
    super::report::whole(programs, &reports);
    for ((fragment, expected), report) in cases.iter().zip(&reports[1..]) {
        let counts = report.counts.iter().zip(&reports[0].counts);
        let seen: Vec<u64> = counts.map(|(with, without)| with - without).collect();
        assert_eq!(seen, expected, "{way:?} {fragment:?}");
    }
    reports
}

pub(super) fn program(
    number: u64,
    main: Vec<Fragment>,
    events: &[&'static str],
    records: bool,
) -> Drawn {
    counting(number, code(main), events, records)
}

pub(super) fn code(main: Vec<Fragment>) -> Code {
    Code {
        main,
        functions: vec![Vec::new()],
        data: vec![(0, true); super::assemble::DATA_PAGES],
        offset: 0,
        frames: 0,
        seed: 1,
        timer: None,
    }
}

/// The same with more of a program.
pub(super) fn counting(number: u64, code: Code, events: &[&'static str], records: bool) -> Drawn {
    let counter = |name| CounterPlan {
        event: EventPlan::Named(name),
        rings: 3,
        cmask: 0,
        invert: false,
        edge: false,
        period: None,
    };
    let counters = events.iter().copied().map(counter).collect();
    let records = records.then_some(0);
    let plan = PmuPlan { counters, fixed: None, nmi: false, freeze: false, records, timed: false };
    build(number, Model::Skylake, code, plan)
}

#[test]
fn what_programs_count_is_what_their_parts_are() {
    let at = |spot| Place { page: 0, spot, form: Addressing::Base };
    let load = Fragment::Access(0, at(Spot::At(0)));
    let strings = Strings {
        kind: StringKind::Movs,
        size: 0,
        repeated: true,
        backward: false,
        source: at(Spot::At(0)),
        destination: at(Spot::At(256)),
        count: 130,
    };
    let cases: [(Fragment, [u64; 4]); 8] = [
        // PUSH and POP of the loop's counter; ten loads; ten jumps.
        (Fragment::Loop(LoopKind::DecJnz, 10, vec![load.clone()]), [11, 1, 10, 0]),
        // The counter's PUSH and POP as well, and one pair of each round.
        (Fragment::Loop(LoopKind::Loop, 10, vec![load.clone()]), [21, 11, 10, 0]),
        (Fragment::Call(CallKind::Direct, 0), [1, 1, 2, 1]),
        // The address comes from a table.
        (Fragment::Call(CallKind::Alias, 0), [2, 1, 2, 1]),
        // Five calls and returns, five jumps, and one over the function.
        (Fragment::Deep(5), [5, 5, 16, 5]),
        // 130 bytes from the start of a line: three lines.
        (Fragment::Strings(strings), [3, 3, 0, 0]),
        // A jump, INT, and IRET with the five words of its frame; what INT pushes is no access of the model's.
        (Fragment::Service, [5, 0, 3, 0]),
        (Fragment::Stack(2, at(Spot::At(8))), [2, 2, 0, 0]),
    ];
    let programs: Vec<_> = std::iter::once(Vec::new())
        .chain(cases.iter().map(|(fragment, _)| vec![fragment.clone()]))
        .zip(0..)
        .map(|(main, number)| program(number, main, &EVENTS, false))
        .collect();
    for way in [Way::Stepping, Way::Plugin] {
        each_adds(way, &cases, &programs);
    }
}

/// Instructions of which QEMU makes other accesses than a processor: in another order, more or fewer.
#[test]
fn e1_accesses_are_counted_as_a_processor_makes_them() {
    let place = Place { page: 0, spot: Spot::At(0), form: Addressing::Base };
    let form = |name| Fragment::Access(super::access::named(name), place);
    let cases: [(Fragment, [u64; 4]); 12] = [
        (form("fbld"), [1, 0, 0, 0]),
        (form("fbstp"), [0, 1, 0, 0]),
        // One right after the other, in a loop of one round with its PUSH, POP and jump.
        (Fragment::Loop(LoopKind::DecJnz, 1, vec![form("fbld"), form("fbstp")]), [2, 2, 1, 0]),
        (form("vcvtdq2pd"), [1, 0, 0, 0]),
        (form("vpmovzxbw"), [1, 0, 0, 0]),
        (form("vmaskmovps"), [1, 0, 0, 0]),
        (form("vpmaskmovd"), [0, 1, 0, 0]),
        (form("maskmovdqu"), [0, 1, 0, 0]),
        // One, of whichever elements.
        (form("vpgatherdd"), [1, 0, 0, 0]),
        // PUSH, LEAVE and POP as well.
        (form("enter"), [32, 33, 0, 0]),
        // Its selector is stored before; the handler of #GP stores once, and its IRET loads five words.
        (form("jmp"), [5, 2, 1, 0]),
        // FNSTENV and FLDENV.
        (Fragment::Save(5, place), [1, 1, 0, 0]),
    ];
    let programs: Vec<_> = std::iter::once(Vec::new())
        .chain(cases.iter().map(|(fragment, _)| vec![fragment.clone()]))
        .zip(0..)
        .map(|(main, number)| program(number, main, &EVENTS, false))
        .collect();
    for way in [Way::Stepping, Way::Plugin, Way::Exact] {
        each_adds(way, &cases, &programs);
    }
}

/// Where it goes does not tell whether it was taken.
#[test]
fn a_conditional_jump_to_the_next_instruction_is_taken_if_its_condition_holds() {
    const EVENTS: [&str; 3] =
        ["BR_INST_RETIRED.CONDITIONAL", "BR_INST_RETIRED.NEAR_TAKEN", "BR_INST_RETIRED.NOT_TAKEN"];
    // R12 is 5 outside loops.
    let on_flags = |condition, mask| Fragment::Nowhere(condition, Test::Counter(mask), 0);
    let on_count = |place, count| Fragment::Nowhere(ON_COUNT + place, Test::Counter(1), count);
    let (equal, unequal) = (4, 5);
    let rounds = vec![on_flags(unequal, 1)];
    let cases = [
        (on_flags(unequal, 1), [1, 1, 0]),
        (on_flags(equal, 1), [1, 0, 1]),
        // LOOP: to 1, and to 0.
        (on_count(0, 2), [1, 1, 0]),
        (on_count(0, 1), [1, 0, 1]),
        // LOOPE and LOOPNE, with ZF clear.
        (on_count(1, 2), [1, 0, 1]),
        (on_count(2, 2), [1, 1, 0]),
        // JRCXZ and JECXZ.
        (on_count(3, 0), [1, 1, 0]),
        (on_count(4, 1), [1, 0, 1]),
        // 25 rounds, in 13 of which the counter is odd, and 24 jumps back.
        (Fragment::Loop(LoopKind::DecJnz, 25, rounds), [50, 37, 13]),
    ];
    let programs: Vec<_> = std::iter::once(Vec::new())
        .chain(cases.iter().map(|(fragment, _)| vec![fragment.clone()]))
        .zip(0..)
        .map(|(main, number)| {
            let mut drawn = program(number, main, &EVENTS, true);
            drawn.assembled.program.detailed = true;
            drawn
        })
        .collect();
    for way in [Way::Stepping, Way::Plugin] {
        let reports = each_adds(way, &cases, &programs);
        // Every third of the last 32 taken, but for those with which the program ends.
        let recorded = reports.last().map(records_to_next);
        assert!(recorded.is_some_and(|count| (8..=10).contains(&count)), "{way:?}: {recorded:?}");
    }
}

/// Branch records that lead to the next instruction, by Skylake's MSR_LASTBRANCH_n_FROM_IP and MSR_LASTBRANCH_n_TO_IP.
fn records_to_next(report: &Report) -> usize {
    const JUMP_BYTES: u64 = 2;
    let parse = |line: &String| {
        let (register, value) = line.strip_prefix("record 0x")?.split_once(" 0x")?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some((number(register)?, number(value)?))
    };
    let registers: HashMap<u64, u64> = report.details.iter().filter_map(parse).collect();
    let leads = |n: &u64| {
        let (from, to) = (registers.get(&(0x680 + n)), registers.get(&(0x6c0 + n)));
        from.zip(to).is_some_and(|(from, to)| to.wrapping_sub(*from) == JUMP_BYTES)
    };
    (0..32).filter(leads).count()
}
