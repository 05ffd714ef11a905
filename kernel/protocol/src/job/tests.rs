//! Any job comes back as it went.

use super::*;
use crate::bits::Bits;
use crate::job::control::{Caches, Interrupts, MemoryType, PageSize, ReadMsr, Ring};
use crate::job::count::{AtOverflow, Bind, CountRequest, CountSet, Schedule, When};
use crate::job::criteria::tests::any_criteria;
use crate::job::exact::tests::any_range;
use crate::job::gate::{GateAct, GateAt, GateOn, GatePoint};
use crate::job::memory::tests::any_memory;
use crate::job::sampling::tests::any_sampling;
use crate::job::workload::tests::{any_tasks, any_workload};
use crate::program::Call;
use alloc::string::String;
use proptest::prelude::*;

pub fn snippet(name: &str, body: &[u8]) -> Snippet<'static> {
    Snippet {
        name: Cow::Owned(name.into()),
        init: Cow::Borrowed(&[]),
        body: Cow::Owned(body.into()),
        unroll: 100,
        loop_count: 0,
        loop_counter: LoopCounter::R15,
        extended_state: false,
        warmup: 5,
        runs: 10,
        difference: Difference::Double,
        values: false,
        events: Vec::new(),
        setup: Setup::default(),
    }
}

#[test]
fn a_filter_takes_names_and_beginnings() {
    let suite = |checks: &[&'static str]| Conformance {
        name: Cow::Borrowed("x"),
        checks: checks.iter().map(|&check| Cow::Borrowed(check)).collect(),
    };
    assert!(suite(&[]).wants("overflow.exact"));
    assert!(suite(&["pmi.count", "overflow.*"]).wants("overflow.exact"));
    assert!(!suite(&["overflow"]).wants("overflow.exact"));
}

prop_compose! {
    fn any_control()(
        time_limit_ms: u32, apic: bool, prefetchers_off: bool, turbo_off: bool, frequency_mhz: u32, cold: bool,
        flush_tlb: bool, giant: bool, combining: bool, user: bool, smi_repeats: u32,
        msrs in prop::collection::vec((".{0,10}", any::<u32>()), 0..12),
    ) -> Control<'static> {
        let msrs = msrs.into_iter().map(|(name, number)| ReadMsr { name: Cow::Owned(name), number });
        Control {
            time_limit_ms, prefetchers_off, turbo_off, frequency_mhz, flush_tlb, smi_repeats,
            interrupts: if apic { Interrupts::Apic } else { Interrupts::Cli },
            caches: if cold { Caches::ColdByWbinvd } else { Caches::Warm },
            page_size: if giant { PageSize::Giant } else { PageSize::Small },
            memory_type: if combining { MemoryType::WriteCombining } else { MemoryType::WriteBack },
            ring: if user { Ring::User } else { Ring::Kernel },
            msrs: msrs.collect(),
        }
    }
}

prop_compose! {
    fn any_call()(
        call in prop::option::of((any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..9))),
    ) -> Option<Call<'static>> {
        call.map(|(program, function, teardown)| Call { program, function, teardown: Cow::Owned(teardown) })
    }
}

prop_compose! {
    fn any_setup()(
        once in prop::collection::vec(any::<u8>(), 0..50), late in prop::collection::vec(any::<u8>(), 0..50),
        initial_warmup: u32, alignment_offset: u8, no_memory: bool, drain_frontend: bool, control in any_control(),
        compatibility: bool, call in any_call(),
    ) -> Setup<'static> {
        let (one_time_init, late_init) = (Cow::Owned(once), Cow::Owned(late));
        let bits = if compatibility { Bits::Compatibility } else { Bits::SixtyFour };
        Setup { one_time_init, late_init, initial_warmup, alignment_offset, no_memory, drain_frontend, control, bits, call, only: Filter::default() }
    }
}

prop_compose! {
    fn any_snippet()(
        name in ".{0,40}", body in prop::collection::vec(any::<u8>(), 0..200),
        init in prop::collection::vec(any::<u8>(), 0..50), unroll: u32, loop_count: u64, warmup: u32,
        runs: u32, values: bool, memory: bool, empty: bool,
        events in prop::collection::vec(".{0,20}", 0..40), setup in any_setup(),
    ) -> Item<'static> {
        Item::Snippet(Snippet {
            init: Cow::Owned(init), unroll, loop_count, warmup, runs, values,
            loop_counter: if memory { LoopCounter::Memory } else { LoopCounter::R15 },
            difference: if empty { Difference::Empty } else { Difference::Double },
            events: events.into_iter().map(Cow::Owned).collect(),
            setup,
            ..snippet(&name, &body)
        })
    }
}

prop_compose! {
    fn any_suite()(name in ".{0,40}", checks in prop::collection::vec(".{0,20}", 0..5)) -> Item<'static> {
        let checks = checks.into_iter().map(Cow::Owned).collect();
        Item::Conformance(Conformance { name: Cow::Owned(name), checks })
    }
}

prop_compose! {
    fn any_exact()(
        item in any_snippet(), opcodes in prop::collection::vec(".{0,10}", 0..4), verify: bool,
        instructions in prop::option::of(any_range()), data in prop::option::of(any_range()), compatibility: Option<bool>,
        steps: u64,
    ) -> Item<'static> {
        let Item::Snippet(snippet) = item else { unreachable!("any_snippet makes snippets") };
        let opcodes = opcodes.into_iter().map(Cow::Owned).collect();
        let bits = compatibility.map(|compatibility| if compatibility { Bits::Compatibility } else { Bits::SixtyFour });
        Item::Exact(Exact { snippet, filter: Filter { opcodes, instructions, data, bits }, verify, steps })
    }
}

fn any_bind() -> impl Strategy<Value = Bind> {
    prop_oneof![
        Just(Bind::System),
        Just(Bind::AllProcessors),
        any::<u16>().prop_map(Bind::Processor),
        any::<u16>().prop_map(|number| Bind::Core(CoreKind::Efficient, number)),
        prop::collection::vec(any::<u16>(), 0..4).prop_map(Bind::Tasks),
    ]
}

fn any_schedule() -> impl Strategy<Value = Schedule> {
    let when = || {
        prop::option::of(prop_oneof![
            any::<u64>().prop_map(When::Microseconds),
            any::<u32>().prop_map(When::Marker),
        ])
    };
    (when(), when(), any::<bool>()).prop_map(|(at, until, wait)| Schedule { at, until, wait })
}

prop_compose! {
    fn any_count()(
        name in ".{0,40}", events in prop::collection::vec(".{0,20}", 0..9), every: Option<u64>, preset: u64,
        starts in prop::collection::vec(0u16..9, 0..3), workload in any_workload(),
        gate in prop::collection::vec((any::<u16>(), any::<u64>(), any::<bool>(), any::<u8>()), 0..5),
        together: bool, passes: u64, interval_ns: u64, limit_us: u64, bind in any_bind(),
        energy in prop::collection::vec(".{0,20}", 0..3), uncore in prop::collection::vec(".{0,20}", 0..3), schedule in any_schedule(),
    ) -> Item<'static> {
        let request = |event| CountRequest {
            event: Cow::Owned(event), preset, every, starts: starts.clone(), correlate: together,
        };
        let requests: Vec<_> = events.into_iter().map(request).collect();
        let set = CountSet {
            name: Cow::Owned(name.clone()), requests: requests.clone(), together, bind: bind.clone(), force: !together,
            alone: together, schedule,
        };
        let gate = gate.into_iter().map(|(task, offset, starts, kind)| GatePoint {
            task, act: if starts { GateAct::Start } else { GateAct::Stop },
            at: if kind & 1 == 0 { GateAt::Code(offset) } else { GateAt::Register(kind, offset as i32) },
            on: [GateOn::Execute, GateOn::Write(kind), GateOn::Access(kind)][usize::from(kind) % 3],
        });
        Item::Count(Count {
            name: Cow::Owned(name), requests, together, bind, sets: alloc::vec![set; passes as usize % 3],
            at_overflow: AtOverflow::Next, passes, interval_ns, limit_us, workload, alone: !together,
            gate: gate.collect(), nested: together, console: !together, energy: energy.into_iter().map(Cow::Owned).collect(),
            uncore: uncore.into_iter().map(Cow::Owned).collect(),
        })
    }
}

prop_compose! {
    fn any_processors()(
        item in any_snippet(), cpu: Option<u16>, interrupt_every: Option<u64>, contention: Option<u32>,
    ) -> Item<'static> {
        let Item::Snippet(snippet) = item else { unreachable!("any_snippet makes snippets") };
        let core = cpu.filter(|cpu| cpu % 2 == 1).map(|_| CoreKind::LowPower);
        Item::Processors(Processors { snippet, cpu, core, interrupt_every, contention })
    }
}

prop_compose! {
    fn any_history()(
        item in any_snippet(), clock in ".{0,20}", cycles: u32, step: u32, end_to_end: bool,
    ) -> Item<'static> {
        let Item::Snippet(snippet) = item else { unreachable!("any_snippet makes snippets") };
        Item::History(History { snippet, clock: Cow::Owned(clock), cycles, step, end_to_end })
    }
}

prop_compose! {
    fn any_requirement()(
        feature in ".{0,10}", leaf: u32, subleaf: u32, register: u8, bit: u8,
        items in prop::collection::vec(any::<u32>(), 0..4),
    ) -> Requirement<'static> {
        Requirement { feature: Cow::Owned(feature), leaf, subleaf, register, bit, items }
    }
}

prop_compose! {
    pub fn any_job()(
        name: String, baud: u32, exit_port: Option<u16>,
        requires in prop::collection::vec(any_requirement(), 0..3),
        items in prop::collection::vec(
            prop_oneof![
                any_snippet(), any_suite(), any_exact(), any_count(), any_processors(), any_history(),
                any_tasks().prop_map(Item::Tasks), any_sampling().prop_map(Item::Sample),
            ],
            0..8,
        ),
        criteria in prop::collection::vec(any_criteria(), 0..8),
        memory in prop::collection::vec(any_memory(), 0..3),
    ) -> Job<'static> {
        let name = Cow::Owned(name);
        Job { name, baud, on_end: OnEnd::Reboot, exit_port, self_test: None, requires, items, criteria, memory }
    }
}
