//! What a person or a script says on the serial line while an item with a console runs: a command a line.
//!
//! [`Lines`] makes lines of bytes, [`parse`] commands of lines. Both take anything that can come in. The host reads the same
//! commands before it sends them.

mod lines;
mod words;

pub use lines::{Lines, MAX_COMMAND_BYTES, Received, WrongLine};
pub use words::CommandError;

use alloc::string::String;
use words::Words;

/// What can be said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// Tell what can be said.
    Help,
    /// Tell which sets there are, and whether they count.
    List,
    /// Tell counts and registers, of one set or of all.
    Status(Option<String>),
    /// Tell counts, of one set or of all.
    Read(Option<String>),
    /// Let a set count.
    Start(String),
    /// Let it stand still.
    Stop(String),
    /// The next of its groups counts.
    Next(String),
    /// It counts no more, for good.
    Terminate(String),
    /// Another request in the place of one.
    Modify(Change),
    /// A task that waits goes on.
    Go,
    /// Listen no more; whoever waits goes on, and nobody waits any more.
    Quit,
}

/// How a request is to be changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Change {
    /// The set, by name or by number from 1.
    pub set: String,
    /// The event, as the job writes it, or by number from 1.
    pub event: String,
    /// The event to count in its place.
    pub to: Option<String>,
    /// Events from one overflow to the next; 0: no overflows.
    pub every: Option<u64>,
    /// What the count starts from.
    pub preset: Option<u64>,
}

/// All commands, with what each takes and does.
pub const HELP: [(&str, &str); 11] = [
    ("list", "the sets, and whether they count"),
    ("read [SET]", "counts of one set, or of all"),
    ("status [SET]", "the same with registers, and counts at the last overflow"),
    ("start SET", "it counts"),
    ("stop SET", "it stops counting"),
    ("next SET", "its next group counts; after the last one a pass is complete"),
    (
        "modify SET EVENT [event=OTHER] [every=N] [preset=N]",
        "another request; its count begins anew",
    ),
    ("terminate SET", "it counts no more"),
    ("go", "the task that waits goes on"),
    ("quit", "the console closes, and no task waits any more"),
    ("help", "this list"),
];

/// Reads one line. Names with blanks stand in double quotes.
///
/// # Errors
/// What is wrong first, and where.
pub fn parse(line: &str) -> Result<Command, CommandError> {
    let mut words = Words::new(line);
    let Some((column, word)) = words.next()? else { return Err(CommandError::Empty) };
    let command = match &*word {
        "help" => Command::Help,
        "list" => Command::List,
        "go" => Command::Go,
        "quit" => Command::Quit,
        "status" => Command::Status(words.next()?.map(|(_, set)| set)),
        "read" => Command::Read(words.next()?.map(|(_, set)| set)),
        "start" => Command::Start(words.needs("start", "the name of a set")?),
        "stop" => Command::Stop(words.needs("stop", "the name of a set")?),
        "next" => Command::Next(words.needs("next", "the name of a set")?),
        "terminate" => Command::Terminate(words.needs("terminate", "the name of a set")?),
        "modify" => Command::Modify(change(&mut words)?),
        _ => return Err(CommandError::Unknown { column, word }),
    };
    match words.next()? {
        Some((column, word)) => Err(CommandError::TooMany { column, word }),
        None => Ok(command),
    }
}

fn change(words: &mut Words) -> Result<Change, CommandError> {
    let set = words.needs("modify", "the name of a set")?;
    let event = words.needs("modify", "an event of the set")?;
    let mut change = Change { set, event, ..Change::default() };
    while let Some((column, word)) = words.next()? {
        let number = |text: &str| {
            let digits: String = text.chars().filter(|&one| one != '_').collect();
            digits.parse().map_err(|_| CommandError::Number { column, text: text.into() })
        };
        let twice = match word.split_once('=') {
            Some(("every", text)) => change.every.replace(number(text)?).is_some(),
            Some(("preset", text)) => change.preset.replace(number(text)?).is_some(),
            Some(("event", text)) => change.to.replace(text.into()).is_some(),
            _ => return Err(CommandError::NoChange { column, word }),
        };
        if twice {
            return Err(CommandError::Twice { column, word });
        }
    }
    match change {
        Change { to: None, every: None, preset: None, .. } => Err(CommandError::Missing {
            column: words.column,
            command: "modify",
            what: "event=, every= or preset=",
        }),
        change => Ok(change),
    }
}

#[cfg(test)]
mod tests;
