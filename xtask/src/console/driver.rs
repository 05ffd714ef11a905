//! Who sends: a script, or somebody who types.

use super::say::say;
use super::script::{Script, Step};
use crate::collect::{Collector, Numbered};
use crate::output;
use protocol::record::{ConsoleWhat, Record};
use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, channel};

/// What is sent to the consoles of a run, in all of its boots.
pub struct Driver {
    /// What is left of the script, if there is one.
    script: Option<(String, VecDeque<(usize, Step)>)>,
    typed: Option<Receiver<String>>,
    /// Records of this boot that were looked at.
    seen: usize,
    /// A console takes lines.
    open: bool,
    /// The script's line that was sent and is not answered yet, with its number.
    asked: Option<(usize, String)>,
    /// A task waits.
    waits: bool,
    /// Records are told as they come.
    tells: bool,
}

/// The lines that are typed on standard input, as they come.
#[must_use]
pub fn typed() -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // What cannot be read is the end, like the end itself.
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Driver {
    fn new() -> Self {
        let (seen, open, waits) = (0, false, false);
        Self { script: None, typed: None, seen, open, asked: None, waits, tells: false }
    }

    /// A script is sent.
    #[must_use]
    pub fn of_script(script: Script) -> Self {
        Self { script: Some((script.file, script.steps.into())), ..Self::new() }
    }

    /// Lines are sent as they come, once a console is open.
    #[must_use]
    pub fn of_lines(typed: Receiver<String>) -> Self {
        Self { typed: Some(typed), ..Self::new() }
    }

    /// The same, which says on standard error what the consoles say.
    #[must_use]
    pub fn telling(self) -> Self {
        Self { tells: true, ..self }
    }

    /// Another boot begins. A line that the one before has not answered is sent again.
    pub fn boots(&mut self) {
        (self.seen, self.open, self.waits) = (0, false, false);
        if let (Some((_, steps)), Some((line, sent))) = (&mut self.script, self.asked.take()) {
            steps.push_front((line, Step::Send(sent)));
        }
    }

    /// Takes what came, and returns what is to be sent now.
    pub fn drive(&mut self, collector: &Collector) -> Vec<u8> {
        let records = collector.so_far();
        if self.seen > records.len() {
            // The machine started anew.
            self.boots();
        }
        for one in &records[self.seen..] {
            self.look(one);
        }
        self.seen = records.len();
        let mut bytes = Vec::new();
        // A UART that is set up forgets what has come before: lines are kept until somebody takes them.
        let typed = self.typed.iter().filter(|_| self.open);
        for line in typed.flat_map(Receiver::try_iter) {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        if let Some(line) = self.next() {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    fn look(&mut self, one: &Numbered) {
        match &one.record {
            Record::Console(console) => {
                match console.what {
                    ConsoleWhat::Open => (self.open, self.waits) = (true, false),
                    ConsoleWhat::Waits => self.waits = true,
                    ConsoleWhat::Late => self.waits = false,
                    ConsoleWhat::Done | ConsoleWhat::Refused => {
                        self.asked = None;
                        self.waits &= console.task.is_none();
                        self.open &= console.line.as_deref().map(str::trim) != Some("quit");
                    }
                }
                if self.tells {
                    output::say(&say(console));
                }
            }
            // A line that came too late for it waits for the next console.
            record if record.ends_item() => (self.open, self.waits) = (false, false),
            _ => {}
        }
    }

    /// The script's next line, if it is time for it.
    fn next(&mut self) -> Option<String> {
        let (_, steps) = self.script.as_mut()?;
        while self.open && self.asked.is_none() {
            match steps.front()?.1 {
                Step::Wait if !self.waits => return None,
                Step::Wait => drop(steps.pop_front()),
                Step::Send(_) => {
                    let Some((line, Step::Send(text))) = steps.pop_front() else { return None };
                    self.asked = Some((line, text.clone()));
                    return Some(text);
                }
            }
        }
        None
    }

    /// What is to be said about a script that was not sent to its end, or whose last line was not answered.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let (file, steps) = self.script.as_ref()?;
        if let Some((line, sent)) = &self.asked {
            return Some(format!("{file}:{line}: `{sent}` was not answered"));
        }
        let (line, step) = steps.front()?;
        Some(match step {
            Step::Wait => format!("{file}:{line}: no task waited for the console any more"),
            Step::Send(sent) => {
                format!("{file}:{line}: `{sent}` was not sent: no console was open")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::line::encode;
    use protocol::record::{ConsoleRecord, CountResult};

    /// Feeds records, and returns what is sent behind each.
    fn driven(driver: &mut Driver, records: &[Record]) -> Vec<String> {
        let mut collector = Collector::new();
        let sent = (0..).zip(records).map(|(seq, record)| {
            collector.feed(format!("{}\r\n", encode(seq, record)).as_bytes());
            String::from_utf8(driver.drive(&collector)).unwrap()
        });
        sent.collect()
    }

    fn record(what: ConsoleWhat, task: Option<u16>, line: &str) -> Record {
        let line = (!line.is_empty()).then(|| line.to_string());
        Record::Console(ConsoleRecord { what, task, line, ..ConsoleRecord::default() })
    }

    fn of(text: &str) -> Driver {
        Driver::of_script(Script::parse(text, "s").unwrap())
    }

    #[test]
    fn m7_each_line_of_a_script_is_sent_behind_the_answer_to_the_one_before() {
        use ConsoleWhat::{Done, Open, Refused, Waits};
        let mut driver = of("list\nwait\nread a\ngo\nwait\ngo\nlist\n");
        let end = || Record::Count(CountResult::default());
        let sent = driven(
            &mut driver,
            &[
                record(Open, None, ""),
                record(Waits, Some(0), ""),
                record(Done, None, "list"),
                record(Refused, None, "read a"),
                record(Done, Some(0), "go"),
                record(Waits, Some(1), ""),
                record(Done, Some(1), "go"),
                end(),
                record(Open, None, ""),
                record(Done, None, "list"),
                record(Done, None, "list"),
            ],
        );
        // The last line was sent when its item ended: the next console answers it.
        let expected = ["list\n", "", "read a\n", "go\n", "", "go\n", "list\n", "", "", "", ""];
        assert_eq!(sent, expected);
        assert_eq!(driver.complaint(), None);
    }

    #[test]
    fn m7_what_is_left_of_a_script_is_complained_of_with_its_line() {
        use ConsoleWhat::{Done, Late, Open, Waits};
        let mut driver = of("\nwait\ngo\n");
        assert_eq!(
            driven(&mut driver, &[record(Open, None, ""), record(Late, Some(0), "")]),
            ["", ""]
        );
        let said = driver.complaint().unwrap();
        assert_eq!(said, "s:2: no task waited for the console any more");
        // The last line was sent, and the run is over before anybody read it.
        let mut driver = of("list\ngo\n");
        let records = [record(Open, None, ""), record(Done, None, "list")];
        assert_eq!(driven(&mut driver, &records), ["list\n", "go\n"]);
        assert_eq!(driver.complaint().unwrap(), "s:2: `go` was not answered");
        // The machine starts anew: it is sent once more.
        driver.boots();
        assert_eq!(driver.complaint().unwrap(), "s:2: `go` was not sent: no console was open");
        let records = [record(Open, None, ""), record(Done, None, "go")];
        assert_eq!(driven(&mut driver, &records), ["go\n", ""]);
        assert_eq!(driver.complaint(), None);
        let mut driver = of("quit\nwait\ngo\n");
        let records =
            [record(Open, None, ""), record(Waits, Some(0), ""), record(Done, Some(0), "quit")];
        assert_eq!(driven(&mut driver, &records), ["quit\n", "", ""]);
        driver.script.as_mut().unwrap().1.pop_front();
        let said = driver.complaint().unwrap();
        assert_eq!(said, "s:3: `go` was not sent: no console was open");
    }

    #[test]
    fn m7_typed_lines_are_sent_as_soon_as_a_console_is_open() {
        let (sender, receiver) = channel();
        let mut driver = Driver::of_lines(receiver);
        sender.send("read a".to_string()).unwrap();
        sender.send("anything".to_string()).unwrap();
        assert_eq!(driver.drive(&Collector::new()), b"", "nobody takes lines yet");
        let sent = driven(&mut driver, &[record(ConsoleWhat::Open, None, "")]);
        assert_eq!((&*sent[0], driver.complaint()), ("read a\nanything\n", None));
    }
}
