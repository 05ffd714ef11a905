mod clocked;
mod faults;
mod verdicts;
mod workloads;

use super::*;
use crate::exact::{Stepper, Tally, Unstepped};
use crate::history::Historian;
use crate::report::{Buffer, Report};
use crate::sampling::{self, Sampler};
use crate::snippet::events::{Counted, Plan};
use crate::snippet::measure::tests::nop;
use crate::snippet::measure::{Runner, Unmeasured};
use crate::{processors, tasks};
use arch::call::Trap;
use arch::pmu::Gate;
use arch::pmu::pmi::{ControlBlock, Delivery, Interval};
use arch::pmu::stop_on_overflow::StopOnOverflow;
use clocked::Clocked;
use protocol::job::control::{MemoryType, PageSize, Ring};
use protocol::job::exact::Filter;
use protocol::job::memory::Fill;
use protocol::job::workload::Task;
use protocol::job::{
    Bounds, Conformance, CoreKind, Count, Criteria, Difference, Exact, Expect, OnEnd, Processors,
    Requirement, Sampling, Snippet, Tasks,
};
use protocol::record::{
    Applied, Check, CodePlace, CountResult, Fault, Outcome, ProcessorsResult, Suite, Verdict,
};
use protocol::stream::{self, Reader};
use std::borrow::Cow;
use std::rc::Rc;

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
            fn gather(&mut self, _: &[u16], _: bool) -> Result<(), String> {
                Ok(())
            }
            fn on(
                &mut self,
                _: u16,
                _: &mut dyn FnMut(&mut dyn arch::pmu::Registers, &mut arch::pmu::Driver),
            ) -> Result<(), String> {
                Err("there is no PMU".into())
            }
            fn load_task(&mut self, _: &Task, _: &Gate) -> (CodePlace, core::ops::Range<u64>) {
                unreachable!("nothing is armed")
            }
            fn run_task(&mut self, _: &Task, _: bool) -> Result<u64, Unmeasured> {
                unreachable!("nothing is loaded")
            }
            fn deliver(&mut self, _: u16, _: &ControlBlock, _: Delivery, _: Option<Interval>) {}
            fn withdraw(&mut self, _: u16, _: &mut ControlBlock) {}
            fn clocks(&self) -> [u64; 2] {
                [1; 2]
            }
            fn run_tasks(
                &mut self,
                _: &Sampling,
                _: Option<u64>,
            ) -> Result<sampling::Scheduled, String> {
                unreachable!("there is no PMU")
            }
            fn code(&mut self, _: u64) -> Vec<u8> {
                Vec::new()
            }
            fn pointers(&self, _: Option<usize>) -> [u64; 5] {
                [0; 5]
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
            fn finish(&mut self, _: &mut Vec<Applied>) -> Result<(), String> { Ok(()) }
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
            fn next_item(&mut self, index: u32, item: &Item) { self.0.next_item(index, item); }
            fn restore(&mut self) -> Vec<String> { vec![] }
            fn conformance(&mut self, suite: &Conformance, item: u32, report: &mut dyn FnMut(&Check)) -> Suite {
                self.0.conformance(suite, item, report)
            }
            fn tasks(&mut self, item: &Tasks) -> Result<tasks::Summary, String> { self.0.tasks(item) }
            fn count(&mut self, item: &Count) -> Result<CountResult, String> { self.0.count(item) }
            fn processors(
                &mut self,
                item: &Processors,
                core: Option<CoreKind>,
                index: u32,
            ) -> Result<ProcessorsResult, processors::Failure> {
                self.0.processors(item, core, index)
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
