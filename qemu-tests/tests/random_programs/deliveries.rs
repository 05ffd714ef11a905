//! Interrupts and page faults for which the guest does not exit while it counts: the plugin sees what they interrupted.

use super::access::{FORMS, SAVES};
use super::by_hand::{EVENTS, code, counting, program};
use super::draw::{Drawn, build};
use super::fragment::*;
use super::machine::{Way, run, run_with};
use super::plan::{CounterPlan, EventPlan, PmuPlan};
use super::report::Report;
use pmu_model::Model;

/// Which pages are missing, and whether an interrupt waits for the instruction.
fn delivered_to(strings: Strings, next: impl Fn(u8) -> u8) -> Vec<Vec<Fragment>> {
    let mut mains = Vec::new();
    for missing in [&[][..], &[next(1)], &[next(4)], &[1, 4, next(1), next(4)]] {
        let with = |fragment| {
            let unmap = missing.iter().map(|page| Fragment::Unmap(*page));
            unmap.chain([fragment]).collect::<Vec<_>>()
        };
        mains.push(with(Fragment::Strings(strings)));
        mains.push(with(Fragment::User(false, vec![Fragment::Strings(strings)])));
        mains.push(with(Fragment::Cut(strings)));
    }
    mains
}

/// Pages are missing before and within repeated string instructions, and interrupts come within and after them, in ring 0 and ring 3.
fn strings_that_are_interrupted() -> Vec<Vec<Fragment>> {
    const KINDS: [StringKind; 8] = [
        StringKind::Movs,
        StringKind::Stos,
        StringKind::Lods,
        StringKind::Scas(true),
        StringKind::Scas(false),
        StringKind::Cmps(true),
        StringKind::Cmps(false),
        StringKind::Outs,
    ];
    let mut mains = Vec::new();
    for (kind, backward) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        // What is read begins in page 1, what is at RDI in page 4; upwards they end in the next page, downwards in the one before.
        let at = |page| {
            let spot = if backward { Spot::At(24) } else { Spot::PageEnd(24) };
            Place { page, spot, form: Addressing::Base }
        };
        let next = |page: u8| if backward { page - 1 } else { page + 1 };
        for (size, count) in [(0, 60), (3, 9), (0, 1), (0, 0)] {
            let (source, destination) = (at(1), at(4));
            let strings =
                Strings { kind, size, repeated: true, backward, source, destination, count };
            mains.extend(delivered_to(strings, next));
        }
    }
    mains
}

/// Other instructions that meet missing pages, among them those of which QEMU makes several accesses, and interrupts.
fn others_that_are_interrupted() -> Vec<Vec<Fragment>> {
    let place = Place { page: 1, spot: Spot::PageEnd(8), form: Addressing::Base };
    let accesses = (0..FORMS.len() as u8).map(|form| Fragment::Access(form, place));
    let saves = (0..SAVES).map(|kind| Fragment::Save(kind, place));
    let stacks = (0..8).map(|kind| Fragment::Stack(kind, place));
    let alone = [Fragment::Service, Fragment::Ipi(false), Fragment::Deep(3)];
    let backs = [Back::Near, Back::Interrupt, Back::Far];
    let backs = backs.map(|back| Fragment::SameOffset(back, true));
    let all = accesses.chain(saves).chain(stacks).chain(alone).chain(backs);
    let with = |fragment: Fragment| {
        [&[][..], &[2], &[1, 2]].into_iter().flat_map(move |missing| {
            let unmap: Vec<_> = missing.iter().map(|page| Fragment::Unmap(*page)).collect();
            let whole = |fragment| unmap.iter().cloned().chain([fragment]).collect();
            [
                whole(fragment.clone()),
                whole(Fragment::User(true, vec![fragment.clone()])),
                whole(Fragment::Masked(vec![fragment.clone()])),
            ]
        })
    };
    // Of 32 bytes QEMU accesses the first half first: here only the second one is missing.
    let half = Place { spot: Spot::PageEnd(16), ..place };
    let halves =
        (0..FORMS.len() as u8).map(|form| vec![Fragment::Unmap(2), Fragment::Access(form, half)]);
    all.flat_map(with).chain(halves).collect()
}

/// Runs programs while these are counted. The guest never leaves with these codes.
fn nobody_leaves_for(codes: &[&str], mains: Vec<Vec<Fragment>>, events: &[&'static str]) {
    let programs = mains.into_iter().zip(0..);
    let programs = programs.map(|(main, number)| program(number, main, events, false));
    deliveries_are_seen(programs.collect(), codes, 0);
}

/// Exits by their codes: AMD APM vol. 2, appendix C.
const EXIT_PAGE_FAULT: &str = "0x4e";
const EXIT_INTERRUPT: &str = "0x60";

/// How often the guest left with these codes, by the hypervisor's statistics: a line at each exit. QEMU, which the guest ends, may end
/// within the last one.
fn exits(said: &[String], codes: &[&str]) -> u64 {
    let mut lines = said.iter().rev().filter(|line| line.starts_with("statistics: exits="));
    let last = lines.nth(1).unwrap_or_else(|| panic!("no statistics: {said:?}"));
    assert!(last.contains(" exit:"), "programs do other things for which it leaves: {last}");
    let count = |word: &str| {
        let (code, count) = word.strip_prefix("exit:")?.split_once('=')?;
        codes.contains(&code).then(|| count.parse::<u64>().expect("a number"))
    };
    last.split(' ').filter_map(count).sum()
}

/// The same of whole programs, which count nothing for which code would have to be translated otherwise, with so many exits with these
/// codes at most.
fn deliveries_are_seen(mut programs: Vec<Drawn>, codes: &[&str], most: u64) {
    for drawn in &mut programs {
        // What flushes the caches before counts accesses.
        drawn.assembled.program.pmu.flush = Default::default();
    }
    let (plugin, said) = run_with(Model::Skylake, Way::Plugin, &programs, " statistics=1");
    let stepping = run(Model::Skylake, Way::Stepping, &programs);
    super::report::whole(&programs, &stepping);
    super::report::whole(&programs, &plugin);
    assert!(exits(&said, codes) <= most, "{said:?}");
    let counted: u64 = stepping.iter().flat_map(|report| &report.counts).sum();
    assert!(counted > 10 * programs.len() as u64, "{counted}");
    let different = super::report::difference(&programs, &stepping, &plugin);
    assert!(different.is_none(), "{}", different.map(|(_, text)| text).unwrap_or_default());
}

const BOTH: [&str; 2] = [EXIT_PAGE_FAULT, EXIT_INTERRUPT];

/// What the models of predictor, caches and TLBs count, in addition to branches and accesses.
const MODELLED: [&str; 4] = [
    "MEM_LOAD_RETIRED.L1_MISS",
    "MEM_INST_RETIRED.STLB_MISS_LOADS",
    "BR_MISP_RETIRED.ALL_BRANCHES",
    "MEM_INST_RETIRED.ALL_STORES",
];

#[test]
fn e1_instructions_are_exact_where_repeated_strings_are_interrupted() {
    nobody_leaves_for(&BOTH, strings_that_are_interrupted(), &["INST_RETIRED.ANY_P"]);
}

#[test]
fn e1_branches_and_accesses_are_exact_where_repeated_strings_are_interrupted() {
    // Half of them, as each takes a good while in steps: the kinds are as in the test above.
    let some = strings_that_are_interrupted().into_iter().step_by(2).collect();
    nobody_leaves_for(&BOTH, some, &EVENTS);
}

#[test]
fn e1_branches_and_accesses_are_exact_where_instructions_are_interrupted() {
    nobody_leaves_for(&BOTH, others_that_are_interrupted(), &EVENTS);
}

/// The handler executes the same wherever the timer's interrupt comes, so all counts are equal: between two elements, and right after a
/// string instruction that ended before its count did.
#[test]
fn e1_instructions_are_exact_wherever_an_interrupt_comes() {
    const LAST_TICK: u32 = 240;
    let at = |page| Place { page, spot: Spot::At(24), form: Addressing::Base };
    let strings = |kind| {
        let (source, destination) = (at(1), at(4));
        let (size, repeated, backward, count) = (0, true, false, 5);
        Strings { kind, size, repeated, backward, source, destination, count }
    };
    use StringKind::{Cmps, Movs, Scas};
    let kinds = [Scas(true), Scas(false), Cmps(true), Cmps(false), Movs];
    let each = kinds.map(|kind| Fragment::Strings(strings(kind)));
    // Long enough for the last interrupt.
    let rest = Fragment::Loop(LoopKind::DecJnz, 100, vec![Fragment::Plain(vec![13; 4])]);
    let main = |ticks| {
        let timer = [Fragment::Timer(ticks)];
        let main = timer.iter().chain(&each).chain(&each).chain(&each).chain([&rest]);
        main.cloned().collect()
    };
    let events = ["INST_RETIRED.ANY_P", "BR_INST_RETIRED.ALL_BRANCHES"];
    let one = |ticks: u32| {
        let mut drawn = program(ticks.into(), main(ticks), &events, false);
        drawn.assembled.program.pmu.flush = Default::default();
        drawn
    };
    let programs: Vec<_> = (1..=LAST_TICK).map(one).collect();
    let (reports, said) = run_with(Model::Skylake, Way::Plugin, &programs, " statistics=1");
    assert_eq!(exits(&said, &BOTH), 0, "{said:?}");
    let device = |report: &Report| report.rest.contains(&("devices".into(), "1".into()));
    for (report, ticks) in reports.iter().zip(1..) {
        assert!(device(report), "{ticks} ticks: {report:?}");
        assert_eq!(report.counts, reports[0].counts, "{ticks} ticks");
    }
}

/// Where an instruction of which QEMU makes several accesses is the last one before the next page, it ends the translated block, and
/// is counted before it begins.
#[test]
fn e1_accesses_are_exact_where_an_instruction_at_the_end_of_its_page_raises_a_page_fault() {
    let place = Place { page: 1, spot: Spot::At(0), form: Addressing::Base };
    // FXSAVE, with the program beginning at each of the offsets of which one brings it there.
    let programs = (3900..4096).zip(0..).map(|(offset, number)| {
        let main = vec![Fragment::Unmap(1), Fragment::Save(0, place)];
        counting(number, Code { offset, ..code(main) }, &EVENTS, false)
    });
    deliveries_are_seen(programs.collect(), &BOTH, 0);
}

#[test]
fn e1_misses_are_exact_where_page_faults_are_seen() {
    let all = [strings_that_are_interrupted(), others_that_are_interrupted()].concat();
    // Half of them: each takes a good while in steps.
    let some = all.into_iter().step_by(2).collect();
    nobody_leaves_for(&[EXIT_PAGE_FAULT], some, &MODELLED);
}

/// In random programs as well, with everything that may come together.
fn random_programs_are_exact(codes: &[&str], events: &[&'static str]) {
    let drawn = super::draw::draw(Model::Skylake, 0..150).into_iter();
    let quiet = drawn.filter(|drawn| drawn.code.timer.is_none());
    let numbered = quiet.map(|drawn| counting(drawn.number, drawn.code, events, false));
    // An INT n that is delivered by the hypervisor lets nothing else in.
    deliveries_are_seen(numbered.collect(), codes, 10);
}

#[test]
fn e1_branches_and_accesses_are_exact_in_random_programs_without_exits() {
    random_programs_are_exact(&BOTH, &EVENTS);
}

#[test]
fn e1_misses_are_exact_in_random_programs_without_exits_for_page_faults() {
    random_programs_are_exact(&[EXIT_PAGE_FAULT], &MODELLED);
}

/// The plugin reports at the next exit that the handler of an NMI has returned, so the guest does not exit for its IRET, which would
/// be stepped then. It does only where the next NMI waits already.
#[test]
fn i3_handlers_of_nmis_return_without_an_exit() {
    const EXIT_IRET: &str = "0x74";
    let counter = |name, period| CounterPlan {
        event: EventPlan::Named(name),
        rings: 3,
        cmask: 0,
        invert: false,
        edge: false,
        period,
    };
    let one = |period: u32| {
        let body = vec![Fragment::Plain(vec![13; 4]), Fragment::Call(CallKind::Direct, 0)];
        let main = vec![Fragment::Loop(LoopKind::DecJnz, 200, body)];
        let far = |place: u32| counter("BR_INST_RETIRED.ALL_BRANCHES", Some(period + 97 * place));
        let counters = (0..4).map(far).collect();
        let (nmi, freeze, records) = (true, false, None);
        let plan = PmuPlan { counters, fixed: None, nmi, freeze, records, timed: false };
        build(period.into(), Model::Skylake, code(main), plan)
    };
    let programs: Vec<_> = (20..60).map(one).collect();
    let (plugin, said) = run_with(Model::Skylake, Way::Plugin, &programs, " statistics=1");
    let stepping = run(Model::Skylake, Way::Stepping, &programs);
    super::report::whole(&programs, &stepping);
    let different = super::report::difference(&programs, &stepping, &plugin);
    assert!(different.is_none(), "{}", different.map(|(_, text)| text).unwrap_or_default());
    let handled = |report: &Report| {
        let (_, pmis) = report.rest.iter().find(|(name, _)| name == "pmis").expect("PMIs");
        pmis.split(':').next().and_then(|count| count.parse::<u64>().ok()).expect("a number")
    };
    let nmis: u64 = plugin.iter().map(handled).sum();
    assert!(nmis >= 2 * programs.len() as u64, "{nmis}");
    // Two are to be at once in a few places.
    assert!(exits(&said, &[EXIT_IRET]) <= nmis / 20, "{nmis} NMIs: {:?}", said.last());
}

/// After some NMIs in a row the next one waits for as long as the handler took ([`end_nmi`] of the hypervisor), and then comes after
/// a repeated string instruction that is under way, at whichever of its elements its time is over.
#[test]
fn i3_an_nmi_that_waits_comes_after_the_same_string_instruction() {
    let at = |page| Place { page, spot: Spot::At(24), form: Addressing::Base };
    let one = |number: u64| {
        let strings = Fragment::Strings(Strings {
            kind: StringKind::Movs,
            size: 0,
            repeated: true,
            backward: false,
            source: at(1),
            destination: at(4),
            count: 250,
        });
        let before = Fragment::Loop(LoopKind::DecJnz, 40, vec![]);
        // From one program to the next the clock is elsewhere between two of its ticks.
        let moved = Fragment::Plain(vec![13; 1 + number as usize % 4]);
        let main = vec![before, moved, strings.clone(), strings.clone(), strings];
        let counter = CounterPlan {
            event: EventPlan::Named("CPU_CLK_UNHALTED.REF_XCLK"),
            rings: 3,
            cmask: 0,
            invert: false,
            edge: false,
            period: Some(3 + number as u32 / 4),
        };
        let (nmi, freeze, records) = (true, false, None);
        let plan =
            PmuPlan { counters: vec![counter], fixed: None, nmi, freeze, records, timed: false };
        build(number, Model::Skylake, code(main), plan)
    };
    let programs: Vec<_> = (0..40).map(one).collect();
    let plugin = run(Model::Skylake, Way::Plugin, &programs);
    let stepping = run(Model::Skylake, Way::Stepping, &programs);
    super::report::whole(&programs, &stepping);
    let different = super::report::all_differences(&programs, &stepping, &plugin);
    assert!(different.is_empty(), "{different}");
}
