//! Running a snippet often enough to say what it costs.

use crate::statistics;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use arch::call::Trap;
use protocol::job::{Difference, Snippet};
use protocol::record::{Fault, Metric};

/// A machine that can run emitted code. The firmware's is the real one; tests bring a made-up one.
pub trait Runner {
    /// Emits `copies` copies of the snippet and makes them ready to run.
    fn load(&mut self, snippet: &Snippet, copies: u64);

    /// Runs what was loaded once, in a clean state, and returns the TSC ticks between its two readings.
    ///
    /// # Errors
    /// The exception that ended it.
    fn run(&mut self) -> Result<u64, Box<Trap>>;

    /// Explains a trap of the loaded snippet.
    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault;
}

/// Executions of the body that the two code sizes differ in.
#[must_use]
pub fn executions(snippet: &Snippet) -> u64 {
    u64::from(snippet.unroll) * snippet.loop_count.max(1)
}

/// Measures `snippet` by the time stamp counter.
///
/// # Errors
/// The exception that the snippet raised.
pub fn measure(runner: &mut impl Runner, snippet: &Snippet) -> Result<Metric, Box<Fault>> {
    let unroll = u64::from(snippet.unroll);
    let [small, large] = match snippet.difference {
        Difference::Double => [unroll, 2 * unroll],
        Difference::Empty => [0, unroll],
    };
    let small = runs(runner, snippet, small)?;
    let large = runs(runner, snippet, large)?;
    let series = [&small, &large].map(|values| statistics::series(values, snippet.values));
    Ok(Metric {
        event: "tsc".to_string(),
        value: statistics::difference(&small, &large, executions(snippet)),
        deterministic: series.iter().all(|s| s.distinct == 1),
        series,
    })
}

/// All runs of one code size, the warm-up left out.
fn runs(runner: &mut impl Runner, snippet: &Snippet, copies: u64) -> Result<Vec<u64>, Box<Fault>> {
    runner.load(snippet, copies);
    let mut values = Vec::with_capacity(snippet.runs as usize);
    for run in 0..snippet.warmup + snippet.runs {
        let ticks = runner.run().map_err(|trap| Box::new(runner.explain(&trap, snippet)))?;
        if run >= snippet.warmup {
            values.push(ticks);
        }
    }
    Ok(values)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use protocol::job::LoopCounter;
    use std::borrow::Cow;

    /// A machine on which a copy costs `cost` ticks, the rest `overhead`, and every first run of a load
    /// 1,000 more.
    pub struct Made {
        pub cost: u64,
        pub overhead: u64,
        pub fault_at: Option<u64>,
        pub runs: u64,
        copies: u64,
        cold: bool,
    }

    impl Made {
        pub fn new(cost: u64, overhead: u64) -> Self {
            Self { cost, overhead, fault_at: None, runs: 0, copies: 0, cold: true }
        }
    }

    impl Runner for Made {
        fn load(&mut self, snippet: &Snippet, copies: u64) {
            (self.copies, self.cold) = (copies * snippet.loop_count.max(1), true);
        }

        fn run(&mut self) -> Result<u64, Box<Trap>> {
            self.runs += 1;
            if self.fault_at == Some(self.runs) {
                let frame = arch::interrupts::TrapFrame { vector: 6, ..Default::default() };
                return Err(Box::new(Trap { frame, cr2: 0 }));
            }
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
        }
    }

    #[test]
    fn n1_the_overhead_cancels_and_the_cold_run_is_left_out() {
        for (difference, loop_count) in
            [(Difference::Double, 0), (Difference::Empty, 0), (Difference::Double, 10)]
        {
            let snippet = Snippet { difference, loop_count, ..nop("x") };
            let metric = measure(&mut Made::new(3, 12_345), &snippet).unwrap();
            assert_eq!(metric.value.median, 3.0, "{difference:?} {loop_count}");
            assert_eq!((metric.value.min, metric.value.max), (3.0, 3.0));
            assert!(metric.deterministic);
        }
    }

    #[test]
    fn without_warm_up_the_cold_run_shows() {
        let snippet = Snippet { warmup: 0, ..nop("x") };
        let metric = measure(&mut Made::new(3, 0), &snippet).unwrap();
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
    fn values_are_listed_when_asked_for() {
        let snippet = Snippet { values: true, ..nop("x") };
        let metric = measure(&mut Made::new(2, 10), &snippet).unwrap();
        assert_eq!(metric.series[0].values, Some(vec![110; 8]));
        assert_eq!(metric.series[1].values, Some(vec![210; 8]));
    }

    #[test]
    fn a_fault_ends_the_measurement() {
        let mut machine = Made::new(1, 1);
        machine.fault_at = Some(5);
        assert_eq!(measure(&mut machine, &nop("x")).unwrap_err().mnemonic, "#UD");
        assert_eq!(machine.runs, 5);
    }
}
