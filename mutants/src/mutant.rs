//! A mutant as cargo-mutants lists it, and what becomes of it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One of `cargo mutants --list --json`. Its number is its place in that list.
#[derive(Debug)]
pub struct Mutant {
    /// What this program reads of it.
    pub read: Read,
    /// All of it, for the account.
    pub whole: Value,
}

/// What this program reads of a mutant.
#[derive(Debug, Deserialize)]
pub struct Read {
    /// `FILE:LINE:COLUMN: WHAT`.
    pub name: String,
    /// Its package.
    pub package: String,
    /// The file, from the checkout's root.
    pub file: String,
    /// What is replaced.
    pub span: Span,
    /// The text in its place.
    pub replacement: String,
    /// What kind of change it is.
    pub genre: Genre,
}

/// What kind of change a mutant is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
pub enum Genre {
    /// The body of a function.
    FnValue,
    /// An operator with two operands.
    BinaryOperator,
    /// An operator with one.
    UnaryOperator,
    /// An arm of a `match`, gone.
    MatchArm,
    /// The guard of an arm.
    MatchArmGuard,
    /// A field of a struct with a base, gone.
    StructField,
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Span {
    /// Where it begins.
    pub start: Position,
    /// Where it has ended.
    pub end: Position,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// What became of a mutant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Fate {
    /// A test failed.
    Caught,
    /// The tests that reach it passed. `reached` is their number.
    Missed { reached: usize },
    /// A test did not end.
    TimedOut,
    /// It does not build.
    Unviable,
    /// It cannot be switched, and was not tried yet: for the journal alone.
    Alone,
}

impl Fate {
    /// No test noticed it.
    pub fn is_missed(&self) -> bool {
        matches!(self, Self::Missed { .. })
    }

    /// Nothing is left to try.
    pub fn is_final(&self) -> bool {
        !self.is_missed() && *self != Self::Alone
    }
}

/// A mutant's number, what became of it, and the test or the reason.
pub type Tried = (usize, Fate, String);

impl Mutant {
    /// Reads the list.
    pub fn list(text: &str) -> anyhow::Result<Vec<Self>> {
        let all: Vec<Value> = serde_json::from_str(text)?;
        let read = |whole: Value| Ok(Self { read: Read::deserialize(&whole)?, whole });
        all.into_iter().map(read).collect()
    }

    /// It, in the form of cargo-mutants' `outcomes.json`.
    pub fn outcome(&self, fate: &Fate, how: &str) -> Value {
        let (summary, reached) = match fate {
            Fate::Caught => ("CaughtMutant", None),
            Fate::Missed { reached } => ("MissedMutant", Some(reached)),
            Fate::TimedOut => ("Timeout", None),
            Fate::Unviable => ("Unviable", None),
            Fate::Alone => ("NotTried", None),
        };
        json!({ "scenario": { "Mutant": self.whole }, "summary": summary, "reached_by_tests": reached, "how": how })
    }
}
