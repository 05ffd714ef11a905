//! Snippets that run on several processors at once.

use super::head;
use crate::job::Item;
use crate::record::figure::{Figure, figure};
use crate::record::{ItemRecord, ProcessorsResult, Uncounted, digest};
use alloc::format;
use alloc::vec::Vec;

impl ItemRecord for ProcessorsResult {
    head!();

    fn is_of(&self, item: &Item) -> bool {
        matches!(item, Item::Processors(_))
    }

    // Where several kinds of core run an item, each one's result says whose it is behind the name.
    fn is_named(&self, name: &str) -> bool {
        let behind = self.core.map(|core| format!(", {core} cores"));
        let own = behind.and_then(|behind| self.name.strip_suffix(behind.as_str()));
        self.name == name || own == Some(name)
    }

    fn has_more(&self) -> bool {
        self.more
    }

    fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        for one in &self.processors {
            all.extend(one.metrics.iter().map(|metric| Figure {
                name: metric.event.clone(),
                label: format!("{} on cpu {}", metric.event, one.processor),
                value: Some(metric.value.median),
            }));
        }
        all.extend(self.sums.iter().map(|one| figure(format!("{}, sum", one.event), one.value)));
        all
    }

    fn uncounted(&self) -> Vec<Uncounted> {
        let absent = self.processors.iter().filter_map(|one| {
            let reason = one.pmu_absent.clone().filter(|_| !self.sums.is_empty())?;
            Some(Uncounted { event: format!("processor {}", one.processor), reason })
        });
        self.uncounted.iter().cloned().chain(absent).collect()
    }

    // The time of each processor, and what all of them counted.
    fn digest(&self) -> Vec<digest::Figure> {
        let time = self.processors.iter().flat_map(|one| one.metrics.first());
        let sums = self.sums.iter();
        let sums = sums.map(|sum| digest::single(&format!("{}, sum", sum.event), Some(sum.value)));
        time.map(digest::metric).chain(sums).collect()
    }
}
