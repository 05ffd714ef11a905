//! Recorded processors: the emulated PMU boots as each of them, from their CPUID alone.

use protocol::record::CheckVerdict;
use qemu_tests::{Guest, Ran, xtask};
use recorded::cores::{self, Core};
use recorded::{Leaves, Registers};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::recording::Recorded;

/// Checks of what the leaves announce, with exact counts of known code among them.
const JOB: &str = r#"
kind = "conformance"
checks = ["enumeration.*", "registers.*", "counting.*", "fixed.*", "overflow.*"]
"#;

/// The whole suite.
const SUITE: &str = "kind = \"conformance\"";

/// The processor, for the program's life.
fn recorded(leaves: &Leaves, name: &str) -> Result<&'static Recorded, String> {
    let recorded = Recorded::of(Path::new(name), vec![leaves.clone()], Vec::new());
    recorded.map(|one| &*Box::leak(Box::new(one))).map_err(|error| error.to_string())
}

fn boot(recorded: &'static Recorded, job: &str) -> Ran {
    let (pmu, timeout) = (Given::Emulated(recorded.nearest), Duration::from_secs(180));
    let cpu = Some(format!("max,vendor={}", recorded.vendor().name()));
    Guest { pmu, recorded: Some(recorded), cpu, timeout, ..Guest::new(Boot::Direct, job) }.run()
}

/// What is wrong with a boot; empty if nothing is.
fn wrong(core: &str, leaves: &Leaves, ran: &Ran) -> Vec<String> {
    let mut wrong: Vec<String> = ran
        .report
        .checks()
        .filter(|check| check.verdict == CheckVerdict::Fail)
        .map(|check| {
            format!("{core}: {}: expected {}, seen {}", check.name, check.expected, check.seen)
        })
        .collect();
    wrong.extend(ran.errors().iter().map(|error| format!("{core}: {}", error.text)));
    wrong.extend(ran.complaint.iter().map(|complaint| format!("{core}: {complaint}")));
    let Some(machine) = ran.report.machine() else {
        wrong.push(format!("{core}: no machine record: {}", String::from_utf8_lossy(&ran.raw)));
        return wrong;
    };
    let signature = leaves.answer(1, 0)[0];
    let base = signature >> 8 & 0xf;
    let family = base + if base == 0xf { signature >> 20 & 0xff } else { 0 };
    if machine.family != family || machine.stepping != signature & 0xf {
        wrong.push(format!("{core}: family {:#x} stepping {}", machine.family, machine.stepping));
    }
    // A machine on which no check was made would have none that failed.
    if machine.pmu.is_none() {
        wrong.push(format!("{core}: no PMU was found: {:?}", machine.pmu_absent));
    }
    if !ran.report.suites().any(|suite| suite.passed > 0) {
        wrong.push(format!("{core}: no check passed"));
    }
    match machine.emulated_pmu {
        Some(pmu) if pmu.recorded => {}
        other => wrong.push(format!("{core}: {other:?}")),
    }
    wrong
}

/// The first core of each kind: who made it, the PMU's version, its counters and widths, and the model that is nearest.
fn kinds() -> Vec<(&'static Core, &'static Recorded)> {
    let mut kinds = BTreeMap::new();
    for core in cores::all() {
        let Ok(recorded) = recorded(&core.leaves, &core.name) else { continue };
        let (maker, pmu) = (core.leaves.answer(0, 0)[1], core.leaves.answer(0xa, 0));
        // Version, counters and their width; fixed counters and theirs.
        let shape = (pmu[0] & 0xff_ffff, pmu[3] & 0x1fff);
        let kind = (maker, shape, recorded.counters, recorded.nearest as u32);
        kinds.entry(kind).or_insert((core, recorded));
    }
    kinds.into_values().collect()
}

fn each_boots(kinds: impl Iterator<Item = (&'static Core, &'static Recorded)>, job: &str) -> usize {
    let (mut booted, mut all_wrong) = (0, Vec::new());
    for (core, recorded) in kinds {
        let ran = boot(recorded, job);
        let wrong = wrong(&core.name, &core.leaves, &ran);
        println!("{}: as {}: {wrong:?}", core.name, recorded.nearest.spec().name);
        booted += 1;
        all_wrong.extend(wrong);
    }
    assert!(all_wrong.is_empty(), "{all_wrong:#?}");
    booted
}

/// Records of stores by IA32_PEBS_ENABLE[63], which no model has.
#[test]
fn s1_a_recorded_sandy_bridge_has_precise_stores() {
    let job = "[[sample]]\nevents = [{ event = \"mem-stores\", period = 71 }]\n\
               asm = \"mov [r14+rcx], rdx; add rcx, 8; and rcx, 0x3f8\"\nturns = 3000\n";
    for name in ["intel-core-i5-2400-cpu", "intel-core-i7-3770k-cpu"] {
        let all = cores::all().iter();
        let core = all.clone().find(|core| core.name.ends_with(name)).expect("it is recorded");
        let ran = boot(recorded(&core.leaves, &core.name).unwrap(), job);
        ran.ends_with(0);
        let result = ran.report.sampled().next().expect("one item");
        let one = &result.events[0];
        assert_eq!((one.samples, one.lost), (3000 / 71, 0), "{name}: {one:?}");
        assert_eq!(one.counter.as_deref(), Some("counter 3"), "{name}");
        let counted: u64 = result.data.iter().map(|row| row.count).sum();
        assert_eq!(counted, one.samples, "{name}: {result:?}");
        assert!(result.data.iter().all(|row| row.address.0 % 8 == 0), "{name}: {result:?}");
        for source in &result.sources {
            assert!(source.store && source.tlb_miss.is_some() && source.locked == Some(false));
        }
        assert_eq!(result.sources.iter().map(|one| one.count).sum::<u64>(), one.samples, "{name}");
        let suite = boot(
            recorded(&core.leaves, &core.name).unwrap(),
            "kind = \"conformance\"\nchecks = [\"pebs.*\"]",
        );
        let wrong = wrong(&core.name, &core.leaves, &suite);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// In two halves, which run at the same time.
#[test]
fn x10_one_recorded_core_of_each_kind_boots_intel_and_others() {
    let intel = |recorded: &Recorded| recorded.nearest.spec().intel().is_some();
    let booted = each_boots(kinds().into_iter().filter(|(_, one)| intel(one)).step_by(2), JOB);
    assert!(booted >= 10, "{booted}");
}

#[test]
fn x10_one_recorded_core_of_each_kind_boots_the_other_half() {
    let intel = |recorded: &Recorded| recorded.nearest.spec().intel().is_some();
    let (ours, others): (Vec<_>, Vec<_>) = kinds().into_iter().partition(|(_, one)| intel(one));
    let rest = ours.into_iter().skip(1).step_by(2).chain(others);
    let booted = each_boots(rest, JOB);
    assert!(booted >= 10, "{booted}");
}

/// Takes half an hour and more.
#[test]
#[ignore = "370 boots: cargo nextest run -p qemu-tests --run-ignored only x10_every"]
fn x10_every_recorded_core_that_can_be_emulated_boots_and_passes_the_suite() {
    let can = |core: &'static Core| Some((core, recorded(&core.leaves, &core.name).ok()?));
    let booted = each_boots(cores::all().iter().filter_map(can), SUITE);
    println!("{booted} of {} booted", cores::all().len());
    assert!(booted > 360, "{booted}");
}

/// The host tests turn over each bit; these are some whose sense changes and which can still be presented.
#[test]
fn x10_cores_with_a_wrong_bit_in_their_leaves_boot_and_say_what_they_have() {
    let cases: [(&str, u32, usize, u32); 5] = [
        // Version 4 becomes 5: fixed counters by ECX, which is 0; then 6.
        ("intel-x86-64-skylake-intel-core-i5-6400t-cpu", 0xa, 0, 1 << 0),
        ("intel-x86-64-skylake-intel-core-i5-6400t-cpu", 0xa, 0, 1 << 1),
        // Seven events fewer; a fixed counter fewer.
        ("intel-x86-64-skylake-intel-core-i5-6400t-cpu", 0xa, 1, 1 << 1),
        ("intel-x86-64-core-intel-core2-duo-cpu-p8400", 0xa, 3, 1 << 0),
        // PerfMonV2 without LBRv2.
        ("amd-zen4-amd-ryzen-7-7800x3d-8-core-processor", 0x8000_0022, 0, 1 << 1),
    ];
    for (name, leaf, register, bit) in cases {
        let core = cores::named(name).unwrap_or_else(|| panic!("{name}"));
        let mut leaves = core.leaves.clone();
        let mut answer: Registers = leaves.answer(leaf, 0);
        answer[register] ^= bit;
        leaves.set(leaf, 0, answer);
        let recorded = recorded(&leaves, name).unwrap_or_else(|error| panic!("{error}"));
        let ran = boot(recorded, JOB);
        let wrong = wrong(name, &leaves, &ran);
        assert!(wrong.is_empty(), "{leaf:#x} {register} {bit:#x}: {wrong:#?}");
        let machine = ran.report.machine().unwrap();
        assert!(machine.pmu.is_some(), "{machine:?}");
    }
}

/// The command, with each form of a file.
#[test]
fn x10_run_takes_a_recording_of_each_form_and_says_what_it_inferred() {
    let folder = tempfile::tempdir().unwrap();
    let core = cores::named("amd-zen4-amd-ryzen-5-7600x-6-core-processor").unwrap();
    let (mut latx, mut cpuid, mut csv) = (String::new(), String::from("CPU:\n"), String::new());
    for (leaf, [a, b, c, d]) in core.leaves.all() {
        let (leaf, sub) = (leaf.leaf, leaf.subleaf);
        latx += &format!("CPUID {leaf:08X}: {a:08X}-{b:08X}-{c:08X}-{d:08X} [SL {sub:02X}]\n");
        cpuid += &format!(
            "   {leaf:#010x} {sub:#04x}: eax={a:#010x} ebx={b:#010x} ecx={c:#010x} edx={d:#010x}\n"
        );
        csv += &format!("{leaf:08x},{sub},{a:08x},{b:08x},{c:08x},{d:08x}\n");
    }
    let run = |file: &Path, more: &[&str]| {
        let pmu = format!("dump:{}", file.display());
        let fixed = ["run", "--pmu", &pmu, "--asm", "add rax, rbx", "--event", "instructions"];
        xtask(folder.path(), &[&fixed[..], more].concat())
    };
    for (name, content) in [("latx.txt", latx), ("cpuid.txt", cpuid), ("rows.csv", csv)] {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let called = run(&file, &[]);
        assert_eq!(called.code, 0, "{}{}", called.out, called.err);
        assert!(called.err.contains("AMD Ryzen 5 7600X 6-Core Processor of"), "{}", called.err);
        assert!(
            called.err.contains("as zen4") && called.err.contains("pmu: events: those of zen4")
        );
        assert!(
            called.out.contains("note: the PMU of a recorded processor: events: those of zen4")
        );
        assert!(called.out.contains("6 counters of 48 bits"), "{}", called.out);
    }
    // A report of one such machine is a recording for the next.
    let report = folder.path().join("report.json");
    let out = report.to_str().unwrap();
    let called = run(&folder.path().join("latx.txt"), &["--format", "json", "--out", out]);
    assert_eq!(called.code, 0, "{}", called.err);
    let called = run(&report, &[]);
    assert_eq!(called.code, 0, "{}{}", called.out, called.err);
    assert!(called.err.contains("CPUID from the machine record"), "{}", called.err);
    assert!(called.out.contains("AMD Ryzen 5 7600X"), "{}", called.out);
    // Nothing starts it under a BIOS.
    let called = run(&report, &["--boot", "bios"]);
    assert_eq!(called.code, 2, "{}", called.err);
    assert!(called.err.contains("nothing starts the emulated PMU under a BIOS"), "{}", called.err);
}
