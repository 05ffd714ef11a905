//! `replay`: the emulator as the machine of a report, and what is otherwise there.

use super::run::{Scratch, boot, boots, counter, prepare};
use super::write_text;
use crate::cli::{self, Emulated, Machine, Pmu, Replay, ReplayFormat};
use crate::job::{self, Purpose};
use crate::machine::{Host, MachineError, accel};
use crate::primitives::table::Width;
use crate::recording::Recorded;
use crate::{Failure, Result, interrupt, output, page, replay, setup};
use protocol::job::limits::MAX_CHECKS;

/// Runs the command.
///
/// # Errors
/// The report says nothing of its machine, it cannot be emulated, or the emulated machine did not finish.
pub fn run(arguments: &Replay) -> Result<u8> {
    let (report, out) = (arguments.report.as_path(), arguments.out.as_deref());
    output::distinct(out.as_slice(), &[report])?;
    out.map_or(Ok(()), output::check)?;
    let bytes = std::fs::read(report).map_err(Failure::file("read", report))?;
    let document = page::read(&bytes, &report.display().to_string())?;
    let there = document.records();
    let recorded = Recorded::of_report(report, there)?;
    let recorded: &'static Recorded = Box::leak(Box::new(recorded));
    let made = replay::check_names(there);
    if let Some(name) = replay::unmatched(&arguments.checks, &made) {
        let text = format!("--check `{name}`: {} has no such check", report.display());
        return Err(Failure::Usage(text));
    }
    let packed = job::pack(&job(arguments, &made)?, Purpose::Qemu)?;
    let machine = Machine {
        pmu: Pmu::Emulated(Emulated::Recorded(recorded)),
        by: arguments.by,
        pmu_fault: arguments.pmu_fault.clone(),
        timeout: arguments.timeout,
        ..Machine::default()
    };
    let choice = accel::choose(&machine, &Host::read())?;
    let tree = prepare(&[cli::Boot::Direct])?;
    setup::ensure(&[setup::Need::QemuForPmu], tree.toolchain())?;
    let counter = counter(&tree, choice.pmu, machine.by.counting)?;
    output::say(&choice.line());
    let _deferred = interrupt::defer();
    let scratch = Scratch::new(arguments.keep.as_deref())?;
    let each =
        |packed: &_| boot(&tree, packed, &machine, (&choice, &counter), (scratch.path(), None));
    let whole = boots::run(&packed, machine.reboots, each)?;
    scratch.write("serial.log", &whole.raw)?;
    if let Some(complaint) = whole.complaint {
        return Err(MachineError::Unfinished(complaint).into());
    }
    let comparison = replay::compare(there, &whole.report.records);
    let text = match arguments.format {
        ReplayFormat::Table => {
            let width = if out.is_some() { Width::default() } else { Width::of_output() };
            replay::table(&comparison, recorded, width)
        }
        ReplayFormat::Json => replay::json(&comparison, recorded),
    };
    write_text(out, &text)?;
    Ok(u8::from(comparison.differences() > 0))
}

/// A bring-up with the checks that are requested, or those that the report has.
fn job(arguments: &Replay, made: &[&str]) -> Result<job::file::JobFile> {
    let mut file = job::file::parse("kind = \"bring-up\"", "replay")?;
    let checks = match &arguments.checks[..] {
        // A report without checks is compared by the rest.
        [] if made.is_empty() => vec!["enumeration.widths".to_string()],
        [] if made.len() <= MAX_CHECKS => made.iter().map(ToString::to_string).collect(),
        asked => asked.to_vec(),
    };
    file.checks = Some(checks);
    Ok(file)
}
