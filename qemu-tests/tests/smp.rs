//! The other processors: started on every kind of machine, at work together, and read at one instant.

mod contention;
mod emulated;
mod interrupts;

use pmu_model::Model;
use protocol::record::{ApicMode, ListedProcessor, ProcessorState, ProcessorsResult};
use qemu_tests::{Guest, Ran};
use std::time::Duration;
use xtask::cli::{Boot, Icount};
use xtask::machine::devices::Cpus;

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
    // The others are halted while the boot processor measures. Where each has an emulated PMU, QEMU takes its turns by the
    // host's clock, and what the others' hypervisors execute may be in the ticks of a run.
    let alone = &ran.results()[0].metrics[0];
    let hypervisors =
        ran.report.machine().unwrap().emulated_pmu.as_ref().map_or(0, |pmu| pmu.processors);
    assert_eq!(alone.value.median, ticks / 2.0);
    assert!(alone.deterministic || hypervisors > 1, "{alone:?}");
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
