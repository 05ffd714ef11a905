//! The table of all instruction forms: what can be measured of each, and what reports say of it.
//!
//! Reports of parts of the catalog are joined here; so are those of a run that was cut off and of the one that continued.

mod join;
mod render;
mod state;

pub use join::{JoinError, Machine, join};
pub use render::xml::xml;
pub use render::{csv, json, summary, table};
pub use state::{Lack, Line, State};

use crate::job::form::catalog::{self, Entry};
use protocol::bits::Bits;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Whose figures these are; nothing in a list without reports.
    pub machine: Option<Machine>,
    /// One line for each form of the catalog, in its order, then those of the reports that it does not have.
    pub lines: Vec<Line>,
    /// Figures of two reports that differ.
    pub differing: Vec<String>,
}

/// The catalog without figures.
#[must_use]
pub fn list(entries: &[Entry]) -> Table {
    Table { lines: entries.iter().map(state::open).collect(), ..Table::default() }
}

/// The whole catalog of 64-bit or 32-bit code.
#[must_use]
pub fn catalog(bits: Bits) -> Vec<Entry> {
    catalog::in_code_of(bits)
}

impl Table {
    /// How many forms are in each state, in the order of the states.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let count =
            |state: &str| self.lines.iter().filter(|line| line.state.name() == state).count();
        let counted = State::NAMES.iter().map(|state| (*state, count(state)));
        counted.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests;
