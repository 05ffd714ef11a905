use super::*;
use arch::pmu::{Counter, Selection};
use protocol::job::control::ReadMsr;
use protocol::job::{LoopCounter, Setup};
use protocol::record::Counting;
use std::borrow::Cow;

/// A machine on which a copy costs `cost` ticks, the rest `overhead`, and every first run of a load
/// 1,000 more.
pub struct Made {
    pub cost: u64,
    pub overhead: u64,
    pub fault_at: Option<u64>,
    pub runs: u64,
    /// Runs made when the one-time init was loaded.
    pub once_at: Option<u64>,
    /// What `take_smis` is to say.
    pub smis: u32,
    /// System management interrupts in each run.
    pub smis_each: u32,
    /// Every other run costs so much more a copy.
    pub jitter: u64,
    /// Whether PERF_METRICS overflows in each run.
    pub overflows: bool,
    /// The register that moves with the copies falls.
    pub falls: bool,
    copies: u64,
    counted: [u64; 2],
    moved: [u64; 2],
    cold: bool,
}

impl Made {
    pub fn new(cost: u64, overhead: u64) -> Self {
        Self {
            cost,
            overhead,
            fault_at: None,
            runs: 0,
            once_at: None,
            smis: 0,
            smis_each: 0,
            jitter: 0,
            overflows: false,
            falls: false,
            copies: 0,
            counted: [0; 2],
            moved: [0; 2],
            cold: true,
        }
    }
}

impl Runner for Made {
    fn control(&mut self, snippet: &Snippet) -> Result<Vec<Applied>, String> {
        match snippet.setup.control.msrs.iter().find(|msr| msr.number == 0xdead) {
            Some(msr) => Err(alloc::format!("there is no register {}", msr.name)),
            None => Ok(vec![]),
        }
    }

    fn finish(&mut self, _: &mut Vec<Applied>) -> Result<(), String> {
        Ok(())
    }

    fn msrs(&self) -> &[u64] {
        &self.moved
    }

    fn is_unwatched(&self) -> bool {
        self.copies > 0
    }

    fn trial_runs(&self) -> u32 {
        0
    }

    fn take_smis(&mut self) -> u32 {
        core::mem::take(&mut self.smis)
    }

    fn metrics_overflowed(&self) -> bool {
        self.overflows
    }

    /// Has one counter, and knows every event but `unknown` and `stuck`, which shows at programming only.
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        let mut plan = Plan { ticks: 7, ..Plan::default() };
        for (number, text) in snippet.events.iter().enumerate() {
            if text == "unknown" {
                let reason = "there is no such event".to_string();
                plan.uncounted.push(Uncounted { event: text.to_string(), reason });
                continue;
            }
            let pass = plan.passes.len() as u32;
            plan.passes.push(vec![Counted {
                number,
                event: text.to_string(),
                counter: Counter::General(0),
                selection: Selection::of(0xc0, 0),
                merges: false,
                counters: 0,
                metric: text.starts_with("share").then_some(0),
                level: 0,
                retired: text.ends_with(":retire_latency").then_some(0),
                counting: Counting {
                    name: text.to_uppercase(),
                    counter: "counter 0".to_string(),
                    pass,
                    remarks: vec![],
                    ..Counting::default()
                },
            }]);
        }
        Rc::new(plan)
    }

    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
        match pass.iter().position(|one| one.event == "stuck") {
            Some(index) => Err((index, "the register refuses".to_string())),
            None => Ok(()),
        }
    }

    fn counts(&self) -> &[u64] {
        // One event a copy, and 7 of the window.
        &self.counted
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        (self.copies, self.cold) = (copies * snippet.loop_count.max(1), true);
    }

    fn load_once(&mut self, _: &Snippet) {
        assert_eq!(self.once_at.replace(self.runs), None, "once means once");
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        self.runs += 1;
        self.smis += self.smis_each;
        if self.fault_at == Some(self.runs) {
            let frame = arch::trap::TrapFrame { vector: 6, ..Default::default() };
            return Err(Box::new(Trap { frame, cr2: 0, cause: Default::default() }));
        }
        self.counted = [self.copies + 7; 2];
        let moved = 2 * self.copies;
        self.moved = [if self.falls { moved.wrapping_neg() } else { moved }, 9];
        let cold = core::mem::take(&mut self.cold);
        let cost = self.cost + self.jitter * (self.runs % 2);
        Ok(self.overhead + cost * self.copies + if cold { 1000 } else { 0 })
    }

    fn explain(&self, trap: &Trap, _: &Snippet) -> Fault {
        Fault {
            vector: trap.frame.vector as u8,
            mnemonic: "#UD".into(),
            error_code: None,
            part: "body".into(),
            offset: None,
            copy: None,
            bytes: None,
            registers: Default::default(),
            bits: 64,
            ..Fault::default()
        }
    }
}

pub fn nop(name: &str) -> Snippet<'static> {
    Snippet {
        name: Cow::Owned(name.into()),
        init: Cow::Borrowed(&[]),
        body: Cow::Borrowed(&[0x90]),
        unroll: 50,
        loop_count: 0,
        loop_counter: LoopCounter::R15,
        extended_state: false,
        warmup: 1,
        runs: 8,
        difference: Difference::Double,
        values: false,
        events: vec![],
        setup: Setup::default(),
    }
}

#[test]
fn n1_the_overhead_cancels_and_the_cold_run_is_left_out() {
    for (difference, loop_count) in
        [(Difference::Double, 0), (Difference::Empty, 0), (Difference::Double, 10)]
    {
        let snippet = Snippet { difference, loop_count, ..nop("x") };
        let metric = measure(&mut Made::new(3, 12_345), &snippet).unwrap().metrics.remove(0);
        assert_eq!(metric.value.median, 3.0, "{difference:?} {loop_count}");
        assert_eq!((metric.value.min, metric.value.max), (3.0, 3.0));
        assert!(metric.deterministic);
    }
}

#[test]
fn without_warm_up_the_cold_run_shows() {
    let snippet = Snippet { warmup: 0, ..nop("x") };
    let metric = measure(&mut Made::new(3, 0), &snippet).unwrap().metrics.remove(0);
    assert!(!metric.deterministic);
    assert_eq!(metric.series[0].distinct, 2);
}

/// Two sizes of eight runs, with a warm-up of one each, in each of two passes; and what came before.
#[test]
fn x2_system_management_interrupts_are_those_of_runs_that_count() {
    let mut machine = Made::new(3, 50);
    (machine.smis, machine.smis_each) = (100, 1);
    let setup =
        Setup { one_time_init: Cow::Borrowed(&[0x90]), initial_warmup: 20, ..Setup::default() };
    let snippet = Snippet { setup, ..counting(&["a", "b"]) };
    assert_eq!(measure(&mut machine, &snippet).unwrap().smis, 2 * 2 * 8);
}

/// One of the two series varies: the figure is made of both.
#[test]
fn n1_a_figure_is_deterministic_only_if_both_series_are() {
    let mut machine = Made::new(3, 50);
    machine.jitter = 1;
    let snippet = Snippet { difference: Difference::Empty, ..nop("x") };
    let metric = measure(&mut machine, &snippet).unwrap().metrics.remove(0);
    assert_eq!(metric.series.each_ref().map(|series| series.distinct), [1, 2]);
    assert!(!metric.deterministic);
}

#[test]
fn both_code_sizes_are_run_as_often_as_asked() {
    let mut machine = Made::new(1, 1);
    measure(&mut machine, &nop("x")).unwrap();
    assert_eq!(machine.runs, 2 * (1 + 8));
}

#[test]
fn n1_one_time_init_runs_once_first_and_initial_warm_up_before_the_smaller_size() {
    let setup =
        Setup { one_time_init: Cow::Borrowed(&[0x90]), initial_warmup: 20, ..Setup::default() };
    let mut machine = Made::new(1, 1);
    let metrics = measure(&mut machine, &Snippet { setup, ..nop("x") }).unwrap().metrics;
    assert_eq!((machine.once_at, machine.runs), (Some(0), 1 + 20 + 2 * (1 + 8)));
    assert!(metrics[0].deterministic);
    let fails = Setup { one_time_init: Cow::Borrowed(&[0x90]), ..Setup::default() };
    let mut machine = Made::new(1, 1);
    machine.fault_at = Some(1);
    measure(&mut machine, &Snippet { setup: fails, ..nop("x") }).unwrap_err();
    assert_eq!(machine.runs, 1);
}

#[test]
fn values_are_listed_when_asked_for() {
    let snippet = Snippet { values: true, ..nop("x") };
    let metric = measure(&mut Made::new(2, 10), &snippet).unwrap().metrics.remove(0);
    assert_eq!(metric.series[0].values, Some(vec![110; 8]));
    assert_eq!(metric.series[1].values, Some(vec![210; 8]));
}

fn counting(events: &[&'static str]) -> Snippet<'static> {
    Snippet { events: events.iter().map(|&text| Cow::Borrowed(text)).collect(), ..nop("x") }
}

#[test]
fn n1_an_event_is_counted_beside_the_tsc() {
    let metrics = measure(&mut Made::new(3, 100), &counting(&["loads"])).unwrap().metrics;
    let seen: Vec<_> =
        metrics.iter().map(|metric| (metric.event.as_str(), metric.value.median)).collect();
    assert_eq!(seen, [("tsc", 3.0), ("loads", 1.0)]);
    assert_eq!(metrics[1].series[0].min, 57);
    assert_eq!(metrics[1].counting.as_ref().unwrap().name, "LOADS");
    assert!(metrics[0].counting.is_none());
}

#[test]
fn n2_each_pass_runs_and_the_ticks_are_those_of_the_first() {
    let mut machine = Made::new(3, 100);
    let measured = measure(&mut machine, &counting(&["a", "b"])).unwrap();
    let seen: Vec<_> = measured.metrics.iter().map(|metric| metric.event.as_str()).collect();
    assert_eq!(seen, ["tsc", "a", "b"]);
    let passes = measured.metrics[1..].iter().map(|m| m.counting.as_ref().unwrap().pass);
    assert_eq!(passes.collect::<Vec<_>>(), [0, 1]);
    assert_eq!((machine.runs, measured.planning), (2 * 2 * (1 + 8), 7));
}

#[test]
fn x2_the_time_can_have_a_pass_of_its_own() {
    struct Apart(Made);
    #[rustfmt::skip]
    impl Runner for Apart {
        fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
            Rc::new(Plan::clone(&self.0.prepare(snippet)).with_time_apart())
        }
        /// Counting takes time.
        fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> {
            self.0.cost = if pass.is_empty() { 3 } else { 4000 };
            self.0.program(pass)
        }
        fn counts(&self) -> &[u64] { self.0.counts() }
        fn control(&mut self, s: &Snippet) -> Result<Vec<Applied>, String> { self.0.control(s) }
        fn finish(&mut self, _: &mut Vec<Applied>) -> Result<(), String> { Ok(()) }
        fn msrs(&self) -> &[u64] { self.0.msrs() }
        fn is_unwatched(&self) -> bool { false }
        fn trial_runs(&self) -> u32 { 0 }
        fn take_smis(&mut self) -> u32 { 0 }
        fn load(&mut self, snippet: &Snippet, copies: u64) { self.0.load(snippet, copies) }
        fn load_once(&mut self, snippet: &Snippet) { self.0.load_once(snippet) }
        fn run(&mut self) -> Result<u64, Box<Trap>> { self.0.run() }
        fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault { self.0.explain(trap, snippet) }
    }
    let metrics = measure(&mut Apart(Made::new(0, 100)), &counting(&["a"])).unwrap().metrics;
    assert_eq!(metrics.iter().map(|m| m.value.median).collect::<Vec<_>>(), [3.0, 1.0]);
    let time_only = measure(&mut Apart(Made::new(0, 100)), &nop("x")).unwrap().metrics;
    assert_eq!((time_only.len(), time_only[0].value.median), (1, 3.0));
}

/// A machine whose runs are nothing but calls.
struct Bare(Made);

#[rustfmt::skip]
impl Runner for Bare {
    fn run_bare(
        &mut self,
        [warmup, runs]: [u64; 2],
        ticks: &mut Vec<u64>,
        within: &mut Within,
    ) -> Option<Result<(), Box<Trap>>> {
        for run in 0..warmup + runs {
            match self.0.run() {
                Ok(took) if run >= warmup => ticks.push(took),
                Ok(_) => {}
                Err(trap) => return Some(Err(trap)),
            }
            within.done += 1;
        }
        Some(Ok(()))
    }
    fn run(&mut self) -> Result<u64, Box<Trap>> { panic!("runs are made all at once") }
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> { self.0.prepare(snippet) }
    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> { self.0.program(pass) }
    fn counts(&self) -> &[u64] { self.0.counts() }
    fn load(&mut self, snippet: &Snippet, copies: u64) { self.0.load(snippet, copies) }
    fn load_once(&mut self, snippet: &Snippet) { self.0.load_once(snippet) }
    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault { self.0.explain(trap, snippet) }
}

#[test]
fn runs_that_are_made_all_at_once_give_the_figures_of_single_ones() {
    let snippet = Snippet { values: true, ..nop("x") };
    let made = || Made { jitter: 3, ..Made::new(2, 10) };
    let single = measure(&mut made(), &snippet).unwrap();
    let mut bare = Bare(made());
    assert_eq!(measure(&mut bare, &snippet).unwrap().metrics, single.metrics);
    assert_eq!(bare.0.runs, 2 * (1 + 8));
    // The fourth run of the larger size.
    let mut bare = Bare(Made { fault_at: Some(9 + 4), ..made() });
    let Unmeasured::Fault(fault) = measure(&mut bare, &snippet).unwrap_err() else {
        panic!("a fault")
    };
    assert_eq!((fault.mnemonic.as_str(), bare.0.runs), ("#UD", 9 + 4));
}

#[test]
#[should_panic(expected = "all at once")]
fn runs_with_an_event_are_made_one_by_one() {
    let _ = measure(&mut Bare(Made::new(3, 100)), &counting(&["loads"]));
}

#[test]
fn s3_a_share_of_a_register_that_overflowed_is_no_figure() {
    for overflows in [false, true] {
        let mut machine = Made { overflows, ..Made::new(3, 100) };
        let measured = measure(&mut machine, &counting(&["loads", "share"])).unwrap();
        let seen: Vec<_> = measured.metrics.iter().map(|metric| metric.event.as_str()).collect();
        assert_eq!(&seen[..2], ["tsc", "loads"], "{overflows}");
        assert_eq!(seen.len(), 3 - usize::from(overflows));
        let named = |one: &Uncounted| one.event == "share" && one.reason.contains("STATUS[48]");
        assert_eq!(
            measured.uncounted.iter().filter(|one| named(one)).count(),
            usize::from(overflows)
        );
    }
}

#[test]
fn c7_what_cannot_be_counted_has_its_reason_and_the_rest_goes_on() {
    let mut machine = Made::new(3, 100);
    let snippet = counting(&["stuck", "unknown", "loads", "stuck"]);
    let measured = measure(&mut machine, &snippet).unwrap();
    let seen: Vec<_> = measured.metrics.iter().map(|metric| metric.event.as_str()).collect();
    assert_eq!(seen, ["tsc", "loads"]);
    let left: Vec<_> =
        measured.uncounted.iter().map(|u| (u.event.as_str(), u.reason.as_str())).collect();
    let refuses = ("stuck", "the register refuses");
    assert_eq!(left, [("unknown", "there is no such event"), refuses, refuses]);
    // The last pass has nothing left to count and does not run.
    assert_eq!(machine.runs, 2 * 2 * (1 + 8));
}

#[test]
fn i10_registers_are_metrics_of_the_first_pass_behind_all_events() {
    let mut snippet = counting(&["a", "b"]);
    let msr = |name: &'static str, number| ReadMsr { name: Cow::Borrowed(name), number };
    snippet.setup.control.msrs = vec![msr("aperf", 0xe8), msr("0x34", 0x34)];
    let metrics = measure(&mut Made::new(3, 100), &snippet).unwrap().metrics;
    let seen: Vec<_> = metrics.iter().map(|m| (m.event.as_str(), m.value.median)).collect();
    let expected = [("tsc", 3.0), ("a", 1.0), ("b", 1.0), ("aperf", 2.0), ("0x34", 0.0)];
    assert_eq!(seen, expected);
    snippet.setup.control.msrs.push(msr("none", 0xdead));
    let error = measure(&mut Made::new(3, 100), &snippet).unwrap_err();
    assert!(matches!(error, Unmeasured::Refused(text) if text.contains("none")));
}

/// As the count of the local APIC's timer does, which counts down.
#[test]
fn i10_a_register_that_falls_has_a_negative_figure() {
    let mut snippet = Snippet { values: true, ..nop("x") };
    let name = Cow::Borrowed("0x839");
    snippet.setup.control.msrs = vec![ReadMsr { name, number: 0x839 }];
    let mut machine = Made { falls: true, ..Made::new(3, 100) };
    let metric = measure(&mut machine, &snippet).unwrap().metrics.remove(1);
    assert_eq!(
        (metric.event.as_str(), metric.value.median, metric.value.mean),
        ("0x839", -2.0, -2.0)
    );
    assert!(metric.deterministic);
    assert_eq!(metric.series.each_ref().map(|series| series.min), [-100, -200]);
    assert_eq!(metric.series[1].values, Some(vec![-200; 8]));
}

#[test]
fn a_fault_ends_the_measurement() {
    let mut machine = Made::new(1, 1);
    machine.fault_at = Some(5);
    let error = measure(&mut machine, &nop("x")).unwrap_err();
    assert!(matches!(&error, Unmeasured::Fault(fault) if fault.mnemonic == "#UD"));
    assert_eq!(machine.runs, 5);
}

/// What was to be in force was not: there is no figure, and the reason is told.
#[test]
fn t8_figures_of_what_was_not_in_force_are_refused() {
    struct Refuses(Made);
    #[rustfmt::skip]
    impl Runner for Refuses {
        fn finish(&mut self, _: &mut Vec<Applied>) -> Result<(), String> {
            Err("only: MSR 0x4000f102 cannot be written".to_string())
        }
        fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> { self.0.prepare(snippet) }
        fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)> { self.0.program(pass) }
        fn counts(&self) -> &[u64] { self.0.counts() }
        fn load(&mut self, snippet: &Snippet, copies: u64) { self.0.load(snippet, copies) }
        fn load_once(&mut self, snippet: &Snippet) { self.0.load_once(snippet) }
        fn run(&mut self) -> Result<u64, Box<Trap>> { self.0.run() }
        fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault { self.0.explain(trap, snippet) }
    }
    let refused = measure(&mut Refuses(Made::new(0, 100)), &counting(&["a"]));
    let Err(Unmeasured::Refused(text)) = refused else { panic!("it has figures") };
    assert_eq!(text, "only: MSR 0x4000f102 cannot be written");
}
