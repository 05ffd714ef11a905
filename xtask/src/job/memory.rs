//! Memory of a size that the job asks for: `[[snippet.memory]]` and the like, and `--memory-area`.
//!
//! [`gather`] finds out where each piece lies, and makes those that several items have one.

mod gather;
mod option;

use super::schema::SizeText;
use protocol::job::Memory;
use protocol::job::control::{MemoryType, PageSize};
use protocol::job::memory::{Chase, Fill, Order, places};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

pub use gather::{Gathered, gather};

/// Bytes from one element of a chase to the next, if nobody says: a cache line.
const STRIDE: u32 = 64;

/// A piece of memory, and what it is filled with.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(try_from = "Raw")]
#[schemars(rename = "Memory")]
pub struct MemoryFile {
    /// What it is called.
    pub name: String,
    /// Its bytes; `None`: as many as its file has.
    size: Option<u64>,
    page_size: PageSize,
    memory_type: MemoryType,
    fill: FillFile,
}

/// What memory is filled with, as written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Fill")]
enum FillFile {
    /// Bytes that are 0.
    #[default]
    Zero,
    /// Bytes in hexadecimal, over and over.
    Pattern(#[schemars(with = "String")] Digits),
    /// The content of a file, from the folder of the job.
    File(PathBuf),
    /// Pointers, each to the next one.
    Chase(ChaseFile),
}

/// Pointers, each to the next one.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(rename = "Chase")]
struct ChaseFile {
    /// Bytes from one pointer to the next. Default: 64.
    stride: u32,
    /// The order in which they are followed. Default: random.
    order: Order,
    /// Decides the random order. Default: 0.
    seed: u64,
}

impl Default for ChaseFile {
    fn default() -> Self {
        Self { stride: STRIDE, order: Order::default(), seed: 0 }
    }
}

/// Bytes as hexadecimal digits, in pairs; blanks between them.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "String")]
struct Digits(Vec<u8>);

impl TryFrom<String> for Digits {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digit = |c: char| c.to_digit(16).ok_or(c);
        let digits: Result<Vec<u32>, char> =
            text.chars().filter(|c| !c.is_whitespace()).map(digit).collect();
        let digits = digits.map_err(|c| {
            format!("pattern: {c:?} is no hexadecimal digit; write bytes like \"de ad be ef\"")
        })?;
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(format!("pattern: {} hexadecimal digits are no whole bytes", digits.len()));
        };
        Ok(Self(pairs.iter().map(|[high, low]| (high << 4 | low) as u8).collect()))
    }
}

/// The number that `text` says: `K`, `M`, `G` and `T` are powers of 1024, as QEMU has them.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let binary = parse_size::Config::new().with_binary();
    binary.parse_size(text).map_err(|error| format!("size `{text}`: {error}; write 4096, 64M, 2G"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
struct Raw {
    /// Its name: letters, digits and `_`.
    name: String,
    /// Bytes: a number, or a text such as `64M` or `2G`. Default: as many as its file has.
    #[schemars(with = "Option<SizeText>")]
    size: Option<toml::Value>,
    /// Size of its pages. Default: 4k.
    #[serde(default)]
    page_size: PageSize,
    /// Its type. Default: wb.
    #[serde(default)]
    memory_type: MemoryType,
    /// What it is filled with. Default: zero.
    #[serde(default)]
    fill: FillFile,
}

impl TryFrom<Raw> for MemoryFile {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let Raw { name, size, page_size, memory_type, fill } = raw;
        let wrong = |reason| format!("memory `{name}`: {reason}");
        let size = match size {
            None => None,
            Some(toml::Value::Integer(number)) => {
                let size = u64::try_from(number).map_err(|_| wrong(format!("size is {number}")))?;
                Some(size)
            }
            Some(toml::Value::String(text)) => Some(bytes(&text).map_err(wrong)?),
            Some(other) => {
                let reason = format!("size is {other}; write 4096, \"64M\" or \"2G\"");
                return Err(wrong(reason));
            }
        };
        if size.is_none() && !matches!(fill, FillFile::File(_)) {
            return Err(wrong("it has no size; only a file's can be left out".to_string()));
        }
        Ok(Self { name, size, page_size, memory_type, fill })
    }
}

impl MemoryFile {
    /// Memory that is zero, in pages of 2 MiB.
    pub(super) fn large(name: &str, bytes: u64) -> Self {
        Self {
            name: name.to_string(),
            size: Some(bytes),
            page_size: PageSize::Large,
            memory_type: MemoryType::default(),
            fill: FillFile::Zero,
        }
    }

    /// Takes the path of a file that it is filled with as one from `folder`.
    pub(super) fn based_on(&mut self, folder: &Path) {
        if let FillFile::File(path) = &mut self.fill {
            *path = folder.join(&path);
        }
    }

    /// Its bytes.
    fn bytes(&self) -> Result<u64, String> {
        match (&self.fill, self.size) {
            (FillFile::File(path), size) => {
                let length = gather::length(path)?;
                let size = size.unwrap_or(length);
                if length > size {
                    let file = path.display();
                    return Err(format!("{file} has {length} bytes, and its size is {size}"));
                }
                Ok(size)
            }
            (_, size) => Ok(size.unwrap_or(0)),
        }
    }

    /// What it is filled with.
    fn fill(&self) -> Result<Fill<'static>, String> {
        Ok(match &self.fill {
            FillFile::Zero => Fill::Zero,
            FillFile::Pattern(Digits(bytes)) => Fill::Pattern(Cow::Owned(bytes.clone())),
            FillFile::File(path) => Fill::Bytes(Cow::Owned(gather::content(path)?)),
            &FillFile::Chase(ChaseFile { stride, order, seed }) => {
                Fill::Chase(Chase { stride, order, seed })
            }
        })
    }
}

/// `own` pieces, and those of `base` that have other names.
pub(super) fn over(own: &[MemoryFile], base: &[MemoryFile]) -> Vec<MemoryFile> {
    let other = |one: &&MemoryFile| own.iter().all(|other| other.name != one.name);
    base.iter().filter(other).chain(own).cloned().collect()
}

/// A piece of memory with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// What it is called.
    pub name: String,
    /// Its first byte.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Where the pieces of one item lie.
///
/// # Errors
/// A file that cannot be read or is too long; no room is left.
pub fn areas(pieces: &[MemoryFile]) -> Result<Vec<Area>, String> {
    let wrong = |piece: &MemoryFile, reason: &str| format!("memory `{}`: {reason}", piece.name);
    let sizes = pieces.iter().map(|piece| {
        let bytes = piece.bytes().map_err(|reason| wrong(piece, &reason))?;
        Ok((bytes, piece.page_size))
    });
    let sizes = sizes.collect::<Result<Vec<_>, String>>()?;
    let found = pieces.iter().zip(places(&sizes)).zip(&sizes);
    let area = |((piece, at), &(bytes, _)): ((&MemoryFile, Option<u64>), &(u64, PageSize))| {
        let at = at.ok_or_else(|| {
            wrong(piece, "there are not so many addresses: 512 GiB for all memory of an item")
        })?;
        Ok(Area { name: piece.name.clone(), at, bytes })
    };
    found.map(area).collect()
}

/// A name that code knows, and the number that it stands for.
pub type Symbol = (String, u64);

/// What the assembly text of an item with this memory may name. What is wrong with it is told by [`gather`].
pub(super) fn symbols(pieces: &[MemoryFile]) -> Vec<Symbol> {
    let areas = areas(pieces).unwrap_or_default();
    let both = |area: Area| {
        let name = format!("memory_{}", area.name);
        [(format!("{name}_size"), area.bytes), (name, area.at)]
    };
    areas.into_iter().flat_map(both).collect()
}

/// How the text of a place in memory begins.
const PREFIX: &str = "memory:";

/// The address that `memory:NAME` or `memory:NAME+64` stands for, in an item with this memory. A number in place of the name is
/// the place among them, from 0. `None`: the text is about something else.
///
/// # Errors
/// There is no such memory; the place is beyond its end.
pub fn resolve(areas: &[Area], text: &str) -> Option<Result<u64, String>> {
    let place = text.strip_prefix(PREFIX)?;
    let (name, offset) = place.split_once('+').map_or((place, None), |(a, b)| (a, Some(b)));
    Some(found(areas, name.trim(), offset.map(str::trim)).map_err(|why| format!("`{text}`: {why}")))
}

fn found(areas: &[Area], name: &str, offset: Option<&str>) -> Result<u64, String> {
    let numbered = || name.parse::<usize>().ok().and_then(|number| areas.get(number));
    let named = areas.iter().find(|area| area.name == name);
    let Some(area) = named.or_else(numbered) else {
        let all: Vec<&str> = areas.iter().map(|area| &*area.name).collect();
        let there = match &all[..] {
            [] => "the item has no memory: [[snippet.memory]], or --memory-area".to_string(),
            all => format!("the item has {}", all.join(", ")),
        };
        return Err(format!("there is no memory `{name}`; {there}"));
    };
    let offset = offset.map_or(Ok(0), |text| {
        let number = match text.strip_prefix("0x") {
            Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
            _ => bytes(text).ok(),
        };
        number.ok_or_else(|| format!("`{text}` is no number of bytes"))
    })?;
    if offset > area.bytes {
        return Err(format!("memory `{}` has {} bytes", area.name, area.bytes));
    }
    Ok(area.at + offset)
}

/// MiB that a guest needs for the item whose memory takes most.
#[must_use]
pub fn needed_mib(memory: &[Memory]) -> u32 {
    let mut used: Vec<u32> = memory.iter().flat_map(|one| one.items.iter().copied()).collect();
    used.sort_unstable();
    used.dedup();
    let of_item = |item| {
        let all = || memory.iter().filter(move |one| one.is_of(item));
        let bytes: u64 = all().map(|one| one.mapped().end - one.mapped().start).sum();
        // Pages of 1 GiB begin at a multiple of it, and the first GiB has the firmware in it.
        let giant = all().any(|one| one.page_size == PageSize::Giant);
        // Larger pages begin at multiples too. Page tables take a 512th of 4 KiB pages.
        bytes.div_ceil(1 << 20) + bytes.div_ceil(512 << 20) + 4 + u64::from(giant) * 1024
    };
    let most = used.into_iter().map(of_item).max().unwrap_or(0);
    most.try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
