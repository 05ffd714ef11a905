//! One form of the table.

use crate::forms::{Latency, Throughput};
use crate::job::form::catalog::{self, Entry};
use crate::ports::Found;
use serde::Serialize;

/// One instruction form.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The form: of one that is not measured, as the manual writes it.
    pub form: String,
    /// Opcode and prefixes in the manuals' notation; nothing for a form that the catalog does not have.
    pub encoding: String,
    /// Bits of CPUID that a processor with it has.
    pub extension: String,
    /// What is known of it.
    pub state: State,
    /// One entry for each measured pair of a source and a destination.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<Latency>,
    /// If none waits for another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// Of a chain in which all operands of a kind are one register.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_register: Option<f64>,
    /// Which ports its micro-operations can run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Found>,
    /// What is not measured of a form that is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Lack>,
    /// Names of the items that measure it.
    #[serde(skip)]
    pub items: Vec<String>,
}

impl Line {
    /// Whether anything was measured.
    #[must_use]
    pub fn has_figures(&self) -> bool {
        !self.latency.is_empty()
            || self.throughput.is_some()
            || self.same_register.is_some()
            || self.ports.is_some()
    }

    /// Why there is no figure, of the form or of parts of it.
    #[must_use]
    pub fn reasons(&self) -> String {
        if !self.has_figures() && !self.state.reason().is_empty() {
            return self.state.reason().to_string();
        }
        let lacks = self.lacks.iter().map(|lack| format!("{}: {}", lack.what, lack.reason));
        let ports = self.ports.iter().filter_map(|found| found.reason.as_ref());
        let lacks = lacks.chain(ports.map(|reason| format!("ports: {reason}")));
        lacks.collect::<Vec<_>>().join("; ")
    }
}

/// A measurement that there is not.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Lack {
    /// From where to where, or `throughput`.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// What is known of a form.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is", content = "reason")]
pub enum State {
    /// All that can be measured was.
    Measured,
    /// Some of it was.
    Partly,
    /// It can be measured, and no report has it.
    Open,
    /// The processor does not have it, as CPUID says.
    Absent(String),
    /// The processor raised an exception, or the item failed otherwise.
    Failed(String),
    /// It cannot be measured by itself.
    Refused(String),
}

impl State {
    /// All names.
    pub const NAMES: [&'static str; 6] =
        ["measured", "partly", "open", "absent", "failed", "refused"];

    /// Its name, as JSON has it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let index = match self {
            Self::Measured => 0,
            Self::Partly => 1,
            Self::Open => 2,
            Self::Absent(_) => 3,
            Self::Failed(_) => 4,
            Self::Refused(_) => 5,
        };
        Self::NAMES[index]
    }

    /// Why there is no figure.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Absent(reason) | Self::Failed(reason) | Self::Refused(reason) => reason,
            Self::Measured | Self::Partly | Self::Open => "",
        }
    }
}

/// A form of the catalog before anything was measured.
pub fn open(entry: &Entry) -> Line {
    let measured = catalog::measure(entry);
    let state = match (measured.made.is_empty(), measured.missing.first()) {
        (true, Some(missing)) => State::Refused(missing.reason.clone()),
        (true, None) => State::Refused("none of its figures can be measured".to_string()),
        (false, _) => State::Open,
    };
    let lacks = match state {
        State::Open => measured.missing.into_iter(),
        _ => Vec::new().into_iter(),
    };
    Line {
        form: entry.name.clone(),
        encoding: entry.code.op_code().op_code_string().to_string(),
        extension: entry.extension(),
        state,
        latency: Vec::new(),
        throughput: None,
        same_register: None,
        ports: None,
        lacks: lacks.map(|one| Lack { what: one.pair, reason: one.reason }).collect(),
        items: measured.made.iter().map(|made| made.case.to_string()).collect(),
    }
}

/// A form that only a report has.
pub fn foreign(form: &str) -> Line {
    Line {
        form: form.to_string(),
        encoding: String::new(),
        extension: String::new(),
        state: State::Open,
        latency: Vec::new(),
        throughput: None,
        same_register: None,
        ports: None,
        lacks: Vec::new(),
        items: Vec::new(),
    }
}
