use super::*;
use crate::counting::snapshot::{Clocks, Events, Snapshot, SnapshotError, Sources, VECTORS, take};
use arch::msr::{Absent, Msr};
use arch::pmu::Registers;
use raw_cpuid::CpuIdResult;

/// A machine on which something may come before each single figure. Every figure is the number of things that came.
struct Machine {
    came: u64,
    /// Before which of the reads to come something comes, and whether it is an SMI, which no handler sees.
    schedule: Vec<Option<bool>>,
    seen_by_kernel: u64,
    smi: u64,
    session: Session,
    bench: FakeMachine,
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
    fn smi_count(&mut self) -> Option<u64> {
        self.clocks().smi_count
    }
    fn events(&mut self, to: &mut Events) {
        self.step();
        to.taken = [self.seen_by_kernel; VECTORS];
        to.taken[200] = self.came;
        to.context_switches = self.came;
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
        let mut seen = Snapshot::EMPTY;
        take(&mut machine, &mut counts, &mut seen).unwrap();
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
    let taken = take(&mut machine, &mut counts, &mut { Snapshot::EMPTY });
    assert_eq!(taken, Err(SnapshotError::Unsettled));
}

#[test]
fn i10_registers_that_are_not_there_are_absent() {
    // The model has none of them.
    let clocks = Clocks::read(&mut FakeMachine::new(Model::Skylake));
    assert_eq!(clocks, Clocks::default());
}

/// A processor whose highest leaf of CPUID is `leaf` and whose leaf 6 has `ecx`; each register has ten times its number.
struct Answers {
    leaf: u32,
    ecx: u32,
}

impl Registers for Answers {
    fn cpuid(&self, leaf: u32, _: u32) -> CpuIdResult {
        match leaf {
            0 => CpuIdResult { eax: self.leaf, ebx: 0, ecx: 0, edx: 0 },
            _ => CpuIdResult { eax: 0, ebx: 0, ecx: self.ecx, edx: 0 },
        }
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        Ok(10 * u64::from(msr.0))
    }
    fn wrmsr(&mut self, _: Msr, _: u64) -> Result<(), Absent> {
        Err(Absent)
    }
    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}

/// APERF and MPERF are there if CPUID leaf 6, ECX bit 0, says so, whatever a hypervisor answers for their numbers.
#[test]
fn i10_aperf_and_mperf_are_read_where_cpuid_has_them() {
    for (leaf, ecx, there) in
        [(6, 1, true), (0x14, 9, true), (5, 1, false), (0x14, 0, false), (0x14, 8, false)]
    {
        let clocks = Clocks::read(&mut Answers { leaf, ecx });
        // MSR numbers e8, e7 and 34 (SDM vol. 4), tenfold.
        let expected = Clocks {
            aperf: there.then_some(10 * 0xe8),
            mperf: there.then_some(10 * 0xe7),
            smi_count: Some(10 * 0x34),
        };
        assert_eq!(clocks, expected, "leaf {leaf:#x}, ECX {ecx}");
        // Once more: what was there, and nothing else.
        assert_eq!(clocks.again(&mut Answers { leaf: 0, ecx: 0 }), expected);
        let only = Clocks { mperf: clocks.mperf, ..Clocks::default() };
        assert_eq!(only.again(&mut Answers { leaf: 0, ecx: 0 }), only);
    }
}

/// A session's own sources: the counts, the TSC and the registers as they are now.
#[test]
fn i10_a_sessions_own_figures_are_those_of_now() {
    use crate::counting::job::Beside;
    let Machine { mut session, mut bench, .. } = machine(vec![]);
    bench.clocks = true;
    let mut counts = Counts::new(session.set());
    bench.run(Ring::User, 300);
    let clocks = Clocks::read(&mut bench);
    bench.run(Ring::User, 50);
    let mut beside = Beside { session: &mut session, platform: &mut bench, switches: 0, clocks };
    let mut seen = Snapshot::EMPTY;
    take(&mut beside, &mut counts, &mut seen).unwrap();
    assert_eq!((seen.tsc, counts.counts()[0].raw), ([350, 350], 350));
    assert_eq!((seen.clocks.aperf, seen.clocks.mperf), (Some(700), Some(1_050)));
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
    let mut seen = Snapshot::EMPTY;
    take(&mut beside, &mut counts, &mut seen).unwrap();
    assert_eq!((seen.retries, seen.events.taken[14], seen.events.context_switches), (1, 3, 5));
    let before = beside.sequence();
    beside.switches += 1;
    assert_ne!(beside.sequence(), before, "a switch is something as well");
}
