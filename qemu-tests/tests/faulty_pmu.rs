//! An item of every kind on PMUs that do not do what they announce: each ends with a right figure or a named reason, and
//! the next one runs.

use pmu_model::Model;
use protocol::job::{Conformance, Item};
use protocol::ramdisk;
use protocol::record::{CheckVerdict, ErrorCode, Machine, Record};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::job::{self, Purpose, file};
use xtask::machine::Given;

/// Checks that do without branch records, PEBS and steps.
const CHECKS: [&str; 8] = [
    "enumeration.*",
    "counting.*",
    "events.c*",
    "status.*",
    "overflow.*",
    "pmi.count",
    "freeze.*",
    "rdpmc.*",
];

/// The job of all kinds, a conformance suite after it, and its first snippet once more after that.
fn job_of_all_kinds() -> Vec<u8> {
    let toml = include_str!("faults/all_kinds.toml");
    let file = file::parse(toml, "all_kinds.toml").unwrap_or_else(|error| panic!("{error}"));
    let packed = job::pack(&file, Purpose::Qemu).unwrap_or_else(|error| panic!("{error}"));
    let mut job = ramdisk::unpack(&packed.bytes).unwrap();
    let checks = CHECKS.map(Into::into).to_vec();
    job.items.push(Item::Conformance(Conformance { name: "suite".into(), checks }));
    let mut last = job.items[0].clone();
    if let Item::Snippet(snippet) = &mut last {
        snippet.name = "last".into();
    }
    job.items.push(last);
    ramdisk::pack(&job).unwrap()
}

/// Most of the firmware's stack that an item of any kind takes: of 128 KiB three quarters, as formatting a crash record comes on top.
/// Measured: 82,272 bytes on the Skylake.
const MOST_STACK: u64 = 96 << 10;

/// An item of every kind and the whole conformance suite, which has the deepest calls.
#[test]
fn items_of_all_kinds_take_three_quarters_of_the_stack_at_most() {
    for model in [Model::Skylake, Model::Zen4] {
        let bytes = job_of_all_kinds();
        let mut job = ramdisk::unpack(&bytes).unwrap();
        for item in &mut job.items {
            if let Item::Conformance(suite) = item {
                suite.checks.clear();
            }
        }
        let ramdisk = Some(ramdisk::pack(&job).unwrap());
        let guest =
            Guest { pmu: Given::Emulated(model), ..Guest::with_ramdisk(Boot::Direct, ramdisk) };
        let ran = guest.run();
        let stack =
            ran.report.end().and_then(|end| end.stack).expect("an end with the stack's use");
        println!("{model:?}: {stack:?}");
        assert_eq!(stack.bytes, 128 << 10);
        // Something was there, and less than was painted.
        assert!((8 << 10..MOST_STACK).contains(&stack.most), "{model:?}: {stack:?}");
    }
}

struct Seen {
    ran: Ran,
    machine: Machine,
}

fn on(model: Model, fault: &'static str) -> Seen {
    let guest = Guest {
        pmu: Given::Emulated(model),
        pmu_fault: Some(fault),
        ..Guest::with_ramdisk(Boot::Direct, Some(job_of_all_kinds()))
    };
    let ran = guest.run();
    let text = String::from_utf8_lossy(&ran.raw);
    assert_eq!(ran.report.problems, [], "{fault}: {text}");
    let machine = ran.report.machine().unwrap_or_else(|| panic!("{fault}: {text}")).clone();
    let seen = Seen { ran, machine };
    seen.is_whole(fault);
    seen
}

impl Seen {
    fn records(&self) -> impl Iterator<Item = &Record> {
        self.ran.report.records.iter().map(|numbered| &numbered.record)
    }

    /// Every item has a result with figures that are right, or a reason.
    fn is_whole(&self, fault: &str) {
        let items = ramdisk::unpack(&job_of_all_kinds()).unwrap().items.len();
        let mut done = vec![0; items];
        // It has no such event.
        let amd = self.machine.vendor == "AuthenticAMD";
        for record in self.records() {
            let item = match record {
                Record::Crash(crash) => panic!("{fault}: {crash:?}"),
                Record::Result(result) => {
                    for metric in &result.metrics {
                        let (event, median) = (metric.event.as_str(), metric.value.median);
                        let right = match (result.name.as_str(), event) {
                            // 3C/01 at the rate of the bus.
                            (_, "r013c") => amd || median > 0.0,
                            ("counted" | "last", _) => median == 2.0,
                            ("of a fixed counter or another", _) => median == 3.0,
                            _ => median > 0.0,
                        };
                        assert!(right, "{fault}: {}: {metric:?}", result.name);
                    }
                    for one in &result.uncounted {
                        assert!(!one.reason.is_empty(), "{fault}: {one:?}");
                    }
                    result.item
                }
                Record::Exact(exact) => {
                    assert!(exact.comparisons.iter().all(|one| one.agrees), "{fault}: {exact:?}");
                    exact.item
                }
                Record::History(history) => {
                    let rows = &history.series[0].each;
                    assert!(rows.iter().all(|&each| each == 1.0), "{fault}: {history:?}");
                    history.item
                }
                Record::Sample(sample) => {
                    for one in sample.events.iter().filter(|one| one.event != "timer") {
                        let sum = one.overflows * one.period + one.rest;
                        let seen = sample.handler_instructions.unwrap_or(0) * sample.interrupts;
                        let right = (20_000..=20_000 + seen + 64).contains(&sum);
                        assert!(right || !one.remarks.is_empty(), "{fault}: {one:?}");
                    }
                    sample.item
                }
                Record::Count(count) => {
                    for one in &count.events {
                        let sum = one.sum.raw;
                        let right = if one.event == "r013c:u" {
                            amd || sum > 0
                        } else {
                            (20_000..20_003).contains(&sum)
                        };
                        assert!(right, "{fault}: {one:?}");
                    }
                    count.item
                }
                Record::Tasks(tasks) => {
                    // Three instructions a turn, and the exit.
                    let counted = tasks.user_instructions.unwrap_or(6_001);
                    assert!((6_000..=6_002).contains(&counted), "{fault}: {tasks:?}");
                    tasks.item
                }
                Record::Processors(result) => {
                    let right = result.sums.iter().all(|sum| sum.value == 2.0);
                    assert!(right, "{fault}: {result:?}");
                    result.item
                }
                Record::Suite(suite) => suite.item,
                Record::Error(error) => {
                    assert!(!error.text.is_empty(), "{fault}: {error:?}");
                    error.item.unwrap_or_else(|| panic!("{fault}: {error:?}"))
                }
                _ => continue,
            };
            done[item as usize] += 1;
        }
        assert_eq!(done, vec![1; items], "{fault}");
    }

    fn faults(&self) -> &[String] {
        &self.machine.pmu.as_ref().expect("a PMU").faults
    }

    /// Items that ended in an error, by name.
    fn errors(&self) -> Vec<(&str, ErrorCode)> {
        let named = |error| -> (&str, ErrorCode) {
            let error: &protocol::record::ErrorRecord = error;
            (error.name.as_deref().unwrap_or("none"), error.code)
        };
        self.ran.errors().into_iter().map(named).collect()
    }

    fn failed_checks(&self) -> Vec<&str> {
        let failed = self.records().filter_map(|record| match record {
            Record::Check(check) if check.verdict == CheckVerdict::Fail => {
                Some(check.name.as_str())
            }
            _ => None,
        });
        failed.collect()
    }
}

const FREEZE: &str = "freezing of the counters on a PMI is not used: ";

/// Sampled and counted by overflows.
const BY_OVERFLOW: [&str; 3] =
    ["through and in periods", "histogram", "single, on a counter for any event"];

#[test]
fn i4_m16_a_freeze_that_is_refused_is_done_without() {
    let seen = on(Model::Skylake, "freeze-refused");
    let why = "writing 0x1000 to MSR 0x1d9 raised an exception";
    assert_eq!(seen.faults(), [format!("{FREEZE}{why}")]);
    // Nothing else is lost: sampling, periods and histories are right by the handler.
    assert_eq!(seen.errors(), []);
    for sample in seen.ran.report.sampled().filter(|sample| sample.events[0].event != "timer") {
        assert!(sample.handling.starts_with("stopped by the handler"), "{sample:?}");
        assert!(sample.capability.freeze.contains(why), "{sample:?}");
    }
    assert!(seen.failed_checks().contains(&"freeze.counters"), "{:?}", seen.failed_checks());
}

#[test]
fn i4_m16_a_freeze_that_does_nothing_is_not_believed() {
    for model in [Model::Skylake, Model::Zen4] {
        let seen = on(model, "freeze-ignored");
        assert!(
            seen.faults()[0].starts_with(&format!("{FREEZE}the counters went on")),
            "{model:?}"
        );
        let errors = seen.errors();
        let by_overflow = |name: &str| BY_OVERFLOW.contains(&name) || name == "by cycle";
        assert!(!errors.iter().any(|(name, _)| by_overflow(name)), "{model:?}: {errors:?}");
    }
}

#[test]
fn what_no_counter_counts_is_named_and_never_0() {
    let seen = on(Model::Skylake, "clocks-stand-still");
    let faults = seen.faults().join("\n");
    for named in ["fixed counter 1", "fixed counter 2", "cycles (event 0x3c", "reference cycles"] {
        assert!(faults.contains(named), "{faults}");
    }
    let first = seen.ran.results()[0];
    let counted: Vec<&str> = first.metrics.iter().map(|metric| metric.event.as_str()).collect();
    assert_eq!(counted, ["tsc", "instructions", "r00c0"]);
    let [cycles, reference] = &first.uncounted[..] else { panic!("{first:?}") };
    assert!(cycles.reason.contains("stood still"), "{cycles:?}");
    assert!(reference.reason.contains("stood still"), "{reference:?}");
    // The history's clock.
    assert_eq!(seen.errors(), [("by cycle", ErrorCode::Unsupported)]);
    assert!(seen.failed_checks().contains(&"events.cycles_fixed_and_general"));
}

#[test]
fn registers_that_hold_values_and_never_count_are_no_pmu() {
    let seen = on(Model::Skylake, "all-stand-still");
    let absent = seen.machine.pmu_absent.as_deref().unwrap();
    assert!(absent.contains("none can be relied on: counter 0: it stood still"), "{absent}");
    for result in seen.ran.results() {
        assert_eq!(result.metrics.len(), 1, "the TSC alone: {result:?}");
    }
    // The timer samples all the same.
    let sampled: Vec<&str> = seen.ran.report.sampled().map(|one| one.name.as_str()).collect();
    assert_eq!(sampled, ["by the timer"]);
}

#[test]
fn an_interrupt_of_the_wrong_vector_costs_its_item_or_check_and_no_more() {
    let seen = on(Model::Skylake, "pmi-wrong-vector");
    let errors = seen.errors();
    assert!(errors.iter().all(|(_, code)| *code == ErrorCode::StrayInterrupt), "{errors:?}");
    let mut names: Vec<&str> = errors.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    // What the history's overflow left waiting comes into the first item after it that lets interrupts in.
    names.retain(|name| *name != "tasks");
    assert_eq!(names, ["histogram", BY_OVERFLOW[2], BY_OVERFLOW[0]]);
    let text = &seen.ran.errors()[0].text;
    assert!(text.contains("a stray interrupt of vector 0 (#DE) came at 0x"), "{text}");
    assert!(seen.failed_checks().contains(&"pmi.count"), "{:?}", seen.failed_checks());
    // Behind the suite.
    assert_eq!(seen.ran.results().last().unwrap().name, "last");
}

/// What waits while interrupts are off is no reason to step: the machine's clock, which the hypervisor's work takes, shows it.
#[test]
fn what_an_interrupt_of_the_wrong_vector_comes_before_runs_at_full_speed() {
    let toml = r#"
version = 1
[[snippet]]
name = "before"
asm = "add rax, 3; nop"
unroll = 100
[[snippet]]
name = "leaves one waiting"
history = 10
asm = "add rax, rbx; mov rcx, [r14]; add rax, rbx"
events = ["instructions"]
[[snippet]]
name = "behind"
asm = "add rax, 3; nop"
unroll = 100
"#;
    let file = file::parse(toml, "test").unwrap_or_else(|error| panic!("{error}"));
    let packed = job::pack(&file, Purpose::Qemu).unwrap_or_else(|error| panic!("{error}"));
    let guest = Guest {
        pmu: Given::Emulated(Model::Skylake),
        pmu_fault: Some("pmi-wrong-vector"),
        ..Guest::with_ramdisk(Boot::Direct, Some(packed.bytes))
    };
    let ran = guest.run();
    let ticks = |name: &str| {
        let result = ran.results().into_iter().find(|result| result.name == name);
        let result = result.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.raw)));
        let tsc = result.metrics.iter().find(|metric| metric.event == "tsc");
        tsc.unwrap_or_else(|| panic!("{result:?}")).value.median
    };
    // Two instructions of a nanosecond each. The first one waits since the PMU was tried.
    assert_eq!([ticks("before"), ticks("behind")], [2.0; 2]);
}

#[test]
fn interrupts_that_never_stop_are_cut_off() {
    let seen = on(Model::Skylake, "pmi-never-stops");
    let errors = seen.errors();
    for name in BY_OVERFLOW {
        assert!(errors.iter().any(|(item, _)| *item == name), "{name}: {errors:?}");
    }
    let mut cut_off = 0;
    for error in seen.ran.errors() {
        // A thousand more than those with an overflow.
        let times = error.text.strip_prefix("the PMU's interrupt came ");
        let times =
            times.and_then(|rest| rest.split_once(" times without an overflow")?.0.parse().ok());
        let is_cut_off = times.is_some_and(|times: u64| times >= 1_000);
        assert!(is_cut_off || error.code == ErrorCode::StrayInterrupt, "{error:?}");
        cut_off += usize::from(is_cut_off);
    }
    assert!(cut_off >= 1, "{errors:?}");
}

#[test]
fn status_bits_that_never_clear_cost_what_needs_overflows() {
    let seen = on(Model::Skylake, "status-clear-stuck");
    assert_eq!(
        seen.faults().len(),
        12,
        "11 counters, and with them the freeze: {:?}",
        seen.faults()
    );
    let errors = seen.errors();
    let mut names: Vec<&str> = errors.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, ["by cycle", BY_OVERFLOW[1], BY_OVERFLOW[2], BY_OVERFLOW[0]]);
}
