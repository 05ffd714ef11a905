use super::*;

fn in_turns(requests: Vec<Request>, known: &Known) -> Set {
    Set::build(requests, Sharing::InTurns, known).unwrap()
}

/// Requests for the same event that need a counter each, so many that they take `groups` turns.
fn too_many(driver: &Driver, groups: usize) -> Vec<Request> {
    let counters = driver.capabilities().general.count_ones() as usize;
    // `alone` would do too; a counter mask of 0 keeps it a plain event of the general-purpose counters.
    (0..counters * groups).map(|_| Request::new("0xc0.0x00:c=1")).collect()
}

#[test]
fn i1_more_events_than_counters_share_the_time() {
    for (model, mut bench, driver, known) in machines() {
        let set = in_turns(too_many(&driver, 3), &known);
        let requests = set.requests().len();
        assert_eq!(set.groups().len(), 3, "{model:?}");
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        for slice in 0..30 {
            bench.run_for(&mut session, Ring::User, 1000 + slice % 3 * 100);
            session.slice(&mut bench).unwrap();
        }
        session.stop(&mut bench).unwrap();
        let mut counts = Counts::new(session.set());
        session.sample(&mut bench, &mut counts).unwrap();
        let mut turns = std::collections::BTreeSet::new();
        for count in counts.counts() {
            assert_eq!(count.enabled, 33_000, "{model:?}");
            assert_eq!(count.raw, count.counted, "an instruction is a tick here");
            assert_eq!(count.scaled(), Some(33_000), "{model:?}");
            assert_eq!(count.share(), (count.counted * 1_000_000 / 33_000) as u32);
            turns.insert(count.counted);
        }
        assert_eq!(turns.into_iter().collect::<Vec<_>>(), [10_000, 11_000, 12_000], "{model:?}");
        let all: u64 = counts.counts().iter().map(|count| count.counted).sum();
        assert_eq!(all, 33_000 * (requests as u64 / 3));
    }
}

/// More than 64 events: what waits is told from what is counted for each of them, whichever group has its turn.
#[test]
fn i1_reads_between_turns_have_the_time_of_each_of_many_events() {
    for (model, mut bench, driver, known) in machines() {
        let set = in_turns(too_many(&driver, 20), &known);
        assert!(set.requests().len() > 64 || driver_has_few(&set), "{model:?}");
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        for turn in 1..=20 {
            bench.run_for(&mut session, Ring::User, 1000);
            for _ in 0..3 {
                let mut counts = Counts::new(session.set());
                session.sample(&mut bench, &mut counts).unwrap();
                for (index, count) in counts.counts().iter().enumerate() {
                    assert_eq!(count.enabled, turn * 1000, "{model:?}: {index}");
                    assert_eq!(count.raw, count.counted, "{model:?}: {index}");
                }
            }
            session.slice(&mut bench).unwrap();
        }
    }
}

/// Whether a set's groups have so few counters that it stays below 64.
fn driver_has_few(set: &Set) -> bool {
    set.requests().len() / set.groups().len() < 4
}

#[test]
fn i1_a_count_that_never_had_a_counter_has_no_scaled_value() {
    let never = Count { raw: 0, counted: 0, enabled: 5 };
    assert_eq!((never.scaled(), never.share()), (None, 0));
    let half = Count { raw: u64::MAX / 2, counted: 1 << 40, enabled: 1 << 41 };
    assert_eq!((half.scaled(), half.share()), (Some(u64::MAX - 1), 500_000));
    assert_eq!(Count { raw: 3, counted: 1, enabled: u64::MAX }.scaled(), Some(u64::MAX));
}

#[test]
fn m4_a_correlate_is_counted_in_every_pass() {
    for (model, mut bench, driver, known) in machines() {
        let mut requests = too_many(&driver, 2);
        requests.truncate(requests.len() - 1);
        requests.push(Request::new("0xc0.0x00").in_every_pass());
        let last = requests.len() - 1;
        let set = in_turns(requests, &known);
        assert!(set.groups().iter().all(|group| group.iter().any(|(n, _)| *n == last)));
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        for _ in 0..10 {
            bench.run_for(&mut session, Ring::User, 777);
            session.slice(&mut bench).unwrap();
        }
        let mut counts = Counts::new(session.set());
        session.sample(&mut bench, &mut counts).unwrap();
        let expected = Count { raw: 7770, counted: 7770, enabled: 7770 };
        assert_eq!(counts.counts()[last], expected, "{model:?}");
        assert!(counts.counts()[0].counted < 7770, "{model:?}");
    }
}

/// They are in every pass, so there is one: they take no turns, and what does not fit is refused.
#[test]
fn m4_correlates_alone_are_one_group() {
    for (model, _, driver, known) in machines() {
        let correlates = |mut requests: Vec<Request>, count: usize| {
            requests.truncate(count);
            let every = requests.into_iter().map(Request::in_every_pass).collect();
            Set::build(every, Sharing::InTurns, &known)
        };
        let general = driver.capabilities().general.count_ones() as usize;
        let one = || vec![Request::new("0xc0.0x00:c=1"); 2 * general];
        let fits = correlates(one(), general).unwrap();
        assert_eq!(fits.groups().len(), 1, "{model:?}");
        assert_eq!(fits.groups()[0].len(), general, "{model:?}");
        let error = correlates(one(), general + 1).unwrap_err();
        assert!(matches!(error, SetError::Conflict(_)), "{model:?}: {error}");
    }
}

#[test]
fn m6_the_next_requests_at_each_overflow_for_so_many_passes() {
    for (model, mut bench, driver, known) in machines() {
        let requests = too_many(&driver, 2).into_iter().map(|one| one.every(100)).collect();
        let set = in_turns(requests, &known);
        let run =
            Run { at_overflow: AtOverflow::Next, passes: 3, notify: Notify::PASS | Notify::END };
        let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 10_000);
        assert!(session.has_ended() && !session.is_running(), "{model:?}");
        use Occasion::{End, Pass};
        assert_eq!(taken(&mut session), [Pass(1), Pass(2), Pass(3), End], "{model:?}");
        assert!(raw(&mut session, &mut bench).iter().all(|&count| count == 300), "{model:?}");
        assert!(matches!(session.start(&mut bench), Err(SetError::Ended)));
    }
}

#[test]
fn m6_i4_the_same_requests_with_a_notification_every_n() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().every(100), instructions()], &known);
        let run = Run { notify: Notify::OVERFLOW, ..Run::default() };
        let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 555);
        let expected: Vec<Occasion> =
            (1..=5).map(|number| Occasion::Overflow { request: 0, number }).collect();
        assert_eq!(taken(&mut session), expected, "{model:?}");
        assert_eq!(raw(&mut session, &mut bench), [555, 555], "{model:?}");
        // What there is no room for is counted.
        bench.run_for(&mut session, Ring::User, 30_000);
        let mut kept = 0;
        let dropped = session.take_notifications(|_| kept += 1);
        assert_eq!((kept, dropped), (256, 300 - 256), "{model:?}");
    }
}

#[test]
fn m6_nothing_counts_after_an_overflow_until_somebody_says_so() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().every(100), instructions()], &known);
        let run = Run { at_overflow: AtOverflow::Stop, ..Run::default() };
        let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 1000);
        assert_eq!(raw(&mut session, &mut bench), [100, 100], "{model:?}");
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 1000);
        assert_eq!(raw(&mut session, &mut bench), [200, 200], "{model:?}");
    }
    let (_, mut bench, driver, known) = machines().next().unwrap();
    let run = Run { at_overflow: AtOverflow::Next, ..Run::default() };
    let refused = Session::bind(together(vec![instructions()], &known), run, driver, &mut bench);
    assert_eq!(refused.err(), Some(SetError::NoOverflow(AtOverflow::Next)));
}

/// Where interrupts are off a stop finds an overflow first, whose interrupt then finds nothing.
#[test]
fn m6_an_overflow_that_a_stop_finds_has_its_effect() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().every(100)], &known);
        let run = Run { at_overflow: AtOverflow::Stop, ..Run::default() };
        let mut session = Session::bind(set, run, driver.clone(), &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.interrupts = false;
        bench.run(Ring::User, 120);
        session.suspend(&mut bench).unwrap();
        bench.interrupts = true;
        bench.run(Ring::User, 1);
        assert!(session.was_stopped_by_overflow(), "{model:?}");
        assert_eq!(session.overflows(), [1], "{model:?}");

        let requests = too_many(&driver, 2).into_iter().map(|one| one.every(100)).collect();
        let run = Run { at_overflow: AtOverflow::Next, passes: 1, ..Run::default() };
        let mut session =
            Session::bind(in_turns(requests, &known), run, driver, &mut bench).unwrap();
        for group in [0, 1] {
            session.start(&mut bench).unwrap();
            assert_eq!(session.group(), group, "{model:?}");
            bench.interrupts = false;
            bench.run(Ring::User, 120);
            session.suspend(&mut bench).unwrap();
            bench.interrupts = true;
            bench.run(Ring::User, 1);
        }
        session.start(&mut bench).unwrap();
        assert!(session.has_ended() && session.passes() == 1, "{model:?}");
        assert!(!session.is_running(), "{model:?}");
    }
}

#[test]
fn m3_others_start_after_the_first_has_seen_n() {
    for (model, mut bench, driver, known) in machines() {
        let requests = vec![instructions().every(1000).starting(&[1]), instructions()];
        let mut session =
            Session::bind(together(requests, &known), Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 999);
        assert_eq!(raw(&mut session, &mut bench), [999, 0], "{model:?}");
        bench.run_for(&mut session, Ring::User, 3001);
        assert_eq!(raw(&mut session, &mut bench), [4000, 3000], "{model:?}");
        let mut counts = Counts::new(session.set());
        session.sample(&mut bench, &mut counts).unwrap();
        let times = |of: fn(&Count) -> u64| counts.counts().iter().map(of).collect::<Vec<_>>();
        assert_eq!(times(|count| count.counted), [4000, 3000], "{model:?}");
        assert_eq!(times(|count| count.enabled), [4000, 3000], "{model:?}");
        session.restart(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 1010);
        assert_eq!(raw(&mut session, &mut bench), [1010, 10], "{model:?}");
    }
}

/// An overflow that is found when the set is stopped starts the others as soon as it goes on.
#[test]
fn m3_who_was_started_while_nothing_ran_counts_when_the_set_goes_on() {
    for (model, mut bench, driver, known) in machines() {
        let requests =
            vec![instructions().every(1000).starting(&[1]), instructions(), instructions()];
        let set = together(requests, &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.set_interrupts(false);
        bench.run(Ring::User, 1000);
        session.stop(&mut bench).unwrap();
        bench.set_interrupts(true);
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 70);
        assert_eq!(raw(&mut session, &mut bench)[1..], [70, 1070], "{model:?}");
    }
}

#[test]
fn t7_nothing_of_the_handler_is_counted() {
    for (model, mut bench, driver, known) in machines() {
        if driver.capabilities().freeze == FreezeKind::None {
            // A processor without a global control cannot stop its counters at once: all of them count on in the handler, so that
            // they stay comparable, and each has all of it.
            assert!(!driver.capabilities().has_global(), "{model:?}");
            let requests =
                vec![Request::new("0xc0.0x00:c=1").every(100), Request::new("0xc0.0x00:c=1")];
            let set = together(requests, &known);
            let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
            bench.handler_instructions = 17;
            session.start(&mut bench).unwrap();
            bench.run_for(&mut session, Ring::User, 1050);
            assert!(bench.handled > 300, "{model:?}");
            assert_eq!(raw(&mut session, &mut bench)[1], 1050 + bench.handled, "{model:?}");
            continue;
        }
        let set = together(vec![instructions().every(100), instructions()], &known);
        let run = Run { notify: Notify::OVERFLOW, ..Run::default() };
        let mut session = Session::bind(set, run, driver, &mut bench).unwrap();
        bench.handler_instructions = 17;
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 1050);
        assert!(bench.handled > 300, "{model:?}");
        assert_eq!(raw(&mut session, &mut bench), [1050, 1050], "{model:?}");
        assert_eq!(taken(&mut session).len(), 10, "{model:?}");
    }
}

/// RDMSR and WRMSR of a read, of a switch between tasks of one set, and of a turn from one full group of
/// general-purpose counters to the next, where nothing overflows meanwhile.
#[test]
fn m12_i1_what_a_read_and_a_turn_cost_in_accesses_to_registers() {
    for (model, reads, turn) in [
        // A read looks at each counter and at the status. A turn stops all, looks at the status and at each counter, gives
        // each its event and 0, and starts all.
        (Model::Skylake, [9, 0], [9, 18]),
        (Model::Zen4, [7, 0], [7, 14]),
        (Model::K10, [4, 0], [4, 20]),
    ] {
        let (_, mut bench, driver, known) = machines().find(|one| one.0 == model).unwrap();
        let set = in_turns(too_many(&driver, 2), &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        let mut counts = Counts::new(session.set());
        bench.accesses = [0; 2];
        session.sample(&mut bench, &mut counts).unwrap();
        assert_eq!(std::mem::take(&mut bench.accesses), reads, "{model:?}: a read");
        session.slice(&mut bench).unwrap();
        assert_eq!(bench.accesses, turn, "{model:?}: a turn");
    }
}

/// The same of a set's way from its counters and back to them: what it does not have costs it nothing.
#[test]
fn m12_what_it_costs_to_leave_the_counters_and_to_get_them_back() {
    for (model, leaves, returns) in [
        // It stops all, looks at the counter and twice at the status, takes the event out and acknowledges. Coming back gives the
        // counter its event and 0, and starts all; what may be frozen or pending is looked at before.
        (Model::Skylake, [3, 3], [4, 5]),
        (Model::Zen4, [3, 3], [4, 5]),
    ] {
        let (_, mut bench, driver, known) = machines().find(|one| one.0 == model).unwrap();
        let set = together(vec![Request::new("0xc0.0x00:c=1")], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.accesses = [0; 2];
        session.suspend(&mut bench).unwrap();
        let left = std::mem::take(&mut bench.accesses);
        session.start(&mut bench).unwrap();
        assert_eq!([left, bench.accesses], [leaves, returns], "{model:?}");
    }
}

proptest! {
    /// Wherever counters wrap in their turns, and whether their interrupt has come or waits: both groups together have all that
    /// ran, and each has it in the time that it had.
    #[test]
    fn c10_i1_turns_by_the_plan_have_every_wrap(
        steps in prop::collection::vec((0_u64..1 << 38, any::<bool>(), any::<bool>()), 1..40),
    ) {
        for (model, mut bench, driver, known) in machines() {
            let set = in_turns(too_many(&driver, 2), &known);
            let groups: Vec<usize> = set.groups().iter().map(|group| group[0].0).collect();
            let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
            session.start(&mut bench).unwrap();
            for &(part, interrupts, turns) in &steps {
                let counter = session.query().unwrap()[0].counter;
                let width = session.driver().capabilities().mask(counter).count_ones();
                bench.set_interrupts(interrupts);
                bench.run(Ring::Kernel, part << width.saturating_sub(40));
                if turns {
                    session.slice(&mut bench).unwrap();
                }
                bench.set_interrupts(true);
                let mut counts = Counts::new(session.set());
                session.sample(&mut bench, &mut counts).unwrap();
                for group in &groups {
                    let count = counts.counts()[*group];
                    prop_assert_eq!(count.raw, count.counted, "{:?}", model);
                    prop_assert_eq!(count.enabled, bench.instructions[0], "{:?}", model);
                }
                let all: u64 = groups.iter().map(|group| counts.counts()[*group].raw).sum();
                prop_assert_eq!(all, bench.instructions[0], "{:?}", model);
            }
        }
    }

    /// Turns by time while requests overflow: each count is what ran in its turns, and each overflow comes after a
    /// whole period of them.
    #[test]
    fn i1_i4_periods_go_on_where_their_turn_ended(
        which in 0..machines().count(), period in 20u64..300,
        slices in prop::collection::vec(1u64..500, 2..30),
    ) {
        let (model, mut bench, driver, known) = machines().nth(which).unwrap();
        let mut requests = too_many(&driver, 2);
        requests[0] = requests[0].clone().every(period);
        let run = Run { notify: Notify::OVERFLOW, ..Run::default() };
        let mut session = Session::bind(in_turns(requests, &known), run, driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        for slice in slices {
            bench.run_for(&mut session, Ring::User, slice / 2);
            // A slice ends in another interrupt's handler, and an overflow may be pending.
            bench.set_interrupts(false);
            bench.run(Ring::User, slice - slice / 2);
            session.slice(&mut bench).unwrap();
            bench.set_interrupts(true);
            bench.session_interrupt(&mut session);
        }
        session.stop(&mut bench).unwrap();
        let mut counts = Counts::new(session.set());
        session.sample(&mut bench, &mut counts).unwrap();
        // What is frozen while its interrupt is pending counts less than there are instructions.
        for count in counts.counts() {
            prop_assert!(count.raw <= count.counted, "{:?}", model);
        }
        let mut overflows = 0;
        let dropped = session.take_notifications(|_| overflows += 1);
        prop_assert_eq!(overflows + dropped, counts.counts()[0].raw / period, "{:?}", model);
    }
}

/// What is programmed is said of each group; only that of the group whose turn it is is there now, though a correlate has
/// the same counter in the others.
#[test]
fn m7_a_query_tells_the_group_whose_turn_it_is() {
    for (model, mut bench, driver, known) in machines() {
        let mut requests = too_many(&driver, 2);
        requests.truncate(requests.len() - 1);
        requests.insert(0, Request::new("0xc0.0x00").in_every_pass());
        let set = in_turns(requests, &known);
        let groups = set.groups().len();
        assert!(groups > 1, "{model:?}");
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        for turn in 0..groups {
            let all = session.query().unwrap();
            for one in &all {
                assert_eq!(one.now, one.group == turn, "{model:?} {turn}: {one:?}");
            }
            assert_eq!(all.iter().filter(|one| one.request == 0).count(), groups, "{model:?}");
            session.next(&mut bench).unwrap();
        }
    }
}
