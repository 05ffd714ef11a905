//! `compare`: two reports side by side.

use super::report;
use crate::cli::{Compare, CompareFormat};
use crate::compare::baseline::{Baselines, read_named};
use crate::compare::limits::{self, LimitsFile};
use crate::compare::render::render;
use crate::compare::saved::Saved;
use crate::compare::{Comparison, Limits, compare};
use crate::primitives::table::Width;
use crate::{Result, output, page};
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Why the reports cannot be compared.
pub fn run(arguments: &Compare) -> Result<u8> {
    let out = arguments.out.as_deref();
    let inputs = [Path::new(&arguments.old), Path::new(&arguments.new)];
    let inputs: Vec<&Path> = inputs.into_iter().chain(arguments.limits.as_deref()).collect();
    output::distinct(out.as_slice(), &inputs)?;
    out.map_or(Ok(()), output::check)?;
    let file = limits_of(arguments.limits.as_deref())?;
    // Files alone need no project around them.
    let baselines = Baselines::find().ok();
    let [old, new] = [&arguments.old, &arguments.new].map(|it| read_named(it, baselines.as_ref()));
    let comparison = judged(&old?, &new?, file, arguments.confidence.0)?;
    let width = if out.is_some() { Width::default() } else { Width::of_output() };
    let text = match arguments.format {
        CompareFormat::Html => {
            let named = [&arguments.old, &arguments.new].map(String::as_str);
            page::render(&report::documents(&named, baselines.as_ref())?, Some(&comparison))
        }
        format => render(&comparison, format, arguments.all, width),
    };
    match out {
        Some(path) => output::write(path, anstream::adapter::strip_str(&text).to_string())?,
        None => output::print(&text)?,
    }
    Ok(comparison.exit_code())
}

/// The limits file, if one is named.
pub(super) fn limits_of(path: Option<&Path>) -> Result<LimitsFile> {
    Ok(path.map(limits::read).transpose()?.unwrap_or_default())
}

/// Compares by the limits of the file and of the new report's job.
pub(super) fn judged(
    old: &Saved,
    new: &Saved,
    file: LimitsFile,
    confidence: f64,
) -> Result<Comparison> {
    let job = new.run.job.as_ref().map(|job| job.limits.clone()).unwrap_or_default();
    Ok(compare(old, new, &Limits { job, file }, confidence)?)
}
