//! The call of the compiler.

use super::bounds::Bounds;
use super::{Failed, Message, Part, Source, Syntax};
use crate::interrupt;
use crate::process::tied;
use crate::setup::toolchain::rustc;
use protocol::bits::Bits;
use protocol::marker::{PAUSE, RESUME};
use serde::Deserialize;
use std::fmt::Write;
use std::fs;

/// How the labels around the texts begin.
pub(super) const LABEL_PREFIX: &str = "barecount_";

/// Label before text `index`.
pub(super) fn start_label(index: usize) -> String {
    format!("barecount_start_{index}")
}

/// Label behind it.
pub(super) fn end_label(index: usize) -> String {
    format!("barecount_end_{index}")
}

/// The assembly text, and for each source the first of its lines in there, counted from 1.
fn text(sources: &[Source]) -> (String, Vec<usize>) {
    let (mut text, mut lines, mut line) = (String::new(), Vec::new(), 1);
    for (index, source) in sources.iter().enumerate() {
        let syntax = match source.syntax {
            Syntax::Intel => ".intel_syntax noprefix",
            Syntax::Att => ".att_syntax prefix",
        };
        let width = match source.bits {
            Bits::SixtyFour => ".code64",
            Bits::Compatibility => ".code32",
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, ".section .text.barecount_{index},\"ax\",@progbits");
        let _ = writeln!(text, "{syntax}; {width}\n{}:", start_label(index));
        line += 3;
        lines.push(line);
        let body = with_markers(source);
        let body = body.trim_end_matches('\n');
        let _ = writeln!(text, "{body}\n{}:", end_label(index));
        line += body.matches('\n').count() + 2;
    }
    text.push_str(".intel_syntax noprefix; .code64\n");
    (text, lines)
}

/// The text with `.barecount pause` and `.barecount resume` as the bytes that stand for them. Only a body has them; elsewhere
/// the assembler refuses the directive by name.
fn with_markers(source: &Source) -> String {
    let bytes = |marker: &[u8]| {
        let bytes: Vec<_> = marker.iter().map(|byte| format!("{byte:#x}")).collect();
        format!(".byte {}", bytes.join(", "))
    };
    if source.part != Part::Body {
        return source.text.to_string();
    }
    let paused = source.text.replace(".barecount pause", &bytes(&PAUSE));
    paused.replace(".barecount resume", &bytes(&RESUME))
}

/// Why there is no object file.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The assembler was ended, because it took more than this.
    Exceeded(String),
    /// It refused something, or cannot be run.
    Failed(Failed),
}

impl From<Failed> for Stopped {
    fn from(failed: Failed) -> Self {
        Self::Failed(failed)
    }
}

/// Assembles all sources into one object file.
pub(super) fn assemble(sources: &[Source]) -> Result<Vec<u8>, Stopped> {
    assemble_within(sources, &Bounds::of(sources.iter().map(|source| source.text.len()).sum()))
}

/// The same in less time and memory.
pub(super) fn assemble_within(sources: &[Source], bounds: &Bounds) -> Result<Vec<u8>, Stopped> {
    let tool = |what: &str| {
        let what = what.to_string();
        move |error: std::io::Error| Failed::Tool(format!("{what}: {error}"))
    };
    let _deferred = interrupt::defer();
    let folder = tempfile::tempdir().map_err(tool("no temporary folder"))?;
    let path = |name: &str| folder.path().join(name);
    let (assembly, lines) = text(sources);
    fs::write(path("snippets.s"), assembly).map_err(tool("cannot write the text"))?;
    // The dialects are named by directives, because a job may mix them.
    let program = "#![no_std]\n#![allow(bad_asm_style)]\n\
                   core::arch::global_asm!(include_str!(\"snippets.s\"), options(raw));\n";
    fs::write(path("snippets.rs"), program).map_err(tool("cannot write the program"))?;
    let mut command = tied(rustc());
    command.current_dir(folder.path()).args(["--edition", "2024", "--crate-type", "lib"]);
    command.args(["--crate-name", "snippets", "--emit", "obj=snippets.o", "-Cpanic=abort"]);
    command.args(["-Ccodegen-units=1", "--error-format=json", "snippets.rs"]);
    let output = bounds.run(&mut command).map_err(tool("rustc cannot be run"))?;
    if let Some(exceeded) = output.exceeded {
        return Err(Stopped::Exceeded(exceeded));
    }
    if output.status.success() {
        return Ok(fs::read(path("snippets.o")).map_err(tool("no object file"))?);
    }
    let said = String::from_utf8_lossy(&output.said);
    let messages: Vec<Message> = said.lines().filter_map(|line| message(line, &lines)).collect();
    if messages.is_empty() {
        return Err(Failed::Tool(said.into_owned()).into());
    }
    Err(Failed::Messages(messages).into())
}

/// The parts of the compiler's JSON that are needed.
#[derive(Deserialize)]
struct Diagnostic {
    message: String,
    level: String,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<Diagnostic>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: usize,
    column_start: usize,
}

/// Lines that the compiler puts before the text: the directive of the default dialect.
const LINES_BEFORE: usize = 1;

/// One line of the compiler's output as a message, if it is an error. A source of `usize::MAX` says that
/// the error leads to none.
fn message(line: &str, starts: &[usize]) -> Option<Message> {
    let diagnostic: Diagnostic = serde_json::from_str(line).ok()?;
    if diagnostic.level != "error" || diagnostic.message.starts_with("aborting due to") {
        return None;
    }
    let spans = diagnostic.children.iter().flat_map(|child| &child.spans).chain(&diagnostic.spans);
    let mut inside = spans.filter(|span| span.file_name == "<inline asm>");
    let place = inside.next().map(|span| (span.line_start.saturating_sub(LINES_BEFORE), span));
    let found = place.and_then(|(line, span)| {
        let source = starts.iter().rposition(|&start| start <= line)?;
        // Lines between two texts belong to neither: the label behind one, the directives of the next.
        let end = starts.get(source + 1).map_or(usize::MAX, |next| next - 4);
        (line < end).then_some((source, line - starts[source] + 1, span.column_start))
    });
    let (source, line, column) = found.unwrap_or((usize::MAX, 0, 1));
    Some(Message { source, line, column, text: diagnostic.message })
}
