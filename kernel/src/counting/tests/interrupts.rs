//! Turns that nobody asked for: a slice of a single group, an interrupt without an overflow, an end that nobody waits for.

use super::*;
use arch::pmu::errata::Effect;
use pmu_model::{Mutation, RingMask};

fn in_turns(groups: usize, driver: &Driver, known: &Known) -> Set {
    let counters = driver.capabilities().general.count_ones() as usize;
    let requests = vec![Request::new("0xc0.0x00:c=1"); counters * groups];
    Set::build(requests, Sharing::InTurns, known).unwrap()
}

/// The group that has the counters.
fn turn(session: &Session) -> usize {
    let now: Vec<usize> =
        session.query().unwrap().iter().filter(|one| one.now).map(|one| one.group).collect();
    assert!(now.windows(2).all(|pair| pair[0] == pair[1]), "{now:?}");
    now[0]
}

#[test]
fn i1_a_slice_gives_the_counters_on_only_where_others_wait_and_something_counts() {
    for (model, mut bench, driver, known) in machines() {
        let one = in_turns(1, &driver, &known);
        let mut session = Session::bind(one, Run::default(), driver.clone(), &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        session.slice(&mut bench).unwrap();
        assert_eq!(session.passes(), 0, "{model:?}: nobody waits");
        session.next(&mut bench).unwrap();
        session.next(&mut bench).unwrap();
        assert_eq!(session.passes(), 2, "{model:?}: by call");
        let two = in_turns(2, &driver, &known);
        let mut session = Session::bind(two, Run::default(), driver, &mut bench).unwrap();
        session.slice(&mut bench).unwrap();
        assert_eq!((turn(&session), session.passes()), (0, 0), "{model:?}: it stands still");
        session.start(&mut bench).unwrap();
        for (group, passes) in [(1, 0), (0, 1), (1, 1)] {
            session.slice(&mut bench).unwrap();
            assert_eq!((turn(&session), session.passes()), (group, passes), "{model:?}");
        }
    }
}

#[test]
fn m6_an_interrupt_without_an_overflow_neither_stops_nor_gives_the_counters_on() {
    for at_overflow in [AtOverflow::Same, AtOverflow::Next, AtOverflow::Stop] {
        for (model, mut bench, driver, known) in machines() {
            let set = together(vec![instructions().every(1_000), instructions()], &known);
            let run = Run { at_overflow, passes: 1, ..Run::default() };
            let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
            session.start(&mut bench).unwrap();
            bench.run(Ring::User, 300);
            session.interrupt(&mut bench).unwrap();
            assert!(session.is_running() && !session.has_ended(), "{model:?} {at_overflow:?}");
            bench.run(Ring::User, 300);
            assert_eq!(raw(&mut session, &mut bench), [600, 600], "{model:?} {at_overflow:?}");
        }
    }
}

#[test]
fn m6_who_did_not_ask_is_not_told_of_the_end() {
    for (model, mut bench, driver, known) in machines() {
        for (notify, expected) in [(Notify::empty(), &[][..]), (Notify::END, &[Occasion::End][..])]
        {
            let set = together(vec![instructions().every(100)], &known);
            let run = Run { at_overflow: AtOverflow::Next, passes: 1, notify };
            let mut session = Session::bind(set, run, driver.clone(), &mut bench).unwrap();
            session.start(&mut bench).unwrap();
            bench.run_for(&mut session, Ring::User, 500);
            assert!(session.has_ended(), "{model:?}");
            // Once more changes nothing.
            session.terminate(&mut bench).unwrap();
            assert_eq!(taken(&mut session), expected, "{model:?}");
        }
    }
}

/// A period goes on where its turn ended: 150 and 60 events are two periods of 100.
#[test]
fn i4_a_period_that_its_turn_cut_off_is_ended_in_the_next_one() {
    for (model, mut bench, driver, known) in machines() {
        let counters = driver.capabilities().general.count_ones() as usize;
        let mut requests = vec![Request::new("0xc0.0x00:c=1"); 2 * counters];
        requests[0] = requests[0].clone().every(100);
        let set = Set::build(requests, Sharing::InTurns, &known).unwrap();
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        for (instructions, overflows) in [(150, 1), (33, 1), (49, 1), (33, 1), (1, 2), (33, 2)] {
            bench.run_for(&mut session, Ring::User, instructions);
            assert_eq!(session.overflows()[0], overflows, "{model:?}: after {instructions}");
            session.slice(&mut bench).unwrap();
        }
        assert_eq!(raw(&mut session, &mut bench)[0], 200, "{model:?}");
    }
}

/// A set that needs fewer turns than before goes on with the last one there is, from the preset.
#[test]
fn m12_a_request_that_fits_beside_the_others_ends_the_turns() {
    for (model, mut bench, driver, known) in machines() {
        let counters = driver.capabilities().general.count_ones() as usize;
        let mut requests = vec![Request::new("0xc0.0x00:c=1"); counters];
        requests.push(Request::new("0xc0.0x00:c=1"));
        let fixed = driver.capabilities().fixed != 0;
        let set = Set::build(requests, Sharing::InTurns, &known).unwrap();
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        session.next(&mut bench).unwrap();
        let next = if fixed { Request::new("fixed0") } else { Request::new("r00c0") };
        session.modify(counters, next.from(1_000_000), &known, &mut bench).unwrap();
        let groups = session.set().groups().len();
        assert_eq!((groups, turn(&session)), if fixed { (1, 0) } else { (2, 1) }, "{model:?}");
        assert_eq!(raw(&mut session, &mut bench)[counters], 1_000_000, "{model:?}");
        bench.run(Ring::User, 40);
        assert_eq!(raw(&mut session, &mut bench)[counters], 1_000_040, "{model:?}");
    }
}

#[test]
fn t7_where_a_freeze_is_lost_the_handler_stops_the_counters() {
    for cleared in [0, 1 << 12, 0b11 << 11] {
        for (model, mut bench, driver, known) in machines() {
            bench.cleared = cleared;
            let set = together(vec![instructions().every(100), instructions()], &known);
            let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
            session.start(&mut bench).unwrap();
            bench.run_for(&mut session, Ring::User, 550);
            let counts = raw(&mut session, &mut bench);
            assert_eq!(counts, [550, 550], "{model:?}, {cleared:#x}");
        }
    }
}

/// Counters that stand only 400 instructions after the overflow, by less than a period or by more: nothing that was counted meanwhile
/// is lost, and each period is an overflow.
#[test]
fn i4_m12_events_behind_an_overflow_belong_to_the_next_periods() {
    for period in [1000, 300, 150] {
        for (model, mut bench, driver, known) in machines() {
            let keeps = driver.capabilities().errata.iter();
            let keeps = keeps.filter(|row| matches!(row.effect, Effect::Period(_))).count() > 0;
            if !driver.capabilities().has_global() || keeps && period < 256 {
                // These count on in the handler; an erratum forbids the period.
                continue;
            }
            let requests = vec![Request::new("r00c0:u").every(period), Request::new("r00c0:u")];
            let set = together(requests, &known);
            let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
            bench.pmu.set_mutation(Some(Mutation::FreezeLate));
            session.start(&mut bench).unwrap();
            let mut all = 0;
            for _ in 0..10 {
                let before = bench.pmu.until_overflow(RingMask::BOTH).unwrap();
                bench.set_interrupts(false);
                bench.run(Ring::User, before + 400);
                bench.set_interrupts(true);
                bench.session_interrupt(&mut session);
                all += before + 400;
                assert_eq!(raw(&mut session, &mut bench), [all; 2], "{model:?} {period}");
                assert_eq!(session.overflows()[0], all / period, "{model:?} {period}");
            }
        }
    }
}
