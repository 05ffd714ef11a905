//! One report of all machines.

mod table;

use super::machine::{Machine, exit_code};
use crate::cli::{Format, LabFormat};
use crate::document::DocumentError;
use crate::text::ascii_controls;
use crate::{page, render};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the document. A change that an old reader would misread raises it.
pub const VERSION: u64 = 1;

#[derive(Serialize)]
struct Document<'a> {
    lab: u64,
    job: &'a str,
    exit_code: u8,
    machines: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    place: &'a str,
    tags: &'a BTreeMap<String, String>,
    /// What `collect --format json` would have written of its log.
    report: Value,
}

impl<'a> Entry<'a> {
    fn of(machine: &'a Machine) -> Self {
        let place = &machine.place;
        let report = serde_json::from_str(&document(machine)).expect("our own document");
        Self { place: &place.name, tags: &place.tags, report }
    }
}

/// Renders it.
///
/// # Errors
/// A report that the page cannot show.
pub fn render(machines: &[Machine], job: &str, format: LabFormat) -> Result<String, DocumentError> {
    Ok(match format {
        LabFormat::Table => table::render(machines, job),
        LabFormat::Json => json(machines, job),
        LabFormat::Csv => csv(machines),
        LabFormat::Html => {
            let documents = machines
                .iter()
                .map(|one| page::read(document(one).as_bytes(), &one.place.name))
                .collect::<Result<Vec<_>, _>>()?;
            page::render(&documents, None)
        }
    })
}

fn document(machine: &Machine) -> String {
    render::render(&machine.report, &machine.context, Format::Json)
}

fn json(machines: &[Machine], job: &str) -> String {
    let machines_of = machines.iter().map(Entry::of).collect();
    let document =
        Document { lab: VERSION, job, exit_code: exit_code(machines), machines: machines_of };
    let text = serde_json::to_string_pretty(&document).expect("reports serialise");
    ascii_controls(&(text + "\n")).into_owned()
}

/// The rows of each machine's CSV with its place in front. Machines of which some have further columns get these at the end.
fn csv(machines: &[Machine]) -> String {
    let mut header: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for machine in machines {
        let text = render::render(&machine.report, &machine.context, Format::Csv);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
        let mut lines = reader.records().map(|line| line.expect("our own rows"));
        let own: Vec<String> =
            lines.next().iter().flat_map(|line| line.iter()).map(str::to_string).collect();
        if own.len() > header.len() {
            header = own;
        }
        rows.extend(lines.map(|line| (&machine.place.name, line)));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |first: &str, fields: Vec<String>| {
        let mut all = vec![first.to_string()];
        all.extend(fields);
        all.resize(header.len() + 1, String::new());
        // Writing to memory does not fail.
        writer.write_record(&all).expect("rows of one length");
    };
    write("place", header.clone());
    for (place, line) in rows {
        write(place, line.iter().map(str::to_string).collect());
    }
    String::from_utf8(writer.into_inner().expect("memory")).expect("text")
}

#[cfg(test)]
mod tests;
