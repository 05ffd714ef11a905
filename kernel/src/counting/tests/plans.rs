//! What is planned ahead is done by the plan, and left to the longer way where that has to look.

use super::*;
use crate::counting::access::OneByOne;
use crate::counting::charged::Charged;
use crate::counting::reading::Reading;
use crate::counting::session::Session;

/// Requests that a general-purpose counter has to count.
fn general(count: usize) -> Vec<Request> {
    vec![Request::new("0xc0.0x00:c=1"); count]
}

fn begun(requests: Vec<Request>, sharing: Sharing, run: Run, of: One) -> (Session, FakeMachine) {
    let (_, mut bench, driver, known) = of;
    let set = Set::build(requests, sharing, &known).unwrap();
    let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
    session.start(&mut bench).unwrap();
    (session, bench)
}

type One = (Model, FakeMachine, Driver, Known<'static>);

/// Machines whose status register tells of overflows: nothing is planned without.
fn with_status() -> impl Iterator<Item = One> {
    machines().filter(|(_, _, driver, _)| driver.layout().global.is_some())
}

/// Those of them on which turns go by a plan: Nehalem's counters need other events in between (erratum AAK100).
fn with_planned_turns() -> impl Iterator<Item = One> {
    with_status().filter(|(_, _, driver, _)| !driver.has_to_renew())
}

#[test]
fn c10_a_read_needs_no_longer_way_while_nothing_has_overflowed() {
    for one in with_status() {
        let model = one.0;
        let (mut session, mut bench) = begun(general(2), Sharing::Together, Run::default(), one);
        let mut counts = Counts::new(session.set());
        for turn in 1..4 {
            bench.run(Ring::User, 100);
            assert!(session.read_planned(&mut OneByOne(&mut bench), &mut counts), "{model:?}");
            let [count, other] = counts.counts() else { panic!("{model:?}") };
            assert_eq!((count.raw, count.enabled, count), (100 * turn, 100 * turn, other));
        }
        session.stop(&mut bench).unwrap();
        assert!(!session.read_planned(&mut OneByOne(&mut bench), &mut counts), "{model:?}");
    }
}

/// A counter may go a whole time round, and be further than at the last read, before its interrupt comes: the status tells of it.
#[test]
fn c10_a_counter_that_went_round_is_noticed_where_its_value_shows_nothing() {
    for one in with_status() {
        let (model, round) = (one.0, one.2.capabilities().mask(Counter::General(0)) + 1);
        let (mut session, mut bench) = begun(general(1), Sharing::Together, Run::default(), one);
        bench.run(Ring::User, 10);
        assert_eq!(raw(&mut session, &mut bench), [10], "{model:?}");
        bench.set_interrupts(false);
        bench.run(Ring::User, round + 5);
        assert_eq!(raw(&mut session, &mut bench), [round + 15], "{model:?}: not yet delivered");
        bench.set_interrupts(true);
    }
    for one in with_status() {
        let (model, round) = (one.0, one.2.capabilities().mask(Counter::General(0)) + 1);
        let (mut session, mut bench) = begun(general(1), Sharing::Together, Run::default(), one);
        bench.run(Ring::User, 10);
        assert_eq!(raw(&mut session, &mut bench), [10], "{model:?}");
        // An interrupt has told of one round, and the status tells of another one.
        bench.run(Ring::User, round);
        bench.set_interrupts(false);
        bench.run(Ring::User, round + 5);
        assert_eq!(raw(&mut session, &mut bench), [2 * round + 15], "{model:?}");
    }
}

/// Turns by the plan end the set after its last pass, and each of them is by the plan.
#[test]
fn m4_i1_turns_by_the_plan_end_with_the_last_pass() {
    for one in with_planned_turns() {
        let (model, many) = (one.0, one.2.capabilities().general.count_ones() as usize * 3);
        let run = Run { passes: 2, ..Run::default() };
        let (mut session, mut bench) = begun(general(many), Sharing::InTurns, run, one);
        let mut counts = Counts::new(session.set());
        for turn in 1..6 {
            bench.run(Ring::User, 100);
            assert!(session.next_planned(&mut OneByOne(&mut bench)), "{model:?}: turn {turn}");
            assert_eq!(
                (session.group(), session.passes()),
                (turn % 3, turn as u64 / 3),
                "{model:?}"
            );
            // A read after it is by the plan as well.
            assert!(session.read_planned(&mut OneByOne(&mut bench), &mut counts), "{model:?}");
        }
        bench.run(Ring::User, 100);
        assert!(!session.next_planned(&mut OneByOne(&mut bench)), "{model:?}: the last one");
        session.next(&mut bench).unwrap();
        assert!(session.has_ended(), "{model:?}");
        bench.run(Ring::User, 1_000);
        assert_eq!(raw(&mut session, &mut bench), vec![200; many], "{model:?}");
    }
}

/// A counter overflowed before its next group's turn began: that overflow is none of the group's.
#[test]
fn c10_i1_a_turn_does_not_count_the_overflows_of_the_one_before() {
    for one in with_status() {
        let counters = one.2.capabilities().general.count_ones() as usize;
        let (model, round) = (one.0, one.2.capabilities().mask(Counter::General(0)) + 1);
        let run = Run::default();
        let (mut session, mut bench) = begun(general(2 * counters), Sharing::InTurns, run, one);
        let first = session.query().unwrap().iter().find(|one| one.group == 0).unwrap().request;
        let second = session.query().unwrap().iter().find(|one| one.group == 1).unwrap().request;
        bench.run(Ring::User, round + 3);
        assert_eq!(raw(&mut session, &mut bench)[first], round + 3, "{model:?}");
        for turn in 1..4 {
            session.slice(&mut bench).unwrap();
            bench.run(Ring::User, 50);
            // By the longer way.
            session.stop(&mut bench).unwrap();
            session.start(&mut bench).unwrap();
            let own = [turn / 2, u64::div_ceil(turn, 2)].map(|turns| 50 * turns);
            let counts = raw(&mut session, &mut bench);
            assert_eq!([counts[first], counts[second]], [round + 3 + own[0], own[1]], "{model:?}");
        }
    }
}

/// The handler knows the counters of the group whose turn it is, however its turn began.
#[test]
fn c10_i1_the_handler_counts_the_overflows_of_each_groups_counters() {
    for one in with_planned_turns() {
        let counters = one.2.capabilities().general.count_ones() as usize;
        let (model, round) = (one.0, one.2.capabilities().mask(Counter::General(0)) + 1);
        let run = Run::default();
        let (mut session, mut bench) = begun(general(counters + 1), Sharing::InTurns, run, one);
        // An overflow makes the first turn, to a group of one counter, the longer way; the second one is by the plan.
        bench.run(Ring::User, round + 3);
        session.slice(&mut bench).unwrap();
        bench.run(Ring::User, 50);
        assert!(session.next_planned(&mut OneByOne(&mut bench)), "{model:?}");
        // The second time round is lost where nobody has acknowledged the first one.
        bench.run(Ring::User, round + 3);
        bench.run(Ring::User, round + 3);
        let counts = raw(&mut session, &mut bench);
        let (last, first) = counts.split_last().unwrap();
        assert_eq!((first, *last), (&vec![3 * round + 9; counters][..], 50), "{model:?}");
    }
}

/// A correlate comes first in its group, wherever it stands among the requests.
#[test]
fn m4_counts_are_in_the_order_of_the_requests() {
    for (model, mut bench, driver, known) in machines() {
        let requests = vec![instructions(), Request::new("r00c0:u").in_every_pass()];
        for requests in [requests.clone(), requests.into_iter().rev().collect()] {
            let expected = requests.iter().map(|one: &Request| match one.correlate {
                true => 100,
                false => 150,
            });
            let expected: Vec<u64> = expected.collect();
            let set = Set::build(requests, Sharing::InTurns, &known).unwrap();
            let mut session =
                Session::bind(set, Run::default(), driver.clone(), &mut bench).unwrap();
            session.start(&mut bench).unwrap();
            bench.run(Ring::User, 100);
            bench.run(Ring::Kernel, 50);
            assert_eq!(raw(&mut session, &mut bench), expected, "{model:?}");
            session.terminate(&mut bench).unwrap();
        }
    }
}

/// Two counters of a plan, at 0.
fn two(one: &mut One) -> (Reading, Vec<Count>, Set) {
    let (_, bench, driver, _) = one;
    let mut reading = Reading::with_capacity(2);
    let counters = [0, 1].map(Counter::General);
    for counter in counters {
        driver.program(bench, counter, &INSTRUCTIONS).unwrap();
    }
    let active = counters
        .map(|counter| VirtualCounter::arm(driver, bench, counter, Mode::Free, 0, 0).unwrap());
    let totals = vec![Count::default(); 2];
    let set = Set::of_groups(&[counters.map(|counter| (counter, INSTRUCTIONS)).to_vec()]);
    reading.plan((driver, set.id()), (0..).zip(&active), &totals, [0, 0]);
    (reading, totals, set)
}

/// The second counter cannot be read any more: no time is counted, neither that of the first.
#[test]
fn i1_a_turn_that_cannot_end_by_the_plan_has_counted_no_time() {
    let mut one = with_status().next().unwrap();
    let (mut reading, mut totals, _) = two(&mut one);
    let (_, mut bench, driver, _) = one;
    bench.gone = Some(driver.layout().counter(Counter::General(1)));
    assert!(!reading.end(&mut OneByOne(&mut bench), 40, &mut totals));
    assert_eq!([totals[0].counted, totals[1].counted], [0, 0]);
    bench.gone = None;
    assert!(reading.end(&mut OneByOne(&mut bench), 40, &mut totals));
    assert_eq!([totals[0].counted, totals[1].counted], [40, 40]);
}

/// Counts of another set are left as they are.
#[test]
fn i8_nothing_is_charged_to_counts_of_another_set() {
    let mut one = with_status().next().unwrap();
    let (mut reading, _, set) = two(&mut one);
    let alone = Set::of_groups(&[vec![(Counter::General(0), INSTRUCTIONS)]]);
    let mut bench = one.1;
    for (of_last, of_task) in [(&alone, &set), (&set, &alone)] {
        let mut last = Charged::new(Counts::new(of_last));
        let mut task = Counts::new(of_task);
        let to = task.counts_mut();
        assert!(!reading.charge(&mut OneByOne(&mut bench), 30, &mut last, to));
        assert!(to.iter().all(|count| *count == Count::default()), "{to:?}");
        assert_eq!(last.time(), Some(0));
    }
}
