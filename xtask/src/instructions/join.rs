//! Figures of reports, put into the table.

use super::Table;
use super::state::{self, Lack, Line, State};
use crate::collect::Report;
use crate::forms::{FormRow, rows};
use crate::job::form::Case;
use protocol::record::ErrorCode;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// Whose figures: what must be the same in all reports that are joined.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Machine {
    /// What the processor calls itself.
    pub brand: String,
    /// Vendor, family, model and stepping.
    pub processor: String,
    /// Revision of its microcode.
    pub microcode: String,
    /// The emulated PMU is beneath, whose cycles are instructions.
    pub emulated: bool,
    /// What a figure counts: `cycles` or ticks of the time stamp counter.
    pub unit: String,
}

/// Why reports make no table.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum JoinError {
    /// A report without a machine.
    #[error("{0}: the report has no machine record")]
    NoMachine(String),
    /// A report without forms.
    #[error("{0}: the report has no item that measures an instruction form")]
    NoForms(String),
    /// Reports of two machines.
    #[error("{first} and {second} are not of one machine: {what} is `{one}` and `{other}`")]
    Machines {
        /// The first report.
        first: String,
        /// The other.
        second: String,
        /// What differs.
        what: &'static str,
        /// In the first.
        one: String,
        /// In the other.
        other: String,
    },
}

/// Figures this far apart are the same: reports print six digits.
const SAME: f64 = 1e-6;

/// Puts the reports, each with its name, into a table of the catalog. Their figures are of one instruction each, as saved
/// reports have them.
///
/// # Errors
/// They are of different machines, or one has no forms.
pub fn join(mut table: Table, reports: &[(&str, &Report)]) -> Result<Table, JoinError> {
    let mut places: HashMap<String, usize> =
        table.lines.iter().enumerate().map(|(index, line)| (line.form.clone(), index)).collect();
    let mut seen: HashSet<String> = HashSet::new();
    let mut first: Option<(&str, Machine)> = None;
    for &(name, report) in reports {
        let rows = rows(report);
        let machine = machine(name, report, &rows)?;
        match &first {
            Some((known, other)) => same(known, other, name, &machine)?,
            None => first = Some((name, machine)),
        }
        for row in rows {
            let index = *places.entry(row.form.clone()).or_insert_with(|| {
                table.lines.push(state::foreign(&row.form));
                table.lines.len() - 1
            });
            add(&mut table.lines[index], row, &mut table.differing);
        }
        seen.extend(report.results().map(|result| result.name.clone()));
        failures(report, &mut table.lines, &places);
    }
    table.machine = first.map(|(_, machine)| machine);
    for line in table.lines.iter_mut().filter(|line| line.has_figures()) {
        let all = line.items.iter().all(|item| seen.contains(item));
        line.state = if all { State::Measured } else { State::Partly };
    }
    Ok(table)
}

fn machine(name: &str, report: &Report, rows: &[FormRow]) -> Result<Machine, JoinError> {
    let record = report.machine().ok_or_else(|| JoinError::NoMachine(name.to_string()))?;
    let mut names = report.errors().filter_map(|error| error.name.as_ref());
    let cases = names.any(|name| name.parse::<Case>().is_ok());
    let unit = match rows.first() {
        Some(row) => row.unit.to_string(),
        None if cases => String::new(),
        None => return Err(JoinError::NoForms(name.to_string())),
    };
    let (family, model, stepping) = (record.family, record.model, record.stepping);
    let emulated = report.results().any(|result| result.emulated);
    Ok(Machine {
        brand: record.brand.trim().to_string(),
        processor: format!("{} family {family} model {model} stepping {stepping}", record.vendor),
        microcode: record.microcode.as_ref().map_or_else(String::new, ToString::to_string),
        emulated,
        unit,
    })
}

fn same(first: &str, one: &Machine, second: &str, other: &Machine) -> Result<(), JoinError> {
    let emulated = |machine: &Machine| machine.emulated.to_string();
    let parts = [
        ("the processor", one.processor.clone(), other.processor.clone()),
        ("its name", one.brand.clone(), other.brand.clone()),
        ("the microcode", one.microcode.clone(), other.microcode.clone()),
        ("an emulated PMU", emulated(one), emulated(other)),
        ("the unit", one.unit.clone(), other.unit.clone()),
    ];
    // A part of a table may have nothing that the processor has, and so no unit.
    let counts = |(what, one, other): &(&str, String, String)| {
        one != other && !(*what == "the unit" && (one.is_empty() || other.is_empty()))
    };
    match parts.into_iter().find(counts) {
        None => Ok(()),
        Some((what, one, other)) => Err(JoinError::Machines {
            first: first.to_string(),
            second: second.to_string(),
            what,
            one,
            other,
        }),
    }
}

/// Adds what a report says of a form. What two say is kept from the first, and told if it differs.
fn add(line: &mut Line, row: FormRow, differing: &mut Vec<String>) {
    let near = |one: f64, other: f64| (one - other).abs() <= SAME * one.abs().max(1.0);
    for latency in row.latency {
        let known = line
            .latency
            .iter()
            .find(|known| (&known.from, &known.to) == (&latency.from, &latency.to));
        match known {
            None => line.latency.push(latency),
            Some(known) if near(known.value, latency.value) => {}
            Some(known) => differing.push(format!(
                "{}, latency {} -> {}: {} and {}",
                line.form, known.from, known.to, known.value, latency.value
            )),
        }
    }
    line.same_register = line.same_register.or(row.same_register);
    match (&line.ports, row.ports) {
        (Some(known), Some(other)) if *known != other => {
            let (known, other) = (known.text(), other.text());
            differing.push(format!("{}, ports: {known} and {other}", line.form));
        }
        (None, other) => line.ports = other,
        _ => {}
    }
    match (&line.throughput, row.throughput) {
        (None, other) => line.throughput = other,
        (Some(known), Some(other)) if !near(known.value, other.value) => differing
            .push(format!("{}, throughput: {} and {}", line.form, known.value, other.value)),
        _ => {}
    }
}

/// Items that the processor does not have, or that failed.
fn failures(report: &Report, lines: &mut [Line], places: &HashMap<String, usize>) {
    for error in report.errors() {
        let Some(Ok(case)) = error.name.as_ref().map(|name| name.parse::<Case>()) else { continue };
        let Some(&index) = places.get(&case.form) else { continue };
        let (line, reason) = (&mut lines[index], error.text.clone());
        let what = case.what();
        if !line.lacks.iter().any(|lack| lack.what == what) {
            line.lacks.push(Lack { what, reason: reason.clone() });
        }
        line.state = match error.code {
            ErrorCode::Skipped => State::Absent(reason),
            _ => State::Failed(reason),
        };
    }
}
