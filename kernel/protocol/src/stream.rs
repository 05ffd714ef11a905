//! Reading a report from a line that may lose, double, reorder or damage what it carries, and that
//! others write to as well.
//!
//! Feed [`Reader`] bytes as they come; it hands out [`Event`]s. [`Reader::finish`] says what is still
//! missing. Nothing is dropped in silence: every byte is part of a record or of an event that names it.

use crate::authentication::Key;
use crate::ktap::{self, Ktap};
use crate::line::{self, Decoded, LineError, PREFIX};
use crate::record::Record;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use thiserror::Error;

/// Lines longer than this are cut and reported as damaged: a device that never sends a line end must
/// not fill the host's memory.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// Most missing numbers that are remembered one by one, of all gaps together; beyond, a line counts as
/// damaged. A number with a right checksum that jumps further comes from a broken writer, and a report
/// with as many gaps must not fill the host's memory.
const MAX_GAP: u32 = 1 << 20;

/// What the reader found.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A good record that was not seen before.
    Record {
        /// Its sequence number.
        seq: u32,
        /// The record.
        record: Box<Record>,
    },
    /// Something that should not be there.
    Problem(Problem),
    /// A line, or the beginning of one, that is no record: a boot loader's text, a kernel message.
    Foreign {
        /// Line of the input, counted from 1.
        line: u64,
        /// The text, with bytes that are no UTF-8 replaced.
        text: String,
    },
}

/// A defect of the report.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Problem {
    /// A line that starts as a record but is none.
    #[error("line {line} is damaged: {error}")]
    Damaged { line: u64, error: LineError },
    /// A whole line that does not come from who has the boot's key.
    #[error("line {line} is forged: {error}")]
    Forged { line: u64, error: LineError },
    /// The same sequence number twice.
    #[error("line {line} repeats record {seq}")]
    Doubled { line: u64, seq: u32 },
    /// A record that comes after one with a greater number.
    #[error("line {line} has record {seq}, which should have come before record {after}")]
    Reordered { line: u64, seq: u32, after: u32 },
    /// Records that never came.
    #[error("{}", lost_text(.0))]
    Lost(RangeInclusive<u32>),
    /// A second start record: the machine was reset.
    #[error(
        "line {line}: the machine started again after record {after}; the lines after it are from another boot"
    )]
    Restarted { line: u64, after: u32 },
    /// The report stops before its end record.
    #[error("the end record is missing; the last record is {}", last_text(.last))]
    NoEnd { last: Option<u32> },
    /// The end record counts more or fewer records than it should.
    #[error("the end record is number {seq} but states {records} records")]
    Count { seq: u32, records: u32 },
    /// Records after the end record.
    #[error("line {line}: record {seq} comes after the end record")]
    AfterEnd { line: u64, seq: u32 },
}

fn lost_text(range: &RangeInclusive<u32>) -> String {
    let (first, last) = (range.start(), range.end());
    if first == last {
        alloc::format!("record {first} is lost")
    } else {
        alloc::format!("records {first} to {last} are lost")
    }
}

fn last_text(last: &Option<u32>) -> String {
    last.map_or("none".to_string(), |seq| seq.to_string())
}

/// Reads one report.
#[derive(Default)]
pub struct Reader {
    partial: Vec<u8>,
    line: u64,
    /// The number that the next record should have.
    next: u32,
    /// Numbers below `next` that were not seen.
    missing: BTreeSet<u32>,
    ended: bool,
    /// The boot's, if it is known.
    key: Option<Key>,
    signed: bool,
    /// The report is KTAP: what its lines are made with, once the plan has come, and those that may come.
    ktap: Option<Form>,
}

/// The lines of KTAP around the records.
#[derive(Default)]
struct Form {
    made: Option<Ktap>,
    expected: Vec<String>,
}

impl Form {
    /// Whether the line is one of them.
    fn takes(&mut self, line: &str) -> bool {
        if let Some(at) = self.expected.iter().position(|expected| expected == line) {
            self.expected.remove(at);
            return true;
        }
        if self.made.is_none() {
            self.made = Ktap::of_plan(line);
            return self.made.is_some();
        }
        false
    }
}

impl Reader {
    /// A reader at the beginning of a report.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader of one boot whose lines must carry the codes of `key`.
    #[must_use]
    pub fn with_key(key: Key) -> Self {
        Self { key: Some(key), ..Self::default() }
    }

    /// Whether there were lines with codes. Without a key, nobody looked whether they are right.
    #[must_use]
    pub fn signed(&self) -> bool {
        self.signed
    }

    /// Whether the end record has come.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes the next bytes and returns what they complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(at) = bytes.iter().position(|&b| b == b'\n') {
            self.partial.extend_from_slice(&bytes[..at]);
            bytes = &bytes[at + 1..];
            self.take_line(&mut events);
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > MAX_LINE_BYTES {
            self.take_line(&mut events);
        }
        events
    }

    /// Ends the report: returns what the last, unended line held, and everything that is missing.
    pub fn finish(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.partial.is_empty() {
            self.take_line(&mut events);
        }
        self.take_losses(&mut events);
        if !self.ended {
            let last = self.next.checked_sub(1);
            events.push(Event::Problem(Problem::NoEnd { last }));
        }
        events
    }

    fn take_losses(&mut self, events: &mut Vec<Event>) {
        let mut missing = core::mem::take(&mut self.missing).into_iter().peekable();
        while let Some(first) = missing.next() {
            let mut last = first;
            while missing.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            events.push(Event::Problem(Problem::Lost(first..=last)));
        }
    }

    fn take_line(&mut self, events: &mut Vec<Event>) {
        self.line += 1;
        let bytes = core::mem::take(&mut self.partial);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\r');
        // A boot loader's text may stand before a record on the same line.
        let (mut foreign, record) = match text.rfind(PREFIX) {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        if let Some(form) = &mut self.ktap {
            match record {
                Some(_) => foreign = foreign.strip_suffix(ktap::DIAGNOSTIC).unwrap_or(foreign),
                None if form.takes(text) => return,
                None => {}
            }
        }
        if record.is_none() && text == ktap::VERSION {
            // Another boot has its own.
            self.ktap = Some(Form::default());
            return;
        }
        if !foreign.trim().is_empty() {
            events.push(Event::Foreign { line: self.line, text: foreign.to_string() });
        }
        match record.map(|line| line::decode_with(line, self.key.as_ref())) {
            None => {}
            Some(Ok(Decoded { seq, record, signed })) => {
                self.signed |= signed;
                self.take_record(seq, record, events);
            }
            Some(Err(error)) => {
                let line = self.line;
                events.push(Event::Problem(match error.is_forgery() {
                    true => Problem::Forged { line, error },
                    false => Problem::Damaged { line, error },
                }));
            }
        }
    }

    /// The number behind a new one, which is `next` or greater, if it is plausible.
    fn after(&self, seq: u32) -> Option<u32> {
        let gap = (seq - self.next) as usize;
        seq.checked_add(1).filter(|_| self.missing.len() + gap <= MAX_GAP as usize)
    }

    fn take_record(&mut self, seq: u32, record: Record, events: &mut Vec<Event>) {
        let line = self.line;
        // A key belongs to one boot, so a second start record under it is an old line again.
        if matches!(record, Record::Start(_))
            && self.key.is_none()
            && seq == 0
            && self.next > 0
            && !self.missing.contains(&0)
        {
            // The previous boot's losses belong before the new boot's records.
            self.take_losses(events);
            events.push(Event::Problem(Problem::Restarted { line, after: self.next - 1 }));
            let ktap = self.ktap.take();
            *self = Self { line, signed: self.signed, ktap, ..Self::default() };
        }
        let problem = if self.missing.remove(&seq) {
            Some(Problem::Reordered { line, seq, after: self.next - 1 })
        } else if seq < self.next {
            events.push(Event::Problem(Problem::Doubled { line, seq }));
            return;
        } else if let Some(next) = self.after(seq) {
            self.missing.extend(self.next..seq);
            self.next = next;
            self.ended.then_some(Problem::AfterEnd { line, seq })
        } else {
            let error = LineError::Unknown(alloc::format!("its number {seq} is implausible"));
            events.push(Event::Problem(Problem::Damaged { line, error }));
            return;
        };
        events.extend(problem.map(Event::Problem));
        if let Record::End(end) = &record {
            self.ended = true;
            if end.records != seq + 1 {
                events.push(Event::Problem(Problem::Count { seq, records: end.records }));
            }
        }
        if let Some(Form { made: Some(made), expected }) = &mut self.ktap {
            let lines = made.behind(&record);
            *expected = String::from_utf8_lossy(&lines).lines().map(str::to_string).collect();
        }
        events.push(Event::Record { seq, record: Box::new(record) });
    }
}

#[cfg(test)]
mod tests;
