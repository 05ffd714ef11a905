//! A check and what it finds.

use super::Context;
use alloc::format;
use alloc::string::{String, ToString};
use arch::pmu::{PmuError, Registers};
use core::fmt::Display;
use protocol::record::CheckVerdict;

/// What a check comes to: a finding, or an access that should not have failed.
pub type Outcome = Result<Finding, PmuError>;

/// A check.
#[derive(Clone, Copy)]
pub struct Check {
    /// Stable name, `family.subject`.
    pub name: &'static str,
    /// Where the expectation comes from.
    pub source: &'static str,
    /// Makes it.
    pub run: fn(&mut Context) -> Outcome,
}

impl Check {
    /// Makes the check. The PMU is free and stopped before and after.
    pub fn make(&self, context: &mut Context) -> Finding {
        let _ = context.machine.take_stray();
        let ready = context.fresh();
        let found = ready.and_then(|()| (self.run)(context));
        // A check that left in the middle may have left PMIs coming.
        let _ = context.machine.withdraw();
        let _ = context.fresh();
        if let Some(stray) = context.machine.take_stray() {
            return Finding::fail("only the requested interrupts", stray);
        }
        found.unwrap_or_else(|error| Finding::fail("every access succeeds", error))
    }
}

/// What a check found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// The verdict.
    pub verdict: CheckVerdict,
    /// What should be.
    pub expected: String,
    /// What was.
    pub seen: String,
}

impl Finding {
    fn of(verdict: CheckVerdict, expected: impl Display, seen: impl Display) -> Self {
        Self { verdict, expected: expected.to_string(), seen: seen.to_string() }
    }

    /// As it should be.
    pub fn pass(expected: impl Display, seen: impl Display) -> Self {
        Self::of(CheckVerdict::Pass, expected, seen)
    }

    /// Not as it should be.
    pub fn fail(expected: impl Display, seen: impl Display) -> Self {
        Self::of(CheckVerdict::Fail, expected, seen)
    }

    /// The processor has nothing to check.
    pub fn skip(needs: impl Display) -> Self {
        Self::of(CheckVerdict::Skip, needs, "not there")
    }

    /// Passes if `good`.
    pub fn when(good: bool, expected: impl Display, seen: impl Display) -> Self {
        if good { Self::pass(expected, seen) } else { Self::fail(expected, seen) }
    }

    /// Passes if both are equal.
    pub fn equal<T: PartialEq + Display>(expected: T, seen: T) -> Self {
        Self::when(expected == seen, &expected, &seen)
    }

    /// Passes if `seen` lies within the bounds.
    pub fn within(min: u64, max: u64, seen: u64) -> Self {
        let expected = if min == max { min.to_string() } else { format!("{min} to {max}") };
        Self::when((min..=max).contains(&seen), expected, seen)
    }

    /// A failure that an erratum explains is known; anything else stays as it is.
    pub fn explained_by(self, erratum: Option<&'static arch::pmu::errata::Erratum>) -> Self {
        match (self.verdict, erratum) {
            (CheckVerdict::Fail, Some(erratum)) => Self {
                verdict: CheckVerdict::KnownErratum,
                seen: format!("{} ({}: {})", self.seen, erratum.id, erratum.text),
                ..self
            },
            _ => self,
        }
    }
}

/// Several comparisons with one verdict: the first miss is what was seen.
pub struct All {
    expected: &'static str,
    made: u32,
    miss: Option<String>,
}

impl All {
    /// None made yet; `expected` says what all of them come to.
    pub fn of(expected: &'static str) -> Self {
        Self { expected, made: 0, miss: None }
    }

    /// One comparison.
    pub fn equal<T: PartialEq + Display>(&mut self, what: impl Display, expected: T, seen: T) {
        let good = expected == seen;
        self.that(good, format_args!("{what}: {seen}, not {expected}"));
    }

    /// One comparison of values that are read in hexadecimal.
    pub fn same(&mut self, what: impl Display, expected: u64, seen: u64) {
        self.that(expected == seen, format_args!("{what}: {seen:#x}, not {expected:#x}"));
    }

    /// One condition.
    pub fn that(&mut self, good: bool, miss: impl Display) {
        self.made += 1;
        if !good && self.miss.is_none() {
            self.miss = Some(miss.to_string());
        }
    }

    /// A write that must raise an exception.
    pub fn faults(&mut self, registers: &mut dyn Registers, msr: arch::msr::Msr, value: u64) {
        let before = registers.rdmsr(msr);
        let done = registers.wrmsr(msr, value);
        if let (Ok(()), Ok(before)) = (done, before) {
            // Not to be left behind.
            let _ = registers.wrmsr(msr, before);
        }
        self.that(done.is_err(), format_args!("MSR {:#x} took {value:#x}", msr.0));
    }

    /// The verdict; without any comparison there was nothing to check.
    pub fn finish(self) -> Finding {
        match (self.miss, self.made) {
            (Some(miss), _) => Finding::fail(self.expected, miss),
            (None, 0) => Finding::skip(self.expected),
            (None, 1) => Finding::pass(self.expected, "as expected"),
            (None, made) => Finding::pass(self.expected, format_args!("as expected, {made} times")),
        }
    }
}
