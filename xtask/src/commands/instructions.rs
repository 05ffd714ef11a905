//! `instructions`: all instruction forms, with what reports say of them.

use crate::cli::{Instructions, InstructionsFormat};
use crate::compare::baseline::{Baselines, file_of};
use crate::instructions::{self, Table};
use crate::job::form::catalog::Selection;
use crate::primitives::table::Width;
use crate::{Failure, Result, output, page};
use protocol::bits::Bits;
use std::path::PathBuf;

/// Readers of that file take every form in it as one of 64-bit code.
const NO_XML: &str =
    "--format xml: the layout of uops.info's file has forms of 64-bit code only, and --bits is 32";

/// Runs the command.
///
/// # Errors
/// A report that cannot be read or does not fit to the others, or an extension that there is not.
pub fn run(arguments: &Instructions) -> Result<u8> {
    let selection = Selection { extensions: arguments.extensions.clone(), ..Selection::default() };
    let bits = arguments.bits.unwrap_or_default();
    if arguments.format == InstructionsFormat::Xml && bits == Bits::Compatibility {
        return Err(Failure::Usage(NO_XML.to_string()));
    }
    let entries = selection.of(instructions::catalog(bits)).map_err(Failure::Usage)?;
    let mut table = instructions::list(&entries);
    if !arguments.reports.is_empty() {
        table = joined(table, &arguments.reports, arguments.out.as_deref())?;
        // Forms that only a report has are of no extension.
        if !arguments.extensions.is_empty() {
            table.lines.truncate(entries.len());
        }
    }
    let width = if arguments.out.is_some() { Width::default() } else { Width::of_output() };
    // Elements of XML need the catalog in addition to the lines, and have only the measured ones.
    let text = match arguments.format {
        InstructionsFormat::Xml => instructions::xml(&table, &entries, &arguments.architecture),
        format => {
            let wanted = |name: &str| {
                arguments.states.is_empty() || arguments.states.iter().any(|one| one.name() == name)
            };
            let counts = instructions::summary(&table);
            table.lines.retain(|line| wanted(line.state.name()));
            match format {
                InstructionsFormat::Csv => instructions::csv(&table),
                InstructionsFormat::Json => instructions::json(&table),
                _ => instructions::table(&table, width) + &counts,
            }
        }
    };
    super::write_text(arguments.out.as_deref(), &text)
}

/// The table with what the reports say.
fn joined(table: Table, named: &[String], out: Option<&std::path::Path>) -> Result<Table> {
    let baselines = Baselines::find().ok();
    let files: Vec<PathBuf> = named.iter().map(|one| file_of(one, baselines.as_ref())).collect();
    if let Some(out) = out {
        let inputs: Vec<_> = files.iter().map(PathBuf::as_path).collect();
        output::distinct(&[out], &inputs)?;
    }
    let mut documents = Vec::new();
    for (name, path) in named.iter().zip(&files) {
        let bytes = std::fs::read(path).map_err(Failure::file("read", path))?;
        documents.push((name.as_str(), page::read(&bytes, name)?));
    }
    let reports: Vec<_> =
        documents.iter().map(|(name, document)| (*name, document.report())).collect();
    instructions::join(table, &reports).map_err(|error| Failure::Usage(error.to_string()))
}
