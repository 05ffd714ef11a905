//! A report for eyes and for other programs.

mod checks;
mod clean;
mod count;
pub mod csv;
pub mod exact;
pub mod forms;
pub(crate) mod history;
pub mod json;
pub mod notes;
mod processors;
mod samples;
pub mod style;
pub mod table;
pub mod tap;
mod tasks;
mod values;

use crate::cli::Format;
use crate::collect::Report;
use crate::interrupt;
use crate::job::sample::TaskCode;
use crate::samples::Resolver;
use crate::symbols::image_base;
use serde::Serialize;
use std::path::PathBuf;
pub use table::Width;

/// How the run came about, as far as the firmware cannot know it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Context {
    /// `qemu`, or the serial device or file.
    pub source: String,
    /// `kvm` or `tcg`; absent for a real machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// The guest's PMU, as the host tool chose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmu: Option<String>,
    /// Why these two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it was booted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// TSC ticks per instruction, if QEMU's icount makes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticks_per_instruction: Option<u64>,
    /// How wide tables may be.
    #[serde(skip)]
    pub width: Width,
    /// What the emulated PMU said.
    #[serde(skip)]
    pub pmu_said: Vec<String>,
    /// Backtrace of a crash, resolved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// Labels and bodies of sampled tasks, if the job is known here, by the item's index.
    #[serde(skip)]
    pub sampled: Vec<(u32, Vec<TaskCode>)>,
    /// The firmware's file with symbols, if it is here.
    #[serde(skip)]
    pub kernel: Option<PathBuf>,
    /// Names of the job's items, if the job is known here.
    #[serde(skip)]
    pub items: Vec<String>,
    /// The signal that interrupted the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<&'static str>,
    /// Why the machine did not finish, beyond what the report shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

impl Context {
    /// Exit code of a command that shows `report`.
    #[must_use]
    pub fn exit_code(&self, report: &Report) -> u8 {
        match (self.interrupted, &self.complaint) {
            (Some(_), _) => interrupt::EXIT_CODE,
            (None, Some(_)) => 3,
            (None, None) => report.exit_code(),
        }
    }

    /// What resolves the addresses of `report`.
    #[must_use]
    pub fn resolver(&self, report: &Report) -> Resolver {
        let kernel = self.kernel.as_deref().map(|path| (path, image_base(report)));
        Resolver::new(&self.sampled, kernel)
    }
}

/// The report in `format`. Styled text; whoever prints it strips the styles where they do not belong.
#[must_use]
pub fn render(report: &Report, context: &Context, format: Format) -> String {
    let report = &forms::per_instruction(report);
    if format == Format::Json {
        return json::render(report, context);
    }
    let (report, context) = (&*clean::report(report), &clean::context(context));
    match format {
        Format::Table => table::render(report, context),
        Format::Tap => tap::render(report, context),
        Format::Csv | Format::Json => csv::render(report),
    }
}

/// A figure with at most three decimals, without trailing zeros.
#[must_use]
pub fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn figures_are_as_short_as_they_can_be() {
        let seen = [1.0, 0.25, 1.0 / 3.0, -0.0001, 100.0, 1234.5].map(number);
        assert_eq!(seen, ["1", "0.25", "0.333", "0", "100", "1234.5"]);
    }
}
