//! The digest of a run, read from photographs of a machine's screen or from their text.

mod render;
#[cfg(test)]
mod tests;

pub use render::{json, table};

use crate::{Failure, Result};
use image::imageops::FilterType;
use image::{DynamicImage, GrayImage};
use protocol::digest::text::{MARK, TextError, join};
use protocol::digest::{Digest, DigestError};
use rqrr::PreparedImage;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why files hold no digest.
#[derive(Debug, Error)]
pub enum QrError {
    /// A picture cannot be decoded.
    #[error("{}: this picture cannot be read: {error}", file.display())]
    Picture {
        /// The file.
        file: PathBuf,
        /// Why.
        error: image::ImageError,
    },
    /// A picture has no code that can be read.
    #[error(
        "{}: {} QR codes were found in this picture, but none of barecount's could be read; take another picture, straight on, sharp, \
         with the white margin around the code", file.display(), found
    )]
    NoCode {
        /// The file.
        file: PathBuf,
        /// How many there are.
        found: usize,
    },
    /// The texts do not make a digest.
    #[error("{files}: {error}")]
    Text {
        /// All of them.
        files: String,
        /// Why not.
        error: TextError,
    },
    /// What they make is none.
    #[error("{files}: {error}")]
    Digest {
        /// All of them.
        files: String,
        /// Why not.
        error: DigestError,
    },
}

/// Reads the digest out of `files`, each a picture or text; `-` is standard input.
///
/// # Errors
/// A file that cannot be read, a picture without a code, a code that is missing or damaged.
pub fn read(files: &[PathBuf]) -> Result<Digest> {
    let mut text = String::new();
    for file in files {
        text += &of_file(file)?;
        text.push('\n');
    }
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let files = names.join(", ");
    let packed = join(&text).map_err(|error| QrError::Text { files: files.clone(), error })?;
    Ok(Digest::unpack(&packed).map_err(|error| QrError::Digest { files, error })?)
}

/// The text in a file: of the codes if it is a picture, else its own.
fn of_file(file: &Path) -> Result<String> {
    let bytes = if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(Failure::file("read", file))?;
    if image::guess_format(&bytes).is_err() {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let picture = image::load_from_memory(&bytes);
    let picture = picture.map_err(|error| QrError::Picture { file: file.to_path_buf(), error })?;
    Ok(of_picture(&picture).map_err(|found| QrError::NoCode { file: file.to_path_buf(), found })?)
}

/// A photograph's noise is finer than a code's modules: what is not read as it is may be read at half or a quarter of the size.
const REDUCTIONS: [u32; 3] = [1, 2, 4];

/// The texts of all codes of ours in a picture; if there is none, how many others were found.
fn of_picture(picture: &DynamicImage) -> std::result::Result<String, usize> {
    let grey = picture.to_luma8();
    let (mut texts, mut found) = (BTreeSet::new(), 0);
    for reduction in REDUCTIONS {
        let size = (grey.width() / reduction, grey.height() / reduction);
        // Smaller than the smallest code.
        if size.0 < 21 || size.1 < 21 {
            break;
        }
        let reduced = match reduction {
            1 => grey.clone(),
            _ => image::imageops::resize(&grey, size.0, size.1, FilterType::Triangle),
        };
        let (all, read) = decoded(&reduced);
        found = found.max(all);
        texts.extend(read.into_iter().filter(|text| text.starts_with(MARK)));
        if !texts.is_empty() && texts.len() >= found {
            break;
        }
    }
    if texts.is_empty() { Err(found) } else { Ok(texts.into_iter().collect()) }
}

/// How many codes there are, and the texts of those that can be read.
fn decoded(grey: &GrayImage) -> (usize, Vec<String>) {
    let (width, height) = (grey.width() as usize, grey.height() as usize);
    let pixel = |x: usize, y: usize| grey.get_pixel(x as u32, y as u32).0[0];
    let mut image = PreparedImage::prepare_from_greyscale(width, height, pixel);
    let grids = image.detect_grids();
    let read = grids.iter().filter_map(|grid| grid.decode().ok()).map(|(_, text)| text);
    (grids.len(), read.collect())
}
