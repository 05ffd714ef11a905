//! The emulated PMU on several processors.

use super::*;
use protocol::record::{ErrorCode, Metric};
use xtask::cli::Counting;
use xtask::machine::Given;
use xtask::machine::devices::default_memory;

pub(super) fn emulated(model: Model, cpus: Cpus, job: &str) -> Ran {
    emulated_by(Counting::Auto, model, cpus, job)
}

fn emulated_by(counting: Counting, model: Model, cpus: Cpus, job: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), cpus, counting, ..Guest::new(Boot::Direct, job) }.run()
}

/// Each processor has a copy of the emulated PMU: counts are exact on each, and so is the sum.
#[test]
fn i7_m13_the_emulated_pmu_counts_on_every_processor() {
    for model in [Model::Skylake, Model::Zen2] {
        let ran = emulated(model, Cpus::Many(4), JOB);
        at_work(&ran, 2.0);
        assert_eq!(ran.report.machine().unwrap().emulated_pmu.unwrap().processors, 4);
        let result = together(&ran);
        assert!(result.emulated && result.in_turn);
        assert_eq!((result.sums[0].value, result.sums[0].processors), (8.0, 4));
        for one in &result.processors {
            assert_eq!((one.pmu_absent.as_ref(), one.metrics[1].value.median), (None, 2.0));
            assert!(one.metrics[1].deterministic);
        }
    }
}

/// Without a copy for them the others have no PMU: their counts are missing, with the reason.
#[test]
fn i7_processors_that_the_emulated_pmu_does_not_reach_say_so() {
    let ran = emulated(Model::Skylake, Cpus::As("sockets=2,cores=2".to_string()), JOB);
    at_work(&ran, 2.0);
    assert_eq!(ran.report.machine().unwrap().emulated_pmu.unwrap().processors, 1);
    let result = together(&ran);
    assert_eq!((result.sums[0].value, result.sums[0].processors), (2.0, 1));
    assert_eq!(result.processors[0].pmu_absent, None);
    for one in &result.processors[1..] {
        let reason = one.pmu_absent.as_deref().unwrap();
        assert!(reason.contains("the emulated PMU does not reach"), "{reason}");
        assert_eq!(one.metrics.len(), 1);
    }
}

/// QEMU's HPET has timers for 22 processors. The others say so, and those 22 count. Hypervisors pass turns on beside what is
/// outside of all of them, so the TSC's ticks are more there.
#[test]
fn i7_m13_of_thirty_processors_all_are_used_and_22_have_the_emulated_pmu() {
    let job = JOB.to_string() + "runs = 2\n";
    let (cpus, memory) = (Cpus::Many(30), default_memory(30));
    let pmu = Given::Emulated(Model::Skylake);
    let timeout = Duration::from_secs(240);
    let ran = Guest { pmu, cpus, memory, timeout, ..Guest::new(Boot::Direct, &job) }.run();
    assert_eq!(at_work_of(&ran, 2.0, 22).len(), 30);
    assert_eq!(ran.report.machine().unwrap().emulated_pmu.unwrap().processors, 22);
    let result = together(&ran);
    assert_eq!((result.sums[0].value, result.sums[0].processors), (44.0, 22));
}

/// Each processor's own counter ends what runs on it, and the same boot goes on.
#[test]
fn x1_a_time_limit_ends_what_does_not_end_on_each_processor() {
    let job = r#"
[defaults]
unroll = 10
runs = 2
events = ["instructions"]
machine = { time-limit = 20 }
[[processors]]
name = "endless"
asm = "nop; 2: jmp 2b"
[[processors]]
name = "endless on the other"
cpu = 1
asm = "nop; nop; 2: jmp 2b"
[[processors]]
name = "behind"
asm = "nop; nop; nop"
"#;
    for model in [Model::Skylake, Model::Zen2] {
        let ran = emulated(model, Cpus::Many(2), job);
        ran.ends_with(1);
        let errors: Vec<_> = ran.errors().iter().map(|one| (one.code, one.text.clone())).collect();
        let text = |processor: u32, byte: u32| {
            let place = format!("at byte {byte} of the body, copy 0");
            format!(
                "on processor {processor}: the snippet ran into its time limit of 20 ms {place}"
            )
        };
        let limit = ErrorCode::TimeLimit;
        assert_eq!(errors, [(limit, text(0, 1)), (limit, text(1, 2))], "{model:?}");
        let behind = together(&ran);
        assert_eq!((behind.name.as_str(), behind.sums[0].value), ("behind", 6.0), "{model:?}");
    }
}

/// Work that is longer than QEMU lets one processor run: the clock that the emulated PMU counts by goes on with the others.
/// In turn, the counts are exact all the same, and repeated string instructions are counted once.
#[test]
fn i7_work_in_turn_is_exact_on_the_emulated_pmu() {
    let job = r#"
[[processors]]
name = "long"
asm = "add rax, rbx"
events = ["instructions"]
unroll = 1000
loop = 50000
runs = 2
warmup = 1
[[processors]]
name = "branches"
asm = "mov ecx, 10; 2: dec ecx; jnz 2b"
events = ["instructions", "branches"]
unroll = 5
[[processors]]
name = "strings"
asm = "mov ecx, 20; mov rdi, r14; rep stosb"
events = ["instructions"]
unroll = 5
"#;
    let ran = emulated(Model::Zen4, Cpus::Many(2), job);
    ran.ends_with(0);
    let found: Vec<&ProcessorsResult> = ran.report.processors().collect();
    let sums = |index: usize| found[index].sums.iter().map(|sum| sum.value).collect::<Vec<_>>();
    assert_eq!(sums(0), [2.0]);
    assert_eq!(sums(1), [42.0, 20.0]);
    assert_eq!(sums(2), [6.0]);
}

/// The plugin counts on each of several processors what stepping counts there: their guests run one at a time.
#[test]
fn i7_m13_by_the_plugin_each_of_three_processors_counts_what_it_counts_by_stepping() {
    const JOB: &str = r#"
[[processors]]
name = "everything"
asm = "mov ecx, 7; 2: mov rax, [r14]; mov [r14 + 64], rax; dec ecx; jnz 2b; call 3f; jmp 4f; 3: ret; 4:"
events = ["instructions", "branches", "branch-misses", "LOADS"]
unroll = 5
runs = 3
[[processors]]
name = "interrupted"
asm = "nop"
interrupt-every = 1000
"#;
    let loads = ["mem_inst_retired.all_loads", "ls_dispatch.ld_dispatch"];
    for (model, loads) in [Model::Skylake, Model::Zen4].into_iter().zip(loads) {
        let job = &JOB.replace("LOADS", loads);
        let counted = [Counting::Plugin, Counting::Stepping].map(|counting| {
            let ran = emulated_by(counting, model, Cpus::Many(3), job);
            ran.ends_with(0);
            let by_plugin = ran.report.machine().unwrap().emulated_pmu.unwrap().counted_by;
            let of = |result: &ProcessorsResult| {
                // The TSC is the machine's, which the hypervisor's work takes as well.
                let counts = |metrics: &[Metric]| {
                    let events = metrics.iter().filter(|metric| metric.event != "tsc");
                    events
                        .map(|metric| (metric.event.clone(), metric.series.clone()))
                        .collect::<Vec<_>>()
                };
                let each = result.processors.iter();
                each.map(|one| (counts(&one.metrics), one.interrupts)).collect::<Vec<_>>()
            };
            (by_plugin, ran.report.processors().map(of).collect::<Vec<_>>())
        });
        let [(plugin, one), (stepping, other)] = counted;
        assert_ne!(plugin, stepping, "{model:?}");
        assert_eq!(one.len(), 2);
        assert!(one[0].iter().all(|(counts, _)| counts.len() == 4), "{one:?}");
        assert_eq!(one, other, "{model:?}");
    }
}
