//! The words of a line, and what can be wrong with them.

use alloc::string::String;
use core::iter::Peekable;
use core::str::Chars;
use thiserror::Error;

/// Why a line is no command. Columns count characters, from 1.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum CommandError {
    /// A line of blanks.
    #[error("the line is empty")]
    Empty,
    /// No command.
    #[error("column {column}: `{word}` is no command; `help` lists them")]
    Unknown { column: usize, word: String },
    /// A command of which a part is missing.
    #[error("column {column}: `{command}` needs {what}")]
    Missing { column: usize, command: &'static str, what: &'static str },
    /// A command with more than it takes.
    #[error(
        "column {column}: `{word}` is one word too many; names with blanks stand in double quotes"
    )]
    TooMany { column: usize, word: String },
    /// A quote that nothing ends.
    #[error("column {column}: the quote is not closed")]
    Quote { column: usize },
    /// Not a number of events.
    #[error("column {column}: `{text}` is no number from 0 to 2^64-1")]
    Number { column: usize, text: String },
    /// What `modify` does not know.
    #[error("column {column}: `{word}` is none of event=, every= and preset=")]
    NoChange { column: usize, word: String },
    /// One change twice.
    #[error("column {column}: `{word}` is the second of its kind")]
    Twice { column: usize, word: String },
}

/// The words of a line: what stands between blanks. Within double quotes blanks belong to the word, and a backslash goes before a
/// quote or another backslash.
pub(super) struct Words<'a> {
    rest: Peekable<Chars<'a>>,
    /// Of the next character.
    pub(super) column: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { rest: line.chars().peekable(), column: 1 }
    }

    fn take(&mut self) -> Option<char> {
        self.column += 1;
        self.rest.next()
    }

    /// The next word, with its column.
    pub(super) fn next(&mut self) -> Result<Option<(usize, String)>, CommandError> {
        while self.rest.peek().is_some_and(|one| one.is_whitespace()) {
            self.take();
        }
        let begin = self.column;
        let mut word = String::new();
        while let Some(&one) = self.rest.peek().filter(|one| !one.is_whitespace()) {
            let column = self.column;
            self.take();
            match one {
                '"' => self.quoted(column, &mut word)?,
                one => word.push(one),
            }
        }
        Ok((self.column > begin).then_some((begin, word)))
    }

    /// The rest of what a quote at `column` began.
    fn quoted(&mut self, column: usize, word: &mut String) -> Result<(), CommandError> {
        loop {
            match self.take() {
                Some('"') => return Ok(()),
                Some('\\') => word.push(self.take().ok_or(CommandError::Quote { column })?),
                Some(one) => word.push(one),
                None => return Err(CommandError::Quote { column }),
            }
        }
    }

    /// The next word of `command`, which is `what`.
    pub(super) fn needs(
        &mut self,
        command: &'static str,
        what: &'static str,
    ) -> Result<String, CommandError> {
        let word = self.next()?.map(|(_, word)| word);
        word.ok_or(CommandError::Missing { column: self.column, command, what })
    }
}
