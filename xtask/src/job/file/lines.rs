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

/// A file's text, and where its lines start: a long job asks for tens of thousands of places.
pub(crate) struct Text<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and column of a byte, counted from 1.
    pub(crate) fn position(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= at);
        let column = self.text[self.starts[line - 1]..at].chars().count() + 1;
        (line, column)
    }

    /// Where a value starts, and its own lines.
    pub(super) fn lines(&self, span: &Range<usize>) -> Lines {
        let (line, column) = self.position(span.start);
        let value = self.text.get(span.clone()).unwrap_or_default();
        let multiline = value.starts_with("\"\"\"") || value.starts_with("'''");
        // The line end behind the opening quotes belongs to neither.
        let skipped = multiline && matches!(value.as_bytes().get(3), Some(b'\n' | b'\r'));
        let first_line = multiline.then_some(line + usize::from(skipped));
        Lines { line, column, first_line }
    }
}

/// Line and column of one byte, counted from 1.
pub(in crate::job) fn position(text: &Text, at: usize) -> (usize, usize) {
    text.position(at)
}

/// Where one value starts, and its own lines.
pub(in crate::job) fn lines(text: &Text, span: &Range<usize>) -> Lines {
    text.lines(span)
}
