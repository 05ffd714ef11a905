//! Lines and columns of a job file.

use std::ops::Range;

/// Places in a file's text.
#[derive(Clone, Debug)]
pub(in crate::job) struct Spans {
    pub whole: Lines,
    pub asm: Lines,
    pub one_time_init: Lines,
    pub init: Lines,
    pub late_init: Lines,
}

/// Where a value starts, and where its own first line lies if it is a text of several lines.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::job) struct Lines {
    pub line: usize,
    pub column: usize,
    /// If the text's lines are lines of the file too: the line of the file that its first one is.
    pub first_line: Option<usize>,
}

/// Line and column of a byte, counted from 1.
pub(in crate::job) fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    (before.matches('\n').count() + 1, column)
}

pub(in crate::job) fn lines(text: &str, span: &Range<usize>) -> Lines {
    let (line, column) = position(text, span.start);
    let value = text.get(span.clone()).unwrap_or_default();
    let multiline = value.starts_with("\"\"\"") || value.starts_with("'''");
    // The line end behind the opening quotes belongs to neither.
    let skipped = multiline && matches!(value.as_bytes().get(3), Some(b'\n' | b'\r'));
    let first_line = multiline.then_some(line + usize::from(skipped));
    Lines { line, column, first_line }
}
