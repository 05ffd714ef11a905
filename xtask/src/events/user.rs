//! A user's own events: files in perfmon's form, merged over the tables.

use super::{Block, CpuName, EventsError};
use events::cpu::Vendor;
use events::pack::{Merged, ProcessorRange, Sources};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// `--event-file [CPU=]FILE`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EventFile {
    /// Whose events they are, if the file is not for the processor at hand.
    pub cpu: Option<CpuName>,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for EventFile {
    type Err = String;

    /// What stands before the first `=` is a processor, unless it has a slash: `./a=b.json` is a file.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((cpu, path)) if !cpu.contains('/') => {
                Ok(Self { cpu: Some(cpu.parse()?), path: path.into() })
            }
            _ => Ok(Self { cpu: None, path: text.into() }),
        }
    }
}

/// The project's tables with `files` merged over them, and a line on each file. `at_hand`: the processor that the
/// files are for which do not say it themselves.
///
/// # Errors
/// A file that cannot be read, is not a perfmon file, or has not one event that can be taken: the reason names the file,
/// and line and column or the events. A single event that is not understood is left out with a line. A processor that is not known by its name; one that is not known by its
/// number gets a table of its own.
pub fn merged(
    files: &[EventFile],
    at_hand: Option<&CpuName>,
) -> Result<(Block, Vec<String>), EventsError> {
    if files.is_empty() {
        return Ok((Block::embedded(), Vec::new()));
    }
    let mut sources = Sources::embedded().map_err(EventsError::Merge)?;
    let mut lines = Vec::new();
    for file in files {
        let cpu = file.cpu.as_ref().or(at_hand);
        let cpu = cpu.ok_or_else(|| EventsError::NeedsCpu(file.path.clone()))?;
        let table = table_for(cpu, &mut sources)?;
        let text = fs::read_to_string(&file.path)
            .map_err(|error| EventsError::Read { path: file.path.clone(), error })?;
        let merged = sources.merge_perfmon(&table, &text);
        let merged =
            merged.map_err(|error| EventsError::Pack { path: file.path.clone(), error })?;
        if !merged.took_something() && !merged.refused.is_empty() {
            return Err(EventsError::NothingTaken {
                path: file.path.clone(),
                refused: refusals(&merged),
            });
        }
        describe(&file.path, &table, &merged, &mut lines);
    }
    let block = sources.pack().map_err(EventsError::Merge)?;
    Ok((Block(Cow::Owned(block)), lines))
}

/// The name of the processor's table. A new processor's is made.
fn table_for(cpu: &CpuName, sources: &mut Sources) -> Result<String, EventsError> {
    let block = Block::embedded();
    let tables = block.tables();
    match cpu.core(&tables) {
        Ok(core) => Ok(core.name().to_string()),
        Err(EventsError::UnknownNumber { asked, nearest }) => {
            let CpuName::Number { family, model, stepping } = *cpu else {
                return Err(EventsError::UnknownNumber { asked, nearest });
            };
            let table = format!("user_{family:x}_{model:x}");
            // perfmon's form is Intel's; only a family that is known as AMD's is not.
            let amd = tables.processors().any(|p| p.family == family && p.vendor == Vendor::Amd);
            let range = ProcessorRange {
                vendor: if amd { Vendor::Amd } else { Vendor::Intel },
                family,
                models: model..=model,
                steppings: stepping.map_or(0..=u8::MAX, |stepping| stepping..=stepping),
                core_type: None,
                native_model: None,
                role: String::new(),
                table: table.clone(),
            };
            if !sources.processors.contains(&range) {
                sources.processors.push(range);
            }
            Ok(table)
        }
        Err(error) => Err(error),
    }
}

/// How many events a file's lines name one by one.
const NAMED: usize = 20;

/// The first refusals, and how many more there are.
fn refusals(merged: &Merged) -> Vec<String> {
    let mut lines: Vec<String> =
        merged.refused.iter().take(NAMED).map(ToString::to_string).collect();
    let more = merged.refused.len().saturating_sub(NAMED);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

/// What came of a file: a line, and one for each event that was left out or goes by another name.
fn describe(path: &Path, table: &str, merged: &Merged, lines: &mut Vec<String>) {
    let path = path.display();
    let mut text = format!(
        "{path}: {} events added to {table}, {} replaced",
        merged.added.len(),
        merged.replaced.len()
    );
    if !merged.skipped.is_empty() {
        let skipped = merged.skipped.len();
        text += &format!(", {skipped} left out that are not of a core");
    }
    if !merged.refused.is_empty() {
        text += &format!(", {} left out that are not understood", merged.refused.len());
    }
    lines.push(text);
    lines.extend(refusals(merged).into_iter().map(|line| format!("warning: {path}: {line}")));
    for (name, taken) in merged.renamed.iter().take(NAMED) {
        lines.push(format!(
            "{path}: {name} is read as {taken}, a name that lists of events can have"
        ));
    }
}

#[cfg(test)]
mod tests;
