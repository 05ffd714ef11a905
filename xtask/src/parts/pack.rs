//! Making the archive, in a checkout.

use super::{Entry, Index, MAGIC, Part, hash, licences};
use crate::build::Tree;
use crate::{Failure, Result};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Builds every part, and makes the archive of them.
///
/// # Errors
/// What does not build, or cannot be read.
pub fn pack(tree: &Tree) -> Result<Vec<u8>> {
    tree.build_direct()?;
    tree.build_images()?;
    tree.build_uefi_pmu()?;
    tree.build_stick()?;
    tree.build_plugin()?;
    let mut contents = Vec::new();
    for part in Part::ALL {
        let content = match tree.part(part)? {
            Some(file) => fs::read(&file).map_err(Failure::file("read", &file))?,
            None => licences::of_program(tree.root()).map_err(Failure::Tool)?.into_bytes(),
        };
        contents.push((part, content));
    }
    Ok(archive(tree.root(), &contents))
}

/// The archive of `contents`, which were built in `source`.
pub(super) fn archive(source: &Path, contents: &[(Part, Vec<u8>)]) -> Vec<u8> {
    let (mut parts, mut data) = (Vec::new(), Vec::new());
    for (part, content) in contents {
        let at = data.len();
        let mut encoder = DeflateEncoder::new(data, level(*part));
        encoder.write_all(content).expect("a vector takes all");
        data = encoder.finish().expect("a vector takes all");
        let (packed, bytes, hash) = (data.len() - at, content.len(), hash(content));
        parts.push(Entry { part: *part, at, packed, bytes, hash });
    }
    let index = Index { source: source.to_path_buf(), parts };
    let index = serde_json::to_vec(&index).expect("an index serialises");
    let length = u32::try_from(index.len()).expect("some hundred bytes").to_le_bytes();
    [&MAGIC[..], &length, &index, &data].concat()
}

/// Sections of symbols are compressed already.
fn level(part: Part) -> Compression {
    if part == Part::Symbols { Compression::none() } else { Compression::default() }
}
