//! What is asked for, before it is bound to anything.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::Rings;
use bitflags::bitflags;
use events::request::Attributes;

/// One event to count, and what follows from its overflows.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The event, in the syntax of the crate `events`, attributes after it.
    pub text: String,
    /// Attributes beside those of the text, which come first.
    pub attributes: Attributes,
    /// The rings to count in; `None`: as the text says, or both.
    pub rings: Option<Rings>,
    /// Where the 64-bit count starts.
    pub preset: u64,
    /// Overflows after each so many events; `None`: it is only counted.
    pub every: Option<u64>,
    /// Requests, by number, that count nothing before this one's first overflow.
    pub starts: Vec<usize>,
    /// Counted in every pass.
    pub correlate: bool,
}

impl Request {
    /// A request that counts from 0.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_string(),
            attributes: Attributes::default(),
            rings: None,
            preset: 0,
            every: None,
            starts: Vec::new(),
            correlate: false,
        }
    }

    /// The same, overflowing after each `events`.
    #[must_use]
    pub fn every(self, events: u64) -> Self {
        Self { every: Some(events), ..self }
    }

    /// The same in these rings.
    #[must_use]
    pub fn in_rings(self, rings: Rings) -> Self {
        Self { rings: Some(rings), ..self }
    }

    /// The same from another start.
    #[must_use]
    pub fn from(self, preset: u64) -> Self {
        Self { preset, ..self }
    }

    /// The same, starting others at its first overflow.
    #[must_use]
    pub fn starting(self, requests: &[usize]) -> Self {
        Self { starts: requests.to_vec(), ..self }
    }

    /// The same in every pass.
    #[must_use]
    pub fn in_every_pass(self) -> Self {
        Self { correlate: true, ..self }
    }
}

/// What the run does when a request overflows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AtOverflow {
    /// The same requests count on.
    #[default]
    Same,
    /// The next ones count.
    Next,
    /// Nothing counts until somebody says so.
    Stop,
}

bitflags! {
    /// What is notified.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct Notify: u8 {
        /// Each overflow.
        const OVERFLOW = 1;
        /// Each pass: every request has had its turn.
        const PASS = 2;
        /// The end of the last pass.
        const END = 4;
    }
}

/// The options of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Run {
    /// At each overflow.
    pub at_overflow: AtOverflow,
    /// Passes after which the run ends; 0: it does not.
    pub passes: u64,
    /// What is notified.
    pub notify: Notify,
}
