//! Events of some instructions only, on this processor.

use super::Target;
use alloc::format;
use alloc::string::{String, ToString};
use arch::pmu::qualifiers::Qualifiers;
use kernel::snippet::Emitted;
use kernel::snippet::events::Counted;
use kernel::snippet::qualified::{opcodes, registers, text};
use protocol::job::Snippet;
use protocol::record::Applied;

fn refused(number: u32) -> String {
    format!("only: MSR {number:#x} cannot be written")
}

impl Target<'_> {
    /// Finds the qualifiers, if the snippet requests some.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub(super) fn qualify(&mut self, snippet: &Snippet) -> Result<Option<Applied>, String> {
        let only = &snippet.setup.only;
        if only.is_empty() {
            return Ok(None);
        }
        let found = Qualifiers::detect(&self.counting.own.registers, opcodes());
        let found = found.map_err(|why| {
            format!("only: {why}; exact = {{ … }} counts the same by stepping, on every processor; only of a [[sample]] with precise = true estimates it, by PEBS or IBS")
        })?;
        let place = self.asked.controls.place.pointers;
        let own = &mut self.counting.own;
        // Every counter, so that the writes before each pass, which are of some of them, cannot be refused.
        let counters = own.driver.iter().flat_map(|driver| driver.capabilities().counters());
        let counters = counters.fold(0, |all, one| all | one.bit());
        let words = registers(only, &Emitted::default(), false, place, counters);
        let words = words.map_err(|why| why.to_string())?;
        let written = found.write(&mut own.registers, &words);
        written.and_then(|()| found.clear(&mut own.registers)).map_err(refused)?;
        (self.asked.qualifiers, self.asked.unqualified) = (Some(found), None);
        let how = match self.machine.emulated {
            Some(emulated) if emulated.plugin => {
                "by the emulated PMU's qualifiers, at the translator's speed"
            }
            _ => "by the emulated PMU's qualifiers, stepped",
        };
        Ok(Some(Applied { option: text(only), applied: true, note: how.to_string() }))
    }

    /// Nothing is qualified while a pass is programmed.
    ///
    /// # Errors
    /// Which event cannot be qualified, and why.
    pub(super) fn unqualified(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        let Some(qualifiers) = self.asked.qualifiers else { return Ok(()) };
        if let Err(number) = qualifiers.clear(&mut self.counting.own.registers) {
            self.asked.unqualified = Some(refused(number));
        }
        match pass.iter().position(|one| one.metric.is_some()) {
            Some(index) => {
                Err((index, "PERF_METRICS is of all instructions, and only of some".to_string()))
            }
            None => Ok(()),
        }
    }

    /// Qualifies the counters of the pass, for the code that is loaded.
    pub(super) fn set_qualifiers(&mut self, snippet: &Snippet) {
        let Some(qualifiers) = self.asked.qualifiers else { return };
        let counters = self.counting.own.counters.iter().fold(0, |all, one| all | one.bit());
        let (call, pointers) = (snippet.setup.call.is_some(), self.asked.controls.place.pointers);
        let emitted = self.loaded.emitted();
        // `qualify` has made them of the same filter, and written them with all counters.
        let words = registers(&snippet.setup.only, emitted, call, pointers, counters);
        let own = &mut self.counting.own.registers;
        let written = words.map_err(|why| why.to_string());
        let written = written.and_then(|words| qualifiers.write(own, &words).map_err(refused));
        if let Err(why) = written {
            self.asked.unqualified = Some(why);
        }
    }

    /// Nothing is qualified any more.
    pub(super) fn clear_qualifiers(&mut self) {
        self.asked.unqualified = None;
        if let Some(qualifiers) = self.asked.qualifiers.take() {
            let _ = qualifiers.clear(&mut self.counting.own.registers);
        }
    }
}
