//! The memory of all items of a job, each piece once.

use super::{Area, MemoryFile, areas};
use crate::job::errors::JobError;
use crate::job::file::JobFile;
use protocol::job::Memory;
use protocol::job::limits::{MAX_FILE_BYTES, MAX_MEMORIES};
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// The pieces of a job, and the items that have them.
#[derive(Default)]
pub struct Gathered<'f> {
    pieces: Vec<(&'f MemoryFile, Area, Vec<u32>)>,
}

/// Finds the memory of all items of `file`, in their order.
///
/// # Errors
/// The first piece that there cannot be, with the place of its item.
pub fn gather(file: &JobFile) -> Result<Gathered<'_>, JobError> {
    let mut gathered = Gathered::default();
    for (item, one) in (u32::from(file.checks.is_some())..).zip(file.items()) {
        gathered.add(item, one.memory()).map_err(|wrong| one.refused(&file.source, wrong))?;
    }
    Ok(gathered)
}

impl<'f> Gathered<'f> {
    fn add(&mut self, item: u32, pieces: &'f [MemoryFile]) -> Result<(), String> {
        for (piece, area) in pieces.iter().zip(areas(pieces)?) {
            let full = self.pieces.len() == MAX_MEMORIES;
            let same = |one: &&mut (&MemoryFile, Area, Vec<u32>)| {
                (one.0, &one.1) == (piece, &area) && one.2.last() != Some(&item)
            };
            match self.pieces.iter_mut().rev().find(same) {
                Some((_, _, items)) => items.push(item),
                None if full => {
                    return Err(format!("the job has more than {MAX_MEMORIES} pieces of memory"));
                }
                None => self.pieces.push((piece, area, vec![item])),
            }
        }
        Ok(())
    }

    /// The pieces as the firmware wants them. Reads the files that they are filled with.
    ///
    /// # Errors
    /// One that cannot be read.
    pub fn read(&self) -> Result<Vec<Memory<'static>>, String> {
        let made = self.pieces.iter().map(|(piece, area, items)| {
            let fill =
                piece.fill().map_err(|reason| format!("memory `{}`: {reason}", piece.name))?;
            Ok(Memory {
                name: Cow::Owned(area.name.clone()),
                at: area.at,
                bytes: area.bytes,
                page_size: piece.page_size,
                memory_type: piece.memory_type,
                fill,
                items: items.clone(),
            })
        });
        made.collect()
    }
}

/// Bytes of a file that can go along with a job.
pub(super) fn length(path: &Path) -> Result<u64, String> {
    let wrong = |reason: String| format!("{}: {reason}", path.display());
    let meta = fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !meta.is_file() {
        return Err(wrong("it is no file".to_string()));
    }
    if meta.len() > MAX_FILE_BYTES {
        let length = meta.len();
        return Err(wrong(format!(
            "it has {length} bytes; at most {MAX_FILE_BYTES} go with a job"
        )));
    }
    Ok(meta.len())
}

/// The file's bytes.
pub(super) fn content(path: &Path) -> Result<Vec<u8>, String> {
    length(path)?;
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
