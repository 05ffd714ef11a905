//! From CPUID to the right table. Intel's rows are perfmon's map file, AMD's the kernel's ranges.

use super::layout::{NONE_32, PROCESSOR_BYTES};
use super::read::{u8_at, u16_at, u32_at};
use super::{Core, NoCore, Tables};
use crate::cpu::{CpuKey, Vendor};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// One range of processors and the table that they use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorEntry<'a> {
    /// Vendor.
    pub vendor: Vendor,
    /// Display family.
    pub family: u16,
    /// Display models.
    pub models: RangeInclusive<u8>,
    /// Steppings.
    pub steppings: RangeInclusive<u8>,
    /// Core type of a hybrid part.
    pub core_type: Option<u8>,
    /// Native model of a hybrid part's core.
    pub native_model: Option<u32>,
    /// What the core is called in a hybrid part: `Core`, `Atom`, `LowPower_Atom`; else empty.
    pub role: &'a str,
    pub(super) table: usize,
}

pub(super) fn vendor(code: u16) -> Vendor {
    if code == 0 { Vendor::Intel } else { Vendor::Amd }
}

impl<'a> Tables<'a> {
    /// All processors that have a table.
    pub fn processors(&self) -> impl Iterator<Item = ProcessorEntry<'a>> + use<'a> {
        let tables = *self;
        tables.processors.chunks_exact(PROCESSOR_BYTES).map(move |entry| {
            let (core_type, native) = (u8_at(entry, 1), u32_at(entry, 8));
            ProcessorEntry {
                vendor: vendor(u8_at(entry, 0).into()),
                family: u16_at(entry, 2),
                models: u8_at(entry, 4)..=u8_at(entry, 5),
                steppings: u8_at(entry, 6)..=u8_at(entry, 7),
                core_type: (core_type != 0).then_some(core_type),
                native_model: (native != NONE_32).then_some(native),
                role: tables.texts.get(usize::from(u16_at(entry, 14))),
                table: usize::from(u16_at(entry, 12)),
            }
        })
    }

    /// The table for one logical CPU. On a hybrid part the key must hold what CPUID leaf 0x1A says
    /// on that CPU. A native model that no table names falls back to the core type, if that is
    /// enough.
    ///
    /// # Errors
    /// [`NoCore`]: the processor is unknown, or hybrid and not told apart.
    pub fn core(&self, cpu: &CpuKey) -> Result<Core<'a>, NoCore> {
        let model: Vec<_> = self
            .processors()
            .filter(|p| {
                p.vendor == cpu.vendor
                    && p.family == cpu.family
                    && p.models.contains(&cpu.model)
                    && p.steppings.contains(&cpu.stepping)
            })
            .collect();
        let typed = |p: &&ProcessorEntry<'_>| p.core_type.is_none() || p.core_type == cpu.core_type;
        let exact = |p: &&ProcessorEntry<'_>| {
            p.native_model.is_none() || p.native_model == cpu.native_model
        };
        let fitting = model.iter().filter(typed).filter(exact);
        let by_type = model.iter().filter(typed);
        for mut candidates in [fitting.collect::<Vec<_>>(), by_type.collect()] {
            candidates.dedup_by_key(|p| p.table);
            if let [only] = candidates[..] {
                return Ok(Core::new(*self, only.table));
            }
        }
        if model.is_empty() {
            return Err(NoCore::Unknown(*cpu));
        }
        let cores = model.iter().map(|p| self.describe(p)).collect();
        Err(NoCore::CoreType { cpu: *cpu, cores })
    }

    fn describe(&self, entry: &ProcessorEntry<'_>) -> String {
        format!(
            "{} {}: core type {:#x}, native model {:#x}",
            entry.role,
            Core::new(*self, entry.table).name(),
            entry.core_type.unwrap_or(0),
            entry.native_model.unwrap_or(0),
        )
    }
}
