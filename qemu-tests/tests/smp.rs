//! The other processors: started on every kind of machine, at work together, and read at one instant.

use pmu_model::Model;
use protocol::record::{
    ApicMode, ContentionRounds, ListedProcessor, Metric, ProcessorState, ProcessorsResult,
};
use qemu_tests::{Guest, Ran};
use std::time::Duration;
use xtask::cli::{Boot, Counting, Icount};
use xtask::machine::Given;
use xtask::machine::devices::{Cpus, default_memory};

const JOB: &str = r#"
allow-uncounted = true
[[snippet]]
name = "alone"
asm = "add rax, rbx"
[[processors]]
name = "together"
init = "mov rcx, 5"
asm = "inc qword ptr [r14]; imul rcx, rcx"
events = ["instructions"]
unroll = 50
"#;

fn guest(boot: Boot, cpus: u32) -> Guest {
    Guest { cpus: Cpus::Many(cpus), ..Guest::new(boot, JOB) }
}

/// The processors of the machine record: the boot processor first, and all others started. One has a reason there if the
/// emulated PMU does not reach it.
fn ids(ran: &Ran) -> Vec<u32> {
    let machine = ran.report.machine().unwrap();
    let list = &machine.processors;
    let reached = machine.emulated_pmu.as_ref().map_or(list.len(), |pmu| pmu.processors as usize);
    assert_eq!(list[0].state, ProcessorState::Boot);
    for (index, one) in list.iter().enumerate().skip(1) {
        assert_eq!(one.state, ProcessorState::Started, "{list:?}");
        let reason = format!("the emulated PMU reaches {reached} of the processors");
        assert_eq!(one.reason, (index >= reached).then_some(reason), "{list:?}");
    }
    list.iter().map(|one| one.apic_id).collect()
}

fn together(ran: &Ran) -> &ProcessorsResult {
    ran.report.processors().next().expect("an item for all processors")
}

/// Every processor took part, with its own memory: one of them alone costs as much. Returns the APIC ids.
fn at_work(ran: &Ran, ticks: f64) -> Vec<u32> {
    at_work_of(ran, ticks, usize::MAX)
}

/// The same where so many processors alone are undisturbed by the others.
fn at_work_of(ran: &Ran, ticks: f64, undisturbed: usize) -> Vec<u32> {
    ran.ends_with(0);
    let ids = ids(ran);
    let result = together(ran);
    let worked: Vec<u32> = result.processors.iter().map(|one| one.apic_id).collect();
    assert_eq!(worked, ids);
    for one in &result.processors {
        let median = one.metrics[0].value.median;
        // What disturbs comes into short or long runs, so the difference is mostly greater, and may be a little less.
        let disturbed = one.processor as usize >= undisturbed && median > 0.9 * ticks;
        assert!(disturbed || median == ticks, "processor {}: {median}", one.processor);
    }
    // The others are halted while the boot processor measures.
    assert_eq!(ran.results()[0].metrics[0].value.median, ticks / 2.0);
    assert!(ran.results()[0].metrics[0].deterministic);
    ids
}

/// The snapshot's skew is what the processors' own times make, and none of them read too early.
fn snapshot(ran: &Ran) -> u64 {
    let result = together(ran);
    let times: Vec<u64> = result.processors.iter().map(|one| one.snapshot_tsc).collect();
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert_eq!(result.snapshot.skew, last - first);
    let slack = result.processors.iter().map(|one| one.tsc_offset_error).max().unwrap();
    assert!(first + slack >= result.snapshot.deadline, "{times:?}");
    result.snapshot.skew
}

#[test]
fn i7_one_processor_is_a_crew_of_one() {
    let ran = guest(Boot::Direct, 1).run();
    assert_eq!(at_work(&ran, 2.0), [0]);
    assert_eq!(snapshot(&ran), 0);
    assert_eq!(together(&ran).start_skew.max, 0);
}

#[test]
fn i7_m10_two_and_four_processors_work_together() {
    for count in [2, 4] {
        let ran = guest(Boot::Direct, count).run();
        assert_eq!(at_work(&ran, 2.0), (0..count).collect::<Vec<_>>());
        let result = together(&ran);
        // Without a PMU: time alone, and why.
        assert!(result.uncounted[0].reason.contains("there is no PMU"), "{:?}", result.uncounted);
        assert!(
            result.sums.is_empty() && result.processors.iter().all(|one| one.snapshot.is_empty())
        );
        // QEMU lets one processor run after the other, so nothing is at the same tick.
        let skew = snapshot(&ran);
        assert!(skew > 0 && skew < 100_000, "{skew}");
        assert!(result.start_skew.min > 0);
        // They share the clock that counts instructions.
        for one in &result.processors {
            assert!(one.tsc_offset.unsigned_abs() <= one.tsc_offset_error, "{one:?}");
        }
    }
}

/// Three cores a socket need two bits, so that APIC id 3 is nobody's.
#[test]
fn i7_a_hole_in_the_apic_ids_is_no_processor() {
    let cpus = Cpus::As("6,sockets=2,cores=3,threads=1".to_string());
    let ran = Guest { cpus, ..guest(Boot::Direct, 1) }.run();
    assert_eq!(at_work(&ran, 2.0), [0, 1, 2, 4, 5, 6]);
    let numbers: Vec<u32> = together(&ran).processors.iter().map(|one| one.processor).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
}

/// A place for a processor that can be plugged in later.
#[test]
fn i7_a_processor_that_the_firmware_left_off_is_named_with_the_reason() {
    let cpus = Cpus::As("2,maxcpus=3".to_string());
    let ran = Guest { cpus, ..guest(Boot::Direct, 1) }.run();
    ran.ends_with(0);
    let list = &ran.report.machine().unwrap().processors;
    let states: Vec<_> = list.iter().map(|one| (one.apic_id, one.state)).collect();
    let (boot, started, off) = (ProcessorState::Boot, ProcessorState::Started, ProcessorState::Off);
    assert_eq!(states, [(0, boot), (1, started), (2, off)]);
    let ListedProcessor { reason, .. } = &list[2];
    assert!(reason.as_ref().unwrap().contains("did not enable"), "{reason:?}");
    assert_eq!(together(&ran).processors.len(), 2);
}

/// With icount off, because QEMU's icount and x2APIC do not go together; the ticks are then the host's.
#[test]
fn i7_x2apic_and_xapic_start_them_alike() {
    for (cpu, mode) in [("max", ApicMode::X2Apic), ("max,-x2apic", ApicMode::XApic)] {
        let cpu = Some(cpu.to_string());
        let ran = Guest { cpu, icount: Icount::Off, ..guest(Boot::Direct, 4) }.run();
        ran.ends_with(0);
        assert_eq!(ran.report.machine().unwrap().apic.mode, mode);
        assert_eq!(ids(&ran), [0, 1, 2, 3]);
        assert_eq!(together(&ran).processors.len(), 4);
        snapshot(&ran);
    }
}

#[test]
fn i7_under_bios() {
    assert_eq!(at_work(&guest(Boot::Bios, 4).run(), 2.0), [0, 1, 2, 3]);
}

#[test]
fn i7_under_uefi() {
    assert_eq!(at_work(&guest(Boot::Uefi, 4).run(), 128.0), [0, 1, 2, 3]);
}

#[test]
fn i7_one_processor_can_be_chosen_and_a_missing_one_is_refused() {
    let job = r#"
[[processors]]
name = "second"
asm = "imul rax, rax"
cpu = 1
[[processors]]
name = "none"
asm = "imul rax, rax"
cpu = 5
"#;
    let ran = Guest { cpus: Cpus::Many(2), ..Guest::new(Boot::Direct, job) }.run();
    ran.ends_with(1);
    let result = together(&ran);
    assert_eq!(result.processors.len(), 1);
    assert_eq!((result.processors[0].processor, result.processors[0].apic_id), (1, 1));
    assert_eq!(result.processors[0].metrics[0].value.median, 1.0);
    assert!(ran.errors()[0].text.contains("no processor 5"), "{:?}", ran.errors());
}

/// An exception on another processor, also one without stack, segments and a valid GS: the item fails, names the processor,
/// and the next one finds that processor as it was.
#[test]
fn i7_m13_a_fault_on_another_processor_is_its_own() {
    let job = r#"
[[processors]]
name = "undefined"
asm = "ud2"
cpu = 3
[[processors]]
name = "lost"
init = "xor esp, esp; mov ds, esp; mov gs, esp; mov ecx, 0xc0000101; mov edx, 0x1234; wrmsr"
asm = "ud2"
cpu = 2
[[processors]]
name = "after"
asm = "imul rax, rax"
"#;
    let ran = Guest { cpus: Cpus::Many(4), ..Guest::new(Boot::Direct, job) };
    let ran = Guest { timeout: Duration::from_secs(60), ..ran }.run();
    let errors: Vec<_> = ran.errors().iter().map(|error| error.text.clone()).collect();
    assert!(errors[0].starts_with("on processor 3: the snippet raised #UD"), "{errors:?}");
    assert!(errors[1].starts_with("on processor 2: the snippet raised"), "{errors:?}");
    let after = together(&ran);
    assert!(after.processors.iter().all(|one| one.metrics[0].value.median == 1.0), "{after:?}");
    ran.ends_with(1);
}

fn emulated(model: Model, cpus: Cpus, job: &str) -> Ran {
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

/// The boot processor's snippets come first: without the memory for their stacks, others are named and not used.
#[test]
fn i7_too_little_memory_costs_processors_and_not_the_run() {
    let job = "[[snippet]]\nasm = \"nop\"";
    let ran = Guest { cpus: Cpus::Many(30), memory: 96, ..Guest::new(Boot::Direct, job) }.run();
    let list = &ran.ends_with(0).report.machine().unwrap().processors;
    let used = list.iter().filter(|one| one.state == ProcessorState::Started).count();
    let refused = list.iter().filter(|one| one.state == ProcessorState::Failed);
    let reasons: Vec<_> = refused.map(|one| one.reason.as_deref().unwrap()).collect();
    assert!(reasons.iter().all(|one| *one == "there is no memory for its stacks"), "{list:?}");
    assert!(!reasons.is_empty() && used + reasons.len() == 29, "{used} {reasons:?}");
    assert_eq!(ran.results()[0].metrics[0].value.median, 1.0);
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

/// Interrupts on all processors at once, with one host thread for each: every one on its own stacks.
#[test]
fn m13_every_processor_takes_its_own_interrupts() {
    let job = r#"
[[processors]]
name = "interrupts"
init = "mov rbx, 0x1122334455667788"
asm = "int 0xe0; int 0x90; cmp rbx, [rip + 2f]; jne 3f; jmp 4f; 2: .quad 0x1122334455667788; 3: ud2; 4:"
unroll = 20
loop = 100
"#;
    let guest = Guest { cpus: Cpus::Many(4), ..Guest::new(Boot::Direct, job) };
    let ran = Guest { icount: Icount::Off, ..guest }.run();
    ran.ends_with(0);
    assert_eq!(together(&ran).processors.len(), 4);
}

/// A thousand instructions from one interrupt to the next, on four processors with work of different length: each handler
/// works with its own processor's block, none is lost, and each costs what it costs on one processor.
#[test]
fn m13_every_processor_has_its_own_control_block() {
    let job = r#"
[[processors]]
name = "interrupted"
asm = "nop"
interrupt-every = 1000
"#;
    for model in [Model::Skylake, Model::Zen2] {
        let ran = emulated(model, Cpus::Many(4), job);
        ran.ends_with(0);
        let seen: Vec<_> =
            together(&ran).processors.iter().map(|one| one.interrupts.unwrap()).collect();
        let turns: Vec<u64> = seen.iter().map(|one| one.turns).collect();
        assert_eq!(turns, [10_000, 20_000, 30_000, 40_000]);
        for one in &seen {
            assert_eq!((one.taken, one.spurious), (one.overflows, 0), "{one:?}");
            assert_eq!(one.overflows, one.instructions / 1000, "{one:?}");
        }
        // What is counted besides the loop: a constant, and for each overflow the handler from the reload on.
        let besides = |index: usize| seen[index].instructions - 2 * seen[index].turns;
        let overflows = |index: usize| seen[index].overflows;
        let handler = (besides(3) - besides(0)) / (overflows(3) - overflows(0));
        assert!((15..=60).contains(&handler), "{handler}: {seen:?}");
        for index in 1..4 {
            let more = overflows(index) - overflows(0);
            assert_eq!(besides(index) - besides(0), handler * more, "{seen:?}");
        }
    }
}

fn contention(ran: &Ran) -> Vec<ContentionRounds> {
    ran.ends_with(0);
    together(ran).processors.iter().map(|one| one.contention.unwrap()).collect()
}

/// With a host thread for each processor they run at the same time: calls, a lock, interrupts from one to the other, and PMIs
/// whose control blocks come and go, while all others do the same.
#[test]
fn i7_m10_four_processors_that_run_at_once_share_what_they_must_for_thousands_of_rounds() {
    let job = r#"
[[processors]]
name = "at once"
asm = "nop"
contention = 2000
"#;
    let guest = Guest { cpus: Cpus::Many(4), ..Guest::new(Boot::Direct, job) };
    let seen = contention(&Guest { icount: Icount::Off, ..guest }.run());
    let rounds = 2000;
    let each = ContentionRounds {
        rounds,
        locked: rounds,
        interrupts: rounds,
        pmis: rounds,
        counted: None,
    };
    assert_eq!(seen, [each; 4]);
}

/// Where counters are started and stopped in each round as well. One processor of them is its own neighbour.
#[test]
fn i7_m10_counters_that_start_and_stop_in_rounds_count_alike_in_each() {
    let job = r#"
[[processors]]
name = "all"
asm = "nop"
contention = 40
[[processors]]
name = "one"
asm = "nop"
cpu = 1
contention = 3
"#;
    for model in [Model::Skylake, Model::SapphireRapids, Model::Haswell, Model::Zen2, Model::Zen4] {
        let ran = emulated(model, Cpus::Many(3), job);
        let seen = contention(&ran);
        let counted = seen[0].counted.unwrap();
        // A loop of two instructions, 50 turns, and what stands around it.
        assert!((40 * 100..40 * 120).contains(&counted), "{counted}");
        let (rounds, counted) = (40, Some(counted));
        let each =
            ContentionRounds { rounds, locked: rounds, interrupts: rounds, pmis: rounds, counted };
        assert_eq!(seen, [each; 3], "{model:?}");
        let one = ran.report.processors().nth(1).unwrap().processors[0].contention.unwrap();
        assert_eq!((one.rounds, one.counted), (3, counted.map(|counted| counted / 40 * 3)));
    }
}
