//! Counting against an oracle that lives one cycle at a time and adds with 128 bits.

mod common;

use common::{EDGE, EN, INV, OS, USR, arm, counter, global_status, pmu, read, width, write};
use pmu_model::{Delta, Model, Occurrence, Ring, Silence};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Cycles,
    Instructions,
    Branches,
    Missed,
}

impl Event {
    /// Event code and unit mask, as the selector has them.
    fn code(self, model: Model) -> u64 {
        let amd = matches!(model, Model::K10 | Model::Zen2 | Model::Zen4);
        match (self, amd) {
            (Self::Cycles, false) => 0x3C,
            (Self::Cycles, true) => 0x76,
            (Self::Instructions, _) => 0xC0,
            (Self::Branches, false) => 0xC4,
            (Self::Branches, true) => 0xC2,
            // C5/00 is not available on Nehalem (AAJ80).
            (Self::Missed, false) if model == Model::Nehalem => 0x7F89,
            (Self::Missed, false) => 0xC5,
            (Self::Missed, true) => 0xC3,
        }
    }
}

/// What one step of the guest is.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Instructions of which nothing else is known.
    Bulk(u64),
    /// A taken forward branch.
    Branch,
    /// A mispredicted one.
    Missed,
    /// A load from memory.
    SlowLoad,
    /// An instruction with two branches' worth of occurrences, which no processor has, to try
    /// CMASK.
    Double,
}

/// A cycle as the oracle sees it.
#[derive(Clone, Copy, Default)]
struct Cycle {
    retired: u64,
    branches: u64,
    missed: u64,
}

/// The cycles of a step: each instruction retires in one, and waits in those after it.
fn cycles(step: Step) -> Vec<Cycle> {
    let one = |branches, missed| Cycle { retired: 1, branches, missed };
    let stall = |cycles| vec![Cycle::default(); cycles];
    match step {
        Step::Bulk(instructions) => vec![one(0, 0); instructions as usize],
        Step::Branch => vec![one(1, 0)],
        Step::Missed => [vec![one(1, 1)], stall(16)].concat(),
        Step::SlowLoad => [vec![one(0, 0)], stall(200)].concat(),
        Step::Double => vec![one(2, 0)],
    }
}

fn delta(step: Step, ring: Ring) -> Delta {
    match step {
        Step::Bulk(instructions) => Delta::bulk(ring, instructions),
        Step::Branch => Delta::step(ring).with(Occurrence::JccTakenForward, 1),
        Step::Missed => Delta::step(ring).with(Occurrence::MissedJccNotTaken, 1),
        Step::SlowLoad => {
            Delta::step(ring).with(Occurrence::Load, 1).with(Occurrence::LoadLlcMiss, 1)
        }
        Step::Double => Delta::step(ring).with(Occurrence::FarBranch, 2),
    }
}

#[derive(Clone, Copy, Debug)]
struct Program {
    event: Event,
    user: bool,
    kernel: bool,
    cmask: u64,
    invert: bool,
    edge: bool,
    /// Events until the counter wraps.
    left: u64,
}

/// A counter of the oracle.
struct Oracle {
    program: Program,
    count: u128,
    width: u32,
    above: bool,
    wraps: u128,
}

impl Oracle {
    fn new(program: Program, width: u32) -> Self {
        Self {
            program,
            count: (1 << width) - u128::from(program.left),
            width,
            above: false,
            wraps: 0,
        }
    }

    fn cycle(&mut self, cycle: Cycle, ring: Ring) {
        let program = &self.program;
        let here = match ring {
            Ring::User => program.user,
            Ring::Kernel => program.kernel,
        };
        if !here {
            self.above = false;
            return;
        }
        let value = match program.event {
            Event::Cycles => 1,
            Event::Instructions => cycle.retired,
            Event::Branches => cycle.branches,
            Event::Missed => cycle.missed,
        };
        if program.cmask == 0 && !program.edge {
            self.count += u128::from(value);
            return;
        }
        let met = (value >= program.cmask.max(1)) != program.invert;
        if met && !(program.edge && self.above) {
            self.count += 1;
        }
        self.above = met;
    }

    /// The count as the register shows it, and whether it wrapped since the last time.
    fn show(&mut self) -> (u64, bool) {
        let wraps = self.count >> self.width;
        let wrapped = wraps != self.wraps;
        self.wraps = wraps;
        ((self.count & ((1 << self.width) - 1)) as u64, wrapped)
    }
}

fn programs() -> impl Strategy<Value = Program> {
    (
        prop::sample::select(vec![
            Event::Cycles,
            Event::Instructions,
            Event::Branches,
            Event::Missed,
        ]),
        prop::sample::select(vec![(true, true), (true, false), (false, true), (false, false)]),
        0u64..4,
        any::<bool>(),
        any::<bool>(),
        1u64..600,
    )
        .prop_map(|(event, (user, kernel), cmask, invert, edge, left)| Program {
            event,
            user,
            kernel,
            cmask,
            invert,
            edge,
            left,
        })
}

fn steps() -> impl Strategy<Value = Vec<(Step, Ring)>> {
    let step = prop_oneof![
        (0u64..60).prop_map(Step::Bulk),
        Just(Step::Branch),
        Just(Step::Missed),
        Just(Step::SlowLoad),
        Just(Step::Double),
    ];
    let ring = prop_oneof![Just(Ring::User), Just(Ring::Kernel)];
    prop::collection::vec((step, ring), 1..40)
}

proptest! {
    // 256, the default, once missed a report of no instructions that reset the edge detector.
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn counters_agree_with_the_oracle(
        model in prop::sample::select(common::with_counters().collect::<Vec<_>>()),
        programs in prop::collection::vec(programs(), 2..=2),
        steps in steps(),
    ) {
        let mut pmu = pmu(model);
        let mut oracles = Vec::new();
        for (n, program) in programs.iter().enumerate() {
            let selector = program.event.code(model)
                | if program.user { USR } else { 0 }
                | if program.kernel { OS } else { 0 }
                | if program.edge { EDGE } else { 0 }
                | if program.invert { INV } else { 0 }
                | program.cmask << 24
                | EN;
            write(&mut pmu, counter(model, n as u32).selector, selector);
            arm(&mut pmu, model, n as u32, program.left);
            oracles.push(Oracle::new(*program, width(model)));
        }
        prop_assert!(pmu.unknown_events().all(|one| matches!(one.why, Silence::Never | Silence::Alone)));
        let mut latched = 0;
        for (step, ring) in steps {
            let outcome = pmu.advance(&delta(step, ring));
            for cycle in cycles(step) {
                oracles.iter_mut().for_each(|oracle| oracle.cycle(cycle, ring));
            }
            for (n, oracle) in oracles.iter_mut().enumerate() {
                let (count, wrapped) = oracle.show();
                let msr = counter(model, n as u32).counter;
                prop_assert_eq!(read(&mut pmu, msr), count, "{:?} counter {} after {:?}", model, n, step);
                prop_assert_eq!(outcome.overflowed >> n & 1 == 1, wrapped);
                latched |= u64::from(wrapped) << n;
            }
            prop_assert!(!outcome.pmi, "INT is clear everywhere");
            if let Some((status, _)) = global_status(model) {
                prop_assert_eq!(read(&mut pmu, status), latched);
            }
        }
    }

    /// Where it says so, a report would have changed nothing else; and it does not say so where a counter would have counted.
    #[test]
    fn instructions_that_nothing_counts_need_no_report(
        model in prop::sample::select(common::with_counters().collect::<Vec<_>>()),
        programs in prop::collection::vec(programs(), 2..=2),
        steps in prop::collection::vec((0u64..6, any::<bool>(), 1u64..50), 1..40),
    ) {
        let mut machines = [pmu(model), pmu(model)];
        // The global control stands after the status (SDM vol. 4; AMD's manual, vol. 2, 13.2.1). It ends no condition by itself.
        let global = global_status(model).map(|(status, _)| status + 1);
        let switch = |machines: &mut [pmu_model::Pmu; 2], n: u64, on: bool| {
            let program = &programs[n as usize];
            let selector = program.event.code(model)
                | if program.user { USR } else { 0 }
                | if program.kernel { OS } else { 0 }
                | if program.edge { EDGE } else { 0 }
                | if program.invert { INV } else { 0 }
                | program.cmask << 24
                | if on { EN } else { 0 };
            for one in machines {
                write(one, counter(model, n as u32).selector, selector);
            }
        };
        for (what, on, instructions) in steps {
            match global.filter(|_| what == 2) {
                _ if what < 2 => switch(&mut machines, what, on),
                Some(global) => {
                    for one in &mut machines {
                        write(one, global, if on { 3 } else { 0 });
                    }
                }
                None => {}
            }
            let ring = if on { Ring::User } else { Ring::Kernel };
            let [reported, other] = &mut machines;
            let bulk = Delta::bulk(ring, instructions);
            reported.advance(&bulk);
            if !other.pass_unseen() {
                other.advance(&bulk);
            }
            prop_assert_eq!(format!("{:?}", reported), format!("{:?}", other));
        }
    }

    /// A bulk delta is the same as its instructions one by one, and as any two parts of it.
    #[test]
    fn a_bulk_delta_can_be_cut_anywhere(
        model in prop::sample::select(common::with_counters().collect::<Vec<_>>()),
        programs in prop::collection::vec(programs(), 2..=2),
        instructions in 0u64..2000,
        cut in 0u64..2000,
    ) {
        let cut = cut.min(instructions);
        let mut machines = [pmu(model), pmu(model)];
        for machine in &mut machines {
            for (n, program) in programs.iter().enumerate() {
                let code = if program.event == Event::Missed { 0xC0 } else { program.event.code(model) };
                let selector = code | program.cmask << 24 | EN | USR | if program.edge { EDGE } else { 0 };
                write(machine, counter(model, n as u32).selector, selector);
                arm(machine, model, n as u32, program.left);
            }
        }
        machines[0].advance(&common::user(instructions));
        machines[1].advance(&common::user(cut));
        machines[1].advance(&common::user(instructions - cut));
        for n in 0..2 {
            let msr = counter(model, n).counter;
            let (whole, parts) = (read(&mut machines[0], msr), read(&mut machines[1], msr));
            prop_assert_eq!(whole, parts, "{:?} counter {}", model, n);
        }
    }
}
