//! How far a figure may get worse: of a job, of its items, and of a limits file.

mod file;

pub use file::{LimitsFile, read};

use crate::limits::{Limit, LimitTable};

/// Everything that says how far figures may get worse, from the weakest on: the job, its items, and a limits file.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// For every item of the job.
    pub job: LimitTable,
    /// What the file says.
    pub file: LimitsFile,
}

impl Limits {
    /// What is said of one figure of one item. `own`: what the job says of the item.
    #[must_use]
    pub fn find(&self, item: &str, own: &LimitTable, figure: &str) -> Option<Limit> {
        let file = self.file.find(item, figure);
        let limit = file.or_else(|| own.find(figure)).or_else(|| self.job.find(figure));
        limit.map(|(_, limit)| *limit)
    }
}

#[cfg(test)]
mod tests;
