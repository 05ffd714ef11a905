//! What lies between processors, and stolen time.

use super::run;
use ::facts::gaps::shared;
use protocol::record::{CoreFacts, LineAccess, NoiseFacts, TransitionCost, Waiting};
use qemu_tests::xtask;

const CORES: &str = "[[facts]]\nname = \"between\"\nparts = [\"cores\"]\n";

fn cores(options: &[&str]) -> CoreFacts {
    let facts = run(CORES, options);
    assert!(facts.memory.is_none() && facts.noise.is_none() && facts.bytes == 0, "{facts:?}");
    facts.cores.unwrap()
}

/// Every pair is there, both ways, and nobody with himself.
fn is_complete(cores: &CoreFacts, count: usize) {
    assert_eq!(cores.reasons, [""; 0]);
    let numbers: Vec<u32> = cores.processors.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (0..count as u32).collect::<Vec<_>>());
    let by: Vec<LineAccess> = cores.matrices.iter().map(|matrix| matrix.by).collect();
    assert_eq!(by, LineAccess::ALL);
    for matrix in &cores.matrices {
        assert_eq!(matrix.tenths.len(), count);
        for (from, row) in matrix.tenths.iter().enumerate() {
            assert_eq!(row.len(), count);
            for (to, cell) in row.iter().enumerate() {
                assert_eq!(cell.is_some(), from != to, "{from} to {to}: {matrix:?}");
                let [least, median, ninetieth] = cell.unwrap_or([1; 3]);
                assert!(0 < least && least <= median && median <= ninetieth, "{matrix:?}");
            }
        }
        assert_eq!(matrix.medians().count(), count * (count - 1));
    }
    for (one, by) in cores.contention.iter().zip(LineAccess::ALL) {
        assert_eq!(one.by, by);
        let numbers: Vec<u32> = one.points.iter().map(|point| point.processors).collect();
        assert_eq!(numbers, (1..=count as u32).collect::<Vec<_>>());
        for point in &one.points {
            let changes = u64::from(point.processors * point.changes);
            assert!(point.ticks > 0 && point.tries >= changes, "{point:?}");
            // A store and XADD need no second try.
            assert!(by == LineAccess::Cmpxchg || point.tries == changes, "{point:?}");
        }
    }
    for waiting in [Waiting::Runs, Waiting::Hlt] {
        let woken = cores.wakes.iter().filter(|one| one.waiting == waiting);
        let places: Vec<u32> = woken.clone().map(|one| one.processor).collect();
        assert_eq!(places, (1..count as u32).collect::<Vec<_>>(), "{:?}", cores.wakes);
        assert!(woken.clone().all(|one| one.ticks.runs > 0 && one.ticks.least > 0));
    }
}

#[test]
fn d3_four_processors_of_the_emulated_pmu_have_a_complete_matrix() {
    let cores = cores(&["--pmu", "skylake", "--cpus", "4"]);
    assert!(cores.in_turn);
    is_complete(&cores, 4);
}

/// A processor that does not say that QEMU's translator is beneath: it is taken for one whose neighbours run beside it.
pub const BARE: [&str; 6] = ["--pmu", "none", "--cpu", "qemu64,hypervisor=off", "--cpus", "3"];

#[test]
fn d3_processors_that_are_taken_to_run_at_once_have_a_complete_matrix() {
    let cores = cores(&BARE);
    assert!(!cores.in_turn);
    is_complete(&cores, 3);
    assert!(cores.matrices.iter().all(|matrix| (matrix.samples, matrix.rounds) == (15, 100)));
}

#[test]
fn d3_one_processor_is_told_so() {
    let cores = cores(&["--pmu", "zen4"]);
    assert!(cores.matrices.is_empty() && cores.wakes.is_empty());
    assert_eq!(cores.reasons, ["there is one processor: nothing lies between it and another"]);
}

fn noise(job: &str, options: &[&str]) -> NoiseFacts {
    let facts = run(&format!("[[facts]]\nparts = [\"noise\"]\n{job}"), options);
    assert!(facts.memory.is_none() && facts.cores.is_none(), "{facts:?}");
    let noise = facts.noise.unwrap();
    assert_eq!(noise.reasons, [""; 0]);
    noise
}

#[test]
fn d4_a_quiet_machine_has_no_gap_and_every_transition_its_cost() {
    let noise = noise("", &["--pmu", "skylake"]);
    let [window] = &noise.windows[..] else { panic!("{noise:?}") };
    assert_eq!((window.count, window.gaps.len(), window.smis), (0, 0, Some(0)), "{window:?}");
    assert!(window.reads > 1000 && window.ticks >= noise.tsc_hz / 100, "{window:?}");
    assert_eq!(window.buckets.iter().sum::<u64>(), window.reads);
    let timer = noise.timer.as_ref().unwrap();
    assert_eq!((timer.late.runs, timer.buckets.iter().sum::<u64>()), (200, 200));
    for name in TransitionCost::NAMES {
        let cost = noise.costs.iter().find(|cost| cost.name == name);
        let cost = cost.unwrap_or_else(|| panic!("{name}: {:?}", noise.costs));
        assert!(cost.ticks.runs > 0 && cost.ticks.median > 0, "{cost:?}");
    }
    assert_eq!(noise.costs.len(), TransitionCost::NAMES.len());
    // Instructions, which are ticks: a loop's INT and IRETQ, SYSCALL and SYSRETQ, a load that faults and what its handler does, each
    // with the two instructions of the loop; UD2 and its handler less the readings.
    let ticks =
        |name: &str| noise.costs.iter().find(|cost| cost.name == name).unwrap().ticks.median;
    assert_eq!([ticks("int_ring_3"), ticks("syscall"), ticks("page_fault_ring_3")], [4, 4, 5]);
    assert_eq!([ticks("int"), ticks("ud2")].map(|ticks_of| ticks_of - ticks("nothing")), [2, 3]);
    assert_eq!(noise.hypervisor.as_deref(), Some("the emulated PMU"));
}

#[test]
fn d4_the_turns_that_the_emulated_pmu_gives_others_are_gaps_at_even_times() {
    let noise = noise("", &["--pmu", "skylake", "--cpus", "2"]);
    assert!(!noise.together);
    assert_eq!(noise.windows.iter().map(|window| window.processor).collect::<Vec<_>>(), [0, 1]);
    for window in &noise.windows {
        // It looks at halted processors from time to time, and the looks are alike. The first gap is the other one's way to its halt.
        let looks = &window.gaps[1..];
        assert!(looks.len() > 10, "{looks:?}");
        let apart: Vec<u64> = looks.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        let (least, most) = (apart.iter().min().unwrap(), apart.iter().max().unwrap());
        assert!(most - least <= least / 10, "{apart:?}");
        assert_eq!((window.smis, window.count), (Some(0), window.gaps.len() as u64));
        assert_eq!(window.stolen, window.gaps.iter().map(|gap| gap.ticks).sum::<u64>());
    }
}

#[test]
fn d4_system_management_interrupts_that_are_raised_are_the_gaps_that_are_found() {
    // Reading takes some 35 ticks, and SeaBIOS's handler some 50 instructions.
    let job = "smis = 3\nthreshold-ns = 60\nwindow-ms = 4\n";
    let noise = noise(job, &["--pmu", "none", "--cpu", "qemu64,vendor=GenuineIntel"]);
    let window = &noise.windows[0];
    let first = &window.gaps[..window.gaps.len().min(5)];
    assert_eq!((noise.raised, window.smis, window.count), (3, Some(3), 3), "{first:?}");
    // They were raised evenly over the time.
    let quarter = window.ticks / 4;
    for (gap, number) in window.gaps.iter().zip(1..) {
        let distance = gap.at.abs_diff(number * quarter);
        assert!(distance < quarter / 100, "{first:?} in {}", window.ticks);
    }
    assert_eq!(noise.hypervisor, None);
}

#[test]
fn d4_processors_that_are_taken_to_run_at_once_are_watched_together() {
    let noise = noise("window-ms = 100\n", &BARE);
    assert!(noise.together);
    assert_eq!(noise.windows.iter().map(|window| window.processor).collect::<Vec<_>>(), [0, 1, 2]);
    for window in &noise.windows {
        // QEMU runs one after the other: the others' time is stolen, but never that of all at once.
        assert!(window.count > 0 && window.smis.is_none(), "{}", window.longest);
        assert_eq!(window.buckets.iter().sum::<u64>(), window.reads);
    }
    assert_eq!(shared(&noise.windows), 0);
}

#[test]
fn d4_interrupts_that_cannot_be_raised_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), "[[facts]]\nparts = [\"noise\"]\nsmis = 1\n")
        .unwrap();
    let called = xtask(folder.path(), &["run", "job.toml", "--timeout", "60", "--pmu", "zen4"]);
    assert_eq!(called.code, 1, "{called:#?}");
    let text = "smis: the emulated PMU takes no system management interrupts";
    assert!(called.out.contains(text) || called.err.contains(text), "{called:#?}");
}

#[test]
fn d3_d4_the_table_csv_and_page_have_what_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let job = "[[facts]]\nname = \"all\"\nparts = [\"cores\", \"noise\"]\nexpect = { \"nearest cores by plain ticks\" = { min = 1 }, smis = 0 }\n";
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    let run = |format: &str| {
        let options = ["--timeout", "120", "--pmu", "skylake", "--cpus", "4", "--format", format];
        let called = xtask(folder.path(), &[&["run", "job.toml"], &options[..]].concat());
        assert_eq!(called.code, 0, "{called:#?}");
        called.out
    };
    let table = run("table");
    for text in [
        "line by lock cmpxchg, one way",
        "of 12 pairs steady",
        "APIC timer, late",
        "syscall and sysretq",
        "turns",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let csv = run("csv");
    for text in [
        "farthest cores by lock xadd ticks",
        "wake by hlt ticks",
        "longest gap ticks",
        "cpuid ticks",
    ] {
        assert!(csv.contains(text), "{text}: {csv}");
    }
    let page = run("html");
    assert_eq!(page.matches("<table class=\"heat\">").count(), 3, "{page}");
    // A row and a column for each processor, and a dash where one meets itself.
    assert_eq!(page.matches("<td class=\"n none\">–</td>").count(), 3 * 4);
    assert_eq!(page.matches("style=\"--h:").count() - 3 * 3, 3 * 12);
    for text in [
        "One line that all change",
        "How late the timer comes",
        "Time from one reading to the next",
    ] {
        assert!(page.contains(text), "{text}");
    }
}
