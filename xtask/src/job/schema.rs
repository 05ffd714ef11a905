//! The form of job files as a JSON schema, made of the types that read them: editors complete and check TOML by it, and the guide's page
//! of all keys is made of it.

mod inherit;
mod markdown;
mod texts;

use super::file::RawJob;
pub use markdown::page;
use schemars::generate::SchemaSettings;
use serde_json::Value;
pub(super) use texts::{
    AffinityText, BindText, CountedText, FilesText, HistoryText, PointText, RingText, Width,
};
pub(crate) use texts::{ExpectText, SizeText};

/// The schema, in the draft that editors of TOML understand.
///
/// # Panics
/// Never: a schema is JSON.
#[must_use]
pub fn job() -> Value {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<RawJob>().to_value();
    inherit::without_null(&mut schema);
    inherit::descriptions(&mut schema);
    schema
}

#[cfg(test)]
mod tests;
