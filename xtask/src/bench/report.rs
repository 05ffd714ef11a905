//! The figures as a table and as JSON.

use super::boots::median;
use crate::primitives::number;
use crate::primitives::table::{Width, empty, fit};
use comfy_table::CellAlignment;
use serde::Serialize;

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// The figure; of several values the median.
    pub value: f64,
    /// Least value, if there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Greatest value, if there were several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// What another system states for the same, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<&'static str>,
}

impl Figure {
    /// A single figure.
    pub fn count(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, min: None, max: None, unit, published: None }
    }

    /// The same in addition to what another system states.
    pub(super) fn beside(self, published: &'static str) -> Self {
        Self { published: Some(published), ..self }
    }

    /// Several values of one thing.
    ///
    /// # Panics
    /// If there is none.
    pub fn spread(name: impl Into<String>, mut values: Vec<f64>, unit: &'static str) -> Self {
        let value = median(&mut values);
        let (min, max) = (values.first().copied(), values.last().copied());
        Self { name: name.into(), value, min, max, unit, published: None }
    }

    /// Several wall times in seconds.
    pub(super) fn time(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self::spread(name, values, "s")
    }
}

/// The figures as a table.
#[must_use]
pub fn render(figures: &[Figure]) -> String {
    let mut table = empty();
    table.set_header(["", "median", "min", "max", "unit", "published elsewhere"]);
    for index in 1..4 {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for figure in figures {
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
        table.add_row([
            figure.name.clone(),
            number(figure.value),
            optional(figure.min),
            optional(figure.max),
            figure.unit.to_string(),
            figure.published.unwrap_or_default().to_string(),
        ]);
    }
    format!("{}\n", fit(table, Width::of_output()))
}
