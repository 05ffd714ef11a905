//! What a comparison comes to.

use super::judge::{Compared, Outcome};
use super::setting::Difference;
use serde::Serialize;

/// Two reports, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Where the old report came from.
    pub old: String,
    /// Where the new one came from.
    pub new: String,
    /// The new job's file, if the report says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What else differs.
    pub differences: Vec<Difference>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// How the figures that vary were judged.
    pub test: TestUsed,
    /// The items, in the new report's order; after them those that only the old one has.
    pub items: Vec<ItemCompared>,
}

/// How figures that vary were judged.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TestUsed {
    /// What it is.
    pub name: &'static str,
    /// With this probability all its intervals hold.
    pub confidence: f64,
    /// How many figures it was made for.
    pub figures: usize,
}

/// An item of one or both reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemCompared {
    /// Its name.
    pub name: String,
    /// Its kind, as the records' type has it.
    pub kind: &'static str,
    /// In which of the reports it is.
    pub state: ItemState,
    /// The line of the job's file that it begins in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What else is to be known of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its figures, if it is in both.
    pub figures: Vec<FigureCompared>,
    /// Figures of an item that only the new report has, for services that keep their own history.
    #[serde(skip)]
    pub first: Vec<FigureCompared>,
}

/// In which of the reports an item is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// In both.
    Both,
    /// In the new one alone.
    Added,
    /// In the old one alone.
    Removed,
    /// It had figures, and ended in an error.
    Failed,
    /// It ended in an error, and has figures.
    Recovered,
    /// It has figures in neither, or the processor lacks what it needs.
    NoFigures,
}

/// A figure of an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureCompared {
    /// Its name.
    pub name: String,
    /// What it is a number of.
    pub unit: &'static str,
    /// What it was; absent if the old report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<f64>,
    /// What it is; absent if the new report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<f64>,
    /// Least and greatest of the new runs, if they vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_range: Option<[f64; 2]>,
    /// What that comes to.
    #[serde(flatten)]
    pub compared: Compared,
}

impl Comparison {
    /// How many figures came to `outcome`.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        let all = self.items.iter().flat_map(|item| &item.figures);
        all.filter(|one| one.compared.outcome == outcome).count()
    }

    /// How many items are in that state.
    #[must_use]
    pub fn items_in(&self, state: ItemState) -> usize {
        self.items.iter().filter(|item| item.state == state).count()
    }

    /// Whether something got worse beyond its limit: a figure, or an item that has none any more.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.count(Outcome::Worse) + self.items_in(ItemState::Failed) > 0
    }

    /// 1 if something got worse beyond its limit, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        u8::from(self.is_worse())
    }
}

impl ItemCompared {
    /// The figures that the new report has, with their values.
    pub fn of_new(&self) -> impl Iterator<Item = (&FigureCompared, f64)> {
        let all = self.figures.iter().chain(&self.first);
        all.filter_map(|figure| Some((figure, figure.new?)))
    }
}

impl FigureCompared {
    /// The change in percent of the old value, if there is one.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let old = self.old.filter(|old| *old != 0.0)?;
        self.new.map(|new| 100.0 * (new - old) / old.abs())
    }
}
