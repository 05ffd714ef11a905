//! Host only: from the CSV files to the block that [`crate::tables::Tables`] reads.
//!
//! ```
//! let block = events::pack::Sources::embedded()?.pack()?;
//! let tables = events::tables::Tables::open(&block).expect("what is packed opens");
//! assert!(tables.named("skylakex").unwrap().find("inst_retired.any").is_some());
//! # Ok::<(), events::pack::PackError>(())
//! ```

mod embedded;
mod error;
mod index;
mod overrides;
mod perfmon;
mod row;
mod sheet;
mod write;

pub use error::{PackError, RowError, StaleOverride};
pub use index::ProcessorRange;
pub use overrides::Override;
pub use perfmon::Merged;
pub use row::Row;

use crate::cpu::Vendor;
use crate::generic;
use crate::msr::ExtraMsr;
use sheet::{Sheet, line_number};
use std::collections::HashSet;

/// The licence of Intel's tables, which has to go with every copy of them, packed ones too.
pub const PERFMON_LICENSE: &str = include_str!("../../data/LICENSE.perfmon");

/// One table before it is packed.
#[derive(Clone, Debug, Default)]
pub struct SourceTable {
    /// Its name: `skylakex` for `intel/skylakex.csv`.
    pub name: String,
    /// Vendor.
    pub vendor: Option<Vendor>,
    /// Where the facts come from.
    pub source: String,
    /// Version of the source.
    pub version: String,
    /// Events, in any order.
    pub rows: Vec<Row>,
    /// By generic number: the name of the event here, if there is one.
    pub generics: Vec<Option<String>>,
    /// Extra MSRs whose valid bits are known.
    pub msrs: Vec<ExtraMsr>,
}

/// Everything that goes into the block.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Tables.
    pub tables: Vec<SourceTable>,
    /// Which processor has which table.
    pub processors: Vec<ProcessorRange>,
    /// Corrections that were applied.
    pub overrides: Vec<Override>,
}

impl Sources {
    /// The project's own data, with its corrections applied.
    ///
    /// # Errors
    /// Something in the files does not hold together; the tests see to it that it does.
    pub fn embedded() -> Result<Self, PackError> {
        let (file, text) = embedded::OVERRIDES;
        let overrides = overrides::read(file, text)?;
        let mut sheets = Vec::new();
        for (file, text) in embedded::TABLES {
            sheets.push(Sheet::read(file, text, &row::COLUMNS)?);
        }
        overrides::apply(&overrides, embedded::OVERRIDES.0, &mut sheets)?;
        let mut sources = Self { overrides, ..Self::default() };
        for sheet in &sheets {
            sources.tables.push(table(sheet)?);
        }
        sources.read_doubts(embedded::DOUBTS.0, embedded::DOUBTS.1)?;
        sources.read_generics(embedded::GENERIC.0, embedded::GENERIC.1)?;
        sources.read_msr_bits(embedded::MSR_BITS.0, embedded::MSR_BITS.1)?;
        sources.read_index(embedded::INDEX.0, embedded::INDEX.1)?;
        Ok(sources)
    }

    /// The table with this name or file name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&SourceTable> {
        self.tables.iter().find(|table| table.name == table_name(name))
    }

    fn table_mut(
        &mut self,
        file: &str,
        line: u64,
        name: &str,
    ) -> Result<&mut SourceTable, PackError> {
        let wanted = table_name(name);
        self.tables.iter_mut().find(|table| table.name == wanted).ok_or_else(|| {
            PackError::NoTable { file: file.to_string(), line, table: name.to_string() }
        })
    }

    fn read_generics(&mut self, file: &str, text: &str) -> Result<(), PackError> {
        let names = &generic::NAMES[..generic::TABLE_NAMES];
        let columns: Vec<&str> = ["table"].iter().chain(names).copied().collect();
        let sheet = Sheet::read(file, text, &columns)?;
        for line in 0..sheet.lines.len() {
            let name = sheet.field(line, "table");
            let table = self.table_mut(file, line_number(line), name)?;
            for generic in names {
                let event = sheet.field(line, generic);
                if !event.is_empty() && !table.rows.iter().any(|row| row.name == event) {
                    return Err(PackError::NoEvent {
                        file: file.to_string(),
                        line: line_number(line),
                        table: name.to_string(),
                        name: event.to_string(),
                    });
                }
                table.generics.push((!event.is_empty()).then(|| event.to_string()));
            }
        }
        Ok(())
    }

    /// Marks the events on whose codes the sources do not agree. Each line must find one.
    fn read_doubts(&mut self, file: &str, text: &str) -> Result<(), PackError> {
        let sheet = Sheet::read(file, text, &["tables", "name", "reason"])?;
        for line in 0..sheet.lines.len() {
            let name = sheet.field(line, "name");
            for table in sheet.field(line, "tables").split('|') {
                let rows = &mut self.table_mut(file, line_number(line), table)?.rows;
                let meant = rows.iter_mut().filter(|row| overrides::matches(name, &row.name));
                if meant.map(|row| row.doubtful = true).count() == 0 {
                    return Err(PackError::NoEvent {
                        file: file.to_string(),
                        line: line_number(line),
                        table: table.to_string(),
                        name: name.to_string(),
                    });
                }
            }
        }
        Ok(())
    }

    /// `*` as a table: all those that use the MSR.
    fn read_msr_bits(&mut self, file: &str, text: &str) -> Result<(), PackError> {
        let sheet = Sheet::read(file, text, &["tables", "msr", "bits", "source"])?;
        for line in 0..sheet.lines.len() {
            let address = sheet.number(line, "msr", u32::MAX.into())? as u32;
            let valid_bits = sheet.number(line, "bits", u64::MAX)?;
            let msr = ExtraMsr { address, valid_bits };
            let tables = sheet.field(line, "tables");
            if tables == "*" {
                let using = self.tables.iter_mut().filter(|table| table.uses(address));
                using.for_each(|table| table.msrs.push(msr));
            } else {
                for table in tables.split('|') {
                    self.table_mut(file, line_number(line), table)?.msrs.push(msr);
                }
            }
        }
        Ok(())
    }
}

impl SourceTable {
    fn uses(&self, msr: u32) -> bool {
        self.rows.iter().flat_map(|row| &row.ways).any(|way| way.msr == Some(msr))
    }
}

/// `intel/skylakex.csv` is the table `skylakex`.
fn table_name(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(".csv").unwrap_or(name)
}

fn table(sheet: &Sheet) -> Result<SourceTable, PackError> {
    let vendor = if sheet.file.starts_with("amd/") { Vendor::Amd } else { Vendor::Intel };
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for line in 0..sheet.lines.len() {
        let row = row::read(sheet, line, vendor)?;
        if !seen.insert(row.name.clone()) {
            return Err(PackError::Twice { file: sheet.file.clone(), name: row.name });
        }
        rows.push(row);
    }
    Ok(SourceTable {
        name: table_name(&sheet.file).to_string(),
        vendor: Some(vendor),
        rows,
        ..SourceTable::default()
    })
}

#[cfg(test)]
mod tests;
