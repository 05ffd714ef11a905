//! Places in a file: bytes, and the lines and characters that parsers count in.

use crate::mutant::{Position, Span};
use std::ops::Range;

/// A file, and where its lines begin.
pub struct Text<'t> {
    /// The file.
    pub text: &'t str,
    lines: Vec<usize>,
}

impl<'t> Text<'t> {
    pub fn new(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    /// The byte at which the character `column` (from 0) of line `line` (from 1) begins.
    fn byte(&self, line: usize, column: usize) -> usize {
        let begin = self.lines[line - 1];
        let rest = &self.text[begin..];
        begin + rest.char_indices().nth(column).map_or(rest.len(), |(byte, _)| byte)
    }

    /// cargo-mutants' span in bytes.
    pub fn listed(&self, span: Span) -> Range<usize> {
        let byte = |at: Position| self.byte(at.line, at.column - 1);
        byte(span.start)..byte(span.end)
    }

    /// The parser's span in bytes.
    pub fn parsed(&self, span: proc_macro2::Span) -> Range<usize> {
        let (start, end) = (span.start(), span.end());
        self.byte(start.line, start.column)..self.byte(end.line, end.column)
    }
}
