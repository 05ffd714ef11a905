use super::*;
use pmu_model::uarch::Parameters;
use pmu_model::{Delta, Host, Model, Pmu, RingMask, Timing};
use proptest::prelude::*;

const EN: u64 = 1 << 22;
const INT: u64 = 1 << 20;
const USR: u64 = 1 << 16;
const OS: u64 = 1 << 17;

/// Skylake with these selectors in its counters.
fn pmu(selectors: &[u64]) -> Pmu {
    let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::of_tsc(0));
    for (n, selector) in (0..).zip(selectors) {
        pmu.write_msr(0x186 + n, *selector).unwrap();
    }
    pmu
}

fn mode_of(selectors: &[u64]) -> Mode {
    mode(&pmu(selectors).needs(), false)
}

#[test]
fn code_is_translated_for_what_is_counted_and_nothing_more() {
    let user = EN | USR;
    assert_eq!(mode_of(&[]), Mode::empty());
    assert_eq!(mode_of(&[0xC0 | user]), Mode::STRINGS);
    assert_eq!(mode_of(&[0xC4 | user]), Mode::STRINGS | Mode::BRANCHES);
    assert_eq!(mode_of(&[0x20C4 | user]), Mode::STRINGS | Mode::BRANCHES | Mode::TAKEN);
    let predicted = Mode::STRINGS | Mode::BRANCHES | Mode::TAKEN | Mode::PREDICTOR;
    assert_eq!(mode_of(&[0xC5 | user]), predicted);
    assert_eq!(mode_of(&[0x81D0 | user]), Mode::STRINGS | Mode::ACCESSES);
    let memory = Mode::STRINGS | Mode::ACCESSES | Mode::MEMORY;
    assert_eq!(mode_of(&[0x412E | user]), memory);
    assert_eq!(mode_of(&[0x41D0 | user]), memory, "lines that are crossed");
    // Interrupts are exits, whoever counts them.
    assert_eq!(mode_of(&[0x1CB | user]), Mode::STRINGS);
    let mut records = pmu(&[]);
    records.write_msr(0x1D9, 1).unwrap();
    assert_eq!(mode(&records.needs(), false), predicted | Mode::RECORDS);
    assert_eq!(
        mode(&pmu(&[0xC4 | user | INT]).needs(), true),
        mode_of(&[0xC4 | user]) | Mode::LIMITS
    );
}

#[test]
fn parts_see_the_rings_that_are_counted() {
    let needs = pmu(&[0xC5 | EN | USR, 0x412E | EN | USR]).needs();
    assert_eq!(parts(&needs, Ring::User), Parts::MEMORY | Parts::PREDICTOR);
    assert_eq!(parts(&needs, Ring::Kernel), Parts::empty());
    let needs = pmu(&[0xC4 | EN | USR | OS]).needs();
    assert_eq!(parts(&needs, Ring::Kernel), Parts::empty(), "nothing is asked of the model");
}

#[test]
fn modes_grow_at_once_and_shrink_late() {
    let mut modes = Modes::default();
    assert_eq!(modes.plan(Mode::empty(), 1), None);
    assert_eq!(modes.plan(Mode::STRINGS, 2), Some(Mode::STRINGS));
    let both = Mode::STRINGS | Mode::BRANCHES;
    assert_eq!(modes.plan(both, 3), Some(both));
    // A task without the counter, now and then one with it.
    const STEP: u64 = Modes::PATIENCE / 4_000;
    let mut now = 3;
    let mut stay = |modes: &mut Modes, wanted| {
        now += STEP;
        modes.plan(wanted, now)
    };
    for number in 0..12_000 {
        let wanted = if number % 1000 == 0 { both } else { Mode::STRINGS };
        assert_eq!(stay(&mut modes, wanted), None, "stay {number}");
    }
    // Two periods of patience at most, as the current one has seen it.
    let found = (0..9_000).find_map(|_| stay(&mut modes, Mode::STRINGS));
    assert_eq!(found, Some(Mode::STRINGS));
    let found = (0..9_000).find_map(|_| stay(&mut modes, Mode::empty()));
    assert_eq!((found, modes.current()), (Some(Mode::empty()), Mode::empty()));
}

#[test]
fn e1_exact_modes_are_what_was_wanted_last() {
    let mut modes = Modes::new(Keeping::Exact);
    let both = Mode::STRINGS | Mode::BRANCHES;
    for (wanted, changed) in
        [(both, Some(both)), (both, None), (Mode::STRINGS, Some(Mode::STRINGS)), (both, Some(both))]
    {
        assert_eq!((modes.plan(wanted, 5), modes.current()), (changed, wanted));
    }
    assert_eq!(modes.plan(Mode::empty(), 5), Some(Mode::empty()));
}

/// A kernel that waits: its clock continues, and nothing else happens.
#[test]
fn modes_do_not_shrink_where_little_happens() {
    let mut modes = Modes::default();
    assert_eq!(modes.plan(Mode::STRINGS, 0), Some(Mode::STRINGS));
    for number in 1..u64::from(Modes::STAYS) {
        assert_eq!(modes.plan(Mode::empty(), number * Modes::PATIENCE), None, "stay {number}");
    }
    let last = u64::from(Modes::STAYS) * Modes::PATIENCE;
    // What was needed when the mode changed is of the first period.
    assert_eq!(modes.plan(Mode::empty(), last), None);
    let next = (1..=u64::from(Modes::STAYS))
        .find_map(|n| modes.plan(Mode::empty(), last + n * Modes::PATIENCE));
    assert_eq!(next, Some(Mode::empty()));
}

fn plan(selectors: &[u64], left: &[u64], stops: bool, lead: u64) -> Plan {
    let mut pmu = pmu(selectors);
    for (n, left) in (0..).zip(left) {
        pmu.write_msr(0x4C1 + n, (1 << 48) - left).unwrap();
    }
    Plan::of(pmu.limits(RingMask::BOTH), stops, lead)
}

fn lefts(plan: Plan) -> Option<Vec<u64>> {
    match plan {
        Plan::Step => None,
        Plan::Run { limits, .. } => Some(
            limits.iter().filter(|limit| limit.selection != 0).map(|limit| limit.left).collect(),
        ),
    }
}

#[test]
fn branches_run_to_their_overflow_and_accesses_are_stepped_near_it() {
    let (branches, loads) = (0xC4 | EN | USR | INT, 0x81D0 | EN | USR | INT);
    assert_eq!(lefts(plan(&[branches], &[1], true, 50)), Some(vec![1]));
    assert_eq!(lefts(plan(&[loads], &[51], true, 50)), Some(vec![51]));
    assert_eq!(lefts(plan(&[loads], &[50], true, 50)), None);
    assert_eq!(lefts(plan(&[branches, loads], &[7, 900], true, 50)), Some(vec![7, 900]));
    assert_eq!(lefts(plan(&[branches, loads], &[7, 9], true, 50)), None);
    // Without an interrupt there is no limit, and instructions have the clock.
    assert_eq!(lefts(plan(&[loads ^ INT, 0xC0 | EN | USR | INT], &[9, 9], true, 50)), Some(vec![]));
    // Interrupts are exits.
    assert_eq!(lefts(plan(&[0x1CB | EN | USR | INT], &[1], true, 50)), Some(vec![]));
}

/// Far from its overflow no block has to count towards it: the clock says when it could be near.
#[test]
fn far_from_an_overflow_the_clock_is_enough() {
    let (branches, loads) = (0xC4 | EN | USR | INT, 0x81D0 | EN | USR | INT);
    for (selector, left, expected) in [
        (branches, FAR, Some(FAR)),
        (branches, (1 << 48) - 1, Some((1 << 48) - 1)),
        (branches, FAR - 1, None),
        (loads, FAR, Some(FAR / MOST)),
        (loads, FAR - 1, None),
    ] {
        let far = expected.is_some();
        let mut pmu = pmu(&[selector]);
        pmu.write_msr(0x4C1, (1 << 48) - left).unwrap();
        let limit = pmu.limits(RingMask::USER).next().unwrap();
        assert_eq!(is_near(&limit), !far, "{selector:#x} {left}");
        let Plan::Run { limits, instructions } = plan(&[selector], &[left], true, 50) else {
            panic!("{selector:#x} {left}");
        };
        let limited = limits.iter().any(|limit| limit.selection != 0);
        assert_eq!((limited, instructions), (!far, expected), "{selector:#x} {left}");
    }
    // Of two the nearer one has the limit, and the other one its bound.
    let Plan::Run { limits, instructions } = plan(&[branches, loads], &[7, FAR], true, 50) else {
        panic!("it can run");
    };
    assert_eq!((limits[0].left, limits[1].selection, instructions), (7, 0, Some(FAR / MOST)));
}

#[test]
fn without_a_way_to_stop_the_alarm_has_to_ring_in_time() {
    let alarm = |selectors: &[u64], left: &[u64]| match plan(selectors, left, false, 50) {
        Plan::Run { instructions, limits } => {
            assert!(limits.iter().all(|limit| limit.selection == 0));
            instructions
        }
        Plan::Step => panic!("it can run"),
    };
    assert_eq!(alarm(&[0xC4 | EN | USR | INT], &[1000]), Some(1000));
    assert_eq!(alarm(&[0x81D0 | EN | USR | INT], &[2560]), Some(10));
    assert_eq!(alarm(&[0xC4 | EN | USR | INT, 0x81D0 | EN | USR | INT], &[7, 2560]), Some(7));
    assert_eq!(alarm(&[0xC4 | EN | USR], &[7]), None);
}

#[test]
fn the_instruction_of_a_record_is_seen() {
    let mut pmu = pmu(&[0xC4 | EN | USR]);
    pmu.write_msr(0x3F1, 1).unwrap();
    pmu.write_msr(0x4C1, (1 << 48) - 2).unwrap();
    let plan = |pmu: &Pmu, stops| Plan::of(pmu.limits(RingMask::USER), stops, 0);
    assert_eq!(lefts(plan(&pmu, true)), Some(vec![2]));
    pmu.advance(&Delta::bulk(Ring::User, 9).with(Occurrence::Return, 2));
    assert_eq!((plan(&pmu, true), plan(&pmu, false)), (Plan::Step, Plan::Step));
}

/// What no block tells has a bound for an instruction: the guest runs for so many that none can overflow.
#[test]
fn cycles_with_waits_run_until_they_could_overflow() {
    let parameters = Parameters::DEFAULT;
    let timing = Timing::of_tsc(0).with(&parameters);
    let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, timing);
    pmu.write_msr(0x186, 0x3C | EN | USR | INT).unwrap();
    let limit = pmu.limits(RingMask::USER).next().unwrap();
    let most = limit.most.unwrap().get();
    for stops in [true, false] {
        for (left, expected) in [(1 << 40, (1 << 40) / most), (7 * most, 7), (most - 1, 0)] {
            pmu.write_msr(0x4C1, (1 << 48) - left).unwrap();
            let Plan::Run { limits, instructions } =
                Plan::of(pmu.limits(RingMask::USER), stops, 50)
            else {
                panic!("{left}");
            };
            assert!(limits.iter().all(|limit| limit.selection == 0));
            assert_eq!(instructions, Some(expected), "{left}");
        }
    }
}

proptest! {
    /// Whatever is requested, it is there at once, and nothing that was not.
    #[test]
    fn a_mode_has_what_is_wanted(wanted in prop::collection::vec(0..256u64, 1..100)) {
        let mut modes = Modes::default();
        let mut all = Mode::empty();
        for (now, bits) in (0..).step_by(Modes::PATIENCE as usize).zip(wanted) {
            let wanted = Mode::from_bits_truncate(bits);
            all |= wanted;
            let before = modes.current();
            let told = modes.plan(wanted, now);
            prop_assert!(modes.current().contains(wanted) && all.contains(modes.current()));
            prop_assert_eq!(told.is_some(), modes.current() != before);
        }
    }
}
