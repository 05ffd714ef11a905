//! What a linked program registers: the section `barecount`, an array of entries as `bench/src/entry.rs` lays them out.

mod relocated;

use super::BenchmarkError;
use crate::program::named_at;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use relocated::relocated;
use std::collections::{HashMap, HashSet};

/// Bytes of an entry.
const ENTRY: usize = 64;
/// What an entry begins with: `barecnt` and the version of its layout.
const MAGIC: u64 = u64::from_le_bytes(*b"barecnt\x01");
/// The parameter is a part of the name.
const HAS_PARAMETER: u64 = 1;
/// Longest name, in bytes. An item's name may be longer, but a table's column is not.
const MAX_NAME: u64 = 200;

/// A function that a program registers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Benchmark {
    /// Its name, with the parameter if it has one.
    pub name: String,
    /// What it is called with.
    pub parameter: u64,
    /// Its symbol; with its address, if the program has another of the name.
    pub function: String,
    /// Symbols, in the same way, of what runs before and after each run, unmeasured.
    pub around: [Option<String>; 2],
}

/// Reads what the linked `program` registers, by name and parameter.
///
/// # Errors
/// It registers nothing, or something that cannot be measured.
pub fn read(bytes: &[u8], program: &str) -> Result<Vec<Benchmark>, BenchmarkError> {
    let unreadable = |error: object::Error| BenchmarkError::Program {
        program: program.to_string(),
        why: error.to_string(),
    };
    let file = object::File::parse(bytes).map_err(unreadable)?;
    let bytes = relocated(&file, bytes);
    let file = object::File::parse(&*bytes).map_err(unreadable)?;
    let nothing = || BenchmarkError::Nothing(program.to_string());
    let section = file.section_by_name("barecount").ok_or_else(nothing)?;
    let (entries, rest) = section.data().map_err(unreadable)?.as_chunks::<ENTRY>();
    if entries.is_empty() && rest.is_empty() {
        return Err(nothing());
    }
    let wrong = |index, why: &str| BenchmarkError::Entry {
        program: program.to_string(),
        index,
        why: why.to_string(),
    };
    if !rest.is_empty() {
        return Err(wrong(
            entries.len(),
            "is truncated: the section's size is not a multiple of 64 bytes",
        ));
    }
    let symbols = symbols(&file);
    let mut found = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let benchmark = benchmark(&file, &symbols, entry).map_err(|why| wrong(index, &why))?;
        found.push(benchmark);
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let found: Vec<Benchmark> = found.into_iter().map(|(_, benchmark)| benchmark).collect();
    let mut names = HashSet::new();
    match found.iter().find(|benchmark| !names.insert(&benchmark.name)) {
        Some(twice) => {
            Err(BenchmarkError::Twice { program: program.to_string(), name: twice.name.clone() })
        }
        None => Ok(found),
    }
}

/// An entry, with what it is sorted by.
fn benchmark(
    file: &object::File<'_>,
    symbols: &HashMap<u64, String>,
    entry: &[u8; ENTRY],
) -> Result<((String, u64), Benchmark), String> {
    let words: Vec<u64> =
        entry.as_chunks().0.iter().map(|word: &[u8; 8]| u64::from_le_bytes(*word)).collect();
    let [magic, name, name_bytes, parameter, function, setup, teardown, flags] = words[..] else {
        unreachable!("64 bytes are eight words");
    };
    if magic != MAGIC {
        return Err(format!(
            "begins with {magic:#x} and not with {MAGIC:#x}: it was made by another version of \
             the crate or the header, or by something else"
        ));
    }
    if !(1..=MAX_NAME).contains(&name_bytes) {
        return Err(format!("has a name of {name_bytes} bytes; it must have 1 to {MAX_NAME}"));
    }
    let Some(text) = at(file, name, name_bytes) else {
        return Err(format!("has its name at {name:#x}, where the program has no bytes"));
    };
    let text = std::str::from_utf8(text).map_err(|_| "has a name that is not UTF-8".to_string())?;
    let symbol = |address: u64| {
        let none =
            || format!("({text}) names a function at {address:#x}, where there is no symbol");
        symbols.get(&address).cloned().ok_or_else(none)
    };
    let name =
        if flags & HAS_PARAMETER == 0 { text.to_string() } else { format!("{text}/{parameter}") };
    let optional = |address: u64| (address != 0).then(|| symbol(address)).transpose();
    let (function, around) = (symbol(function)?, [optional(setup)?, optional(teardown)?]);
    Ok(((text.to_string(), parameter), Benchmark { name, parameter, function, around }))
}

/// Names of the program's functions by their addresses; of several, one that other objects may use. One that stands at another
/// address as well has its own in its name.
fn symbols(file: &object::File<'_>) -> HashMap<u64, String> {
    let is_code = |symbol: &object::Symbol<'_, '_>| {
        let kinds = [SymbolKind::Text, SymbolKind::Label, SymbolKind::Unknown];
        !symbol.is_undefined() && kinds.contains(&symbol.kind())
    };
    let mut all: Vec<_> = file.symbols().filter(is_code).collect();
    // The last one of an address stays.
    all.sort_by_key(ObjectSymbol::is_global);
    let named = all.into_iter().filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?)));
    let named: HashMap<u64, &str> = named.collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for name in named.values() {
        *places.entry(name).or_default() += 1;
    }
    let name = |(&address, &name): (&u64, &&str)| match places[name] {
        1 => (address, name.to_string()),
        _ => (address, named_at(name, address)),
    };
    named.iter().map(name).collect()
}

/// The program's bytes at an address.
fn at<'a>(file: &object::File<'a>, address: u64, bytes: u64) -> Option<&'a [u8]> {
    file.segments().find_map(|segment| segment.data_range(address, bytes).ok().flatten())
}

/// Those whose name contains `filter`.
///
/// # Errors
/// There are none.
pub fn filter<T>(
    all: Vec<T>,
    filter: Option<&str>,
    name: impl Fn(&T) -> &str,
) -> Result<Vec<T>, BenchmarkError> {
    /// Names that a message lists at most.
    const LISTED: usize = 12;
    let Some(filter) = filter else { return Ok(all) };
    let (kept, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|benchmark| name(benchmark).contains(filter));
    if !kept.is_empty() {
        return Ok(kept);
    }
    let more = others.len().saturating_sub(LISTED);
    let mut names: Vec<String> =
        others.iter().take(LISTED).map(|benchmark| name(benchmark).to_string()).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    Err(BenchmarkError::NoMatch { filter: filter.to_string(), names })
}

#[cfg(test)]
mod tests;
