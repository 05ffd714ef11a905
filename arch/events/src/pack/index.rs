//! `index.csv`: which processors have which table.

use super::sheet::{Sheet, line_number, parse};
use super::{PackError, Sources, table_name};
use crate::cpu::Vendor;
use std::ops::RangeInclusive;

/// Source of the ranges of a table whose events the kernel's perf has.
const RANGES: &str = "linux:arch/x86/kernel/";

/// A range of models with one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorRange {
    /// Vendor.
    pub vendor: Vendor,
    /// Display family.
    pub family: u16,
    /// Display models.
    pub models: RangeInclusive<u8>,
    /// Steppings.
    pub steppings: RangeInclusive<u8>,
    /// Core type, on hybrid parts.
    pub core_type: Option<u8>,
    /// Native model, on hybrid parts.
    pub native_model: Option<u32>,
    /// What the core is called in a hybrid part.
    pub role: String,
    /// Name of the table.
    pub table: String,
}

impl Sources {
    pub(super) fn read_index(&mut self, file: &str, text: &str) -> Result<(), PackError> {
        let sheet = Sheet::read(
            file,
            text,
            &[
                "vendor",
                "family",
                "models",
                "steppings",
                "core_type",
                "native_model",
                "role",
                "table",
                "source",
                "source_version",
            ],
        )?;
        for line in 0..sheet.lines.len() {
            let vendor = Vendor::from_cpuid(sheet.field(line, "vendor"))
                .ok_or_else(|| sheet.wrong(line, "vendor", "this vendor is not supported"))?;
            let steppings = match sheet.field(line, "steppings") {
                "" => 0..=u8::MAX,
                _ => ranges(&sheet, line, "steppings")?.remove(0),
            };
            let table = self.table_mut(file, line_number(line), sheet.field(line, "table"))?;
            // Lines of AMD that name the kernel's file of ranges: the events come from its perf.
            let source = sheet.field(line, "source");
            table.source = match vendor {
                Vendor::Amd if !source.starts_with(RANGES) => source.to_string(),
                Vendor::Intel => source.to_string(),
                Vendor::Amd => format!("linux:tools/perf/pmu-events/arch/x86/amd{}", table.name),
            };
            table.version = sheet.field(line, "source_version").to_string();
            for models in ranges(&sheet, line, "models")? {
                self.processors.push(ProcessorRange {
                    vendor,
                    family: sheet.number(line, "family", 0xffff)? as u16,
                    models,
                    steppings: steppings.clone(),
                    core_type: sheet.optional(line, "core_type", 0xff)?.map(|n| n as u8),
                    native_model: sheet
                        .optional(line, "native_model", 0xff_ffff)?
                        .map(|n| n as u32),
                    role: sheet.field(line, "role").to_string(),
                    table: table_name(sheet.field(line, "table")).to_string(),
                });
            }
        }
        Ok(())
    }
}

/// Values and ranges joined by bars; at least one.
fn ranges(sheet: &Sheet, line: usize, column: &str) -> Result<Vec<RangeInclusive<u8>>, PackError> {
    let byte = |text| parse(text).and_then(|value| u8::try_from(value).ok());
    sheet
        .field(line, column)
        .split('|')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (byte(first), byte(last)) {
                (Some(first), Some(last)) if first <= last => Ok(first..=last),
                _ => Err(sheet.wrong(
                    line,
                    column,
                    "this is not a list of values and ranges up to 0xff",
                )),
            }
        })
        .collect()
}
