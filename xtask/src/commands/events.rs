//! `events`: what can be counted on which processor. No machine is started, nothing is built.

use crate::cli::{Events, ListFormat};
use crate::events::encodings::{DecodedRow, EncodedRow, decoded, encoded};
use crate::events::list::{self, CpuRow, EventRow, GenericRow};
use crate::events::{CpuName, EventsError, cpu, user};
use crate::render::table::STYLE;
use crate::{Failure, Result};
use comfy_table::Table;
use events::tables::{Core, Tables};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;

/// Runs the command.
///
/// # Errors
/// What is wrong with the processor's name, the pattern, the value or a file.
pub fn run(arguments: &Events) -> Result<u8> {
    let (block, lines) = user::merged(&arguments.event_files, at_hand(arguments)?.as_ref())?;
    for line in lines {
        anstream::eprintln!("{line}");
    }
    let text = text(arguments, &block.tables())?;
    match &arguments.out {
        Some(path) => fs::write(path, text).map_err(Failure::file("write", path))?,
        None => anstream::print!("{text}"),
    }
    Ok(0)
}

/// The processor whose events a file is taken to describe.
fn at_hand(arguments: &Events) -> std::result::Result<Option<CpuName>, EventsError> {
    if arguments.cpu.is_some() || arguments.event_files.is_empty() {
        return Ok(arguments.cpu.clone());
    }
    Ok(Some(CpuName::of(&cpu::key_of_host()?)))
}

fn text(arguments: &Events, tables: &Tables<'_>) -> Result<String> {
    let format = arguments.format;
    if arguments.cpus {
        return Ok(show(format, None, "processors", &list::cpus(tables), CpuRow::cells));
    }
    let core = match &arguments.cpu {
        Some(cpu) => cpu.core(tables)?,
        None => tables.core(&cpu::key_of_host()?).map_err(EventsError::NoCore)?,
    };
    let pattern = arguments.pattern.as_deref();
    if let Some(value) = arguments.decode {
        let msrs: Vec<_> = arguments.msr.iter().map(|msr| msr.0).collect();
        let rows = decoded(&core, value.0, &msrs)?;
        return Ok(show(format, Some(&core), "readings", &rows, DecodedRow::cells));
    }
    if arguments.generic {
        let rows = list::generics(&core, pattern);
        some(&rows, &core, pattern)?;
        return Ok(show(format, Some(&core), "generic", &rows, GenericRow::cells));
    }
    let rows = list::events(&core, pattern);
    match pattern {
        // No part of a name: then an event with modifiers, or something that says what it may have meant.
        Some(text) if rows.is_empty() && !text.contains(['*', '?']) => {
            let rows = encoded(&core, text)?;
            Ok(show(format, Some(&core), "encodings", &rows, EncodedRow::cells))
        }
        _ => {
            some(&rows, &core, pattern)?;
            Ok(show(format, Some(&core), "events", &rows, EventRow::cells))
        }
    }
}

fn some<T>(rows: &[T], core: &Core<'_>, pattern: Option<&str>) -> Result<()> {
    if !rows.is_empty() {
        return Ok(());
    }
    let (cpu, pattern) = (core.name().to_string(), pattern.unwrap_or_default().to_string());
    Err(EventsError::Nothing { cpu, pattern }.into())
}

/// The rows in `format`; `cells` gives those of the table, its heads for no row.
fn show<T: Serialize>(
    format: ListFormat,
    core: Option<&Core<'_>>,
    name: &str,
    rows: &[T],
    cells: impl Fn(Option<&T>) -> Vec<String>,
) -> String {
    match format {
        ListFormat::Table => table(core, rows, cells),
        ListFormat::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for row in rows {
                writer.serialize(row).expect("flat rows, into memory");
            }
            String::from_utf8(writer.into_inner().expect("memory takes everything"))
                .expect("the fields are UTF-8")
        }
        ListFormat::Json => {
            let mut document = serde_json::Map::new();
            if let Some(core) = core {
                document.insert("cpu".to_string(), about(core));
            }
            let rows = serde_json::to_value(rows).expect("rows serialise");
            document.insert(name.to_string(), rows);
            serde_json::to_string_pretty(&Value::Object(document)).expect("values serialise") + "\n"
        }
    }
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

fn table<T>(
    core: Option<&Core<'_>>,
    rows: &[T],
    cells: impl Fn(Option<&T>) -> Vec<String>,
) -> String {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(cells(None));
    for row in rows {
        table.add_row(cells(Some(row)));
    }
    let about = core.map_or(String::new(), |core| {
        format!("{} ({}, {} {})\n", core.name(), core.vendor(), core.source(), core.version())
    });
    let lines: Vec<String> =
        table.to_string().lines().map(|line| line.trim_end().to_string()).collect();
    format!("{about}{}\n", lines.join("\n"))
}

/// Cells of a row, or the heads above them.
fn cells_of<T, const N: usize>(
    row: Option<&T>,
    heads: [&str; N],
    cells: impl FnOnce(&T) -> [String; N],
) -> Vec<String> {
    row.map_or_else(|| heads.map(String::from).to_vec(), |row| cells(row).to_vec())
}

impl EventRow {
    fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["event", "select", "counters", ""], |row| {
            [row.name.clone(), row.select.clone(), row.counters.clone(), row.remarks()]
        })
    }
}

impl GenericRow {
    fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["", "generic event", "here", "select"], |row| {
            let fixed = row.fixed.map(|fixed| format!("fixed counter {fixed}"));
            let select = fixed.unwrap_or_else(|| row.select.clone());
            let architectural = if row.from == "architectural" { " (architectural)" } else { "" };
            let here = format!("{}{architectural}", row.event);
            [row.number.to_string(), row.name.to_string(), here, select]
        })
    }
}

impl EncodedRow {
    fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["event", "counters", "control", "MSR", ""], |row| {
            let fixed = row.fixed.map(|fixed| format!("fixed {fixed}"));
            let counters = fixed.unwrap_or_else(|| row.counters.clone());
            let (control, msr) = (row.control.clone(), row.msr.clone());
            [row.name.clone(), counters, control, msr, row.notes.clone()]
        })
    }
}

impl DecodedRow {
    fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["event", "reading", ""], |row| {
            [row.text.clone(), row.closeness.to_string(), row.remarks.clone()]
        })
    }
}

impl CpuRow {
    fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["table", "maker", "events", "version", "family.model"], |row| {
            let (table, vendor) = (row.table.clone(), row.vendor.clone());
            [table, vendor, row.events.to_string(), row.version.clone(), row.processors.clone()]
        })
    }
}
