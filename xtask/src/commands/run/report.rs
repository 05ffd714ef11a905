//! The report of a run, with the symbols of a crash.

use crate::cli::{self, Machine};
use crate::collect::Report;
use crate::commands::{deliver, deliver_text};
use crate::context::Context;
use crate::job::Packed;
use crate::machine::Choice;
use crate::samples::short;
use crate::symbols::{Symbols, image_base};
use crate::{Result, build};
use std::path::Path;

pub(super) fn context(
    machine: &Machine,
    choice: &Choice,
    packed: &Packed,
    complaint: Option<String>,
    wanted: &cli::Output,
) -> Context {
    let shift = machine.icount.shift(machine.boot).filter(|_| !choice.kvm);
    Context {
        source: "qemu".to_string(),
        accelerator: Some(if choice.kvm { "kvm" } else { "tcg" }.to_string()),
        pmu: Some(choice.what()),
        reason: Some(choice.reason.clone()),
        boot: Some(format!("{:?}", machine.boot).to_lowercase()),
        ticks_per_instruction: shift.map(|shift| 1 << shift),
        metrics: Vec::new(),
        backtrace: Vec::new(),
        sampled: packed.sampled.clone(),
        kernel: None,
        tools: None,
        job: None,
        items: packed.job.items.iter().map(|item| item.name().to_string()).collect(),
        complaint,
        interrupted: None,
        width: wanted.width(),
        pmu_said: Vec::new(),
        notes: Vec::new(),
        authentication: None,
    }
}

/// Resolves a crash's backtrace, renders the report, unless it is there as a `page`, and tells the exit code.
pub(super) fn report(
    report: &Report,
    mut context: Context,
    wanted: &cli::Output,
    page: Option<String>,
) -> Result<u8> {
    if needs_symbols(report)
        && let Some(kernel) = build::symbols()
    {
        resolve(report, &mut context, &kernel);
        context.kernel = Some(kernel);
    }
    match page {
        Some(page) => deliver_text(report, &context, wanted, &page),
        None => deliver(report, &context, wanted),
    }
}

/// Whether a report has addresses in the firmware.
pub(in crate::commands) fn needs_symbols(report: &Report) -> bool {
    report.crash().is_some() || report.sampled().next().is_some()
}

/// Adds the resolved backtrace of a crash to `context`.
pub(in crate::commands) fn resolve(
    report: &crate::collect::Report,
    context: &mut Context,
    kernel: &Path,
) {
    let Some(crash) = report.crash() else { return };
    // An exception's first address is the failing instruction, a panic's a return address.
    let exact = crash.vector.is_some();
    let mut frames = Symbols::of(kernel).resolve(&crash.backtrace, image_base(report), exact);
    for location in frames.iter_mut().filter_map(|frame| frame.location.as_mut()) {
        *location = short(location);
    }
    context.backtrace = frames.iter().map(ToString::to_string).collect();
}
