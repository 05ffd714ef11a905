//! Beginning again with the same counters.

use super::ControlBlock;

impl ControlBlock {
    /// Begins again with the same counters, presets and log: everything counted is 0, the log empty, the period what it
    /// was at first. The counters themselves are the driver's to set.
    pub fn clear(&mut self) {
        for slot in &mut self.slots {
            // The presets' doublings are undone: each was a shift within the counter's width.
            let period = slot.preset.wrapping_neg() & slot.width;
            slot.preset = (period >> slot.level).wrapping_neg() & slot.width;
            (slot.overflows, slot.dropped, slot.throttled) = (0, 0, 0);
            (slot.level, slot.running, slot.owed) = (0, 0, 0);
            slot.carry_over(self.stands, self.keeps_periods);
        }
        (self.pmis, self.spurious, self.back_to_back, self.dropped) = (0, 0, 0, 0);
        (self.cursor, self.stopped, self.shut) = (self.start, false, 0);
        self.clear_retired();
        self.throttle.clear();
        self.times.clear();
        for histogram in [&mut self.histogram, &mut self.data].into_iter().flatten() {
            histogram.clear();
        }
        if let Some(records) = &mut self.records {
            records.clear();
        }
        if let Some(sampling) = &mut self.ibs {
            sampling.clear();
        }
        if let Some(by_task) = &mut self.by_task {
            by_task.clear();
        }
        if let Some(edges) = &mut self.edges {
            edges.clear();
        }
        if let Some(accesses) = &mut self.accesses {
            accesses.clear();
        }
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.clear();
        }
        if let Some(chains) = &mut self.chains {
            chains.clear();
        }
    }
}
