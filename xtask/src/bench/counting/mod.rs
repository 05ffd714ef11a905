//! What counting costs in addition to plain TCG: the same code on a machine without a PMU, on one whose PMU counts nothing, and with
//! each kind of event, by the plugin and by stepping; in the firmware, and in the distribution's Linux ([`linux`]).
//!
//! Of several rounds, which take turns, the least counts, and processor time stands in addition to the time that passed ([`cost`]).

mod cost;
mod linux;

pub(super) use linux::measure as measure_linux;

use super::Figure;
use super::boots::boot_counting;
use crate::Result;
use crate::build::Tree;
use crate::cli::{Boot, Counting};
use crate::collect::Report;
use crate::job::{self, Purpose, file};
use crate::machine::accel::DEFAULT_MODEL;
use crate::machine::{Given, MachineError};
use cost::{Cost, Least};

/// Iterations of the workload where it is stepped.
const STEPPED: u64 = 2_000;

/// How much is measured.
#[derive(Clone, Copy)]
struct Size {
    /// Boots of each kind that is quick; those of a round follow each other, because the machine's speed changes.
    rounds: usize,
    /// Iterations of the workload: 55 instructions in four of them.
    iterations: u64,
    /// The same where it is sampled.
    sampled: u64,
    /// Iterations of the long loop, of ten instructions each, a branch and a load among them.
    long: u64,
    /// Overflows that are taken.
    overflows: u64,
}

/// What figures are taken from.
const FULL: Size = Size {
    rounds: 4,
    iterations: 20_000_000,
    sampled: 30_000_000,
    long: 100_000_000,
    overflows: 10_000,
};

/// Every job once, to see that it runs: a difference of two times may come out as anything.
const BRIEF: Size =
    Size { rounds: 1, iterations: 20_000, sampled: 200_000, long: 100_000, overflows: 1_000 };

/// What is counted together, and what it is called.
const EVENTS: [(&str, &[&str]); 3] = [
    ("instructions", &["instructions"]),
    ("branches, loads, stores", &["branches", "loads", "stores"]),
    ("predictor and caches", &["branches", "branch-misses", "loads", "L1-dcache-load-misses"]),
];

/// One iteration: a load and a store within 16 KiB each, a jump that is taken every fourth time, a call and its return. It
/// counts down ECX.
const BODY: &str = "mov edx, ecx; and edx, 0x3ff8; mov rax, [r14+rdx]; add rax, rcx; mov [rdi+rdx], rax; \
                    test cl, 3; jz 3f; imul rax, rcx; 3: call 4f; jmp 5f; 4: lea rbx, [rax+rcx]; ret; 5: dec ecx";

fn snippet(asm: &str, events: &[&str]) -> String {
    format!(
        "name = \"bench\"\n[[snippet]]\nasm = \"{asm}\"\nunroll = 1\nruns = 1\nwarmup = 0\n\
         difference = \"empty\"\nevents = {events:?}\nmachine = {{ time-limit = 0 }}\n"
    )
}

/// The workload in a loop of its own.
fn workload(iterations: u64, events: &[&str]) -> String {
    snippet(&format!("mov ecx, {iterations}; 2: {BODY}; jnz 2b"), events)
}

fn long(iterations: u64, events: &[&str]) -> String {
    let nops = "nop; ".repeat(7);
    snippet(&format!("mov ecx, {iterations}; 2: mov rax, [r14]; {nops}dec ecx; jnz 2b"), events)
}

/// The workload as a task that is sampled by branches; without a period, as one that just runs. A task's areas are smaller
/// than a snippet's: 4 KiB of each are used.
fn task(turns: u64, period: Option<u64>) -> String {
    let asm = format!("{}; jnz 2f; 2:", BODY.replace("0x3ff8", "0xff8"));
    match period {
        Some(period) => format!(
            "name = \"bench\"\n[[sample]]\nasm = \"{asm}\"\nturns = {turns}\nevents = [\"branches\"]\n\
             period = {period}\n"
        ),
        None => format!(
            "name = \"bench\"\n[[run]]\ntick-ns = 0\nlimit-us = 3600000000\n[[run.task]]\nname = \"a\"\n\
             asm = \"{asm}\"\nturns = {turns}\n"
        ),
    }
}

const PLAIN: (Given, Counting) = (Given::None, Counting::Auto);
const PLUGIN: (Given, Counting) = (Given::Emulated(DEFAULT_MODEL), Counting::Plugin);
const STEPS: (Given, Counting) = (Given::Emulated(DEFAULT_MODEL), Counting::Stepping);

/// Runs a job; returns what it cost from its first record to the end, and the report.
fn run(tree: &Tree, text: &str, way: (Given, Counting)) -> Result<(Cost, Report)> {
    let packed = job::pack(&file::parse(text, "bench")?, Purpose::Qemu)?;
    let (kernel, job) = (tree.kernel(), Some(&packed.bytes[..]));
    let (finished, _) = boot_counting(tree, &kernel, job, Boot::Direct, way)?;
    let times = finished.to_first_record.zip(finished.to_end_record);
    let wall = times.and_then(|(first, end)| end.checked_sub(first));
    let cost = finished.cpu_between_records.zip(wall).map(|(cpu, wall)| Cost::new(cpu, wall));
    let report = finished.collector.finish();
    match cost {
        Some(cost) if report.exit_code() == 0 => Ok((cost, report)),
        _ => {
            let outcome = report.end().map(|end| end.outcome);
            let text = format!(
                "a bench job of counting ended with {outcome:?} after {cost:?}; problems {:?}; disputes {:?}; the job:\n{text}",
                report.problems, report.disputes
            );
            Err(unfinished(&text))
        }
    }
}

fn unfinished(text: &str) -> crate::Failure {
    MachineError::Unfinished(text.to_string()).into()
}

/// Measures all of it in the firmware.
pub(super) fn measure(tree: &Tree, brief: bool) -> Result<Vec<Figure>> {
    let size = if brief { BRIEF } else { FULL };
    let mut figures = ratios(tree, size)?;
    figures.extend(sampling(tree, size)?);
    figures.extend(four_counters(tree, size)?);
    Ok(figures)
}

/// The workload with each set of events. The time has a pass of its own on the emulated PMU: a job that counts is one that
/// does not, and the workload once more.
fn ratios(tree: &Tree, size: Size) -> Result<Vec<Figure>> {
    let [mut boot, mut plain, mut boot_pmu, mut free] = [Least::default(); 4];
    let mut counted = EVENTS.map(|_| Least::default());
    let once = |text: &str, way| Ok::<_, crate::Failure>(run(tree, text, way)?.0);
    for _ in 0..size.rounds {
        boot.take(once(&workload(1, &[]), PLAIN)?);
        plain.take(once(&workload(size.iterations, &[]), PLAIN)?);
        boot_pmu.take(once(&workload(1, &[]), PLUGIN)?);
        free.take(once(&workload(size.iterations, &[]), PLUGIN)?);
        for (least, (_, events)) in counted.iter_mut().zip(EVENTS) {
            least.take(once(&workload(size.iterations, events), PLUGIN)?);
        }
    }
    let plain = plain.get().minus(boot.get());
    let mut figures = plain.seconds("firmware, plain TCG").to_vec();
    let name = "firmware, to plain TCG: no event";
    figures.extend(free.get().minus(boot_pmu.get()).to(plain, name));
    for (least, (name, events)) in counted.into_iter().zip(EVENTS) {
        let name = format!("firmware, to plain TCG: {name}");
        figures.extend(least.get().minus(free.get()).to(plain, &name));
        if events == ["instructions"] {
            // QEMU's clock counts them either way.
            continue;
        }
        let nothing = once(&workload(1, events), STEPS)?;
        let stepped = once(&workload(STEPPED, events), STEPS)?;
        // Its pass for the time takes next to nothing.
        let stepped = stepped.minus(nothing).times(size.iterations as f64 / STEPPED as f64);
        let name = format!("{name}, by stepping, extrapolated from {STEPPED} iterations");
        figures.extend(stepped.to(plain, &name));
    }
    Ok(figures)
}

/// Samples of the workload's branches: four in an iteration, and the task's own.
fn sampling(tree: &Tree, size: Size) -> Result<Vec<Figure>> {
    let [mut boot, mut plain, mut boot_pmu, mut sampled] = [Least::default(); 4];
    for _ in 0..size.rounds {
        boot.take(run(tree, &task(1, None), PLAIN)?.0);
        plain.take(run(tree, &task(size.sampled, None), PLAIN)?.0);
        boot_pmu.take(run(tree, &task(1, Some(100_000)), PLUGIN)?.0);
        sampled.take(run(tree, &task(size.sampled, Some(100_000)), PLUGIN)?.0);
    }
    let sampled = sampled.get().minus(boot_pmu.get());
    let name = "firmware, to plain TCG: sampling each 100,000th branch";
    let mut figures = sampled.to(plain.get().minus(boot.get()), name).to_vec();
    for (name, way, overflows) in
        [("", PLUGIN, size.overflows), (", by stepping", STEPS, size.overflows / 200)]
    {
        let (cost, report) = run(tree, &task(overflows * 1_000 / 5, Some(1_000)), way)?;
        let events = report.sampled().flat_map(|one| &one.events);
        let taken: u64 = events.map(|event| event.overflows).sum();
        if taken < overflows / 2 {
            return Err(unfinished("the bench job sampled too little"));
        }
        let name = format!("emulated PMU: overflows an hour, each 1,000th branch{name}");
        let hour = taken as f64 * 3_600.0;
        figures.push(Figure::count(format!("{name}: processor time"), hour / cost.cpu, "1/h"));
        figures.push(Figure::count(format!("{name}: wall time"), hour / cost.wall, "1/h"));
    }
    Ok(figures)
}

/// 10^9 instructions, 10^8 branches and as many loads, which have to come out so.
fn four_counters(tree: &Tree, size: Size) -> Result<Vec<Figure>> {
    const EVENTS: [&str; 4] = ["instructions", "branches", "loads", "stores"];
    let (boot, _) = run(tree, &long(1, &[]), PLAIN)?;
    let (plain, _) = run(tree, &long(size.long, &[]), PLAIN)?;
    let (free, _) = run(tree, &long(size.long, &[]), PLUGIN)?;
    let (all, report) = run(tree, &long(size.long, &EVENTS), PLUGIN)?;
    let counts = report.results().flat_map(|result| result.metrics.iter().skip(1));
    let counts: Vec<f64> = counts.map(|metric| metric.value.median).collect();
    let expected = [10 * size.long + 1, size.long, size.long, 0].map(|count| count as f64);
    if counts != expected {
        let text = format!("the long loop was counted wrong: {counts:?}, not {expected:?}");
        return Err(unfinished(&text));
    }
    let (nothing, _) = run(tree, &long(1, &EVENTS), STEPS)?;
    let (stepped, _) = run(tree, &long(STEPPED, &EVENTS), STEPS)?;
    let steps = stepped.minus(nothing).times(size.long as f64 / STEPPED as f64);
    let name = "10^9 instructions, 10^8 branches, 10^8 loads";
    let name = if size.long == FULL.long { name } else { "the long loop, cut short" };
    let mut figures = plain.minus(boot).seconds(&format!("{name}: plain TCG")).to_vec();
    let counted = format!("{name}: counted by four counters, exactly");
    figures.extend(all.minus(free).seconds(&counted));
    let stepped = format!("{name}: by stepping, extrapolated from {STEPPED} iterations");
    figures.extend(steps.seconds(&stepped));
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_are_ones_that_the_host_tool_takes() {
        let texts = EVENTS.map(|(_, events)| workload(10, events)).into_iter();
        let tasks = [None, Some(1_000)].map(|period| task(10, period));
        for text in texts.chain(tasks).chain([long(10, &["loads"])]) {
            let file =
                file::parse(&text, "bench").unwrap_or_else(|error| panic!("{text}\n{error}"));
            let packed = job::pack(&file, Purpose::Qemu);
            let packed = packed.unwrap_or_else(|error| panic!("{text}\n{error}"));
            assert_eq!(packed.job.items.len(), 1, "{text}");
        }
    }
}
