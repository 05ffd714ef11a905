//! A job: what the firmware is asked to do, in the form in which it decodes it.
//!
//! Text and code borrow from the ramdisk, so that ten thousand snippets cost the firmware one vector.

use crate::bits::Bits;
use crate::program::Call;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

pub use crate::control::Control;
pub use crate::core_kind::CoreKind;
pub use crate::count::Count;
pub use crate::criteria::{Bounds, Criteria, Expect};
pub use crate::exact::{Exact, Filter};
pub use crate::facts::Facts;
pub use crate::history::History;
pub use crate::kinds::Item;
pub use crate::memory::Memory;
pub use crate::requirement::Requirement;
pub use crate::sampling::Sampling;
pub use crate::workload::Tasks;

/// Everything that one boot does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Job<'a> {
    /// Shown in the report and on the screen.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Rate of the serial line, in bits per second; 8 data bits, no parity, 1 stop bit.
    pub baud: u32,
    /// What the machine does when the report is out.
    pub on_end: OnEnd,
    /// I/O port of QEMU's isa-debug-exit device, if the host attached one: written before [`Job::on_end`].
    pub exit_port: Option<u16>,
    /// For tests of barecount itself: break the firmware on purpose at the start of the run.
    pub self_test: Option<SelfTest>,
    /// What the processor has to have for some of the items.
    #[serde(borrow)]
    pub requires: Vec<Requirement<'a>>,
    /// The work, in order.
    #[serde(borrow)]
    pub items: Vec<Item<'a>>,
    /// What each item has to come to, in the same order. Items beyond its end have the default.
    #[serde(borrow)]
    pub criteria: Vec<Criteria<'a>>,
    /// Memory that items have besides what each item has.
    #[serde(borrow)]
    pub memory: Vec<Memory<'a>>,
}

impl<'a> Job<'a> {
    /// What the item of that index has to come to.
    #[must_use]
    pub fn criteria(&self, index: usize) -> &Criteria<'a> {
        const NONE: &Criteria = &Criteria { expect: Vec::new(), allow_uncounted: false };
        self.criteria.get(index).unwrap_or(NONE)
    }

    /// The memory that the item of that index asks for, in the order in which it does.
    pub fn memory_of(&self, index: u32) -> impl Iterator<Item = &Memory<'a>> {
        self.memory.iter().filter(move |memory| memory.is_of(index))
    }
}

/// What the machine does after the end record.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnEnd {
    /// Stand still with the last screen.
    #[default]
    Halt,
    /// Reset the machine.
    Reboot,
    /// Switch it off through ACPI.
    PowerOff,
}

/// Ways to break the firmware on purpose, so that tests see what it then reports.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SelfTest {
    /// A Rust panic.
    Panic,
    /// A read through an address that nothing is mapped at.
    PageFault,
    /// Recursion into the guard page below the stack.
    StackOverflow,
    /// A write to the firmware's own code.
    WriteCode,
    /// A jump into the firmware's data.
    ExecuteData,
    /// A loop without end, interrupts off.
    Hang,
    /// A panic before it is known what the machine has.
    EarlyPanic,
}

/// Machine code that runs on every processor at the same time, or on one of them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Processors<'a> {
    /// The code, and how it is measured.
    #[serde(borrow)]
    pub snippet: Snippet<'a>,
    /// The processor that it runs on, by its number; `None`: all.
    pub cpu: Option<u16>,
    /// The kind of core that it runs on, among whose processors `cpu` is then counted; `None`: each kind, one after the other.
    pub core: Option<CoreKind>,
    /// Afterwards, a loop of barecount's own on each of them with an interrupt at every so many instructions.
    pub interrupt_every: Option<u64>,
    /// Afterwards, so many rounds in which all of them do the same at once.
    pub contention: Option<u32>,
}

/// A run of the conformance suite.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Conformance<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Which checks: names, or their beginnings followed by `*`. Empty: all.
    #[serde(borrow)]
    pub checks: Vec<Cow<'a, str>>,
}

impl Conformance<'_> {
    /// Whether the check of that name is asked for.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        let matches = |pattern: &Cow<str>| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => *pattern == name,
        };
        self.checks.is_empty() || self.checks.iter().any(matches)
    }
}

/// Machine code to measure, and how.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Snippet<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// Runs once before each measured run, outside the measurement.
    #[serde(borrow)]
    pub init: Cow<'a, [u8]>,
    /// The measured code. It is copied [`Snippet::unroll`] times, so it has to be position independent.
    #[serde(borrow)]
    pub body: Cow<'a, [u8]>,
    /// Copies of the body in a row.
    pub unroll: u32,
    /// Iterations of a loop around the copies; 0: no loop.
    pub loop_count: u64,
    /// Where the loop keeps its count.
    pub loop_counter: LoopCounter,
    /// Whether the code may touch x87, MMX, SSE, AVX or other extended state, which then is put into its
    /// initial configuration before each run.
    pub extended_state: bool,
    /// Runs before measuring.
    pub warmup: u32,
    /// Measured runs.
    pub runs: u32,
    /// Which two code sizes are subtracted from each other.
    pub difference: Difference,
    /// Whether the report lists the value of every run.
    pub values: bool,
    /// What to count besides the TSC: events, or groups in braces, in the syntax of the crate `events`.
    #[serde(borrow)]
    pub events: Vec<Cow<'a, str>>,
    /// What else stands around the body.
    #[serde(borrow)]
    pub setup: Setup<'a>,
}

/// What stands around the body of a snippet besides its init code. The default is nothing of it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Setup<'a> {
    /// Runs once, before everything else. Registers start anew afterwards; memory stays as it leaves it.
    #[serde(borrow)]
    pub one_time_init: Cow<'a, [u8]>,
    /// Runs in each run immediately before the body, while the counters count. Both code sizes have it, so it
    /// cancels.
    #[serde(borrow)]
    pub late_init: Cow<'a, [u8]>,
    /// Runs before the first warm-up, of the smaller code size.
    pub initial_warmup: u32,
    /// Bytes from a multiple of 64 to the start of the body.
    pub alignment_offset: u8,
    /// Nothing touches memory from the end of the init code to the end of the body but they themselves. The TSC is
    /// kept in R12 and R13, which late init and body leave alone; R9 to R13 do not bring a value from the init code.
    pub no_memory: bool,
    /// The front end is drained before the body: LFENCE, then [`DRAIN_NOPS`] one-byte NOPs.
    pub drain_frontend: bool,
    /// What is asked of the machine.
    #[serde(borrow)]
    pub control: Control<'a>,
    /// What the code of all parts is. In 32-bit code EBX stands for R14, and a loop counts in memory.
    pub bits: Bits,
    /// A function that is called in place of the body, which is empty then.
    #[serde(borrow)]
    pub call: Option<Call<'a>>,
    /// Of which instructions the events are counted.
    #[serde(borrow)]
    pub only: Filter<'a>,
}

/// NOPs that drain the front end: more than its queues are thought to hold (not measured), and four lines of 64 bytes, so
/// that they keep the alignment.
pub const DRAIN_NOPS: usize = 256;

/// Where the loop around the copies keeps its count.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum LoopCounter {
    /// In R15: `dec r15; jnz`. The host chooses it when body and init leave R15 alone.
    #[default]
    R15,
    /// In memory, so that a snippet may use every register: `dec qword ptr [rip + x]; jnz`.
    Memory,
}

/// The overhead of measuring is cancelled by subtracting two runs that differ only in their copies.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// `unroll` copies against twice as many. Edge effects at both ends of the body cancel as well.
    #[default]
    Double,
    /// No copy against `unroll`.
    Empty,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::control::{Caches, Interrupts, MemoryType, PageSize, ReadMsr, Ring};
    use crate::count::{AtOverflow, Bind, CountRequest, CountSet, Schedule, When};
    use crate::criteria::tests::any_criteria;
    use crate::exact::tests::any_range;
    use crate::gate::{GateAct, GateAt, GateOn, GatePoint};
    use crate::memory::tests::any_memory;
    use crate::sampling::tests::any_sampling;
    use crate::workload::tests::{any_tasks, any_workload};
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
            energy in prop::collection::vec(".{0,20}", 0..3), schedule in any_schedule(),
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
}
