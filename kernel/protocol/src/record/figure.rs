//! The figures of a record that an expectation can name.

use crate::record::{ItemRecord, Record};
use alloc::string::String;
use alloc::vec::Vec;

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What an expectation calls it. Several figures may have one name: all are meant then.
    pub name: String,
    /// The same, and which of them it is.
    pub label: String,
    /// Its value; `None`: it never had a counter.
    pub value: Option<f64>,
}

/// A figure that no other shares its name with.
pub(crate) fn figure(name: impl Into<String>, value: impl Into<Option<f64>>) -> Figure {
    let name = name.into();
    Figure { label: name.clone(), name, value: value.into() }
}

/// All figures of a record.
#[must_use]
pub fn figures(record: &Record) -> Vec<Figure> {
    record.result().map(ItemRecord::figures).unwrap_or_default()
}
