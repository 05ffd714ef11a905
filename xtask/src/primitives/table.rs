//! How tables look, and how they fit where they are shown.

use comfy_table::{
    ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width as ColumnWidth,
};
use std::io::IsTerminal;
use terminal_size::terminal_size_of;

/// Lines only where they separate things: below the heads, and at the end.
const STYLE: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// Columns of characters that a table may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Width(u16);

/// In a file or a pipe: most tables need no more, so a search in them finds whole names.
const PLAIN: u16 = 200;
/// No table is arranged for less: its numbers alone take as much.
const LEAST: u16 = 40;

impl Default for Width {
    /// That of a file or a pipe: 200.
    fn default() -> Self {
        Self(PLAIN)
    }
}

impl Width {
    /// So many columns, but 40 at least.
    #[must_use]
    pub fn of(columns: u16) -> Self {
        Self(columns.max(LEAST))
    }

    /// What standard output has: the terminal's width, or that of a file.
    #[must_use]
    pub fn of_output() -> Self {
        let out = std::io::stdout();
        let terminal = out.is_terminal().then(|| terminal_size_of(&out)).flatten();
        terminal.map_or(Self::default(), |(columns, _)| Self::of(columns.0))
    }

    /// The columns.
    #[must_use]
    pub fn columns(self) -> usize {
        self.0.into()
    }
}

/// A table without rows.
pub(crate) fn empty() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table
}

/// Words up to so many characters stay whole, as far as there is room; the longest of these that fits.
const WORDS: [usize; 7] = [48, 32, 24, 16, 12, 8, 4];
/// A space on each side of a cell.
const PADDING: usize = 2;

/// The table such that it fits. Text goes into further lines of its cell; a number is never broken, so a table that has
/// no room for its numbers is wider.
pub(crate) fn fit(mut table: Table, width: Width) -> String {
    let columns = table.column_count();
    // One more between two columns.
    let room = width.columns().saturating_sub(columns * (PADDING + 1));
    let words: Vec<Vec<(usize, bool)>> = (0..columns).map(|index| words(&table, index)).collect();
    let least = |most: usize| -> Vec<usize> {
        let of = |&(length, number): &(usize, bool)| if number { length } else { length.min(most) };
        words.iter().map(|words| words.iter().map(of).max().unwrap_or(1)).collect()
    };
    let fits = |&most: &usize| least(most).iter().sum::<usize>() <= room;
    let most = WORDS.into_iter().find(fits).unwrap_or(WORDS[WORDS.len() - 1]);
    for (index, least) in least(most).into_iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            let least = u16::try_from(least + PADDING).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(ColumnWidth::Fixed(least)));
        }
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    table.to_string()
}

/// Lengths of a column's words, its head's too, and whether they are numbers.
fn words(table: &Table, index: usize) -> Vec<(usize, bool)> {
    let cells = table.column_cells_with_header_iter(index).flatten();
    let contents: Vec<String> = cells.map(comfy_table::Cell::content).collect();
    let word = |word: &str| {
        let number = word.trim_start_matches(['-', '+', '~', '±', '≤', '≥']);
        (word.chars().count(), number.starts_with(|c: char| c.is_ascii_digit()))
    };
    contents.iter().flat_map(|text| text.split_whitespace().map(word)).collect()
}

#[cfg(test)]
mod tests;
