//! What a switch from task to task costs in instructions, with counters that follow the tasks and without.

use super::Figure;
use super::boots::boot;
use crate::Result;
use crate::build::Tree;
use crate::cli::Boot;
use crate::collect::Report;
use crate::job::{self, Purpose, file};
use crate::machine::accel::DEFAULT_MODEL;
use crate::machine::{Given, MachineError};

/// Turns of each of the two tasks, in the shorter workload; the longer has twice as many. Each turn yields.
const TURNS: u64 = 200;
/// DEC and JNZ of a turn. The INT by which it yields belongs to the switch.
const LOOP: f64 = 2.0;

/// Two workloads of `kind` that differ in their turns alone. No tick comes so soon.
fn text(kind: &str, keys: &str) -> String {
    let workload = |turns: u64| {
        let task = |name: &str| {
            format!(
                "[[{kind}.task]]\nname = \"{name}\"\nasm = \"int 0x83\"\nturns = {turns}\nring = 3\n"
            )
        };
        format!("[[{kind}]]\ntick-ns = 10000000000\n{keys}{}{}", task("a"), task("b"))
    };
    format!("name = \"bench\"\n{}{}", workload(TURNS), workload(2 * TURNS))
}

fn run(tree: &Tree, text: &str, given: Given) -> Result<Report> {
    let packed = job::pack(&file::parse(text, "bench")?, Purpose::Qemu)?;
    let (finished, _) = boot(tree, &tree.kernel(), Some(&packed.bytes), Boot::Direct, given)?;
    Ok(finished.collector.finish())
}

/// Instructions of a switch, out of those of both workloads.
fn cost(instructions: &[u64]) -> Result<f64> {
    let [short, long] = instructions[..] else {
        return Err(MachineError::Unfinished("a bench job of tasks gave no result".into()).into());
    };
    Ok((long as f64 - short as f64) / (2 * TURNS) as f64 - LOOP)
}

/// Measures all of it. Without counters the TSC counts the instructions, under icount; with them the first event does.
pub(super) fn measure(tree: &Tree) -> Result<Vec<Figure>> {
    let plain = run(tree, &text("run", ""), Given::None)?;
    let time = plain.tasks().map(|one| one.tasks.iter().map(|task| task.time).sum());
    let mut figures = vec![Figure::count(
        "a switch from task to task by a yield, without counters",
        cost(&time.collect::<Vec<u64>>())?,
        "instructions",
    )];
    for events in [1, 4, 8] {
        let list = vec!["\"instructions\""; events].join(", ");
        let report = run(
            tree,
            &text("count", &format!("events = [{list}]\ntogether = true\n")),
            Given::Emulated(DEFAULT_MODEL),
        )?;
        let seen = report.counts().filter_map(|one| Some(one.events.first()?.sum.raw));
        figures.push(Figure::count(
            format!("the same, counting {events} event{}", if events == 1 { "" } else { "s" }),
            cost(&seen.collect::<Vec<u64>>())?,
            "instructions",
        ));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_are_ones_that_the_host_tool_takes() {
        for text in
            [text("run", ""), text("count", "events = [\"instructions\"]\ntogether = true\n")]
        {
            let file = file::parse(&text, "bench").unwrap();
            assert_eq!(job::pack(&file, Purpose::Qemu).unwrap().job.items.len(), 2, "{text}");
        }
    }

    #[test]
    fn a_switch_costs_what_more_of_them_cost_more() {
        assert_eq!(cost(&[100, 100 + 2 * TURNS * 52]).unwrap(), 50.0);
        assert!(cost(&[1]).is_err());
    }
}
