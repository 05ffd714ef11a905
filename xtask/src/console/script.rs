//! A script for the console.
//!
//! A line is a command of the console; `wait`, which waits until a task does; or `send TEXT`, which sends any text. What stands
//! behind a `#` at the beginning of a line is a remark.

use protocol::console::{CommandError, MAX_COMMAND_BYTES, parse};
use thiserror::Error;

/// What is done next.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Wait until a task waits.
    Wait,
    /// Send a line, and wait for its answer.
    Send(String),
}

/// A script, each step with its line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Script {
    /// The file's name, for messages.
    pub file: String,
    /// The steps.
    pub steps: Vec<(usize, Step)>,
}

/// Why a script cannot be sent.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("{file}:{line}: {wrong}")]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, with its column.
    pub wrong: LineError,
}

/// What is wrong with a line.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum LineError {
    /// It is no command.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The console takes no line that long.
    #[error("column {}: the line is longer than the {MAX_COMMAND_BYTES} bytes that the console takes", .0)]
    TooLong(usize),
    /// The console takes lines that are text.
    #[error("column {0}: a control character")]
    Control(usize),
    /// Nothing to be sent.
    #[error("column {0}: `send` needs a text")]
    Nothing(usize),
    /// `wait` takes nothing.
    #[error("column {0}: `wait` stands alone: it waits for whichever task waits next")]
    Alone(usize),
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScriptError> {
        let mut steps = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let wrong = |wrong| ScriptError { file: file.to_string(), line, wrong };
            if let Some(step) = step(text).map_err(wrong)? {
                steps.push((line, step));
            }
        }
        Ok(Self { file: file.to_string(), steps })
    }
}

fn step(line: &str) -> Result<Option<Step>, LineError> {
    let (text, column) = (line.trim(), column(line, line.trim_start()));
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if word == "wait" {
        let at = || self::column(line, rest.trim_start());
        return if rest.is_empty() { Ok(Some(Step::Wait)) } else { Err(LineError::Alone(at())) };
    }
    let sent = match word {
        "send" if rest.is_empty() => return Err(LineError::Nothing(column + word.len())),
        "send" => rest,
        _ => text,
    };
    let start = self::column(line, &line[line.find(sent).unwrap_or(0)..]);
    if let Some(place) = sent.chars().position(|one| one.is_control() && one != '\t') {
        return Err(LineError::Control(start + place));
    }
    if sent.len() > MAX_COMMAND_BYTES {
        let fits =
            sent.char_indices().take_while(|(at, one)| at + one.len_utf8() <= MAX_COMMAND_BYTES);
        return Err(LineError::TooLong(start + fits.count()));
    }
    if word != "send" {
        // With the blanks before it, so that columns are the line's.
        parse(line)?;
    }
    Ok(Some(Step::Send(sent.to_string())))
}

/// The column at which `rest`, an end of `line`, begins: from 1.
fn column(line: &str, rest: &str) -> usize {
    line[..line.len() - rest.len()].chars().count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m7_a_script_is_commands_waits_and_any_text() {
        let text =
            "# first\n\n  wait\nread \"set 1\"\r\nmodify a 1 every=1_000\nsend xyzzy #1\ngo\n";
        let send = |text: &str| Step::Send(text.to_string());
        let expected = [
            (3, Step::Wait),
            (4, send("read \"set 1\"")),
            (5, send("modify a 1 every=1_000")),
            (6, send("xyzzy #1")),
            (7, send("go")),
        ];
        assert_eq!(Script::parse(text, "s").unwrap().steps, expected);
    }

    #[test]
    fn m7_a_wrong_line_of_a_script_is_refused_with_line_and_column() {
        let long = format!("send  ä{}", "x".repeat(MAX_COMMAND_BYTES));
        for (text, expected) in [
            ("go\n xyzzy", "s.txt:2: column 2: `xyzzy` is no command; `help` lists them"),
            ("\nstart", "s.txt:2: column 6: `start` needs the name of a set"),
            ("read set 1", "s.txt:1: column 10: `1` is one word too many"),
            ("  modify a b every=x", "s.txt:1: column 14: `x` is no number"),
            ("wait  5", "s.txt:1: column 7: `wait` stands alone"),
            ("send", "s.txt:1: column 5: `send` needs a text"),
            ("go\ngo\u{1}", "s.txt:2: column 3: a control character"),
            (&long, "s.txt:1: column 405: the line is longer than the 400 bytes"),
        ] {
            let error = Script::parse(text, "s.txt").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
