//! What counting costs: under the emulated PMU in processor time, and the interrupt's path in instructions.

use super::Figure;
use super::boots::{boot_counting, median};
use crate::Result;
use crate::build::Tree;
use crate::cli::{Boot, Counting};
use crate::job::{self, Purpose, file};
use crate::machine::accel::DEFAULT_MODEL;
use crate::machine::{Finished, Given, MachineError};
use protocol::record::Record;

/// Instructions of the loop that is timed: two an iteration.
const PLAIN: u64 = 100_000_000;
const STEPPED: u64 = 100_000;
/// Copies of the loop that a measurement executes without warm-up and with one run: one, and then two.
const COPIES: u64 = 3;
/// Boots of each kind.
const ROUNDS: usize = 3;

/// A job of one loop of so many instructions that counts `events`. Nothing watches it: that would run it once more.
fn job(instructions: u64, events: &str) -> String {
    let iterations = instructions / 2;
    format!(
        "name = \"bench\"\n[[snippet]]\nname = \"loop\"\nasm = \"mov ecx, {iterations}; 2: dec ecx; jnz 2b\"\n\
         unroll = 1\nruns = 1\nwarmup = 0\nevents = [{events}]\nmachine = {{ time-limit = 0 }}\n"
    )
}

fn run(tree: &Tree, text: &str) -> Result<Finished> {
    run_counting(tree, text, Counting::Auto)
}

fn run_counting(tree: &Tree, text: &str, counting: Counting) -> Result<Finished> {
    let packed = job::pack(&file::parse(text, "bench")?, Purpose::Qemu)?;
    let way = (Given::Emulated(DEFAULT_MODEL), counting);
    Ok(boot_counting(tree, &tree.kernel(), Some(&packed.bytes), Boot::Direct, way)?.0)
}

/// Seconds of processor time from the first record to the end, which is the loop and little else.
fn seconds(tree: &Tree, text: &str, counting: Counting) -> Result<f64> {
    let finished = run_counting(tree, text, counting)?;
    let time = finished.cpu_between_records;
    let results = finished.collector.finish().results().count();
    match time {
        Some(time) if results == 1 => Ok(time.as_secs_f64()),
        _ => Err(MachineError::Unfinished("the bench job gave no result".into()).into()),
    }
}

/// Measures all of it.
pub(super) fn measure(tree: &Tree) -> Result<Vec<Figure>> {
    let (mut nothing, mut free, mut counted, mut stepped) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        nothing.push(seconds(tree, &job(2, ""), Counting::Stepping)?);
        free.push(seconds(tree, &job(PLAIN, ""), Counting::Stepping)?);
        counted.push(seconds(tree, &job(PLAIN, "\"instructions\""), Counting::Stepping)?);
        stepped.push(seconds(tree, &job(STEPPED, "\"0xc4.0x00\""), Counting::Stepping)?);
    }
    let [nothing, free, counted, stepped] =
        [nothing, free, counted, stepped].map(|mut values| median(&mut values));
    let mut figures = vec![
        Figure::count(
            "emulated PMU: 3 * 10^8 plain instructions, counted to uncounted",
            // Under the emulated PMU the time has a pass of its own: the counting job is the uncounted one, and once more.
            (counted - free) / (free - nothing),
            "ratio",
        ),
        Figure::count(
            "emulated PMU: instructions stepped a second of processor time",
            // Its pass for the time takes next to nothing.
            (COPIES * STEPPED) as f64 / (stepped - nothing),
            "1/s",
        ),
    ];
    figures.extend(paths(tree)?);
    figures.push(overflows(tree)?);
    Ok(figures)
}

/// How many overflows a second the machine takes at the shortest period that there is, each into the histogram.
fn overflows(tree: &Tree) -> Result<Figure> {
    let text = "name = \"bench\"\n[[sample]]\nasm = \"nop; nop; nop\"\nturns = 100000\n\
                events = [\"r00c0\"]\nperiod = 64\n";
    let finished = run(tree, text)?;
    let time = finished.cpu_between_records;
    let report = finished.collector.finish();
    let overflows = report.sampled().flat_map(|one| &one.events).map(|event| event.overflows);
    let overflows: u64 = overflows.sum();
    let Some(time) = time.filter(|_| overflows > 0) else {
        return Err(MachineError::Unfinished("the bench job sampled nothing".into()).into());
    };
    let rate = overflows as f64 / time.as_secs_f64();
    Ok(Figure::count(
        "emulated PMU: overflows sampled a second of processor time, period 64",
        rate,
        "1/s",
    ))
}

/// Checks of the conformance suite that count instructions, what they count, and what IBM's PowerPC performance monitor
/// API states for the same. The documents of IRIX, OpenBSD, Solaris and Itanium that this project follows give no cost.
const COUNTED: [(&str, &str, Option<&str>); 11] = [
    (
        "pmi.path",
        "interrupted to resumed instruction, an overflow counted",
        Some("200 to 400 (IBM PM API: interrupt, accumulation, restart)"),
    ),
    (
        "pmi.path_with_sample",
        "interrupted to resumed instruction, a sample written",
        Some("about 500 (IBM PM API: a sample in a log)"),
    ),
    ("cost.rdpmc", "RDPMC by the driver", None),
    ("cost.rdpmc_ring_3", "RDPMC in ring 3, with loading its index and leaving ring 3", None),
    ("cost.read_1", "one read of 1 count of 64 bits", None),
    ("cost.read_4", "one read of 4 counts of 64 bits", None),
    ("cost.read_8", "one read of 8 counts of 64 bits", None),
    ("cost.turn_1", "a multiplex switch, 1 counter out and in", None),
    ("cost.turn_4", "a multiplex switch, 4 counters out and in", None),
    ("cost.turn_8", "a multiplex switch, 8 counters out and in", None),
    ("cost.snapshot", "a snapshot of 4 counts and the machine's figures", None),
];

/// What the conformance suite counts.
fn paths(tree: &Tree) -> Result<Vec<Figure>> {
    let names = COUNTED.map(|(check, ..)| format!("\"{check}\"")).join(", ");
    let text = format!("name = \"bench\"\nkind = \"conformance\"\nchecks = [{names}]\n");
    let report = run(tree, &text)?.collector.finish();
    let figure = |(check, name, published): (&str, &str, Option<&'static str>)| {
        let seen = report.records.iter().find_map(|numbered| match &numbered.record {
            Record::Check(record) if record.name == check => Some(record.seen.clone()),
            _ => None,
        });
        // "59 instructions, 6 interrupts"
        let count = seen.as_deref().and_then(|seen| seen.split(' ').next()?.parse().ok());
        let count = count.ok_or_else(|| {
            MachineError::Unfinished(format!("the suite's check {check} gave no figure: {seen:?}"))
        })?;
        let figure = Figure::count(name, count, "instructions");
        Ok(published.into_iter().fold(figure, Figure::beside))
    };
    COUNTED.into_iter().map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_are_ones_that_the_host_tool_takes() {
        for events in ["", "\"instructions\"", "\"0xc4.0x00\""] {
            let file = file::parse(&job(10, events), "bench").unwrap();
            assert_eq!(file.snippets.len(), 1);
            assert!(job::pack(&file, Purpose::Qemu).is_ok(), "{events}");
        }
    }
}
