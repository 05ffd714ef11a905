//! Assembling with the compiler's own assembler.
//!
//! All texts go into one `global_asm!` of a library crate, each in a section of its own between two labels;
//! the object file then has the code. When the assembler refuses something it names a line, which leads
//! back to the text. Messages that lead nowhere (an unended macro, say, swallows what follows) are found
//! by assembling each text alone.

mod bounds;
mod directives;
mod object_file;
mod relocate;
mod rustc;

use clap::ValueEnum;
use protocol::bits::Bits;
use rustc::Stopped;
use schemars::JsonSchema;
use serde::Deserialize;

/// Dialect of a text.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// Intel: destination first, no prefixes.
    #[default]
    Intel,
    /// AT&T: source first, `%` and `$`.
    Att,
}

/// Which part of a snippet a text is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// The code that runs once.
    OneTimeInit,
    /// The init code.
    Init,
    /// The code directly before the body.
    LateInit,
    /// The measured code.
    Body,
}

/// A text to assemble.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Which part of its snippet it is.
    pub part: Part,
    /// The code.
    pub text: &'a str,
    /// Its dialect.
    pub syntax: Syntax,
    /// What it is assembled as.
    pub bits: Bits,
    /// Names that it may use without defining them, and the numbers that they stand for.
    pub symbols: &'a [(String, u64)],
}

/// One complaint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// Index of the text.
    pub source: usize,
    /// Line of the text, counted from 1; 0 if it belongs to none.
    pub line: usize,
    /// Column, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub text: String,
}

impl Message {
    /// Whether the cause may lie in another text than the one that the message names, if it names one: two
    /// texts may have labels of the same name, which only stand in each other's way here.
    fn may_be_anothers(&self) -> bool {
        self.source == usize::MAX || self.text.contains("already defined")
    }
}

/// Why there is no code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failed {
    /// Texts were refused.
    Messages(Vec<Message>),
    /// The assembler cannot be run, or does not do what it should.
    Tool(String),
}

/// What a text became.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Code {
    /// Its machine code.
    pub bytes: Vec<u8>,
    /// Its labels that have names, with their places in the code, in order.
    pub labels: Labels,
}

/// Longest text that is given to the assembler; its code could not be packed anyway.
pub const MAX_TEXT_BYTES: usize = 8 << 20;

/// Names of places in code, with their distances in bytes from its start, in order.
pub type Labels = Vec<(String, u64)>;

/// Assembles all texts; the result has one entry for each.
///
/// # Errors
/// All complaints about all texts.
pub fn assemble(sources: &[Source]) -> Result<Vec<Vec<u8>>, Failed> {
    Ok(assemble_with_labels(sources)?.into_iter().map(|code| code.bytes).collect())
}

/// The same with the labels that the texts have.
///
/// # Errors
/// As for [`assemble`].
pub fn assemble_with_labels(sources: &[Source]) -> Result<Vec<Code>, Failed> {
    let long = sources.iter().enumerate().filter(|(_, source)| source.text.len() > MAX_TEXT_BYTES);
    let long: Vec<Message> = long.map(|(index, source)| too_long(index, source)).collect();
    if !long.is_empty() {
        return Err(Failed::Messages(long));
    }
    let files: Vec<Message> = sources.iter().enumerate().flat_map(directives::files).collect();
    if !files.is_empty() {
        return Err(Failed::Messages(files));
    }
    // Most snippets have one of four texts: the others would be sections without content, tens of thousands in a long job.
    let with_text = |index: &usize| !sources[*index].text.trim().is_empty();
    let kept: Vec<usize> = (0..sources.len()).filter(with_text).collect();
    let texts: Vec<Source> = kept.iter().map(|&index| sources[index]).collect();
    let codes = assemble_texts(&texts).map_err(|failed| match failed {
        Failed::Messages(messages) => {
            let own = |message: Message| Message { source: kept[message.source], ..message };
            Failed::Messages(messages.into_iter().map(own).collect())
        }
        failed => failed,
    })?;
    let mut all = vec![Code::default(); sources.len()];
    for (index, code) in kept.into_iter().zip(codes) {
        all[index] = code;
    }
    Ok(all)
}

fn assemble_texts(sources: &[Source]) -> Result<Vec<Code>, Failed> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    match rustc::assemble(sources) {
        Ok(object) => object_file::codes(&object, sources),
        Err(Stopped::Failed(Failed::Messages(messages)))
            if messages.iter().any(Message::may_be_anothers) =>
        {
            one_by_one(sources)
        }
        Err(Stopped::Exceeded(what)) => Err(directives::blame(sources, &what)),
        Err(Stopped::Failed(failed)) => Err(failed),
    }
}

/// The whole object file of a text of this program's own, in Intel syntax.
///
/// # Errors
/// The assembler cannot be run.
pub fn object(text: &str) -> Result<Vec<u8>, String> {
    let (part, syntax, bits) = (Part::Init, Syntax::Intel, Bits::SixtyFour);
    rustc::assemble(&[Source { part, text, syntax, bits, symbols: &[] }]).map_err(|stopped| {
        match stopped {
            Stopped::Failed(Failed::Tool(text)) | Stopped::Exceeded(text) => text,
            Stopped::Failed(Failed::Messages(messages)) => format!("{messages:?}"),
        }
    })
}

fn too_long(source: usize, text: &Source) -> Message {
    let bytes = text.text.len();
    let text = format!("its text is {bytes} bytes long; at most {MAX_TEXT_BYTES} are assembled");
    Message { source, line: 0, column: 1, text }
}

/// Each text alone. Slow, but a text cannot hide behind another.
fn one_by_one(sources: &[Source]) -> Result<Vec<Code>, Failed> {
    let (mut codes, mut messages) = (Vec::new(), Vec::new());
    let mut work = crate::progress::Work::of(sources.len() as u64, "assembling one by one");
    for (index, source) in sources.iter().enumerate() {
        work.tick(index as u64);
        let source = std::slice::from_ref(source);
        let taken_out =
            |object: Vec<u8>| object_file::codes(&object, source).map_err(Stopped::Failed);
        match rustc::assemble(source).and_then(taken_out) {
            Ok(mut code) => codes.append(&mut code),
            Err(Stopped::Failed(Failed::Messages(found))) => {
                messages.extend(found.into_iter().map(|message| {
                    let line = if message.source == usize::MAX { 0 } else { message.line };
                    Message { source: index, line, ..message }
                }));
            }
            Err(Stopped::Exceeded(what)) => {
                messages.push(directives::too_much(index, &source[0], &what));
            }
            Err(Stopped::Failed(tool)) => return Err(tool),
        }
    }
    if messages.is_empty() { Ok(codes) } else { Err(Failed::Messages(messages)) }
}

#[cfg(test)]
mod tests;
