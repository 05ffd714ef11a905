//! `events`: what can be counted on which processor. No machine is started, nothing is built.

mod metrics;
mod rows;
mod show;

use crate::cli::{Events, ListFormat};
use crate::events::encodings::{DecodedRow, EncodedRow, decoded, encoded};
use crate::events::list::{self, CpuRow, EventRow, GenericRow};
use crate::events::plan::{PlanRow, planned};
use crate::events::{CpuName, EventsError, cpu, user, wildcards};
use crate::primitives::table::Width;
use crate::{Result, output};
use events::tables::{Core, Tables};
use metrics::MetricRow;
use show::Listing;
use std::path::Path;

/// Runs the command. Exit code 1: some of the events requested cannot be counted there.
///
/// # Errors
/// What is wrong with the processor's name, the pattern, the value or a file.
pub fn run(arguments: &Events) -> Result<u8> {
    let files: Vec<&Path> = arguments.event_files.iter().map(|file| file.path.as_path()).collect();
    if let Some(path) = &arguments.out {
        output::distinct(&[path], &files)?;
        output::check(path)?;
    }
    let (block, lines) = user::merged(&arguments.event_files, at_hand(arguments)?.as_ref())?;
    for line in lines {
        output::say(&line);
    }
    let listings = listings(arguments, &block.tables())?;
    let untold = listings.iter().filter(|listing| !listing.told);
    for refused in untold.flat_map(|listing| &listing.refused) {
        output::say(refused);
    }
    let text = show::together(&listings, arguments.format);
    match &arguments.out {
        Some(path) => output::write(path, text)?,
        None => output::print(&text)?,
    }
    Ok(u8::from(listings.iter().any(|listing| !listing.refused.is_empty())))
}

/// The list's form, and how wide its tables may be.
fn form(arguments: &Events) -> (ListFormat, Width) {
    let width = if arguments.out.is_some() { Width::default() } else { Width::of_output() };
    (arguments.format, width)
}

/// The processor whose events a file is taken to describe.
fn at_hand(arguments: &Events) -> std::result::Result<Option<CpuName>, EventsError> {
    if arguments.cpu.is_some() || arguments.event_files.is_empty() {
        return Ok(arguments.cpu.clone());
    }
    Ok(Some(CpuName::of(&cpu::key_of_host()?)))
}

/// What is requested, of each core that the processor has.
fn listings(arguments: &Events, tables: &Tables<'_>) -> Result<Vec<Listing>> {
    if arguments.cpus {
        let rows = list::cpus(tables);
        return Ok(vec![Listing::new(None, "processors", &rows, CpuRow::cells, form(arguments))]);
    }
    let cores = cores(arguments, tables)?;
    let several = cores.len() > 1;
    let mut found = Vec::new();
    let mut missed = Vec::new();
    for core in &cores {
        match listing(arguments, core) {
            Ok(listing) => found.push(listing),
            // An event that one core has and the other has not.
            Err(error) if several => missed.push((core.name(), error)),
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() {
        let (_, error) = missed.remove(0);
        return Err(error);
    }
    for (core, error) in missed {
        output::say(&format!("{core}: {error}"));
    }
    Ok(found)
}

/// The cores meant: by `--cpu`, or by the events themselves (`skx::cycles`), or those of this machine.
fn cores<'a>(
    arguments: &Events,
    tables: &Tables<'a>,
) -> std::result::Result<Vec<Core<'a>>, EventsError> {
    if let Some(cpu) = &arguments.cpu {
        return cpu.cores(tables);
    }
    let text = arguments.plan.as_deref().or(arguments.pattern.as_deref()).unwrap_or_default();
    let named = text.trim_start_matches(['{', ' ']).split_once("::").map(|(name, _)| name);
    let name = named.and_then(|name| name.parse::<CpuName>().ok());
    match name.map(|name| name.cores(tables)) {
        Some(Ok(cores)) => Ok(cores),
        _ => Ok(vec![tables.core(&cpu::key_of_host()?)?]),
    }
}

fn listing(arguments: &Events, core: &Core<'_>) -> Result<Listing> {
    let format = form(arguments);
    let pattern = arguments.pattern.as_deref();
    if let Some(text) = &arguments.plan {
        let planned = planned(core, text, arguments.counters)?;
        let listing = Listing::new(Some(core), "plan", &planned.rows, PlanRow::cells, format);
        return Ok(listing.with_plan(&planned));
    }
    if let Some(value) = arguments.decode {
        let msrs: Vec<_> = arguments.msr.iter().map(|msr| msr.0).collect();
        let rows = decoded(core, value.0, &msrs)?;
        return Ok(Listing::new(Some(core), "readings", &rows, DecodedRow::cells, format));
    }
    if arguments.metrics {
        let rows = metrics::rows(core, pattern);
        some("metric", &rows, core, pattern)?;
        return Ok(Listing::new(Some(core), "metrics", &rows, MetricRow::cells, format));
    }
    if arguments.generic {
        let rows = list::generics(core, pattern);
        some("generic event", &rows, core, pattern)?;
        return Ok(Listing::new(Some(core), "generic", &rows, GenericRow::cells, format));
    }
    // A list, or wild cards with modifiers, is what registers take; a name or a part of one lists names.
    let is_list = pattern.is_some_and(|text| {
        text.contains([',', '{']) || wildcards::has_wildcard(text) && text.contains(':')
    });
    let mut rows = Vec::new();
    if !is_list {
        let part = pattern.map(|text| text.split_once("::").map_or(text, |(_, name)| name));
        rows = list::generic_events(core, part);
        rows.extend(list::events(core, part));
    }
    match pattern {
        // No part of a name: then an event with modifiers, or something that says what it may have meant.
        Some(text) if rows.is_empty() && (is_list || !wildcards::has_wildcard(text)) => {
            Ok(encodings(core, text, format)?)
        }
        _ => {
            some("event", &rows, core, pattern)?;
            Ok(Listing::new(Some(core), "events", &rows, EventRow::cells, format))
        }
    }
}

fn encodings(
    core: &Core<'_>,
    text: &str,
    format: (ListFormat, Width),
) -> std::result::Result<Listing, EventsError> {
    let rows = encoded(core, text)?;
    let refused = rows.iter().filter(|row| !row.refused.is_empty());
    let refused = refused.map(|row| format!("refused: {}: {}", row.text, row.refused)).collect();
    let mut listing = Listing::new(Some(core), "encodings", &rows, EncodedRow::cells, format);
    listing.refused = refused;
    Ok(listing)
}

fn some<T>(what: &'static str, rows: &[T], core: &Core<'_>, pattern: Option<&str>) -> Result<()> {
    if !rows.is_empty() {
        return Ok(());
    }
    let (cpu, pattern) = (core.name().to_string(), pattern.unwrap_or_default().to_string());
    Err(EventsError::Nothing { what, cpu, pattern }.into())
}

#[cfg(test)]
mod tests;
