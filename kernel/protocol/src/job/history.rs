//! History mode: in which cycles of a snippet events happen.
//!
//! The snippet runs again and again, and all counters stop when one of them, the clock, has counted k events; k grows from
//! run to run. The counts at k minus those before are what happened between.

use crate::job::Snippet;
use crate::job::control::Ring;
use crate::job::limits::{LimitError, MAX_EVENT_BYTES, length, range};
use crate::marker::markers;
use alloc::borrow::Cow;
use serde::{Deserialize, Serialize};

/// Most events of the clock that a history reaches: below the 2^31 that every counter can be set back by.
pub const MAX_HISTORY: u32 = 1_000_000;
/// Rows of a history.
pub const MAX_HISTORY_ROWS: u64 = 2_000;
/// Rows times events: some 20 bytes each, on one line of the report, so 35 s at 115,200 baud.
pub const MAX_HISTORY_FIGURES: u64 = 20_000;

/// The event that states where the snippet begins, by its generic name. Every pass counts it.
pub const WITNESS: &str = "instructions";

/// A snippet, looked at cycle by cycle.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct History<'a> {
    /// The code, how often it runs for each row, and what is counted.
    #[serde(borrow)]
    pub snippet: Snippet<'a>,
    /// The event whose overflow stops all counters, in the syntax of the crate `events`.
    #[serde(borrow)]
    pub clock: Cow<'a, str>,
    /// Events of the clock from the beginning of the snippet to the last row.
    pub cycles: u32,
    /// Events of the clock from row to row.
    pub step: u32,
    /// The rows begin where the counters are switched on, not where the snippet begins.
    pub end_to_end: bool,
}

impl History<'_> {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        u64::from(self.cycles / self.step.max(1))
    }
}

/// Checks what a history adds to a snippet.
pub(crate) fn check(history: &History) -> Result<(), LimitError> {
    range("history.cycles", history.cycles.into(), 1, MAX_HISTORY.into())?;
    range("history.step", history.step.into(), 1, history.cycles.into())?;
    range("history.cycles divided by step", history.rows(), 1, MAX_HISTORY_ROWS)?;
    let events = history.snippet.events.iter().map(|text| 1 + text.matches(',').count() as u64);
    let figures = history.rows() * (1 + events.sum::<u64>());
    range("the rows of the history times its events", figures, 1, MAX_HISTORY_FIGURES)?;
    length("the text of history.event", history.clock.len(), MAX_EVENT_BYTES)?;
    let Snippet { setup, .. } = &history.snippet;
    for (refused, reason) in [
        (history.snippet.values, "values lists the runs of one figure, but a history is a series"),
        (!setup.control.msrs.is_empty(), "msrs are not read cycle by cycle"),
        (setup.control.ring == Ring::User, "it measures ring 0 only"),
        (
            !markers(&history.snippet.body).is_empty(),
            "a pause in the body would restart counters that the clock has stopped",
        ),
    ] {
        if refused {
            return Err(LimitError::History(reason));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::job::Item;
    use crate::job::limits::check_item;
    use crate::job::tests::snippet;
    use alloc::string::ToString;

    fn history() -> History<'static> {
        let (snippet, clock) = (snippet("s", &[0x90]), Cow::Borrowed("cycles"));
        History { snippet, clock, cycles: 200, step: 1, end_to_end: false }
    }

    #[test]
    fn m16_each_bound_of_a_history_is_named() {
        let check = |change: fn(&mut History)| {
            let mut item = history();
            change(&mut item);
            check_item(&Item::History(item)).map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| ()), Ok(()));
        let rows = |cycles, step| History { cycles, step, ..history() }.rows();
        assert_eq!([rows(200, 1), rows(200, 7), rows(6, 6)], [200, 28, 1]);
        for (change, part) in [
            ((|h| h.cycles = 0) as fn(&mut History), "history.cycles is 0"),
            (|h| h.cycles = MAX_HISTORY + 1, "history.cycles is 1000001"),
            (|h| h.step = 0, "history.step is 0; it must be 1 to 200"),
            (|h| h.step = 201, "history.step is 201; it must be 1 to 200"),
            (|h| h.cycles = 2001, "history.cycles divided by step is 2001"),
            (|h| h.clock = "x".repeat(1001).into(), "history.event"),
            (
                |h| {
                    h.cycles = 2000;
                    h.snippet.events =
                        alloc::vec![Cow::Borrowed("{a,b,c,d,e}"), "x,y,z,w,v".into()];
                },
                "times its events is 22000",
            ),
            (|h| h.snippet.runs = 0, "runs is 0"),
            (|h| h.snippet.values = true, "values"),
            (|h| h.snippet.setup.control.ring = Ring::User, "ring 0 only"),
            (|h| h.snippet.body = crate::marker::PAUSE.to_vec().into(), "a pause"),
            (
                |h| {
                    let msr = crate::job::control::ReadMsr { name: "tsc".into(), number: 16 };
                    h.snippet.setup.control.msrs.push(msr);
                },
                "msrs",
            ),
        ] {
            let error = check(change).unwrap_err();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
