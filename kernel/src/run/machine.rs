//! The machine as the loop sees it.

use crate::exact::Stepper;
use crate::history::Historian;
use crate::sampling::Sampler;
use crate::screen::Status;
use crate::snippet::measure::Runner;
use crate::{processors, tasks};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::job::{
    Conformance, CoreKind, Count, Facts, Item, Memory, Processors, Requirement, Tasks,
};
use protocol::record::{Applied, Check, CountResult, FactsResult, ProcessorsResult, Record, Suite};

/// What the loop needs of the machine in addition to running code.
pub trait Machine: Historian + Runner + Sampler + Stepper {
    /// The TSC now.
    fn now(&self) -> u64;
    /// Ticks between two progress records.
    fn progress_ticks(&self) -> u64;
    /// Prepares for the next item: memory areas zero.
    fn next_item(&mut self, index: u32, item: &Item);
    /// Whether the processor has what the code of an item needs.
    fn has(&self, requirement: &Requirement) -> bool {
        let _ = requirement;
        true
    }
    /// Gives the item that comes the memory that it requests, filled; ring 3 may use it if `user`. [`Machine::restore`] takes it
    /// back. Returns what the report says of it.
    ///
    /// # Errors
    /// What is not available, in a sentence.
    fn provide(&mut self, asked: &[&Memory], user: bool) -> Result<Vec<Applied>, String> {
        let _ = user;
        if asked.is_empty() { Ok(Vec::new()) } else { Err("there is no memory".to_string()) }
    }
    /// After an item: takes back what it asked of the machine, and restores what it changed too. Returns the
    /// names of the latter.
    fn restore(&mut self) -> Vec<String>;
    /// Whether foreign code has changed the firmware's own code, which cannot be restored. Looked for only if
    /// [`Machine::restore`] found reason to, or `at_end`.
    fn is_changed(&mut self, at_end: bool) -> bool {
        let _ = at_end;
        false
    }
    /// Runs the conformance suite as item `index`, and hands each of its records to `report`.
    fn conformance(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(&Check),
    ) -> Suite;
    /// Finds out all that can be known of the machine, and then runs the conformance suite by what was measured, as item
    /// `index`; hands each record but the last to `report`.
    fn bring_up(
        &mut self,
        suite: &Conformance,
        index: u32,
        report: &mut dyn FnMut(Record),
    ) -> Suite {
        self.conformance(suite, index, &mut |check| report(Record::Check(check.clone())))
    }
    /// From now on energy and the uncore are those of these processors' packages; without any, of the boot processor's.
    fn measure_packages_of(&mut self, processors: &[u32]) {
        let _ = processors;
    }
    /// The processors that an item counts on, by their numbers.
    fn processors_of(&mut self, item: &Count) -> Vec<u32> {
        item.workload.cpus().into_iter().map(u32::from).collect()
    }
    /// Runs a workload to its end.
    ///
    /// # Errors
    /// Why it cannot be run, in a sentence.
    fn tasks(&mut self, item: &Tasks) -> Result<tasks::Summary, String>;
    /// Counts while the tasks of `item` run. Item, name and times are filled in by the caller.
    ///
    /// # Errors
    /// Why the tasks cannot run or the PMU refuses, in a sentence.
    fn count(&mut self, item: &Count) -> Result<CountResult, String>;
    /// The kind of each processor's core, by their numbers, where the processors tell.
    fn kinds(&mut self) -> Vec<(u16, Option<CoreKind>)> {
        Vec::new()
    }
    /// Measures a snippet on several processors, of a kind of core where one is given, as item `index`.
    ///
    /// # Errors
    /// Why that cannot be done.
    fn processors(
        &mut self,
        item: &Processors,
        core: Option<CoreKind>,
        index: u32,
    ) -> Result<ProcessorsResult, processors::Failure>;
    /// Finds out what the processor's caches and TLBs are, in the memory of the item. Item, name and times are filled in by the
    /// caller.
    ///
    /// # Errors
    /// Why that cannot be done, in a sentence.
    fn facts(&mut self, item: &Facts) -> Result<FactsResult, String> {
        let _ = item;
        Err("this machine cannot time loads".to_string())
    }
    /// Interrupts since the last call that nothing requested and no instruction raised, in a sentence.
    fn take_stray(&mut self) -> Option<String> {
        None
    }
    /// Whether the PMU is an emulated one.
    fn is_emulated(&self) -> bool;
    /// Notes the record of an item that is done, for the screen.
    fn note(&mut self, record: &Record) {
        let _ = record;
    }
    /// Shows how far the run is, and what was noted.
    fn show(&mut self, status: &Status);
    /// Shows which item is about to run: that alone, because it is done before every one.
    fn announce(&mut self, status: &Status) {
        let _ = status;
    }
}
