//! Lists as tables, JSON and CSV; several one after the other, for the cores of a hybrid part.

use crate::cli::ListFormat;
use crate::events::plan::Planned;
use crate::primitives::table::{Width, empty, fit};
use crate::text::{ascii_controls, printable, printable_lines};
use events::tables::Core;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A list of one core, or of none.
pub(super) struct Listing {
    core: Option<String>,
    document: Map<String, Value>,
    /// In the form requested; empty for JSON, which is the document.
    text: String,
    /// What could not be had: the command's exit code tells.
    pub(super) refused: Vec<String>,
    /// Whether the text says that in words already.
    pub(super) told: bool,
    format: ListFormat,
}

impl Listing {
    /// `cells` gives a row's cells, and its heads for no row.
    pub(super) fn new<T: Serialize>(
        core: Option<&Core<'_>>,
        name: &str,
        rows: &[T],
        cells: impl Fn(Option<&T>) -> Vec<String>,
        (format, width): (ListFormat, Width),
    ) -> Self {
        let mut document = Map::new();
        let text = match format {
            ListFormat::Table => table(core, rows, cells, width),
            ListFormat::Csv => csv_of(rows),
            ListFormat::Json => {
                if let Some(core) = core {
                    document.insert("cpu".to_string(), about(core));
                }
                let rows = serde_json::to_value(rows).expect("rows serialise");
                document.insert(name.to_string(), rows);
                String::new()
            }
        };
        let core = core.map(|core| core.name().to_string());
        Self { core, document, text, refused: Vec::new(), told: false, format }
    }

    /// With what is to be said of a plan as a whole.
    pub(super) fn with_plan(mut self, planned: &Planned) -> Self {
        // Rows for another program stay rows.
        if self.format == ListFormat::Table {
            let lines: Vec<String> =
                planned.summary().iter().map(|line| printable(line).into_owned()).collect();
            self.text += &(lines.join("\n") + "\n");
            self.told = true;
        } else if self.format == ListFormat::Json {
            let document = &mut self.document;
            document.insert("passes".to_string(), json!(planned.passes));
            document.insert("fewest".to_string(), json!(planned.fewest));
            document.insert("fits".to_string(), json!(planned.passes == 1));
            document.insert("conflict".to_string(), json!(planned.conflict));
            document.insert("refused".to_string(), json!(planned.refused));
        }
        self.refused = planned.refused.iter().map(|line| format!("refused: {line}")).collect();
        self
    }
}

/// All of them in one text.
pub(super) fn together(listings: &[Listing], format: ListFormat) -> String {
    match (format, listings) {
        (ListFormat::Json, [only]) => pretty(Value::Object(only.document.clone())),
        (ListFormat::Json, several) => {
            let documents: Vec<&Map<String, Value>> =
                several.iter().map(|listing| &listing.document).collect();
            pretty(json!({ "cores": documents }))
        }
        (_, [only]) => only.text.clone(),
        (ListFormat::Table, several) => {
            several.iter().map(|listing| listing.text.as_str()).collect::<Vec<_>>().join("\n")
        }
        (ListFormat::Csv, several) => with_cores(several),
    }
}

fn pretty(value: Value) -> String {
    let text = serde_json::to_string_pretty(&value).expect("values serialise") + "\n";
    ascii_controls(&text).into_owned()
}

fn csv_of<T: Serialize>(rows: &[T]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).expect("flat rows, into memory");
    }
    finished(writer)
}

fn finished(writer: csv::Writer<Vec<u8>>) -> String {
    let bytes = writer.into_inner().expect("memory takes everything");
    let text = String::from_utf8(bytes).expect("the fields are UTF-8");
    printable_lines(&text).into_owned()
}

/// The rows of several cores under one head, with a first column that says whose they are.
fn with_cores(listings: &[Listing]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut head = None;
    for listing in listings {
        let mut reader = csv::Reader::from_reader(listing.text.as_bytes());
        let heads = reader.headers().expect("just written").clone();
        // A core that has none of the events has no rows, and so no head.
        if heads.is_empty() {
            continue;
        }
        let core = listing.core.as_deref().unwrap_or_default();
        let whole = |first: &str, rest: &csv::StringRecord| {
            std::iter::once(first).chain(rest).map(String::from).collect::<Vec<_>>()
        };
        if head.is_none() {
            writer.write_record(whole("cpu", &heads)).expect("into memory");
            head = Some(heads);
        }
        for row in reader.records() {
            writer.write_record(whole(core, &row.expect("just written"))).expect("into memory");
        }
    }
    finished(writer)
}

fn about(core: &Core<'_>) -> Value {
    json!({
        "table": core.name(),
        "vendor": core.vendor().to_string(),
        "source": core.source(),
        "version": core.version(),
        "events": core.len(),
    })
}

/// A table for people; texts out of a user's file do not steer the terminal.
fn table<T>(
    core: Option<&Core<'_>>,
    rows: &[T],
    cells: impl Fn(Option<&T>) -> Vec<String>,
    width: Width,
) -> String {
    let about = core.map_or(String::new(), |core| {
        // A user's own table has no version.
        let source = format!("{} {}", core.source(), core.version());
        format!("{} ({}, {})\n", core.name(), core.vendor(), source.trim_end())
    });
    if rows.is_empty() {
        return about;
    }
    let mut table = empty();
    table.set_header(cells(None));
    for row in rows {
        table.add_row(cells(Some(row)).iter().map(|cell| printable(cell).into_owned()));
    }
    let text = fit(table, width);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("{about}{}\n", lines.join("\n"))
}
