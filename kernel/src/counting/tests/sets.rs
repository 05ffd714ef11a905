use super::*;
use arch::pmu::Rings;
use events::cpu::Vendor;
use events::request::Attributes;

#[test]
fn c1_c3_i2_a_set_is_built_first_and_bound_later() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(
            vec![instructions().in_rings(Rings::USER), instructions().in_rings(Rings::KERNEL)],
            &known,
        );
        bench.run(Ring::User, 1000);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        bench.run(Ring::User, 1000);
        session.start(&mut bench).unwrap();
        bench.run(Ring::User, 70);
        bench.run(Ring::Kernel, 5);
        assert_eq!(raw(&mut session, &mut bench), [70, 5], "{model:?}");
        session.stop(&mut bench).unwrap();
        bench.run(Ring::User, 1000);
        assert_eq!(raw(&mut session, &mut bench), [70, 5], "{model:?}");
        session.start(&mut bench).unwrap();
        bench.run(Ring::User, 1);
        assert_eq!(raw(&mut session, &mut bench), [71, 5], "{model:?}");
    }
}

#[test]
fn c5_preset_and_restart() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().from(u64::MAX - 10), instructions()], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run(Ring::User, 30);
        assert_eq!(raw(&mut session, &mut bench), [19, 30], "{model:?}");
        session.restart(&mut bench).unwrap();
        bench.run(Ring::User, 3);
        assert_eq!(raw(&mut session, &mut bench), [u64::MAX - 7, 3], "{model:?}");
    }
}

#[test]
fn c2_m1_what_does_not_fit_at_once_is_refused_with_the_requests_in_conflict() {
    for (model, _, driver, known) in machines() {
        let counters = driver.capabilities().general.count_ones() as usize;
        let many = |n| (0..n).map(|n| Request::new(&format!("0xc4.{n:#x}"))).collect::<Vec<_>>();
        assert!(Set::build(many(counters), Sharing::Together, &known).is_ok(), "{model:?}");
        let refused = Set::build(many(counters + 1), Sharing::Together, &known).unwrap_err();
        let SetError::Conflict(conflict) = &refused else { panic!("{refused}") };
        assert_eq!(conflict.requests.len(), counters + 1, "{model:?}");
        assert!(refused.to_string().contains("0xc4.0x1"), "{refused}");
        let set = Set::build(many(counters + 1), Sharing::InTurns, &known).unwrap();
        assert_eq!(set.groups().len(), 2, "{model:?}");
    }
}

#[test]
fn c7_c8_p5_errors_name_the_request_the_attribute_and_the_reason() {
    for (model, mut bench, driver, known) in machines() {
        let refused = |request: Request| {
            let set = Set::build(vec![instructions(), request], Sharing::Together, &known);
            set.map(|_| String::new()).unwrap_or_else(|error| error.to_string())
        };
        let has = driver.capabilities();
        let any = Attributes { any_thread: Some(true), ..Attributes::default() };
        let text = refused(Request { attributes: any, ..Request::new("r003c") });
        if has.any_thread {
            assert_eq!(text, "", "{model:?}");
        } else {
            assert!(text.starts_with("request 1 (r003c): attribute "), "{model:?}: {text}");
            assert!(text.contains("is not available: "), "{text}");
        }
        let text = refused(Request::new("r003c:c=256"));
        assert!(text.contains("request 1 (r003c:c=256): ") && text.contains("0xff"), "{text}");
        let text = refused(Request::new("no_such_event"));
        assert!(text.contains("request 1 (no_such_event): "), "{text}");
        let text = refused(instructions().in_rings(Rings::empty()));
        assert!(text.contains("attribute mode: it must count in user mode"), "{text}");
        let text = refused(instructions().every(0));
        assert!(text.contains("attribute every: a period of 0"), "{text}");
        let text = refused(instructions().starting(&[0]));
        assert!(text.contains("has no number of events after which"), "{text}");
        let text = refused(instructions().every(5).starting(&[1]));
        assert!(text.contains("is to start itself"), "{text}");
        let text = refused(instructions().every(5).starting(&[7]));
        assert_eq!(text, "there is no request 7: the set has 2");
        assert_eq!(Set::build(vec![], Sharing::InTurns, &known), Err(SetError::Empty));
        // Too long for the counter: only the PMU can tell.
        let set = together(vec![instructions().every(1 << 60)], &known);
        let error = Session::bind(set, Run::default(), driver, &mut bench).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("request 0 (r00c0): ") && text.contains("does not fit"), "{text}");
    }
}

/// Every refusal that is about an attribute names it.
#[test]
fn c7_a_refusal_is_of_the_attribute_that_asked_for_it() {
    use crate::counting::error::attribute;
    use events::encode::Refusal;
    let refusals = [
        (Refusal::Absent { what: "any", why: "" }, Some("any")),
        (Refusal::FixedHasNo { index: 0, what: "edge" }, Some("edge")),
        (
            Refusal::Range { field: "cmask", value: 256, most: 255, vendor: Vendor::Intel },
            Some("cmask"),
        ),
        (Refusal::NoMsrValue { msr: 0x1a6, term: "offcore_rsp" }, Some("offcore_rsp")),
        (Refusal::MsrUnused { term: "frontend" }, Some("frontend")),
        (Refusal::NoMode, Some("mode")),
        (Refusal::LoadLatency { cycles: 1 }, Some("ldlat")),
        (Refusal::NotPrecise(""), Some("precise")),
        (Refusal::NoCounter(9), Some("counter")),
        (Refusal::NoFixed(9), None),
    ];
    for (refusal, of) in refusals {
        assert_eq!(attribute(&refusal), of, "{refusal}");
    }
}

#[test]
fn c8_m5_attributes_reach_the_registers_and_can_be_queried() {
    for (model, mut bench, driver, known) in machines() {
        let attributes = Attributes { cmask: Some(3), ..Attributes::default() };
        let request = Request { attributes, ..Request::new("0x3c.0x00:e:i") };
        let set = together(vec![request.in_rings(Rings::USER)], &known);
        let session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        let [one] = &session.query().unwrap()[..] else { panic!("{model:?}") };
        assert!(one.now);
        let (msr, value) = one.control;
        // CMASK 3, INV, EN, E, USR, and INT where there is a status register.
        let interrupt = u64::from(session.driver().capabilities().has_global()) << 20;
        assert_eq!(value, 0x03c5_003c | interrupt, "{model:?}");
        let enable = 1 << 22;
        let read = bench.pmu.read_msr(msr.0).unwrap();
        assert_eq!(read | enable, value, "{model:?}: what is read back");
    }
}

#[test]
fn c4_samples_are_added_subtracted_copied_and_zeroed() {
    let (_, mut bench, driver, known) = machines().nth(3).unwrap();
    let set = together(vec![instructions(), instructions().in_rings(Rings::USER)], &known);
    let mut session = Session::bind(set.clone(), Run::default(), driver, &mut bench).unwrap();
    let [mut first, mut second, mut work] = [(); 3].map(|()| Counts::new(&set));
    session.start(&mut bench).unwrap();
    bench.run(Ring::User, 100);
    session.sample(&mut bench, &mut first).unwrap();
    bench.run(Ring::Kernel, 11);
    session.sample(&mut bench, &mut second).unwrap();
    let values =
        |counts: &Counts| counts.counts().iter().map(|count| count.raw).collect::<Vec<_>>();
    work.copy(&second).unwrap();
    work.subtract(&first).unwrap();
    assert_eq!((values(&work), work.counts()[0].enabled), (vec![11, 0], 11));
    work.add(&second).unwrap();
    assert_eq!(values(&work), [122, 100]);
    assert_eq!(work.tsc, second.tsc);
    work.zero();
    assert_eq!(values(&work), [0, 0]);
    // Of another set, though the same requests.
    let other = Counts::new(&together(set.requests().to_vec(), &known));
    for refused in [work.add(&other), work.subtract(&other), work.copy(&other)] {
        assert!(refused.unwrap_err().to_string().contains("are of set"));
    }
    let mut other = other;
    assert!(matches!(session.sample(&mut bench, &mut other), Err(CountingError::Mismatch(_))));
}

#[test]
fn i9_m7_a_running_set_is_changed_and_read_back_with_the_generation_raised() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions(), instructions()], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run(Ring::User, 50);
        let user = instructions().in_rings(Rings::KERNEL);
        session.modify(1, user, &known, &mut bench).unwrap();
        bench.run(Ring::User, 9);
        bench.run(Ring::Kernel, 4);
        assert_eq!(raw(&mut session, &mut bench), [63, 4], "{model:?}");
        assert_eq!(session.generation(), 1);
        let mut counts = Counts::new(session.set());
        session.sample(&mut bench, &mut counts).unwrap();
        assert_eq!(counts.generation, 1);
        // What is refused changes nothing.
        let error = session.modify(1, Request::new("nonsense"), &known, &mut bench).unwrap_err();
        assert!(error.to_string().contains("request 1 (nonsense)"), "{error}");
        let long = instructions().every(1 << 60);
        session.modify(0, long, &known, &mut bench).unwrap_err();
        session.modify(5, instructions(), &known, &mut bench).unwrap_err();
        bench.run(Ring::Kernel, 2);
        assert_eq!(raw(&mut session, &mut bench), [65, 6], "{model:?}");
        assert_eq!(session.generation(), 1);
        assert_eq!(session.query().unwrap().len(), 2);
    }
}

#[test]
fn m7_status_has_the_registers_and_the_counts_now_and_at_the_last_interrupt() {
    for (model, mut bench, driver, known) in machines() {
        let set = together(vec![instructions().every(100), instructions()], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        assert_eq!(session.status(&mut bench).unwrap().at_interrupt, None);
        bench.run_for(&mut session, Ring::User, 250);
        let status = session.status(&mut bench).unwrap();
        let values = |counts: &Counts| [0, 1].map(|n| counts.counts()[n].raw);
        assert_eq!(values(&status.now), [250, 250], "{model:?}");
        assert_eq!(values(status.at_interrupt.as_ref().unwrap()), [200, 200], "{model:?}");
        let counter = session.driver().layout().counter(session.query().unwrap()[1].counter);
        assert!(status.registers.contains(&(counter, 250)), "{model:?}: {status:?}");
        session.terminate(&mut bench).unwrap();
        assert_eq!(session.start(&mut bench), Err(SetError::Ended));
        assert_eq!(session.next(&mut bench), Err(SetError::Ended));
        session.restart(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 7);
        assert_eq!(raw(&mut session, &mut bench), [7, 7], "{model:?}");
    }
}

/// A period that is shorter than what was counted before it, in the place of none.
#[test]
fn i9_m7_a_request_that_was_only_counted_is_changed_to_overflow() {
    for (model, mut bench, driver, known) in machines() {
        let user = || instructions().in_rings(Rings::USER);
        let set = together(vec![user(), user()], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 60);
        session.modify(0, user().every(4), &known, &mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 9);
        assert_eq!(raw(&mut session, &mut bench), [9, 69], "{model:?}");
        assert_eq!(session.overflows(), [2, 0], "{model:?}");
        // What is refused goes on where it was, in its period too.
        session.modify(0, user().every(1 << 60), &known, &mut bench).unwrap_err();
        bench.run_for(&mut session, Ring::User, 3);
        assert_eq!((raw(&mut session, &mut bench), session.overflows()[0]), (vec![12, 72], 3));
        session.modify(0, user(), &known, &mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 5);
        assert_eq!(raw(&mut session, &mut bench), [5, 77], "{model:?}");
        assert_eq!(session.overflows(), [0, 0], "{model:?}");
    }
}

/// A request that replaces another begins a period of its own, wherever the other was in its own.
#[test]
fn i9_a_replaced_requests_period_begins_anew() {
    for (model, mut bench, driver, known) in machines() {
        let user = || instructions().in_rings(Rings::USER);
        let set = together(vec![user().every(1000)], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 60);
        session.modify(0, user().every(100), &known, &mut bench).unwrap();
        bench.run_for(&mut session, Ring::User, 99);
        assert_eq!(session.overflows(), [0], "{model:?}: 60 events of the other one count");
        bench.run_for(&mut session, Ring::User, 1);
        assert_eq!(session.overflows(), [1], "{model:?}");
        assert_eq!(raw(&mut session, &mut bench), [100], "{model:?}");
    }
}
