//! The console of an item: lines come in while its tasks run, and each is answered by a record.
//!
//! What the lines do is [`Controlled`]'s business, where they come from [`Terminal`]'s. Nothing here waits: whoever waits for
//! somebody at the console asks again and again.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::console::{Command, HELP, Lines, Received, parse};
use protocol::record::{ConsoleRecord, ConsoleSet, ConsoleWhat, Record};

/// The line that commands come in on and records go out on.
pub trait Terminal: Sync {
    /// What has come in next, if something has, and on which of its lines, counted from 0.
    fn receive(&self) -> Option<(usize, Received)>;
    /// Writes one record.
    fn send(&self, record: &Record);
}

/// What is controlled.
pub trait Controlled {
    /// TSC ticks since counting began.
    fn now(&mut self) -> u64;
    /// Does what a command says of sets. Returns these, as they are then.
    ///
    /// # Errors
    /// Why it was not done, in a sentence.
    fn obey(&mut self, command: &Command) -> Result<Vec<ConsoleSet>, String>;
}

/// Most bytes that are taken at once: tasks are to get on, whatever comes.
const MOST_AT_ONCE: usize = 64;

/// The console of one item.
pub struct Console<'a> {
    terminal: &'a dyn Terminal,
    item: u32,
    number: u32,
    /// Of each line that something came in on: the bytes of two are never mixed.
    lines: Vec<Lines>,
    /// Nobody listens any more.
    closed: bool,
    /// The task that waits.
    waits: Option<u16>,
}

impl<'a> Console<'a> {
    /// The console of an item, which says that it is open.
    #[must_use]
    pub fn open(item: u32, terminal: &'a dyn Terminal) -> Self {
        let mut console = Self {
            terminal,
            item,
            number: 0,
            lines: Vec::from([Lines::new()]),
            closed: false,
            waits: None,
        };
        console.say(ConsoleRecord::default());
        console
    }

    fn say(&mut self, record: ConsoleRecord) {
        self.number += 1;
        let (item, number) = (self.item, self.number);
        self.terminal.send(&Record::Console(ConsoleRecord { item, number, ..record }));
    }

    /// Takes what has come in, and answers the lines that have ended.
    pub fn listen(&mut self, controlled: &mut dyn Controlled) {
        for _ in 0..MOST_AT_ONCE {
            if self.closed {
                return;
            }
            let Some((line, received)) = self.terminal.receive() else { return };
            if self.lines.len() <= line {
                self.lines.resize_with(line + 1, Lines::new);
            }
            match self.lines[line].take(received) {
                Some(Ok(line)) => self.answer(line, controlled),
                Some(Err(wrong)) => {
                    let text = Vec::from([wrong.to_string()]);
                    let (what, tsc) = (ConsoleWhat::Refused, controlled.now());
                    self.say(ConsoleRecord { what, text, tsc, ..ConsoleRecord::default() });
                }
                None => {}
            }
        }
    }

    fn answer(&mut self, line: String, controlled: &mut dyn Controlled) {
        let mut record = ConsoleRecord { what: ConsoleWhat::Done, ..ConsoleRecord::default() };
        let done = parse(&line).map_err(|error| error.to_string());
        let done = done.and_then(|command| match command {
            Command::Help => {
                let line = |(form, what): &(&str, &str)| alloc::format!("{form}: {what}");
                record.text = HELP.iter().map(line).collect();
                Ok(())
            }
            Command::Go => {
                record.task = self.waits.take();
                record.task.map(|_| ()).ok_or_else(|| "no task waits".to_string())
            }
            Command::Quit => {
                (record.task, self.closed) = (self.waits.take(), true);
                Ok(())
            }
            command => controlled.obey(&command).map(|sets| record.sets = sets),
        });
        if let Err(why) = done {
            (record.what, record.text) = (ConsoleWhat::Refused, Vec::from([why]));
        }
        (record.line, record.tsc) = (Some(line), controlled.now());
        self.say(record);
    }

    /// A task waits from here on. Returns whether it does: behind `quit` nobody waits.
    pub fn begin_wait(&mut self, task: u16, controlled: &mut dyn Controlled) -> bool {
        if self.closed {
            return false;
        }
        self.waits = Some(task);
        let (what, tsc) = (ConsoleWhat::Waits, controlled.now());
        self.say(ConsoleRecord { what, task: self.waits, tsc, ..ConsoleRecord::default() });
        true
    }

    /// Whether a task still waits.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    /// The task that waits has waited for too long.
    pub fn is_late(&mut self, controlled: &mut dyn Controlled) {
        let (what, task, tsc) = (ConsoleWhat::Late, self.waits.take(), controlled.now());
        self.say(ConsoleRecord { what, task, tsc, ..ConsoleRecord::default() });
    }
}

#[cfg(test)]
mod tests;
