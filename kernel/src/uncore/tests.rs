//! Rounds and passes on a machine of which only the numbers exist.

use super::*;
use crate::snippet::events::{Counted as OfCore, Plan};
use crate::snippet::measure::tests::{Made, nop};
use crate::snippet::measure::{Measured, measure};
use alloc::boxed::Box;
use alloc::rc::Rc;
use arch::call::Trap;
use arch::pmu::energy::Shared;
use arch::pmu::uncore::{Refusal, Register};
use events::parse::parse_list;
use pmu_model::{Host, Model, Pmu, Timing};
use protocol::job::Snippet;
use protocol::record::Fault;
use std::borrow::Cow;

/// [`Made`] with an uncore, in which a request comes with each copy and a clock with each tick: the figure of an event is its code.
pub(super) struct Client {
    pub made: Made,
    pub round: Vec<Placed>,
    pub counts: Vec<u64>,
    pub copies: u64,
    /// A code that cannot be programmed.
    pub refuses: u64,
    pub is_there: bool,
    /// The codes of each round.
    pub programmed: Vec<Vec<u64>>,
    /// What is counted: each with 64 Ki more than the one before it.
    pub packages: Vec<Shared>,
    /// Begun, and ended.
    pub intervals: Vec<bool>,
}

pub(super) fn client() -> Client {
    Client {
        made: Made::new(3, 50),
        round: Vec::new(),
        counts: Vec::new(),
        copies: 0,
        refuses: 0xffff,
        is_there: true,
        programmed: Vec::new(),
        packages: vec![Shared { reader: 0, processors: vec![] }],
        intervals: Vec::new(),
    }
}

impl Runner for Client {
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan> {
        let (mut core, mut uncore) = (Vec::new(), Vec::new());
        for text in &snippet.events {
            let items = parse_list(text).unwrap();
            let wanted: Option<Vec<Wanted>> = items
                .iter()
                .flat_map(|item| &item.requests)
                .map(|request| Wanted::of(request).map(Result::unwrap))
                .collect();
            match wanted {
                Some(group) => uncore.push(group),
                None => core.push(text.clone()),
            }
        }
        let plan = self.made.prepare(&Snippet { events: core, ..snippet.clone() });
        Rc::new(Plan { uncore, ..(*plan).clone() })
    }

    fn program(&mut self, pass: &[OfCore]) -> Result<(), (usize, String)> {
        self.made.program(pass)
    }

    fn load(&mut self, snippet: &Snippet, copies: u64) {
        self.copies = copies;
        self.made.load(snippet, copies);
    }

    fn load_once(&mut self, snippet: &Snippet) {
        self.made.load_once(snippet);
    }

    fn run(&mut self) -> Result<u64, Box<Trap>> {
        let copies = self.copies;
        self.counts =
            self.round.iter().map(|one| 1000 + copies * (one.event.select & 0xff)).collect();
        self.made.run()
    }

    fn counts(&self) -> &[u64] {
        self.made.counts()
    }

    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        let model = if self.is_there { Model::Skylake } else { Model::Zen4 };
        Uncore::find(&Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT))
    }

    fn program_uncore(&mut self, round: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        let codes: Vec<u64> = round.iter().map(|one| one.event.select & 0xff).collect();
        if let Some(number) = codes.iter().position(|code| *code == self.refuses) {
            return Err((number, Refusal::Absent(Register::Msr(0x3b0))));
        }
        self.programmed.push(codes);
        self.round = round.to_vec();
        let of = |shared: &Shared| {
            let counters =
                (0..round.len()).map(|event| Counter::of_one(event, (2, Register::Msr(0x3b0))));
            counters.map(|one| Counter { shared: shared.clone(), ..one }).collect::<Vec<_>>()
        };
        Ok(self.packages.iter().flat_map(of).collect())
    }

    fn begin_uncore(&mut self) {
        self.intervals.push(true);
    }

    fn end_uncore(&mut self) {
        self.intervals.push(false);
        let of = |package: u64| {
            self.round.iter().map(move |one| package << 16 | one.event.select & 0xff)
        };
        self.counts = (0..self.packages.len() as u64).flat_map(of).collect();
    }

    fn uncore_counts(&self) -> &[u64] {
        &self.counts
    }

    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault {
        self.made.explain(trap, snippet)
    }
}

pub(super) const REQUESTS: &str = "uncore_arb/event=0x81,umask=1,name=requests/";
pub(super) const READS: &str = "uncore_arb/event=0x80,umask=2/";
pub(super) const BUSY: &str = "uncore_arb/event=0x80,umask=2,cmask=1,name=busy/";

fn measured(runner: &mut impl Runner, events: &[&'static str]) -> Measured {
    let events = events.iter().map(|&text| Cow::Borrowed(text)).collect();
    measure(runner, &Snippet { events, ..nop("x") }).unwrap()
}

/// The events' figures with their passes.
fn figures(measured: &Measured) -> Vec<(&str, f64, u32)> {
    let pass = |counting: &Option<Counting>| counting.as_ref().map_or(9, |counting| counting.pass);
    let figure = |one: &'_ protocol::record::Metric| (one.value.median, pass(&one.counting));
    measured.metrics.iter().map(|one| (&*one.event, figure(one).0, figure(one).1)).collect()
}

#[test]
fn s3_events_of_the_uncore_are_counted_beside_those_of_each_pass() {
    let mut client = client();
    let all = measured(&mut client, &["a", REQUESTS, "b"]);
    assert_eq!(
        figures(&all),
        [
            ("tsc", 3.0, 9),
            ("a", 1.0, 0),
            ("b", 1.0, 1),
            ("requests", 129.0, 0),
            ("requests", 129.0, 1)
        ]
    );
    let counting = all.metrics[3].counting.clone().unwrap();
    assert_eq!(counting.name, "uncore_arb/config=0x181/");
    assert_eq!(counting.counter, "counter 1 of the package's uncore_arb, MSR 0x3b0");
    assert_eq!(counting.units, 2);
    assert!(all.uncounted.is_empty());
}

#[test]
fn s3_events_of_the_uncore_that_do_not_fit_take_turns() {
    let mut client = client();
    let all = measured(&mut client, &[READS, BUSY, REQUESTS]);
    // The third finds room in the first round.
    assert_eq!(client.programmed, [vec![0x80, 0x81], vec![0x80]]);
    assert_eq!(
        figures(&all),
        [("tsc", 3.0, 9), (READS, 128.0, 0), ("requests", 129.0, 0), ("busy", 128.0, 1)]
    );
}

#[test]
fn s3_what_of_the_uncore_is_not_counted_is_named_once_and_the_rest_is() {
    let mut refusing = Client { refuses: 0x81, ..client() };
    let all =
        measured(&mut refusing, &["a", "{uncore_clock/event=0xff/,uncore_arb/event=0x81/}", "b"]);
    let [lost] = &all.uncounted[..] else { panic!("{:?}", all.uncounted) };
    assert_eq!(lost.event, "uncore_arb/event=0x81/");
    assert!(lost.reason.contains("MSR 0x3b0 does not hold"), "{}", lost.reason);
    let clocks = figures(&all).into_iter().filter(|one| one.0 == "uncore_clock/event=0xff/");
    assert_eq!(clocks.map(|one| one.2).collect::<Vec<_>>(), [0, 1]);
    for (events, why) in [
        ("uncore_cha/event=0x35/", "model 0x5e has no such unit"),
        ("uncore_arb/event=1,umask=0x100/", "no bits 0x100000000"),
    ] {
        let all = measured(&mut client(), &[events]);
        assert!(all.uncounted[0].reason.contains(why), "{:?}", all.uncounted);
    }
    let twice = measured(&mut client(), &[REQUESTS, "uncore_arb/event=0x81,umask=1/"]);
    assert_eq!(twice.uncounted[0].reason, "it is counted as requests");
    let mut other = Client { is_there: false, ..client() };
    let all = measured(&mut other, &[REQUESTS]);
    assert!(
        all.uncounted[0].reason.contains("uncore of Intel's processors"),
        "{:?}",
        all.uncounted
    );
    assert_eq!(figures(&all), [("tsc", 3.0, 9)]);
}
