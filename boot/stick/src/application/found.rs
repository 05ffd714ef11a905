//! What the run before has left.

use super::memory;
use super::note::{self, Note};
use alloc::vec::Vec;
use core::fmt;
use stick::lost::with_lost_item;
use stick::names::Kind;
use stick::region::{self, After};
use stick::variables::{self, INDEX, Index};
use uefi::println;

/// Where it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// In the region.
    Memory,
    /// In variables.
    Variables,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if *self == Self::Memory { "memory" } else { "EFI variables" })
    }
}

/// A report, or what is left of one.
pub struct Found {
    /// Where it was.
    pub place: Place,
    /// The image that made it, if that is known.
    image: Option<u32>,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// It is whole.
    is_whole: bool,
    /// What its job wants the machine to do then.
    pub after: After,
    /// Where the region is.
    region: Option<(u64, u64)>,
}

impl Found {
    /// What it is to the stick of that image.
    pub fn kind(&self, image: u32) -> Kind {
        match self.image {
            None => Kind::Damaged,
            Some(other) if other != image => Kind::Foreign,
            Some(_) if self.is_whole => Kind::Report,
            Some(_) => Kind::Partial,
        }
    }

    /// It is on the stick: nobody shall find it once more.
    pub fn forget(&self) {
        if let Some(region) = self.region.and_then(memory::content) {
            region::clear(region);
        }
        forget_variables();
    }
}

fn forget_variables() {
    // First the index: parts alone are nothing.
    note::delete(INDEX);
    let is_there = |number| note::variable(&variables::part(number)).is_some();
    for number in variables::to_delete(is_there) {
        note::delete(&variables::part(number));
    }
}

/// Looks into memory and variables. A whole report goes before a part of one.
pub fn look(note: &Note) -> Option<Found> {
    let in_memory = note.region.and_then(in_memory);
    if in_memory.as_ref().is_some_and(|found| found.is_whole) {
        return in_memory;
    }
    let in_variables = in_variables();
    if in_variables.as_ref().is_some_and(|found| found.is_whole) || in_memory.is_none() {
        return in_variables;
    }
    in_memory
}

fn in_memory(place: (u64, u64)) -> Option<Found> {
    let region = memory::content(place)?;
    let (image, bytes, whole) = match region::read(region) {
        region::Found::Nothing => return None,
        region::Found::Report { image, bytes, whole } => (Some(image), bytes, whole),
        region::Found::Damaged { bytes } => (None, bytes, None),
    };
    let cut = region::running(region).filter(|_| image.is_some() && whole.is_none());
    let bytes = match cut {
        Some(running) => with_lost_item(bytes.to_vec(), running),
        None => bytes.to_vec(),
    };
    Some(Found {
        place: Place::Memory,
        image,
        bytes,
        is_whole: whole.is_some(),
        after: whole.unwrap_or_default(),
        region: Some(place),
    })
}

fn in_variables() -> Option<Found> {
    let Some(index) = note::variable(INDEX) else {
        // Parts without an index: the power was cut while they were written, or deleted.
        forget_variables();
        return None;
    };
    let mut packed = Vec::new();
    let read = Index::read(&index).and_then(|index| {
        for number in 0..index.parts as usize {
            packed.extend(note::variable(&variables::part(number)).unwrap_or_default());
        }
        Ok((index.open(&packed)?, index))
    });
    let found = |image, bytes, is_whole, after| Found {
        place: Place::Variables,
        image,
        bytes,
        is_whole,
        after,
        region: None,
    };
    Some(match read {
        Ok((bytes, index)) => found(Some(index.image), bytes, true, index.after),
        Err(error) => {
            println!("barecount: the report in EFI variables is damaged: {error}");
            found(None, packed, false, After::Show)
        }
    })
}
