//! A made-up machine with a clock.

use super::*;
use crate::exact;
use crate::snippet::measure::tests::Made;
use protocol::hex::Hex;
use protocol::record::{CheckVerdict, TaskEnd, TaskResult, Ticks};
use std::cell::Cell;

/// A made-up machine whose clock moves by `step` at each look.
pub(super) struct Clocked {
    pub(super) made: Made,
    pub(super) clock: Cell<u64>,
    pub(super) step: u64,
    pub(super) shown: Vec<Status>,
    pub(super) items: Vec<u32>,
    /// What the suite comes to.
    pub(super) passed: u32,
    pub(super) failed: u32,
    /// Branches of a copy, as stepping counts them.
    pub(super) branches: u64,
    /// Asked for the how-manieth time, there is a stray interrupt; and how often it was asked.
    pub(super) stray_at: u32,
    pub(super) asked: u32,
    /// The item that changes the firmware's code.
    pub(super) changer: Option<u32>,
    /// That is noticed at the end alone.
    pub(super) noticed_late: bool,
    /// Bytes that it can provide.
    pub(super) bytes: u64,
    /// Names of what was provided.
    pub(super) provided: Vec<String>,
    /// Kinds of its cores.
    pub(super) cores: Vec<(u16, Option<CoreKind>)>,
}

impl Clocked {
    pub(super) fn new(step: u64) -> Self {
        Self {
            made: Made::new(2, 100),
            clock: Cell::new(0),
            step,
            shown: vec![],
            items: vec![],
            passed: 0,
            failed: 0,
            branches: 1,
            stray_at: u32::MAX,
            asked: 0,
            changer: None,
            noticed_late: false,
            bytes: 1 << 20,
            provided: vec![],
            cores: vec![],
        }
    }
}

impl Runner for Clocked {
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        self.made.prepare(snippet)
    }
    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        self.made.program(pass)
    }
    fn counts(&self) -> &[u64] {
        self.made.counts()
    }
    fn load(&mut self, snippet: &Snippet, copies: u64) {
        self.made.load(snippet, copies);
    }
    fn run(&mut self) -> Result<u64, Box<Trap>> {
        self.made.run()
    }
    fn load_once(&mut self, snippet: &Snippet) {
        self.made.load_once(snippet);
    }
    fn control(&mut self, snippet: &Snippet) -> Result<Vec<Applied>, String> {
        self.made.control(snippet)
    }
    fn finish(&mut self, _: &mut Vec<Applied>) -> Result<(), String> {
        Ok(())
    }
    fn msrs(&self) -> &[u64] {
        self.made.msrs()
    }
    fn is_unwatched(&self) -> bool {
        self.made.is_unwatched()
    }
    fn trial_runs(&self) -> u32 {
        self.made.trial_runs()
    }
    fn take_smis(&mut self) -> u32 {
        self.made.take_smis()
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        self.made.explain(trap, snippet)
    }
}

/// Every copy executes two instructions, of which one is a branch; the code around them none.
impl Stepper for Clocked {
    fn step(
        &mut self,
        snippet: &Snippet,
        copies: u64,
        _: &Filter,
        limit: u64,
    ) -> Result<Tally, Unstepped> {
        let mut tally = Tally::default();
        let executions = copies * snippet.loop_count.max(1);
        (tally.counts[0], tally.counts[1]) = (2 * executions, self.branches * executions);
        if tally.counts[0] > limit {
            return Err(Unstepped::Refused(exact::Refusal::TooLong(limit)));
        }
        Ok(tally)
    }
    fn branches(&self) -> &'static str {
        "r00c4"
    }
}

impl Machine for Clocked {
    fn now(&self) -> u64 {
        self.clock.replace(self.clock.get() + self.step)
    }
    fn progress_ticks(&self) -> u64 {
        1000
    }
    fn next_item(&mut self, index: u32, _: &Item) {
        self.items.push(index);
    }
    fn has(&self, requirement: &Requirement) -> bool {
        requirement.feature != "POPCNT"
    }
    fn announce(&mut self, status: &Status) {
        self.shown.push(status.clone());
    }
    fn provide(&mut self, asked: &[&Memory], user: bool) -> Result<Vec<Applied>, String> {
        if asked.iter().map(|memory| memory.bytes).sum::<u64>() > self.bytes {
            return Err(format!("memory `{}`: too much", asked[0].name));
        }
        self.provided.extend(asked.iter().map(|memory| format!("{} {user}", memory.name)));
        let applied = |memory: &&Memory| Applied {
            option: format!("memory={}", memory.name),
            applied: true,
            note: String::new(),
        };
        Ok(asked.iter().map(applied).collect())
    }
    fn restore(&mut self) -> Vec<String> {
        vec!["CR8".into()]
    }
    fn is_changed(&mut self, at_end: bool) -> bool {
        let changed = self.changer.is_some_and(|item| self.items.contains(&item));
        changed && self.noticed_late == at_end
    }
    fn conformance(
        &mut self,
        suite: &Conformance,
        item: u32,
        report: &mut dyn FnMut(&Check),
    ) -> Suite {
        let verdict = if self.failed > 0 { CheckVerdict::Fail } else { CheckVerdict::Pass };
        let text = String::new;
        report(&Check {
            item,
            name: "family.subject".into(),
            verdict,
            expected: text(),
            seen: text(),
            source: text(),
        });
        Suite {
            item,
            name: suite.name.to_string(),
            passed: self.passed,
            failed: self.failed,
            skipped: 3,
            known_errata: 0,
            known_behaviours: 0,
            emulated: true,
            reason: None,
            lacks: vec![],
        }
    }
    fn tasks(&mut self, item: &Tasks) -> Result<tasks::Summary, String> {
        let task = |name: &str, end| TaskResult {
            name: name.into(),
            entry: Hex(0),
            end,
            turns: 1,
            switches: 1,
            time: 1,
            value: Hex(0),
            memory_crc32: Hex(0),
            fault: None,
            user_instructions: Some(1),
            child_user_instructions: None,
            added_to: None,
            outlived: None,
            moves: None,
            shares: Vec::new(),
            cpu: 0,
            bits: 64,
            ended_bits: None,
        };
        let tasks = match self.failed {
            0 => vec![task("a", TaskEnd::Exit)],
            1 => vec![task("a", TaskEnd::Exit), task("b", TaskEnd::Fault)],
            2 => vec![task("c", TaskEnd::Limit)],
            _ => return Err(format!("{} cannot be run", item.name)),
        };
        Ok(tasks::Summary {
            tasks,
            switches: 2,
            ticks: Ticks::default(),
            interrupts: vec![],
            user_instructions: Some(1),
            together: None,
        })
    }
    fn count(&mut self, item: &Count) -> Result<CountResult, String> {
        match item.workload.tasks.len() {
            1 => Ok(CountResult { ticks: 7, ..CountResult::default() }),
            _ => Err("one task at a time".into()),
        }
    }
    fn kinds(&mut self) -> Vec<(u16, Option<CoreKind>)> {
        self.cores.clone()
    }
    fn processors(
        &mut self,
        item: &Processors,
        _: Option<CoreKind>,
        _: u32,
    ) -> Result<ProcessorsResult, processors::Failure> {
        let why = Unmeasured::Refused("one processor only".into());
        Err(processors::Failure { processor: item.cpu.map(u32::from), why })
    }
    fn take_stray(&mut self) -> Option<String> {
        self.asked += 1;
        (self.asked == self.stray_at).then(|| "a stray interrupt of vector 0 (#DE)".to_string())
    }
    fn is_emulated(&self) -> bool {
        true
    }
    fn show(&mut self, status: &Status) {
        self.shown.push(status.clone());
    }
}
