use super::*;
use crate::counting::snapshot::{Clocks, Events, SnapshotError, Sources, VECTORS, take};

/// A machine on which something may come before each single figure. Every figure is the number of things that came.
struct Machine {
    came: u64,
    /// Before which of the reads to come something comes, and whether it is an SMI, which no handler sees.
    schedule: Vec<Option<bool>>,
    seen_by_kernel: u64,
    smi: u64,
    session: Session,
    bench: Bench,
}

impl Machine {
    fn step(&mut self) {
        if let Some(Some(smi)) = self.schedule.pop() {
            self.came += 1;
            self.smi += u64::from(smi);
            self.seen_by_kernel += u64::from(!smi);
            self.bench.run(Ring::Kernel, 1);
        }
    }
}

impl Sources for Machine {
    fn sequence(&mut self) -> u64 {
        self.step();
        self.seen_by_kernel
    }
    fn tsc(&mut self) -> u64 {
        self.step();
        self.came
    }
    fn clocks(&mut self) -> Clocks {
        self.step();
        Clocks { aperf: Some(self.came), mperf: None, smi_count: Some(self.smi) }
    }
    fn events(&mut self) -> Events {
        self.step();
        let mut taken = [self.seen_by_kernel; VECTORS];
        taken[200] = self.came;
        Events { taken, context_switches: self.came }
    }
    fn counts(&mut self, counts: &mut Counts) -> Result<(), CountingError> {
        self.step();
        self.session.sample(&mut self.bench, counts)
    }
}

fn machine(schedule: Vec<Option<bool>>) -> Machine {
    let (_, mut bench, driver, known) = machines().nth(3).unwrap();
    let set = together(vec![instructions()], &known);
    let mut session = Session::bind(set, Run::default(), driver, &mut bench).unwrap();
    session.start(&mut bench).unwrap();
    Machine { came: 0, schedule, seen_by_kernel: 0, smi: 0, session, bench }
}

proptest! {
    /// Whatever comes wherever: all figures are of one moment, and what came in between is counted as a retry.
    #[test]
    fn i10_p1_all_figures_are_of_one_moment(
        schedule in prop::collection::vec(prop::option::weighted(0.2, any::<bool>()), 0..100),
    ) {
        let mut machine = machine(schedule);
        let mut counts = Counts::new(machine.session.set());
        let seen = take(&mut machine, &mut counts).unwrap();
        let moment = seen.tsc[0];
        prop_assert_eq!(seen.tsc[1], moment);
        prop_assert_eq!(seen.events.taken[200], moment);
        prop_assert_eq!(seen.events.context_switches, moment);
        prop_assert_eq!(seen.clocks.aperf, Some(moment));
        prop_assert_eq!(counts.counts()[0].raw, moment);
        let smi = seen.clocks.smi_count.unwrap();
        prop_assert_eq!(seen.events.taken[14] + smi, moment);
    }
}

#[test]
fn i10_a_machine_that_never_rests_is_reported() {
    let mut machine = machine(vec![Some(false); 10_000]);
    let mut counts = Counts::new(machine.session.set());
    assert_eq!(take(&mut machine, &mut counts), Err(SnapshotError::Unsettled));
}

#[test]
fn i10_registers_that_are_not_there_are_absent() {
    // The model has none of them.
    let clocks = Clocks::read(&mut Bench::new(Model::Skylake));
    assert_eq!(clocks, Clocks::default());
}

/// A session's own sources: something came while they were read, so they are read again.
#[test]
fn i10_what_the_kernel_took_or_switched_meanwhile_begins_the_read_again() {
    use crate::counting::job::Beside;
    let Machine { mut session, mut bench, .. } = machine(vec![]);
    let mut counts = Counts::new(session.set());
    // One comes before each of the first three looks: the sequence, the figures, the sequence again.
    bench.to_come = 3;
    let clocks = Clocks::default();
    let mut beside = Beside { session: &mut session, platform: &mut bench, switches: 5, clocks };
    let seen = take(&mut beside, &mut counts).unwrap();
    assert_eq!((seen.retries, seen.events.taken[14], seen.events.context_switches), (1, 3, 5));
    let before = beside.sequence();
    beside.switches += 1;
    assert_ne!(beside.sequence(), before, "a switch is something as well");
}
