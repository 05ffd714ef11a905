//! The assembler's messages in terms of the job file.

use super::assemble::{Failed, Message, Part, Source};
use super::errors::{AssemblyError, JobError, Place};
use super::file::JobFile;

/// Finds the snippet and the line of each message.
pub(super) fn explain(failed: Failed, sources: &[Source], file: &JobFile) -> JobError {
    match failed {
        Failed::Tool(reason) => JobError::Assembler(reason),
        Failed::Messages(messages) => {
            let errors = messages.into_iter().map(|message| one(message, sources, file));
            JobError::Assembly(errors.collect())
        }
    }
}

fn one(message: Message, sources: &[Source], file: &JobFile) -> AssemblyError {
    let source = &sources[message.source];
    let snippet = &file.snippets[message.source / super::SOURCES];
    let position = snippet.spans.as_ref().map(|spans| {
        let lines = match source.part {
            Part::Body => &spans.asm,
            Part::OneTimeInit => &spans.one_time_init,
            Part::Init => &spans.init,
            Part::LateInit => &spans.late_init,
        };
        match lines.first_line {
            Some(first) if message.line > 0 => (first + message.line - 1, message.column),
            // A form's code does not stand in the file, but the form does.
            _ if lines.line == 0 => (spans.whole.line, spans.whole.column),
            _ => (lines.line, lines.column),
        }
    });
    AssemblyError {
        place: Place { file: file.source.clone(), position },
        snippet: snippet.name.clone(),
        part: match source.part {
            Part::Body => "body",
            Part::OneTimeInit => "one-time init code",
            Part::Init => "init code",
            Part::LateInit => "late init code",
        },
        line: message.line,
        text: source.text.lines().nth(message.line.wrapping_sub(1)).unwrap_or_default().to_string(),
        message: message.text,
    }
}
