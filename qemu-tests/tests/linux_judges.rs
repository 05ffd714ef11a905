//! What barecount takes of code, with Linux' own drivers and the distribution's `perf` as the judges: where data came from, and
//! who called. Skipped where the packages cannot be had.

use pmu_model::Model;
use qemu_tests::Guest;
use qemu_tests::stock_linux::kernel_log;
use qemu_tests::stock_linux::known::{Kind, Program};
use qemu_tests::stock_linux::machine::Machine;
use qemu_tests::stock_linux::steps::{Console, Step};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;

/// Nanoseconds of the guest's clock for an instruction, and cycles, as a power of two.
pub(crate) const SHIFT: u8 = 2;
pub(crate) const TIMEOUT: Duration = Duration::from_secs(400);
/// What the PMU says of event 03/82, which `perf mem` asks for beside that of Golden Cove's loads, and of the latter until it is there.
const AUXILIARY: [&str; 2] = [
    "18203 is one that never happens in this machine",
    "101cd is one that counts only while event 03/82 is counted",
];
/// Where user memory ends.
const KERNEL: u64 = 1 << 47;

/// Boots, and checks that neither the kernel nor the PMU has complained.
fn boot(model: Model, steps: &[(&str, String)]) -> Option<Console> {
    boot_with(model, steps, &[])
}

/// The same with further programs, by their names in `/bin`.
pub(crate) fn boot_with(
    model: Model,
    steps: &[(&str, String)],
    programs: &[(&str, PathBuf)],
) -> Option<Console> {
    let options = "quiet".to_string();
    let machine =
        Machine { icount: SHIFT, memory: 1024, options, timeout: TIMEOUT, ..Machine::new(model) };
    if machine.is_stepped() {
        eprintln!("skipped: without the plugin it would take hours");
        return None;
    }
    let log = [("log", "dmesg -r".to_string())];
    let steps = steps.iter().chain(&log).map(|(name, command)| Step::new(name, command));
    let ran = machine.run_with_programs(&steps.collect::<Vec<_>>(), programs)?;
    eprintln!("{model:?}:\n{}", ran.console.0);
    let log = ran.console.output("log");
    assert_eq!(kernel_log::complaints(&log), [""; 0], "{log}");
    let usual = |said: &&String| {
        said.starts_with("the guest is stepped") || AUXILIARY.iter().any(|one| said.ends_with(one))
    };
    assert_eq!(ran.pmu_said.iter().find(|said| !usual(said)), None);
    Some(ran.console)
}

/// A hexadecimal number, if it is one.
fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s1_linux_records_where_the_data_of_the_emulated_ice_lake_came_from_soak() {
    // The hypervisor steps through what has a threshold of latency.
    const LOADS: Program = Program { kind: Kind::Loop, rounds: 20_000 };
    const PERIOD: u64 = 101;
    let run = LOADS.command();
    // Every load that takes more than 3 cycles: those of the first level take 4.
    let record = |name: &str, event: &str| {
        format!("perf record -q -W -d -e '{event}' -c {PERIOD} -o {name} {run}")
    };
    let fields = "comm,ip,addr,weight,data_src";
    let loads = "cpu/mem-loads,ldlat=3/Pu";
    let Some(console) = boot(
        Model::IceLake,
        &[
            ("mem", format!("perf mem -t load record --ldlat=3 -U -q -c {PERIOD} -o mem {run}")),
            ("mem-samples", format!("perf script -F {fields} -i mem")),
            ("mem-report", "perf mem -t load report --stdio --sort mem -i mem".to_string()),
            ("loads", record("loads", loads)),
            ("loads-samples", format!("perf script -F {fields} -i loads")),
        ],
    ) else {
        return;
    };
    for name in ["mem-samples", "loads-samples"] {
        let output = console.output(name);
        // Address of the data, source, weight, and address of the instruction; the kernel's are above.
        let of_user = |line: &&str| -> Option<[u64; 2]> {
            let words: Vec<&str> = line.trim().strip_prefix("known")?.split_whitespace().collect();
            let ends = [words.first()?, words.last()?].map(|word| hexadecimal(word));
            let [data, code] = [ends[0]?, ends[1]?];
            (code < KERNEL).then_some([data, code])
        };
        let own: Vec<&str> = output.lines().filter(|line| of_user(line).is_some()).collect();
        // The one load of each round, at one address of the stack.
        let expected = LOADS.counts().loads / PERIOD;
        let count = own.len() as u64;
        assert!((expected - 3..=expected + 1).contains(&count), "{name}: {count}: {output}");
        let mut places: BTreeMap<[u64; 2], u64> = BTreeMap::new();
        own.iter().filter_map(of_user).for_each(|place| *places.entry(place).or_default() += 1);
        let main = places.values().max().copied().unwrap_or(0);
        assert!(main >= count - 1, "{name}: {places:x?}");
        // It hits the first level, with its translation in the TLB, and takes 4 cycles: all but the first one.
        let near = own.iter().filter(|line| {
            let hit = line.contains("LVL L1 or L1 hit") && line.contains("TLB L1 or L2 hit");
            hit && line.split_whitespace().any(|word| word == "4")
        });
        assert!(near.count() as u64 >= count - 1, "{name}: {own:#?}");
    }
    // The same code under barecount's own driver: the same level, translation and cycles.
    let toml = format!(
        "[[sample]]\nasm = \"mov rax, [r14]\"\nturns = {}\n\
         events = [{{ event = \"mem-loads\", latency = 3, period = {PERIOD} }}]\n",
        LOADS.rounds
    );
    let guest = Guest::new(Boot::Direct, &toml);
    let ran = Guest { pmu: Given::Emulated(Model::IceLake), ..guest }.run();
    ran.ends_with(0);
    let own = ran.report.sampled().next().expect("samples");
    let told: u64 = own.sources.iter().map(|one| one.count).sum();
    assert!(told.abs_diff(LOADS.rounds / PERIOD) <= 1, "{own:#?}");
    for one in own.sources.iter().filter(|one| one.count > 1) {
        let seen = (&*one.source, one.tlb_miss, one.latency, one.longest);
        assert_eq!(seen, ("L1", Some(false), 4 * one.count, 4), "{own:#?}");
    }
    let report = console.output("mem-report");
    assert!(report.contains("L1 hit"), "{report}");
}

fn call_chains(model: Model) {
    const CALLS: Program = Program { kind: Kind::Calls, rounds: 2_000 };
    let run = CALLS.command();
    let Some(console) = boot(
        model,
        &[
            (
                "record",
                format!("perf record -q --call-graph lbr -e instructions:u -c 101 -o lbr {run}"),
            ),
            ("script", "perf script -F comm,ip -i lbr".to_string()),
        ],
    ) else {
        return;
    };
    let output = console.output("script");
    // A sample is its own address, then those that it was called from, each on a line.
    let mut chains: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
    for sample in output.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        let lines = sample.lines().skip_while(|line| !line.contains("known")).skip(1);
        let chain: Vec<u64> = lines.filter_map(|line| hexadecimal(line.trim())).collect();
        *chains.entry(chain).or_default() += 1;
    }
    // CALL, RET, DEC, JNZ: a quarter of the samples are in the callee, and know the CALL.
    let all: u64 = chains.values().sum();
    let expected = CALLS.counts().instructions / 101;
    assert!(all.abs_diff(expected) <= 1, "{all} of {expected}: {chains:x?}");
    let called: u64 = chains.iter().filter(|(chain, _)| chain.len() > 1).map(|(_, n)| n).sum();
    assert!(called.abs_diff(all / 4) <= all / 20, "{called} of {all}: {chains:x?}");
    let callers: Vec<&[u64]> =
        chains.keys().filter(|chain| chain.len() > 1).map(|chain| &chain[1..]).collect();
    assert!(callers.iter().all(|caller| *caller == callers[0]), "{chains:x?}");
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s2_linux_has_call_chains_of_the_branch_records_of_the_emulated_skylake_soak() {
    call_chains(Model::Skylake);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s2_linux_has_call_chains_of_the_branch_records_of_the_emulated_ice_lake_soak() {
    call_chains(Model::IceLake);
}
