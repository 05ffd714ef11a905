//! Running a snippet often enough to say what it costs.

use crate::statistics;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::Trap;
use protocol::job::{Difference, Snippet};
use protocol::record::{Fault, Metric};

/// A machine that can run emitted code. The firmware's is the real one; tests bring a made-up one.
pub trait Runner {
    /// Finds counters for the snippet's events.
    ///
    /// # Errors
    /// Says which event cannot be counted, and why.
    fn prepare(&mut self, snippet: &Snippet) -> Result<(), String>;

    /// Emits `copies` copies of the snippet and makes them ready to run.
    fn load(&mut self, snippet: &Snippet, copies: u64);

    /// Emits the snippet's one-time init alone and makes it ready to run.
    fn load_once(&mut self, snippet: &Snippet);

    /// Runs what was loaded once, in a clean state, and returns the TSC ticks between its two readings.
    ///
    /// # Errors
    /// The exception that ended it.
    fn run(&mut self) -> Result<u64, Box<Trap>>;

    /// What the last run counted of each event.
    fn counts(&self) -> &[u64];

    /// Explains a trap of the loaded snippet.
    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault;
}

/// What is loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The one-time init.
    Once,
    /// Init and body.
    Measured,
}

/// Executions of the body that the two code sizes differ in.
#[must_use]
pub fn executions(snippet: &Snippet) -> u64 {
    u64::from(snippet.unroll) * snippet.loop_count.max(1)
}

/// Why a snippet was not measured.
#[derive(Debug)]
pub enum Unmeasured {
    /// It raised an exception.
    Fault(Box<Fault>),
    /// An event of it cannot be counted.
    Event(String),
}

/// Measures `snippet` by the time stamp counter, and by a counter for each of its events.
///
/// # Errors
/// The exception that the snippet raised, or an event that cannot be counted.
pub fn measure(runner: &mut impl Runner, snippet: &Snippet) -> Result<Vec<Metric>, Unmeasured> {
    runner.prepare(snippet).map_err(Unmeasured::Event)?;
    let unroll = u64::from(snippet.unroll);
    let [small, large] = match snippet.difference {
        Difference::Double => [unroll, 2 * unroll],
        Difference::Empty => [0, unroll],
    };
    let setup = &snippet.setup;
    if !setup.one_time_init.is_empty() {
        runner.load_once(snippet);
        let ended = runner.run();
        ended.map_err(|trap| Unmeasured::Fault(Box::new(runner.explain(&trap, snippet))))?;
    }
    let first = setup.initial_warmup + snippet.warmup;
    let small = runs(runner, snippet, small, first).map_err(Unmeasured::Fault)?;
    let large = runs(runner, snippet, large, snippet.warmup).map_err(Unmeasured::Fault)?;
    let names =
        core::iter::once("tsc".to_string()).chain(snippet.events.iter().map(ToString::to_string));
    let metrics = names.zip(small.iter().zip(&large)).map(|(event, (small, large))| {
        let series = [small, large].map(|values| statistics::series(values, snippet.values));
        Metric {
            event,
            value: statistics::difference(small, large, executions(snippet)),
            deterministic: series.iter().all(|s| s.distinct == 1),
            series,
        }
    });
    Ok(metrics.collect())
}

/// All runs of one code size, the `warmup` first ones left out: the TSC's values, then those of each event.
fn runs(
    runner: &mut impl Runner,
    snippet: &Snippet,
    copies: u64,
    warmup: u32,
) -> Result<Vec<Vec<u64>>, Box<Fault>> {
    runner.load(snippet, copies);
    let mut values: Vec<Vec<u64>> =
        core::iter::repeat_with(Vec::new).take(1 + snippet.events.len()).collect();
    for run in 0..warmup + snippet.runs {
        let ticks = runner.run().map_err(|trap| Box::new(runner.explain(&trap, snippet)))?;
        if run >= warmup {
            values[0].push(ticks);
            for (values, &count) in values[1..].iter_mut().zip(runner.counts()) {
                values.push(count);
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use protocol::job::{Event, LoopCounter, Setup};
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
        copies: u64,
        counted: u64,
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
                copies: 0,
                counted: 0,
                cold: true,
            }
        }
    }

    impl Runner for Made {
        fn prepare(&mut self, snippet: &Snippet) -> Result<(), String> {
            match snippet.events.len() {
                0 | 1 => Ok(()),
                _ => Err("one counter".to_string()),
            }
        }

        fn counts(&self) -> &[u64] {
            // One event a copy, and 7 of the window.
            core::slice::from_ref(&self.counted)
        }

        fn load(&mut self, snippet: &Snippet, copies: u64) {
            (self.copies, self.cold) = (copies * snippet.loop_count.max(1), true);
        }

        fn load_once(&mut self, _: &Snippet) {
            assert_eq!(self.once_at.replace(self.runs), None, "once means once");
        }

        fn run(&mut self) -> Result<u64, Box<Trap>> {
            self.runs += 1;
            if self.fault_at == Some(self.runs) {
                let frame = arch::interrupts::TrapFrame { vector: 6, ..Default::default() };
                return Err(Box::new(Trap { frame, cr2: 0 }));
            }
            self.counted = self.copies + 7;
            let cold = core::mem::take(&mut self.cold);
            Ok(self.overhead + self.cost * self.copies + if cold { 1000 } else { 0 })
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
            expect: None,
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
            let metric = measure(&mut Made::new(3, 12_345), &snippet).unwrap().remove(0);
            assert_eq!(metric.value.median, 3.0, "{difference:?} {loop_count}");
            assert_eq!((metric.value.min, metric.value.max), (3.0, 3.0));
            assert!(metric.deterministic);
        }
    }

    #[test]
    fn without_warm_up_the_cold_run_shows() {
        let snippet = Snippet { warmup: 0, ..nop("x") };
        let metric = measure(&mut Made::new(3, 0), &snippet).unwrap().remove(0);
        assert!(!metric.deterministic);
        assert_eq!(metric.series[0].distinct, 2);
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
        let metrics = measure(&mut machine, &Snippet { setup, ..nop("x") }).unwrap();
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
        let metric = measure(&mut Made::new(2, 10), &snippet).unwrap().remove(0);
        assert_eq!(metric.series[0].values, Some(vec![110; 8]));
        assert_eq!(metric.series[1].values, Some(vec![210; 8]));
    }

    #[test]
    fn n1_an_event_is_counted_beside_the_tsc() {
        let snippet = Snippet { events: vec![Event::Instructions], ..nop("x") };
        let metrics = measure(&mut Made::new(3, 100), &snippet).unwrap();
        let seen: Vec<_> =
            metrics.iter().map(|metric| (metric.event.as_str(), metric.value.median)).collect();
        assert_eq!(seen, [("tsc", 3.0), ("instructions", 1.0)]);
        assert_eq!(metrics[1].series[0].min, 57);
    }

    #[test]
    fn c7_an_event_without_a_counter_is_refused_before_anything_runs() {
        let snippet = Snippet { events: vec![Event::Instructions, Event::Cycles], ..nop("x") };
        let mut machine = Made::new(1, 1);
        let error = measure(&mut machine, &snippet).unwrap_err();
        assert!(matches!(error, Unmeasured::Event(text) if text == "one counter"));
        assert_eq!(machine.runs, 0);
    }

    #[test]
    fn a_fault_ends_the_measurement() {
        let mut machine = Made::new(1, 1);
        machine.fault_at = Some(5);
        let error = measure(&mut machine, &nop("x")).unwrap_err();
        assert!(matches!(error, Unmeasured::Fault(fault) if fault.mnemonic == "#UD"));
        assert_eq!(machine.runs, 5);
    }
}
