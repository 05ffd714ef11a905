//! Bandwidth by parameters, and what is reported of it.

use super::{between::BARE, run};
use pmu_model::uarch::Parameters;
use protocol::record::{BandwidthFacts, FactsTimer, Moving};
use qemu_tests::xtask;

const JOB: &str = "[[facts]]\nname = \"bandwidth\"\nmemory = \"8M\"\nparts = [\"memory\"]\n";
/// Bytes of a turn of the loops.
const TURN: u64 = 512;

fn bandwidth(options: &[&str]) -> BandwidthFacts {
    let facts = run(JOB, options);
    assert_eq!((facts.timer, facts.emulated), (FactsTimer::CoreCycles, true));
    *facts.bandwidth.expect("with the part `memory`")
}

/// Instructions of a pass: each load and store, in a turn the pointers, the counter and the jump, in a pass the same once more.
fn instructions(by: Moving, width: u64, bytes: u64) -> u64 {
    let copies = u64::from(by == Moving::Copy);
    let turns = bytes / TURN / (1 + copies);
    bytes / width + turns * (3 + copies) + 4 + copies
}

/// Cycles of a pass through so many bytes, of which the level has each line and those in front have none: each line takes what it keeps the
/// way busy, or what using it takes if that is more.
fn cycles(all: &Parameters, (by, level): (Moving, u32), width: u64, bytes: u64) -> u64 {
    let line = u64::from(all.line);
    let [l2, l3, memory, stream] = all.transfer.list().map(u64::from);
    let of_cache = |at: usize| all.caches[at].map_or(0, |cache| u64::from(cache.cycles));
    let first = of_cache(0);
    let (latency, busy) = match level {
        1 => (first, 0),
        2 => (of_cache(1), l2),
        3 => (of_cache(2), l3),
        _ => (u64::from(all.memory_cycles), memory),
    };
    let (count, lines) = (line / width, bytes / line);
    let of_lines = match by {
        Moving::Read => lines * busy.max(latency + (count - 1) * first),
        Moving::Write => lines * busy.max(count),
        Moving::NonTemporal => lines * stream.max(count),
        Moving::Copy => lines / 2 * (busy.max(latency) + busy.max((count - 1) * (first + 1) + 1)),
    };
    of_lines + instructions(by, width, bytes) - bytes / width
}

/// Whether all of it is what the parameters say; how many figures there are.
///
/// Where several processors take turns, a turn may fall into a sample, and its TSC goes on meanwhile.
fn is_as_given(facts: &BandwidthFacts, parameters: &str, in_turn: bool) -> usize {
    let all = Parameters::parse(parameters).unwrap();
    let width = u64::from(facts.width);
    let mut figures = 0;
    for point in &facts.alone {
        let passes = point.moved / point.bytes;
        let ticks = passes * instructions(point.by, width, point.bytes);
        let are_as_given = (point.ticks.least, point.ticks.most) == (ticks, ticks);
        assert!(in_turn || are_as_given, "{ticks} ticks: {point:?}");
        let Some(level) = point.level else { continue };
        let really = passes * cycles(&all, (point.by, level), width, point.bytes);
        assert_eq!((point.cycles.least, point.cycles.most), (really, really), "{point:?}");
        assert!(point.doubts.is_empty(), "{point:?}");
        figures += 1;
    }
    figures
}

#[test]
fn d1_bandwidths_with_parameters_are_reported() {
    for (model, parameters, figures) in [
        ("skylake", "l1d=16k/4@4,l2=128k/8@12,memory=150,transfer=9/0/60/90,mispredict=0", 10),
        (
            "zen4",
            "l1d=8k/2:fifo@3,l2=32k/4@14,l3=128k/8:fifo@40,memory=190,transfer=10/30/170/7,mispredict=0",
            13,
        ),
    ] {
        let facts = bandwidth(&["--pmu", &format!("{model},{parameters}")]);
        assert_eq!(is_as_given(&facts, parameters, false), figures, "{:?}", facts.reasons);
        assert_eq!(facts.reasons, ["all processors together: there is one"]);
        assert_eq!((facts.processors, facts.together.len()), (1, 0));
    }
}

#[test]
fn d1_the_bandwidth_of_four_processors_is_the_sum() {
    let parameters = "l1d=16k/4@4,l2=128k/8@12,memory=150,transfer=9/0/60/90,mispredict=0";
    let facts = bandwidth(&["--pmu", &format!("skylake,{parameters}"), "--cpus", "4"]);
    assert_eq!(is_as_given(&facts, parameters, true), 10);
    assert_eq!((facts.processors, facts.in_turn), (4, true));
    let levels: Vec<u32> = facts.together.iter().map(|sum| sum.level).collect();
    assert!([0, 1, 2].iter().all(|level| levels.contains(level)), "{:?}", facts.reasons);
    let (all, width) = (Parameters::parse(parameters).unwrap(), u64::from(facts.width));
    for sum in &facts.together {
        let passes = sum.moved / sum.bytes;
        let really = passes * cycles(&all, (sum.by, sum.level), width, sum.bytes);
        // A line of a processor's own stack may be out of its caches at the end: where the stack lies differs from build to build.
        let most = u64::from(all.memory_cycles);
        assert_eq!(sum.each.len(), 4, "{sum:?}");
        assert!(sum.each.iter().all(|one| one[0].abs_diff(really) <= most), "{really}: {sum:?}");
        let milli = 4 * (sum.moved * 1000 / really);
        assert!(sum.milli_per_cycle.median.abs_diff(milli) * 50 <= milli, "{sum:?}");
    }
}

#[test]
fn d1_processors_that_are_taken_to_run_at_once_move_data_together() {
    let facts = run(JOB, &BARE);
    assert_eq!(facts.timer, FactsTimer::Tsc);
    let facts = facts.bandwidth.unwrap();
    assert_eq!((facts.processors, facts.in_turn), (3, false), "{:?}", facts.reasons);
    // No cache is found, so all of the memory is one level, and that is doubtful.
    assert_eq!(facts.together.len(), 4, "{:?}", facts.reasons);
    for (sum, by) in facts.together.iter().zip(Moving::ALL) {
        assert_eq!((sum.by, sum.level, sum.each.len()), (by, 0, 3), "{sum:?}");
        assert!(sum.each.iter().flatten().all(|time| *time > 0), "{sum:?}");
        assert_eq!(sum.milli_per_tick.runs, 7);
        assert!(!sum.doubts.is_empty(), "{sum:?}");
    }
}

#[test]
fn d1_the_table_csv_and_page_have_the_bandwidths() {
    let folder = tempfile::tempdir().unwrap();
    let expect = "expect = { \"memory read bytes per cycle\" = { min = 0.4, max = 0.43 } }\n";
    std::fs::write(folder.path().join("job.toml"), format!("{JOB}{expect}")).unwrap();
    let run = |format: &str| {
        let pmu = "skylake,l1d=16k/4@4,l2=128k/8@12,memory=150";
        let options = ["--timeout", "120", "--pmu", pmu, "--format", format];
        let called = xtask(folder.path(), &[&["run", "job.toml"], &options[..]].concat());
        assert_eq!(called.code, 0, "{called:#?}");
        called.out
    };
    let table = run("table");
    for text in ["L2, copy", "memory, non-temporal write", "bytes/cycle", "there is one"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let csv = run("csv");
    assert!(csv.contains("L1 write bytes per cycle") && csv.contains("memory copy bytes per tick"));
    let page = run("html");
    assert!(page.contains("Bandwidth over the size of the working set"), "{page}");
}
