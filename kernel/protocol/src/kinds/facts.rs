//! Fact sheets.

use super::{Item, ItemRecord, JobPart, head};
use crate::facts::BYTES;
use crate::job::Facts;
use crate::limits::{self, LimitError};
use crate::record::{FactsResult, Uncounted};
use crate::verdict::{Figure, figure};
use alloc::format;
use alloc::vec::Vec;

impl JobPart<'_> for Facts<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), LimitError> {
        limits::name(&self.name)?;
        match BYTES.contains(&self.bytes) && self.bytes.is_power_of_two() {
            true => Ok(()),
            false => Err(LimitError::FactBytes(self.bytes)),
        }
    }
}

impl ItemRecord for FactsResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Facts(_))
    }

    fn figures(&self) -> Vec<Figure> {
        let memory = &self.memory;
        let cycles = |tenths: u64| tenths as f64 / 10.0;
        let mut all = Vec::new();
        all.push(figure("line", memory.line.map(f64::from)));
        for cache in &memory.caches {
            let level = cache.level;
            all.push(figure(format!("L{level} bytes"), cache.bytes().map(|bytes| bytes as f64)));
            all.push(figure(format!("L{level} ways"), cache.ways.map(f64::from)));
            all.push(figure(format!("L{level} cycles"), cache.tenths.map(cycles)));
        }
        all.push(figure("memory cycles", Some(cycles(memory.memory_tenths))));
        for tlb in &memory.tlbs {
            let name = format!("L{} TLB of {} KiB pages", tlb.level, tlb.page >> 10);
            let entries = tlb.ways.zip(tlb.sets).map(|(ways, sets)| f64::from(ways * sets));
            all.push(figure(format!("{name} entries"), entries));
            all.push(figure(format!("{name} ways"), tlb.ways.map(f64::from)));
            all.push(figure(format!("{name} walk cycles"), Some(cycles(tlb.walk_tenths))));
        }
        all.push(figure("line crossing cycles", Some(cycles(memory.crossing_tenths[0]))));
        all.push(figure("page crossing cycles", Some(cycles(memory.crossing_tenths[1]))));
        // What was not told is no figure, and nothing that a counter missed.
        all.retain(|one| one.value.is_some());
        all
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        self.uncounted.clone()
    }
}
