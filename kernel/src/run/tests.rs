mod workloads;

use super::*;
use crate::exact::{Tally, Unstepped};
use crate::report::{Buffer, Report};
use crate::snippet::events::{Counted, Plan};
use crate::snippet::measure::tests::{Made, nop};
use arch::call::Trap;
use arch::pmu::Gate;
use arch::pmu::pmi::{ControlBlock, Delivery, Interval};
use arch::pmu::stop_on_overflow::StopOnOverflow;
use protocol::control::{MemoryType, PageSize, Ring};
use protocol::exact::Filter;
use protocol::job::{Bounds, Difference, Expect, OnEnd};
use protocol::memory::Fill;
use protocol::record::{
    Applied, CheckVerdict, CodePlace, Hex, Outcome, TaskEnd, TaskResult, Ticks,
};
use protocol::stream::{self, Reader};
use protocol::workload::Task;
use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;

/// A made-up machine whose clock moves by `step` at each look.
struct Clocked {
    made: Made,
    clock: Cell<u64>,
    step: u64,
    shown: Vec<Status>,
    items: Vec<u32>,
    /// What the suite comes to.
    passed: u32,
    failed: u32,
    /// Branches of a copy, as stepping counts them.
    branches: u64,
    /// Asked for the how-manieth time, there is a stray interrupt; and how often it was asked.
    stray_at: u32,
    asked: u32,
    /// The item that changes the firmware's code.
    changer: Option<u32>,
    /// That is noticed at the end alone.
    noticed_late: bool,
    /// Bytes that it can provide.
    bytes: u64,
    /// Names of what was provided.
    provided: Vec<String>,
}

impl Clocked {
    fn new(step: u64) -> Self {
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
    fn finish(&mut self, _: &mut Vec<Applied>) {}
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

/// Implements [`Sampler`] for a machine without a PMU.
macro_rules! without_pmu {
    ($machine:ty) => {
        impl Historian for $machine {
            fn load_within(&mut self, _: &Snippet, _: u64, _: &Gate) {
                unreachable!("there is no PMU")
            }
            fn arm(&mut self, _: &StopOnOverflow) {
                unreachable!("there is no PMU")
            }
            fn run_armed(&mut self) -> Result<(), Box<Trap>> {
                unreachable!("nothing is armed")
            }
            fn interrupts(&self) -> u64 {
                0
            }
            fn interrupted(&self) -> u64 {
                unreachable!("nothing is armed")
            }
            fn smis(&self) -> (u64, u32) {
                unreachable!("nothing is armed")
            }
            fn disarm(&mut self) {}
        }
        impl Sampler for $machine {
            fn pmu(&mut self) -> Result<sampling::Pmu<'_>, String> {
                Err("there is no PMU".into())
            }
            fn load_task(&mut self, _: &Task, _: &Gate) -> (CodePlace, core::ops::Range<u64>) {
                unreachable!("nothing is armed")
            }
            fn run_task(&mut self, _: &Task, _: bool) -> Result<u64, Unmeasured> {
                unreachable!("nothing is loaded")
            }
            fn deliver(&mut self, _: ControlBlock, _: Delivery, _: Option<Interval>) {}
            fn withdraw(&mut self) -> ControlBlock {
                ControlBlock::EMPTY
            }
            fn clocks(&self) -> [u64; 2] {
                [1; 2]
            }
            fn run_tasks(&mut self, _: &Sampling) -> Result<sampling::Scheduled, String> {
                unreachable!("there is no PMU")
            }
            fn code(&mut self, _: u64) -> Vec<u8> {
                Vec::new()
            }
            fn has_extended_lvt(&mut self, _: u8) -> bool {
                true
            }
            fn has_emulated_pmu(&self) -> bool {
                false
            }
        }
    };
}

without_pmu!(Clocked);

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
    fn next_item(&mut self, index: u32, _: &str) {
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
    fn processors(
        &mut self,
        item: &Processors,
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

fn job(items: Vec<Snippet<'static>>) -> Job<'static> {
    Job {
        name: Cow::Borrowed("test"),
        baud: 115_200,
        on_end: OnEnd::Reboot,
        exit_port: None,
        self_test: None,
        requires: vec![],
        items: items.into_iter().map(Item::Snippet).collect(),
        criteria: vec![],
        memory: vec![],
    }
}

/// With a progress record every 1,000 ticks.
fn run(job: &Job, machine: &mut impl Machine, report: &mut Report<Buffer>) -> End {
    let heart = Heartbeat::new(report, 1000, machine.now(), job.items.len() as u32);
    super::run(job, machine, &heart)
}

fn records(machine: &mut Clocked, items: Vec<Snippet<'static>>) -> (Vec<Record>, End) {
    judged(machine, items, vec![])
}

fn judged(
    machine: &mut Clocked,
    items: Vec<Snippet<'static>>,
    criteria: Vec<Criteria<'static>>,
) -> (Vec<Record>, End) {
    run_job(machine, &Job { criteria, ..job(items) })
}

fn run_job(machine: &mut Clocked, job: &Job) -> (Vec<Record>, End) {
    let mut report = Report::new(Buffer::default());
    let end = run(job, machine, &mut report);
    let events = Reader::new().feed(report.sink_mut().0.as_bytes());
    let record = |event| match event {
        stream::Event::Record { record, .. } => *record,
        other => panic!("{other:?}"),
    };
    (events.into_iter().map(record).collect(), end)
}

#[test]
fn an_item_whose_code_needs_what_the_processor_has_not_is_skipped_with_the_reason() {
    let requirement = |feature, items| Requirement {
        feature: Cow::Borrowed(feature),
        leaf: 1,
        subleaf: 0,
        register: 2,
        bit: 23,
        items,
    };
    let requires = vec![requirement("SSE3", vec![0, 2]), requirement("POPCNT", vec![1])];
    let job = Job { requires, ..job(vec![nop("a"), nop("b"), nop("c")]) };
    let (mut machine, mut report) = (Clocked::new(1), Report::new(Buffer::default()));
    let end = run(&job, &mut machine, &mut report);
    assert_eq!((end.measured, end.failed, end.outcome), (2, 0, Outcome::Pass));
    let events = Reader::new().feed(report.sink_mut().0.as_bytes());
    let errors = events.iter().filter_map(|event| match event {
        stream::Event::Record { record, .. } => match &**record {
            Record::Error(error) => Some((error.code, error.item, error.text.as_str())),
            _ => None,
        },
        _ => None,
    });
    let text = "this processor has no POPCNT (CPUID leaf 0x1, ECX bit 23)";
    assert_eq!(errors.collect::<Vec<_>>(), [(ErrorCode::Skipped, Some(1), text)]);
    // Each item is named before it runs, and with nothing but skipped ones nothing was run.
    let named: Vec<_> = machine.shown.iter().filter_map(|status| status.running.clone()).collect();
    assert_eq!(named, ["a", "b", "c"]);
    let job = Job { requires: vec![requirement("POPCNT", vec![0])], ..self::job(vec![nop("a")]) };
    let mut report = Report::new(Buffer::default());
    assert_eq!(run(&job, &mut machine, &mut report).outcome, Outcome::Skip);
}

#[test]
fn expectations_decide_the_verdict_and_the_outcome() {
    let expect = |min, max| {
        let expect = Expect { figure: "tsc".into(), bounds: Bounds::between(min, max) };
        Criteria { expect: vec![expect], allow_uncounted: false }
    };
    // The last item has no criteria of its own.
    let criteria = vec![expect(2.0, 2.0), Criteria::default(), expect(0.0, 1.9)];
    let mut machine = Clocked::new(1);
    let items = ["right", "free", "wrong", "last"].map(nop);
    let (records, end) = judged(&mut machine, items.to_vec(), criteria);
    let verdicts: Vec<Verdict> = records
        .iter()
        .map(|record| match record {
            Record::Result(result) => result.verdict,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::None, Verdict::Fail, Verdict::None]);
    let Record::Result(missed) = &records[2] else { panic!("{records:?}") };
    let seen: Vec<_> = missed.misses.iter().map(|miss| (miss.max, miss.value)).collect();
    assert_eq!(seen, [(Option::Some(1.9), Option::Some(2.0))]);
    assert_eq!((end.passed, end.measured, end.failed), (1, 2, 1));
    assert_eq!((end.outcome, end.on_end), (Outcome::Fail, OnEnd::Reboot));
    assert_eq!(machine.items, [0, 1, 2, 3]);
    let last = machine.shown.last().unwrap();
    assert_eq!(last.outcome, Some(Outcome::Fail));
    assert_eq!(last.last_error.as_deref(), Some("wrong: tsc came to 2; expected 0 to 1.9"));
}

#[test]
fn k2_a_suite_decides_the_outcome() {
    for (passed, failed, expected) in
        [(5, 0, Outcome::Pass), (5, 1, Outcome::Fail), (0, 0, Outcome::Skip)]
    {
        let mut machine = Clocked::new(1);
        (machine.passed, machine.failed) = (passed, failed);
        let suite = Conformance { name: Cow::Borrowed("suite"), checks: vec![] };
        let job = Job { items: vec![Item::Conformance(suite)], ..job(vec![]) };
        let mut report = Report::new(Buffer::default());
        assert_eq!(run(&job, &mut machine, &mut report).outcome, expected);
        let text = &report.sink_mut().0;
        assert!(
            text.contains("\"type\":\"check\"") && text.contains("\"type\":\"suite\""),
            "{text}"
        );
    }
}

/// The made-up PMU counts each event once a copy.
#[test]
fn x2_a_pmu_that_disagrees_with_the_exact_counts_fails_the_run() {
    let exact = |verify| {
        let snippet = Snippet { difference: Difference::Empty, ..nop("stepped") };
        vec![Item::Exact(Exact { snippet, filter: Filter::default(), verify, steps: 1000 })]
    };
    let run = |verify| {
        let mut report = Report::new(Buffer::default());
        let mut machine = Clocked::new(1);
        let end = run(&Job { items: exact(verify), ..job(vec![]) }, &mut machine, &mut report);
        let events = Reader::new().feed(report.sink_mut().0.as_bytes());
        let stream::Event::Record { record, .. } = &events[0] else { panic!("{events:?}") };
        let Record::Exact(result) = &**record else { panic!("{record:?}") };
        (end, result.clone())
    };
    let (end, result) = run(false);
    assert_eq!((end.outcome, end.measured), (Outcome::Pass, 1));
    assert_eq!((result.counts[0].value, result.counts[0].totals), (2.0, [0, 100]));
    assert_eq!((result.comparisons.len(), result.emulated), (0, false));
    assert_eq!(result.restored, ["CR8"], "what it changed is named, as that of a snippet");
    let (end, result) = run(true);
    assert_eq!((end.outcome, end.failed), (Outcome::Fail, 1));
    let seen: Vec<_> = result.comparisons.iter().map(|c| (c.exact, c.pmu_min, c.agrees)).collect();
    assert_eq!(seen, [(2.0, 1.0, false), (1.0, 1.0, true)]);
    assert!(result.emulated);
}

#[test]
fn exact_mode_that_reaches_its_limit_of_steps_is_an_error_of_its_own() {
    let snippet = Snippet { difference: Difference::Empty, ..nop("long") };
    let exact = Exact { snippet, filter: Filter::default(), verify: false, steps: 99 };
    let job = Job { items: vec![Item::Exact(exact)], ..job(vec![nop("next")]) };
    let mut report = Report::new(Buffer::default());
    let end = run(&job, &mut Clocked::new(1), &mut report);
    assert_eq!((end.outcome, end.failed), (Outcome::Fail, 1));
    let text = &report.sink_mut().0;
    assert!(text.contains("\"code\":\"step_limit\"") && text.contains("99 instructions"), "{text}");
}

#[test]
fn x2_counts_of_an_emulated_pmu_say_so_and_ticks_do_not() {
    let counted = Snippet { events: vec!["loads".into()], ..nop("counted") };
    let (records, _) = records(&mut Clocked::new(1), vec![counted, nop("timed")]);
    let emulated: Vec<bool> = records
        .iter()
        .map(|record| match record {
            Record::Result(result) => result.emulated,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(emulated, [true, false]);
}

#[test]
fn c7_an_event_that_cannot_be_counted_has_its_reason_in_the_result() {
    let two = Snippet { events: vec!["unknown".into(), "loads".into()], ..nop("two") };
    let (records, end) = records(&mut Clocked::new(1), vec![two, nop("good")]);
    let Record::Result(result) = &records[0] else { panic!("{records:?}") };
    assert_eq!(result.uncounted[0].event, "unknown");
    assert_eq!((result.metrics[1].event.as_str(), result.planning), ("loads", 7));
    // It was asked for, so the item failed.
    assert_eq!((result.verdict, result.misses[0].figure.as_str()), (Verdict::Fail, "unknown"));
    assert_eq!((end.failed, end.measured), (1, 1));
    let two = Snippet { events: vec!["unknown".into(), "loads".into()], ..nop("two") };
    let allowed = Criteria { allow_uncounted: true, ..Criteria::default() };
    let (_, end) = judged(&mut Clocked::new(1), vec![two], vec![allowed]);
    assert_eq!((end.failed, end.measured, end.outcome), (0, 1, Outcome::Pass));
}

#[test]
fn x1_a_fault_is_an_error_record_and_the_next_item_runs() {
    let mut machine = Clocked::new(1);
    machine.made.fault_at = Some(1);
    let (records, end) = records(&mut machine, vec![nop("bad"), nop("good")]);
    let Record::Error(error) = &records[0] else { panic!("{records:?}") };
    assert_eq!((error.code, error.item), (ErrorCode::SnippetFault, Some(0)));
    assert_eq!(error.name.as_deref(), Some("bad"));
    assert!(matches!(&records[1], Record::Result(result) if result.name == "good"));
    assert_eq!((end.failed, end.measured), (1, 1));
}

#[test]
fn x1_a_stray_interrupt_costs_the_item_that_it_came_into_and_no_other() {
    // Before and behind each item: the fourth time is behind the second one.
    let mut machine = Clocked { stray_at: 4, ..Clocked::new(1) };
    let (records, end) = records(&mut machine, vec![nop("first"), nop("hit"), nop("last")]);
    let [Record::Result(_), Record::Error(error), Record::Result(_)] = &records[..] else {
        panic!("{records:?}");
    };
    assert_eq!((error.code, error.item), (ErrorCode::StrayInterrupt, Some(1)));
    assert_eq!(error.text, "a stray interrupt of vector 0 (#DE)");
    assert_eq!((end.measured, end.failed, end.outcome), (2, 1, Outcome::Fail));
    let shown = machine.shown.last().unwrap();
    assert!(
        shown.last_error.as_deref().unwrap().starts_with("hit: a stray interrupt"),
        "{shown:?}"
    );
    // One that came before an item is not that item's.
    let mut machine = Clocked { stray_at: 3, ..Clocked::new(1) };
    let (_, end) = self::records(&mut machine, vec![nop("first"), nop("second")]);
    assert_eq!((end.measured, end.failed), (2, 0));
}

/// Memory of the items with these indices.
fn memory(name: &'static str, bytes: u64, items: &[u32]) -> Memory<'static> {
    Memory {
        name: Cow::Borrowed(name),
        at: 0x7020_0000,
        bytes,
        page_size: PageSize::Small,
        memory_type: MemoryType::WriteBack,
        fill: Fill::Zero,
        items: items.to_vec(),
    }
}

#[test]
fn n5_items_have_their_memory_and_one_that_cannot_have_it_is_refused_alone() {
    let mut ring_3 = nop("ring 3");
    ring_3.setup.control.ring = Ring::User;
    let memory = vec![memory("a", 4096, &[0, 2]), memory("b", 1 << 40, &[1]), memory("c", 1, &[2])];
    let job = Job { memory, ..job(vec![nop("first"), nop("greedy"), ring_3, nop("none")]) };
    let mut machine = Clocked::new(1);
    let (records, end) = run_job(&mut machine, &job);
    assert_eq!(machine.provided, ["a false", "a true", "c true"]);
    assert_eq!((end.measured, end.failed), (3, 1));
    let controls: Vec<Vec<&str>> = records
        .iter()
        .filter_map(|record| match record {
            Record::Result(result) => {
                Some(result.controls.iter().map(|one| &*one.option).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(controls, [vec!["memory=a"], vec!["memory=a", "memory=c"], vec![]]);
    let Record::Error(error) = &records[1] else { panic!("{records:?}") };
    assert_eq!((error.code, &*error.text), (ErrorCode::Unsupported, "memory `b`: too much"));
}

#[test]
fn n5_a_page_fault_behind_memory_names_it() {
    let list = [memory("list", 4096, &[0])];
    let pieces: Vec<&Memory> = list.iter().collect();
    let fault = |vector, cr2| {
        let registers = protocol::record::Registers { cr2: Hex(cr2), ..Default::default() };
        let frame = arch::interrupts::TrapFrame { vector, ..Default::default() };
        let trap = Trap { frame, cr2, cause: arch::call::Cause::Exception };
        let fault = Fault { registers, ..fault::unknown(&trap) };
        let refused = refused_record(0, "x", "it faulted".to_string());
        let mut record = Record::Error(ErrorRecord { fault: Some(fault), ..refused });
        with_memory(&mut record, &pieces, Vec::new());
        let Record::Error(error) = record else { unreachable!() };
        error.text
    };
    let text = "it faulted, 8 bytes behind the end of memory `list`";
    assert_eq!(fault(14, 0x7020_1008), text);
    assert_eq!(fault(13, 0x7020_1008), "it faulted");
    assert_eq!(fault(14, 0x6000_0000), "it faulted");
}

#[test]
fn x1_behind_a_changed_firmware_no_item_runs_and_each_has_its_record() {
    let mut machine = Clocked { changer: Some(1), ..Clocked::new(1) };
    let (records, end) = records(&mut machine, vec![nop("a"), nop("b"), nop("c"), nop("d")]);
    assert_eq!(machine.items, [0, 1]);
    assert!(matches!(&records[0], Record::Result(result) if result.item == 0));
    let errors: Vec<_> = records[1..]
        .iter()
        .map(|record| match record {
            Record::Error(error) => (error.code, error.item.unwrap(), error.restored.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected =
        [(ErrorCode::FirmwareChanged, 1, 1), (ErrorCode::NotRun, 2, 0), (ErrorCode::NotRun, 3, 0)];
    assert_eq!(errors, expected);
    assert_eq!((end.outcome, end.failed, end.measured), (Outcome::Fail, 3, 1));
}

#[test]
fn x1_a_change_that_is_noticed_at_the_end_fails_the_run() {
    let mut machine = Clocked { changer: Some(0), noticed_late: true, ..Clocked::new(1) };
    let (records, end) = records(&mut machine, vec![nop("a"), nop("b")]);
    let Record::Error(error) = &records[2] else { panic!("{records:?}") };
    assert_eq!((error.code, error.item), (ErrorCode::FirmwareChanged, None));
    assert_eq!((end.outcome, end.measured, machine.items), (Outcome::Fail, 2, vec![0, 1]));
}

#[test]
fn i7_an_item_for_processors_that_fails_names_the_processor() {
    let item =
        Item::Processors(Processors { snippet: nop("p"), cpu: Some(3), interrupt_every: None });
    let job = Job { items: vec![item], ..job(vec![]) };
    let mut report = Report::new(Buffer::default());
    let end = run(&job, &mut Clocked::new(1), &mut report);
    assert_eq!(end.outcome, Outcome::Fail);
    assert!(report.sink_mut().0.contains("on processor 3: one processor only"));
}

#[test]
fn progress_comes_when_the_time_has_passed_and_not_sooner() {
    let slow = records(&mut Clocked::new(500), vec![nop("a"), nop("b")]).0;
    let kinds = |records: &[Record]| {
        records.iter().map(|r| matches!(r, Record::Progress(_))).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&slow), [false, true, false, true]);
    assert!(
        slow.iter().all(|record| !matches!(record, Record::Progress(one) if one.within.is_some()))
    );
    let quick = records(&mut Clocked::new(1), vec![nop("a"), nop("b")]).0;
    assert_eq!(kinds(&quick), [false, false]);
}

#[test]
fn a_job_without_items_is_skipped() {
    let (records, end) = records(&mut Clocked::new(1), vec![]);
    assert_eq!(records, []);
    assert_eq!(end.outcome, Outcome::Skip);
}

proptest::proptest! {
    /// However many items of whatever kind: one result or error each, in order, and the counts agree.
    #[test]
    fn every_item_is_answered(faults in proptest::collection::vec(proptest::bool::ANY, 0..30)) {
        struct Some(Clocked, Vec<bool>);
        impl Runner for Some {
            fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> { self.0.prepare(snippet) }
            fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> { self.0.program(pass) }
            fn control(&mut self, s: &Snippet) -> Result<Vec<Applied>, String> { self.0.control(s) }
            fn finish(&mut self, _: &mut Vec<Applied>) {}
            fn msrs(&self) -> &[u64] { &[] }
            fn is_unwatched(&self) -> bool { false }
            fn trial_runs(&self) -> u32 { 0 }
            fn take_smis(&mut self) -> u32 { 0 }
            fn counts(&self) -> &[u64] { self.0.counts() }
            fn load(&mut self, snippet: &Snippet, copies: u64) { self.0.load(snippet, copies); }
            fn load_once(&mut self, snippet: &Snippet) { self.0.load_once(snippet); }
            fn run(&mut self) -> Result<u64, Box<Trap>> {
                let index = *self.0.items.last().unwrap() as usize;
                self.0.made.fault_at = self.1[index].then_some(self.0.made.runs + 1);
                self.0.run()
            }
            fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault { self.0.explain(trap, snippet) }
        }
        impl Stepper for Some {
            fn step(&mut self, snippet: &Snippet, copies: u64, filter: &Filter, limit: u64) -> Result<Tally, Unstepped> {
                self.0.step(snippet, copies, filter, limit)
            }
            fn branches(&self) -> &'static str { self.0.branches() }
        }
        without_pmu!(Some);
        impl Machine for Some {
            fn now(&self) -> u64 { self.0.now() }
            fn progress_ticks(&self) -> u64 { u64::MAX }
            fn next_item(&mut self, index: u32, name: &str) { self.0.next_item(index, name); }
            fn restore(&mut self) -> Vec<String> { vec![] }
            fn conformance(&mut self, suite: &Conformance, item: u32, report: &mut dyn FnMut(&Check)) -> Suite {
                self.0.conformance(suite, item, report)
            }
            fn tasks(&mut self, item: &Tasks) -> Result<tasks::Summary, String> { self.0.tasks(item) }
            fn count(&mut self, item: &Count) -> Result<CountResult, String> { self.0.count(item) }
            fn processors(
                &mut self,
                item: &Processors,
                index: u32,
            ) -> Result<ProcessorsResult, processors::Failure> {
                self.0.processors(item, index)
            }
            fn is_emulated(&self) -> bool { false }
            fn show(&mut self, status: &Status) { self.0.show(status); }
        }
        let items: Vec<_> = (0..faults.len()).map(|i| nop(&format!("item {i}"))).collect();
        let mut report = Report::new(Buffer::default());
        let mut machine = Some(Clocked::new(1), faults.clone());
        let end = run(&job(items), &mut machine, &mut report);
        let events = Reader::new().feed(report.sink_mut().0.as_bytes());
        let answered: Vec<(u32, bool)> = events.iter().map(|event| match event {
            stream::Event::Record { record, .. } => match &**record {
                Record::Result(result) => (result.item, false),
                Record::Error(error) => (error.item.unwrap(), true),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }).collect();
        let expected: Vec<(u32, bool)> = (0..).zip(faults.iter().copied()).collect();
        proptest::prop_assert_eq!(answered, expected);
        proptest::prop_assert_eq!(end.failed as usize, faults.iter().filter(|&&f| f).count());
    }
}
