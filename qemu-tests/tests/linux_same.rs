//! The same bytes at the same addresses under Linux and under barecount: what Linux' driver and the distribution's `perf` decode is
//! what barecount's own driver samples, one by one. A model is one boot of each. Skipped where the packages cannot be had.

use crate::linux_judges;
use pmu_model::Model;
use protocol::record::{SampleResult, Samples};
use qemu_tests::stock_linux::script::{self, Branch};
use qemu_tests::stock_linux::steps::Console;
use qemu_tests::stock_linux::work::Work;
use qemu_tests::{Guest, Ran};
use std::collections::BTreeMap;
use std::ops::Range;
use xtask::cli::{Boot, Icount};
use xtask::machine::Given;

pub(crate) mod memory;

/// Loads and stores at 64 addresses each, two calls in one another, a conditional branch that is taken each second time: 14 and 15
/// instructions a turn, with the loop's own two, of which DEC loads and stores.
const JUDGED: Work = Work {
    name: "judged",
    // All that it uses, as Linux sets other registers than barecount. R15 keeps the count of turns out of the registers.
    init: "xor r15d, r15d; mov r14d, 0x800ce000; mov edi, 0x800c6000; mov esp, 0x800a4000; xor ecx, ecx",
    asm: "mov rdx, [r14+rcx]; mov [rdi+rcx], rdx; add ecx, 8; and ecx, 0x1f8; call outer; test cl, 8; jz even; nop; \
          even: jmp over; outer: call inner; ret; inner: imul rax, rax; ret; over:",
    turns: 2_000,
};
/// Of it, instructions in two turns.
const IN_TWO_TURNS: u64 = 29;
/// Samples whose branch records are compared, one by one.
const SINGLE: u64 = 8;

/// What a sample is compared by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Its address.
    Address,
    /// Its address, and that of its data.
    Data,
    /// Its address, and the branches that were recorded: each with its ends, whether it was mispredicted, and its cycles.
    Branches,
    /// The calls that led to it.
    Chain,
    /// Its address, that of its data, where that was, and how long it took.
    Source,
}

/// One command of perf, and what barecount is told to do in its place.
struct Cell {
    name: &'static str,
    /// What perf records.
    perf: &'static str,
    /// What barecount samples by.
    own: &'static str,
    precise: bool,
    period: u64,
    by: By,
    work: &'static Work,
}

/// With PEBS a record is of the event after the overflow, so from one to the next there is an event more than in Linux' period; barecount
/// takes this into account.
const fn cell(
    name: &'static str,
    perf: &'static str,
    own: &'static str,
    precise: bool,
    by: By,
) -> Cell {
    let period = match by {
        By::Address => 1009,
        By::Data | By::Source => 101,
        // Call stacks are stepped, so few; among the first samples are some in each of the functions.
        By::Branches | By::Chain => 404,
    };
    Cell { name, perf, own, precise, period, by, work: &JUDGED }
}

const LOADS: Cell = cell(
    "loads",
    "-d -e cpu/event=0xd0,umask=0x81/upp",
    "mem_inst_retired.all_loads:u",
    true,
    By::Data,
);
const STORES: Cell = cell(
    "stores",
    "-d -e cpu/event=0xd0,umask=0x82/upp",
    "mem_inst_retired.all_stores:u",
    true,
    By::Data,
);
const LATENCY: Cell =
    cell("latency", "-d -W -e cpu/mem-loads,ldlat=3/upp", "mem-loads:u:ldlat=3", true, By::Data);
const BRANCHES: Cell =
    cell("branches", "-j any,u -e instructions:u", "instructions:u", false, By::Branches);
const CHAINS: Cell =
    cell("chains", "--call-graph lbr -e instructions:u", "instructions:u", false, By::Chain);

/// Instructions, by an event that is precise on the model.
const fn instructions(own: &'static str) -> Cell {
    cell("instructions", "-e instructions:upp", own, true, By::Address)
}

/// The same with each record's own branches, where records have groups.
const fn with_branches(own: &'static str) -> Cell {
    cell("precise-branches", "-j any,u -e instructions:upp", own, true, By::Branches)
}

/// The same with each record's own calls.
const fn with_chains(own: &'static str) -> Cell {
    cell("precise-chains", "--call-graph lbr -e instructions:upp", own, true, By::Chain)
}

impl Cell {
    /// The step for Linux.
    fn step(&self) -> (&'static str, String) {
        let Self { name, perf, period, work, .. } = self;
        let fields = match self.by {
            By::Address => "ip",
            By::Data => "addr,ip",
            // Without its own rendering of a chain: of a sample without a call `perf script` 6.1 reads a record that is not there
            // (lbr_callchain_add_lbr_ip in tools/perf/util/machine.c takes entries[0] whatever their number is).
            By::Branches | By::Chain => "ip,brstack -G",
            By::Source => memory::FIELDS,
        };
        let how = if self.by == By::Source { "perf mem" } else { "perf record -q" };
        // perf ends as the program does, which a signal ends.
        let record = format!("{how} {perf} -c {period} -o {name} {}", work.name);
        (name, format!("{record}; perf script -F {fields} -i {name}"))
    }

    /// Events from one sample to the next.
    fn distance(&self) -> u64 {
        self.period + u64::from(self.precise)
    }

    /// The items for barecount. Records of branches are counted over the samples of an item, so that each is of one sample, the n-th.
    fn items(&self) -> Vec<String> {
        let Self { own, precise, work, .. } = self;
        let of = |period: u64, turns: u64, more: &str| {
            format!(
                "[[sample]]\nprecise = {precise}\nevents = [\"{own}\"]\nperiod = {period}\n{more}\ntick-ns = 0\n{}",
                work.task("sample", turns)
            )
        };
        let more = match self.by {
            By::Address | By::Data | By::Source => {
                return vec![of(self.distance(), work.turns, "keep = \"samples\"")];
            }
            By::Branches => "branches = true",
            By::Chain => "call-graph = \"lbr\"",
        };
        // One period and a half.
        let turns = |period: u64| period * 3 / IN_TWO_TURNS;
        (1..=SINGLE).map(|n| n * self.distance()).map(|each| of(each, turns(each), more)).collect()
    }

    /// What both have is the same.
    fn compare(&self, console: &Console, own: &[&SampleResult], ran: &Ran, code: &Range<u64>) {
        let what = format!("{}: {}", self.name, console.output(self.name));
        let output = console.output(self.name);
        match self.by {
            By::Address | By::Data => {
                let linux = script::rows(&output, code);
                let ours: Vec<Vec<u64>> = ran
                    .report
                    .samples(own[0].item)
                    .flat_map(|chunk| self.rows(chunk))
                    .filter(|row| row.last().is_some_and(|at| code.contains(at)))
                    .collect();
                assert!(ours.len() > 20, "{what}");
                assert_eq!(linux, ours, "{what}");
                let skid = own[0].events[0].skid.as_deref();
                assert!(skid.is_some_and(|skid| skid.starts_with("0: ")), "{skid:?}");
            }
            By::Branches => {
                let linux = script::branches(&output);
                assert!(linux.len() >= SINGLE as usize, "{what}");
                let (mut emptied, mut interrupted) = (0, 0);
                for ((_, stack), own) in linux.iter().zip(own) {
                    assert_eq!(own.events[0].samples, 1, "{own:?}");
                    let recorded = own.branches.as_ref().expect("branches were asked for");
                    let mut ours: Vec<_> = recorded
                        .edges
                        .iter()
                        .map(|edge| {
                            ([edge.from.0, edge.to.0], edge.count, edge.mispredicted, edge.cycles)
                        })
                        .collect();
                    ours.sort_unstable();
                    if stack.len() < usize::from(recorded.entries) {
                        emptied += 1;
                        assert!(newest(stack, &ours), "{what}");
                        continue;
                    }
                    assert_eq!(stack.len(), usize::from(recorded.entries), "{what}");
                    let theirs = edges(stack, &ours);
                    if theirs != ours && is_interrupted(&theirs, &ours) {
                        interrupted += 1;
                        continue;
                    }
                    assert_eq!(theirs, ours, "{what}");
                }
                assert!(emptied <= EMPTIED && interrupted <= INTERRUPTED, "{what}");
            }
            By::Source => memory::compare(self.name, &output, own[0], ran, code),
            By::Chain => {
                let linux = script::branches(&output);
                assert!(linux.len() >= SINGLE as usize, "{what}");
                assert!(linux.iter().take(SINGLE as usize).any(|one| one.1.len() == 2), "{what}");
                for ((at, calls), own) in linux.iter().zip(own) {
                    let stacks = &own.stacks.as_ref().expect("stacks were asked for").stacks;
                    let [one] = &stacks[..] else { panic!("{stacks:?}") };
                    let ours: Vec<u64> = one.frames.iter().map(|frame| frame.0).collect();
                    let calls = calls.iter().map(|call| call.from);
                    let chain: Vec<u64> = core::iter::once(*at).chain(calls).collect();
                    assert_eq!((chain, one.count), (ours, 1), "{what}");
                }
            }
        }
    }

    /// The samples as perf's rows are.
    fn rows(&self, chunk: &Samples) -> Vec<Vec<u64>> {
        let data = |n: usize| chunk.data.get(n).map_or(0, |one| one.0);
        let row = |(n, one): (usize, (u64, u64, u32, u32))| match self.by {
            By::Data => vec![data(n), one.0],
            _ => vec![one.0],
        };
        chunk.iter().enumerate().map(row).collect()
    }
}

/// Linux empties the records when it switches tasks (intel_pmu_lbr_sched_task in arch/x86/events/intel/lbr.c), and its clock says when:
/// the program runs for less than one of its time slices, so a second time would be a fault.
const EMPTIED: usize = 1;

/// Linux' clock may interrupt between two of the records, whose cycles then have its handler in them, and the handler's branches
/// take the place of the program's in the predictor. Each time slice has a few ticks, and the records are of less than a microsecond: a
/// second time would be a fault.
const INTERRUPTED: usize = 1;

/// What is mispredicted after it: the returns of two calls that are within one another, and a branch that the history decides.
const DISTURBED: u64 = 3;

/// Whether nothing differs but what an interrupt does: one edge has more cycles with Linux, or more mispredictions.
fn is_interrupted(theirs: &[Edge], ours: &[Edge]) -> bool {
    let pairs = || theirs.iter().zip(ours);
    let same = |one: &Edge, other: &Edge| {
        (one.0, one.1) == (other.0, other.1) && one.2 >= other.2 && one.3 >= other.3
    };
    let missed = |one: &Edge, other: &Edge| one.2.unwrap_or(0) - other.2.unwrap_or(0);
    theirs.len() == ours.len()
        && pairs().all(|(one, other)| same(one, other))
        && pairs().filter(|(one, other)| one.3 > other.3).count() <= 1
        && pairs().map(|(one, other)| missed(one, other)).sum::<u64>() <= DISTURBED
}

/// Whether records that were emptied since are among those of the whole sample. Cycles of the oldest are since the emptying.
fn newest(stack: &[Branch], whole: &[Edge]) -> bool {
    let ends: Vec<[u64; 2]> = stack.iter().map(|one| [one.from, one.to]).collect();
    ends.iter().all(|one| {
        let times = ends.iter().filter(|other| *other == one).count() as u64;
        whole.iter().any(|edge| edge.0 == *one && edge.1 >= times)
    })
}

type Edge = ([u64; 2], u64, Option<u64>, Option<u64>);

/// The records of one sample, counted as barecount does, with what its records tell.
fn edges(stack: &[Branch], like: &[Edge]) -> Vec<Edge> {
    let tells_misses = like.iter().any(|edge| edge.2.is_some());
    let tells_cycles = like.iter().any(|edge| edge.3.is_some());
    let mut all: Vec<Edge> = Vec::new();
    for one in stack {
        let ends = [one.from, one.to];
        let at = all.iter().position(|edge| edge.0 == ends).unwrap_or_else(|| {
            all.push((ends, 0, tells_misses.then_some(0), tells_cycles.then_some(0)));
            all.len() - 1
        });
        let edge = &mut all[at];
        edge.1 += 1;
        edge.2 = edge.2.map(|misses| misses + u64::from(one.mispredicted));
        edge.3 = edge.3.map(|cycles| cycles + one.cycles);
    }
    all.sort_unstable();
    all
}

/// Boots Linux once and barecount once, and compares each cell.
fn check(model: Model, cells: &[Cell]) {
    _ = check_and(model, cells, &[]);
}

/// The same, with further steps for Linux.
fn check_and(model: Model, cells: &[Cell], more: &[(&'static str, String)]) -> Option<Console> {
    let folder = tempfile::tempdir().unwrap();
    let programs = cells.iter().map(|cell| (cell.work.name, cell.work.program(folder.path())));
    let programs: BTreeMap<_, _> = programs.collect();
    let steps: Vec<_> = cells.iter().map(Cell::step).chain(more.iter().cloned()).collect();
    let files: Vec<_> = programs.iter().map(|(name, (file, _))| (*name, file.clone())).collect();
    let console = linux_judges::boot_with(model, &steps, &files)?;
    let items: Vec<Vec<String>> = cells.iter().map(Cell::items).collect();
    let guest = Guest {
        timeout: linux_judges::TIMEOUT,
        ..Guest::new(Boot::Direct, &items.concat().concat())
    };
    let ran =
        Guest { pmu: Given::Emulated(model), icount: Icount::Shift(linux_judges::SHIFT), ..guest }
            .run();
    ran.ends_with(0);
    let mut own: Vec<&SampleResult> = ran.report.sampled().collect();
    for (cell, items) in cells.iter().zip(&items) {
        let rest = own.split_off(items.len());
        cell.compare(&console, &own, &ran, &programs[cell.work.name].1);
        own = rest;
    }
    Some(console)
}

#[test]
fn s1_s2_linux_and_barecount_sample_the_same_loads_and_calls_on_the_emulated_skylake() {
    check(Model::Skylake, &[LOADS, CHAINS]);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s1_s2_linux_and_barecount_sample_the_same_on_the_emulated_skylake_soak() {
    let instructions = instructions("inst_retired.prec_dist:u");
    let [d, e, f] = memory::CELLS;
    check(Model::Skylake, &[instructions, LOADS, STORES, LATENCY, BRANCHES, CHAINS, d, e, f]);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s1_s2_linux_and_barecount_sample_the_same_on_the_emulated_ice_lake_soak() {
    const EVENT: &str = "inst_retired.prec_dist:u";
    let precise = [instructions(EVENT), with_branches(EVENT), with_chains(EVENT)];
    let [a, b, c] = precise;
    let [d, e, f] = memory::CELLS;
    check(Model::IceLake, &[a, b, c, LOADS, STORES, LATENCY, BRANCHES, CHAINS, d, e, f]);
}

#[test]
fn s1_s2_linux_and_barecount_sample_the_same_on_the_emulated_sapphire_rapids() {
    const EVENT: &str = "inst_retired.any_p:u";
    let [a, b, c] = [instructions(EVENT), with_branches(EVENT), with_chains(EVENT)];
    let [d, e, f] = memory::CELLS;
    check(Model::SapphireRapids, &[a, b, c, LOADS, STORES, BRANCHES, CHAINS, d, e, f]);
}

/// Debian's kernel 6.1 does not know PEBS records of format 6, and has none there. It does not know the processor either, and so has no
/// events of PERF_METRICS: its `perf` then asks for the way of before, by which only the whole system is counted.
#[test]
#[ignore = "cargo xtask test --soak"]
fn s2_linux_and_barecount_sample_the_same_branches_on_the_emulated_arrow_lake_soak() {
    let topdown = [("topdown", "perf stat --topdown busybox true || true".to_string())];
    if let Some(console) = check_and(Model::ArrowLake, &[BRANCHES, CHAINS], &topdown) {
        let output = console.output("topdown");
        assert!(output.contains("requires system-wide mode"), "{output}");
    }
}

#[test]
fn s2_linux_and_barecount_sample_the_same_branches_on_the_emulated_zen_4() {
    check(Model::Zen4, &[BRANCHES]);
}
