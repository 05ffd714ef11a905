//! What an item ends in that gives no result.

use crate::screen::Status;
use crate::snippet::fault;
use crate::snippet::measure::Unmeasured;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::job::{CoreKind, Requirement, Snippet};
use protocol::record::{ErrorCode, ErrorRecord, Fault};

/// Why an item has no result.
#[derive(Debug)]
pub(super) struct Failure {
    code: ErrorCode,
    text: String,
    fault: Option<Box<Fault>>,
}

impl Failure {
    pub(super) fn new(code: ErrorCode, text: String) -> Self {
        Self { code, text, fault: None }
    }

    /// This machine cannot do it, for the reason in `text`.
    pub(super) fn refused(text: String) -> Self {
        Self::new(ErrorCode::Unsupported, text)
    }

    /// The job says that it needs what the processor lacks.
    pub(super) fn skipped(requirement: &Requirement) -> Self {
        Self::new(ErrorCode::Skipped, requirement.reason())
    }

    /// A snippet that was not measured.
    pub(super) fn of(snippet: &Snippet, why: Unmeasured) -> Self {
        match why {
            Unmeasured::Fault(fault) if fault.mnemonic.as_str() == fault::TIME_LIMIT => {
                let text = fault::time_limit(&fault, snippet.setup.control.time_limit_ms);
                Self { code: ErrorCode::TimeLimit, text, fault: Some(fault) }
            }
            Unmeasured::TooLong(text) => Self::new(ErrorCode::StepLimit, text),
            other => Self::without_limits(other),
        }
    }

    /// The same of what has neither a limit of time nor of steps.
    pub(super) fn without_limits(why: Unmeasured) -> Self {
        match why {
            Unmeasured::Refused(text) | Unmeasured::TooLong(text) => Self::refused(text),
            Unmeasured::Fault(fault) => {
                let text = fault::sentence(&fault);
                Self { code: ErrorCode::SnippetFault, text, fault: Some(fault) }
            }
        }
    }

    /// The same on processor `number`.
    pub(super) fn on_processor(mut self, number: u32) -> Self {
        self.text = format!("on processor {number}: {}", self.text);
        self
    }

    /// The same on all cores of a kind.
    pub(super) fn on_cores(mut self, core: CoreKind) -> Self {
        self.text = format!("on {core} cores: {}", self.text);
        self
    }

    /// Counts it as that of the item `name`.
    pub(super) fn count(&self, name: &str, status: &mut Status) {
        if self.code != ErrorCode::Skipped {
            status.failed += 1;
            status.last_error = Some(format!("{name}: {}", self.text));
        }
    }

    /// Its record, as that of item `index`, `name`.
    pub(super) fn record(self, index: u32, name: &str) -> ErrorRecord {
        let fault = self.fault.map(|fault| *fault);
        ErrorRecord { fault, ..error_record(self.code, Some((index, name)), self.text) }
    }
}

/// A record of what went wrong, with an item or with the firmware.
pub(super) fn error_record(
    code: ErrorCode,
    item: Option<(u32, &str)>,
    text: String,
) -> ErrorRecord {
    let (item, name) = item.map(|(item, name)| (item, name.to_string())).unzip();
    ErrorRecord { code, item, name, text, fault: None, restored: Vec::new(), more: false }
}
