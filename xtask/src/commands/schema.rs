//! `schema`: the form of job files.

use crate::Result;
use crate::cli::{Schema, SchemaFormat};
use crate::job::schema;

/// Runs the command.
///
/// # Errors
/// It cannot be written.
pub fn run(arguments: &Schema) -> Result<u8> {
    let schema = schema::job();
    let text = match arguments.format {
        SchemaFormat::Json => format!("{schema:#}\n"),
        SchemaFormat::Markdown => schema::page(&schema),
    };
    super::write_text(arguments.out.as_deref(), &text)
}
