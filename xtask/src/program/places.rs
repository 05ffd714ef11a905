//! Function, file and line of addresses in compiled code, put into a report.

use super::Linked;
use crate::collect::Report;
use crate::symbols::{Frame, Symbols};
use protocol::job::{Item, Job, Snippet};
use protocol::record::{Fault, Record, TaskResult};
use protocol::workload::Workload;
use std::collections::HashMap;

/// The part of a fault that came in compiled code.
const PROGRAM: &str = "program";

/// The names of a job's programs, read when they are first wanted.
struct Names<'a> {
    programs: &'a [Linked],
    known: HashMap<u16, Symbols>,
}

impl Names<'_> {
    fn at(&mut self, program: u16, address: u64) -> Option<Frame> {
        let linked = self.programs.get(usize::from(program))?;
        let symbols = self.known.entry(program).or_insert_with(|| Symbols::of(&linked.path));
        symbols.at(address.wrapping_sub(linked.bias))
    }

    /// Names where a fault came. Returns a text for people.
    fn fault(&mut self, program: u16, fault: &mut Fault) -> Option<String> {
        if fault.part != PROGRAM {
            return None;
        }
        let frame = self.at(program, fault.registers.rip.0)?;
        let function = frame.function?;
        let mut text = format!(": in `{function}`");
        if let Some(location) = &frame.location {
            text += &format!(", {location}");
        }
        (fault.function, fault.location) = (Some(function), frame.location);
        Some(text)
    }

    fn tasks(&mut self, workload: &Workload, results: &mut [TaskResult]) {
        for (task, result) in workload.tasks.iter().zip(results) {
            if let (Some(program), Some(fault)) = (task.program, &mut result.fault) {
                self.fault(program, fault);
            }
        }
    }
}

/// The snippet of an item that measures one.
fn snippet<'a, 'b>(item: &'a Item<'b>) -> Option<&'a Snippet<'b>> {
    match item {
        Item::Snippet(snippet) => Some(snippet),
        Item::Exact(exact) => Some(&exact.snippet),
        Item::Processors(processors) => Some(&processors.snippet),
        Item::History(history) => Some(&history.snippet),
        Item::Conformance(_) | Item::Tasks(_) | Item::Count(_) | Item::Sample(_) => None,
    }
}

fn workload<'a, 'b>(item: &'a Item<'b>) -> Option<&'a Workload<'b>> {
    match item {
        Item::Tasks(tasks) => Some(&tasks.workload),
        Item::Count(count) => Some(&count.workload),
        Item::Sample(sampling) => Some(&sampling.workload),
        _ => None,
    }
}

/// Names what `report`, of `job` with `programs`, says of places in compiled code.
pub fn name(report: &mut Report, job: &Job, programs: &[Linked]) {
    if programs.is_empty() {
        return;
    }
    let mut names = Names { programs, known: HashMap::new() };
    let program_of = |item: u32| {
        let call = snippet(job.items.get(item as usize)?)?.setup.call.as_ref()?;
        Some(call.program)
    };
    let workload_of = |item: u32| workload(job.items.get(item as usize)?);
    for numbered in &mut report.records {
        match &mut numbered.record {
            Record::Error(error) => {
                let program = error.item.and_then(program_of);
                if let (Some(program), Some(fault)) = (program, &mut error.fault)
                    && let Some(text) = names.fault(program, fault)
                {
                    error.text += &text;
                }
            }
            Record::Exact(exact) => {
                let Some(program) = program_of(exact.item) else { continue };
                for row in &mut exact.listing {
                    if let Some(frame) = names.at(program, row.offset.into()) {
                        (row.function, row.location) = (frame.function, frame.location);
                    }
                }
            }
            Record::Tasks(ran) => {
                if let Some(workload) = workload_of(ran.item) {
                    names.tasks(workload, &mut ran.tasks);
                }
            }
            Record::Count(count) => {
                if let Some(workload) = workload_of(count.item) {
                    names.tasks(workload, &mut count.tasks);
                }
            }
            _ => {}
        }
    }
}
