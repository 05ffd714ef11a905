//! Records on their way out.

use alloc::string::String;
use core::fmt::Write;
use protocol::authentication::Key;
use protocol::console::Received;
use protocol::ktap::{self, Ktap};
use protocol::line;
use protocol::record::{End, Outcome, Record};

/// Where lines go.
pub trait Sink {
    /// Takes bytes; they are gone when this returns.
    fn send(&mut self, bytes: &[u8]);
    /// What has come in on the way back, if there is one and something has, and on which of its lines.
    fn receive(&mut self) -> Option<(usize, Received)> {
        None
    }
}

/// Numbers records and writes them as lines.
pub struct Report<S> {
    sink: S,
    next: u32,
    form: Form,
}

/// What the lines look like. The default: plain records.
#[derive(Default)]
pub struct Form {
    /// With a key, each record carries its code.
    pub key: Option<Key>,
    /// The records are diagnostics of KTAP.
    pub ktap: Option<Ktap>,
}

impl<S: Sink> Report<S> {
    /// A report that has not begun. The line is ended first, because a boot loader may have left half a
    /// line there.
    pub fn new(sink: S) -> Self {
        Self::in_form(sink, Form::default())
    }

    /// The same in another form.
    pub fn in_form(sink: S, form: Form) -> Self {
        let mut report = Self { sink, next: 0, form };
        report.break_line();
        if let Some(ktap) = &report.form.ktap {
            report.sink.send(&ktap.head());
        }
        report
    }

    /// Writes one record.
    pub fn send(&mut self, record: &Record) {
        let mut line = line::encode_bytes(self.next, record, self.form.key.as_ref());
        line.extend_from_slice(b"\r\n");
        self.next += 1;
        if self.form.ktap.is_some() {
            self.sink.send(ktap::DIAGNOSTIC.as_bytes());
        }
        self.sink.send(&line);
        if let Some(ktap) = &mut self.form.ktap {
            self.sink.send(&ktap.behind(record));
        }
    }

    /// Writes the end record; its count includes itself.
    pub fn end(&mut self, end: End) {
        let records = self.next + 1;
        self.send(&Record::End(End { records, ..end }));
    }

    /// Ends a line that a failure may have cut off in the middle.
    pub fn break_line(&mut self) {
        self.sink.send(b"\r\n");
    }

    /// Writes plain text, for the failure that even a record cannot be made of.
    pub fn raw(&mut self, text: core::fmt::Arguments) {
        struct Raw<'a, S>(&'a mut S);
        impl<S: Sink> Write for Raw<'_, S> {
            fn write_str(&mut self, text: &str) -> core::fmt::Result {
                self.0.send(text.as_bytes());
                Ok(())
            }
        }
        // The sink cannot fail.
        let _ = Raw(&mut self.sink).write_fmt(text);
    }

    /// The sink, for draining it.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }
}

/// How the run as a whole went.
#[must_use]
pub fn outcome(passed: u32, failed: u32, measured: u32) -> Outcome {
    if failed > 0 {
        Outcome::Fail
    } else if passed + measured == 0 {
        Outcome::Skip
    } else {
        Outcome::Pass
    }
}

/// A sink that keeps everything, for tests and for the record of last resort.
#[derive(Default)]
pub struct Buffer(pub String);

impl Sink for Buffer {
    fn send(&mut self, bytes: &[u8]) {
        self.0.push_str(&String::from_utf8_lossy(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use protocol::job::OnEnd;
    use protocol::record::Progress;
    use protocol::stream::{Event, Reader};

    #[test]
    fn a_report_reads_back_without_problem_and_the_end_counts_itself() {
        let mut report = Report::new(Buffer::default());
        report.send(&Record::Progress(Progress { done: 1, total: 2, within: None }));
        report.end(End {
            records: 0,
            outcome: outcome(1, 0, 0),
            passed: 1,
            failed: 0,
            measured: 0,
            on_end: OnEnd::Halt,
            heap: None,
            stack: None,
        });
        let mut reader = Reader::new();
        let events = reader.feed(report.sink_mut().0.as_bytes());
        assert_eq!(events.len(), 2);
        assert!(events.iter().all(|event| matches!(event, Event::Record { .. })), "{events:?}");
        assert_eq!(reader.finish(), []);
    }

    #[test]
    fn x6_a_report_in_ktap_has_the_same_records_as_diagnostics_and_a_last_point() {
        let mut plain = Report::new(Buffer::default());
        let mut ktap = Report::in_form(
            Buffer::default(),
            Form { ktap: Some(Ktap::new(0)), ..Form::default() },
        );
        let end = End::without_items(Outcome::Skip);
        for report in [&mut plain, &mut ktap] {
            report.send(&Record::Progress(Progress { done: 0, total: 0, within: None }));
            report.end(end.clone());
        }
        let records: Vec<&str> = plain.sink_mut().0.trim_start().lines().collect();
        let expected = alloc::format!(
            "\r\nKTAP version 1\r\n1..1\r\n# {}\r\n# {}\r\nok 1 - the run\r\n",
            records[0],
            records[1]
        );
        assert_eq!(ktap.sink_mut().0, expected);
    }

    #[test]
    fn outcomes() {
        assert_eq!(outcome(1, 0, 5), Outcome::Pass);
        assert_eq!(outcome(0, 0, 5), Outcome::Pass);
        assert_eq!(outcome(9, 1, 5), Outcome::Fail);
        assert_eq!(outcome(0, 0, 0), Outcome::Skip);
    }
}
