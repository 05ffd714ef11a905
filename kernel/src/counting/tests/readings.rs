use super::*;

/// A read by the plan is one access for each counter, and one for the status where there is one.
#[test]
fn c10_a_read_of_a_bound_set_asks_each_register_once() {
    for (model, mut bench, driver, known) in machines() {
        // Without a status register nothing but a fold tells of a wrap.
        if driver.layout().global.is_none() {
            continue;
        }
        let set = together(vec![instructions()], &known);
        let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
        session.start(&mut bench).unwrap();
        // The first one puts the counts together, and plans.
        raw(&mut session, &mut bench);
        bench.run(Ring::Kernel, 1000);
        let before = bench.accesses[0];
        assert_eq!(raw(&mut session, &mut bench), [1000], "{model:?}");
        assert_eq!(bench.accesses[0] - before, 2, "{model:?}");
    }
}

proptest! {
    /// Wherever counters wrap, and whether their interrupt has come or waits: each read has all that was counted before it, and
    /// nothing that came after.
    #[test]
    fn c10_p1_reads_by_the_plan_have_every_wrap(
        steps in prop::collection::vec((0_u64..1 << 38, any::<bool>(), 0_u64..3), 1..40),
    ) {
        for (model, mut bench, driver, known) in machines() {
            let set = together(vec![instructions()], &known);
            let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
            session.start(&mut bench).unwrap();
            let counter = session.query().unwrap()[0].counter;
            let all = |bench: &FakeMachine| bench.instructions[0] + bench.instructions[1];
            let begin = all(&bench);
            for &(part, interrupts, between) in &steps {
                // A wrap in every fourth step or so, whatever the counter's width.
                let width = session.driver().capabilities().mask(counter).count_ones();
                bench.set_interrupts(interrupts);
                bench.run(Ring::Kernel, part << width.saturating_sub(40));
                let least = all(&bench) - begin;
                bench.between = vec![between; 4].into();
                let seen = raw(&mut session, &mut bench)[0];
                bench.between.clear();
                let most = all(&bench) - begin;
                prop_assert!((least..=most).contains(&seen), "{:?}: {} {} {}", model, least, seen, most);
                bench.set_interrupts(true);
            }
        }
    }
}
