//! Instruction-based sampling, with Linux' own driver and the distribution's `perf` as the judges: the samples are of the
//! loop that runs, and of its addresses alone; and of the same code those that barecount takes. Skipped where the packages cannot be had.

use crate::linux_same::memory;
use pmu_model::Model;
use protocol::record::SampleResult;
use qemu_tests::stock_linux::data::{self, Access};
use qemu_tests::stock_linux::kernel_log;
use qemu_tests::stock_linux::known::{Kind, Program};
use qemu_tests::stock_linux::machine::Machine;
use qemu_tests::stock_linux::perf;
use qemu_tests::stock_linux::script;
use qemu_tests::stock_linux::steps::{Console, Step};
use qemu_tests::stock_linux::work::Work;
use qemu_tests::{Guest, Ran};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;

/// Nanoseconds of the guest's clock for an instruction, and cycles, as a power of two.
const SHIFT: u8 = 2;
/// MOV from the stack, DEC, JNZ: 6 * 10^6 instructions.
const LOOP: Program = Program { kind: Kind::Loop, rounds: 2_000_000 };
/// Where each of the three begins.
const OFFSETS: [u64; 3] = [0, 4, 7];
/// Instructions from sample to sample.
const PERIOD: u64 = 100_000;
const TIMEOUT: Duration = Duration::from_secs(400);

/// What is recorded: a name, the event, and the period in its unit.
const RECORDS: [(&str, &str, u64); 3] = [
    ("cycles", "ibs_op//", PERIOD << SHIFT),
    ("ops", "ibs_op/cnt_ctl=1/", PERIOD),
    ("fetches", "ibs_fetch//", PERIOD),
];

/// What is sampled under both: ten instructions a turn.
const WALK: Work = Work { turns: 250_000, ..memory::WALK };
/// Its period under Linux, which stops the samples for the rest of a tick where more than 400 come, and under barecount.
const LINUX_PERIOD: u64 = 8_208;
/// Turns under barecount.
const OWN_TURNS: u64 = 60_000;
/// Of a hundred samples so many may be of what came in between: a tick of Linux, after which caches and TLBs have lost lines.
const ODD: usize = 2;
const OWN_PERIOD: u64 = 272;
/// In a turn.
const INSTRUCTIONS: usize = 10;
/// Name, event for perf, event for barecount.
const SAME: [(&str, &str, &str); 2] =
    [("walk-ops", "ibs_op/cnt_ctl=1/", "r00c1"), ("walk-fetches", "ibs_fetch//", "ibs_fetch")];

fn boot(model: Model, walk: PathBuf) -> Option<Console> {
    let options = "quiet".to_string();
    let machine =
        Machine { icount: SHIFT, memory: 1024, options, timeout: TIMEOUT, ..Machine::new(model) };
    if machine.is_stepped() {
        eprintln!("skipped: without the plugin it would take hours");
        return None;
    }
    let mut steps = Vec::new();
    for (name, event, period) in RECORDS {
        let run = LOOP.command();
        let record = format!("perf record -q -a -R -e {event} -c {period} -o {name} {run}");
        steps.push(Step::new(name, &record));
        let script = format!("perf script -F comm,ip -i {name}");
        steps.push(Step::new(&format!("{name}-samples"), &script));
        let raw = format!("perf report -D -i {name} | grep -i -E 'ibs|Lin|Phy|OpRip|Targ'");
        steps.push(Step::new(&format!("{name}-raw"), &raw));
    }
    for (name, event, _) in SAME {
        let mut add = |suffix: &str, command: &str| {
            steps.push(Step::new(&format!("{name}{suffix}"), command));
        };
        let run = WALK.name;
        // Of fetches there is no data.
        let (more, fields) =
            if event.contains("op") { ("-d -W", memory::FIELDS) } else { ("", "ip") };
        add("-before", "cat /proc/interrupts");
        add(
            "",
            &format!("perf record -q -a -R {more} -e {event} -c {LINUX_PERIOD} -o {name} {run}"),
        );
        add("-after", "cat /proc/interrupts");
        add("-records", &format!("perf report --stats -i {name}"));
        add("-samples", &format!("perf script -F {fields} -i {name}"));
    }
    steps.push(Step::new("log", "dmesg -r"));
    let ran = machine.run_with_programs(&steps, &[(WALK.name, walk)])?;
    eprintln!("{model:?}:\n{}", ran.console.0);
    assert_eq!(ran.pmu_said, [""; 0]);
    Some(ran.console)
}

/// How many samples there are of each address of the program's.
fn addresses(output: &str) -> BTreeMap<u64, u64> {
    const KERNEL: u64 = 1 << 47;
    let address = |line: &str| {
        let address = line.trim().strip_prefix("known")?.split_whitespace().last()?;
        u64::from_str_radix(address, 16).ok().filter(|address| *address < KERNEL)
    };
    let mut all = BTreeMap::new();
    output.lines().filter_map(address).for_each(|address| *all.entry(address).or_default() += 1);
    all
}

fn check(model: Model) {
    let folder = tempfile::tempdir().unwrap();
    let (walk, code) = WALK.program(folder.path());
    let Some(console) = boot(model, walk) else { return };
    let log = console.output("log");
    assert!(log.contains("perf: AMD IBS detected"), "{log}");
    assert_eq!(kernel_log::complaints(&log), [""; 0], "{log}");
    let expected = LOOP.counts().instructions / PERIOD;
    for (name, ..) in RECORDS {
        let samples = addresses(&console.output(&format!("{name}-samples")));
        let first = *samples.keys().next().unwrap_or_else(|| panic!("{name}: no sample"));
        // Of one of the three there may be no sample.
        let begins = OFFSETS.map(|offset| first - offset);
        let is_loop = |start: &u64| samples.keys().all(|at| OFFSETS.contains(&(at - start)));
        assert!(begins.iter().any(is_loop), "{name}: {samples:x?}");
        let count: u64 = samples.values().sum();
        // The kernel counts as well: some samples are of it, and a period that it began may end in the program.
        assert!((expected - 5..=expected + 2).contains(&count), "{name}: {count} of {expected}");
    }
    for (name, ..) in SAME {
        no_interrupt_is_lost(&console, name);
    }
    barecount_has_the_same(model, &console, &code);
}

/// Each sample is an interrupt that came.
fn no_interrupt_is_lost(console: &Console, name: &str) {
    let records = console.output(&format!("{name}-records"));
    let samples = perf::records_of(&records, "SAMPLE");
    let taken = |when: &str| {
        let output = console.output(&format!("{name}-{when}"));
        perf::interrupts(&output, "NMI").iter().sum::<u64>()
    };
    let taken = taken("after") - taken("before");
    assert!(samples > 100 && taken >= samples, "{name}: {taken} for {samples}");
    for kind in ["LOST", "LOST_SAMPLES", "THROTTLE", "UNTHROTTLE"] {
        assert_eq!(perf::records_of(&records, kind), 0, "{kind}: {records}");
    }
}

/// Where periods are random, other instructions of the code are tagged; but of each both say the same.
fn barecount_has_the_same(model: Model, console: &Console, code: &Range<u64>) {
    let items = SAME.map(|(_, _, event)| {
        format!(
            "[[sample]]\nprecise = true\nrandomise = true\nevents = [\"{event}\"]\nperiod = {OWN_PERIOD}\n\
             keep = \"samples\"\ntick-ns = 0\n{}",
            WALK.task("sample", OWN_TURNS)
        )
    });
    let guest = Guest::new(Boot::Direct, &items.concat());
    let ran = Guest { pmu: Given::Emulated(model), ..guest }.run();
    ran.ends_with(0);
    let own: Vec<&SampleResult> = ran.report.sampled().collect();
    let ops = console.output("walk-ops-samples");
    let linux: Vec<Access> =
        data::accesses(&ops).into_iter().filter(|one| code.contains(&one.at)).collect();
    let ours = of_code(&ran, own[0].item, code);
    assert!(linux.len() > 200 && ours.len() > 1_000, "{} {}", linux.len(), ours.len());
    let known: BTreeSet<&Access> = ours.iter().collect();
    let odd: Vec<&Access> = linux.iter().filter(|one| !known.contains(one)).collect();
    assert!(odd.len() * 100 <= linux.len() * ODD, "{odd:x?} of {}", linux.len());
    // And the other way round, whatever the page.
    let [theirs, own_kinds] = [&linux, &ours].map(|all| kinds(all));
    let common = own_kinds.iter().filter(|(_, count)| **count * 100 > ours.len() * ODD);
    let mut body = BTreeSet::new();
    for (kind, count) in common {
        assert!(theirs.contains_key(kind), "{kind:x?}, {count} times: {theirs:x?}");
        body.insert(kind.0);
    }
    assert_eq!(body.len(), INSTRUCTIONS, "{own_kinds:x?}");
    eprintln!("{model:?}: {} samples of Linux, {} odd: {own_kinds:x?}", linux.len(), odd.len());
    // One period may come to the same places of the loop again and again.
    let output = console.output("walk-fetches-samples");
    let fetched: Vec<u64> =
        script::rows(&output, code).iter().filter_map(|row| row.last().copied()).collect();
    let strays = fetched.iter().filter(|at| !body.contains(at)).count();
    assert!(strays * 100 <= fetched.len() * ODD && fetched.len() > 200, "{fetched:x?}");
    let places: BTreeSet<u64> = fetched.iter().copied().collect();
    assert!(places.len() * 2 > INSTRUCTIONS, "{places:x?}");
    let own: BTreeSet<u64> = of_code(&ran, own[1].item, code).iter().map(|one| one.at).collect();
    assert!(body.is_subset(&own), "{body:x?}: {own:x?}");
}

/// How often there is each instruction with what is told of its access.
fn kinds(all: &[Access]) -> BTreeMap<(u64, &str, u64), usize> {
    let mut kinds = BTreeMap::new();
    for one in all {
        *kinds.entry((one.at, &*one.source, one.latency)).or_default() += 1;
    }
    kinds
}

fn of_code(ran: &Ran, item: u32, code: &Range<u64>) -> Vec<Access> {
    let all = ran.report.samples(item).flat_map(memory::accesses);
    // Debian's kernel does not say of a store whether it missed the first level.
    let as_linux = |one: Access| match &*one.source {
        "not L1" => Access { source: data::UNKNOWN.to_string(), ..one },
        _ => one,
    };
    all.filter(|one| code.contains(&one.at)).map(as_linux).collect()
}

#[test]
fn s1_linux_samples_operations_and_fetches_of_the_emulated_zen_4() {
    check(Model::Zen4);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s1_linux_samples_operations_and_fetches_of_the_emulated_zen_2_soak() {
    check(Model::Zen2);
}
