//! The code that samples are in, whole: a task's body, and functions whose ends a symbol tells.

use super::{Resolver, Row, inside, short};
use crate::disassembly::{all, hex};
use crate::symbols::Symbols;
use protocol::record::SampleResult;
use std::collections::{BTreeMap, BTreeSet};

/// Instructions of one listing that are kept.
const MAX_ROWS: usize = 1_000;
/// Listings of one item that are kept: those with the most samples.
const MAX_LISTINGS: usize = 24;

/// Code that was sampled.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Listing {
    /// The function, or the task.
    pub name: String,
    /// Its instructions, in the order of their addresses.
    pub rows: Vec<Listed>,
}

/// An instruction of it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Listed {
    /// Its address.
    pub address: u64,
    /// A label at it.
    pub label: Option<String>,
    /// Its bytes, hexadecimal.
    pub bytes: String,
    /// Its text.
    pub text: String,
    /// Its file and line.
    pub line: Option<String>,
}

/// The code that the rows of an item are in, that with the most samples first. Addresses whose function nobody knows have no
/// listing.
pub(super) fn of(resolver: &Resolver, result: &SampleResult, rows: &[Row]) -> Vec<Listing> {
    let mut found: BTreeMap<u64, (Listing, u64)> = BTreeMap::new();
    let mut seen: BTreeSet<u64> = BTreeSet::new();
    for row in rows {
        let around = found.values_mut().find(|(listing, _)| covers(listing, row.address));
        if let Some((_, count)) = around {
            *count += row.count;
        } else if seen.insert(row.address)
            && let Some(listing) =
                body(resolver, result, row).or_else(|| function(resolver, result, row))
            && let Some(first) = listing.rows.first()
        {
            found.insert(first.address, (listing, row.count));
        }
    }
    let mut all: Vec<(Listing, u64)> = found.into_values().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.into_iter().take(MAX_LISTINGS).map(|(listing, _)| listing).collect()
}

fn covers(listing: &Listing, address: u64) -> bool {
    let (Some(first), Some(last)) = (listing.rows.first(), listing.rows.last()) else {
        return false;
    };
    (first.address..=last.address).contains(&address)
}

/// The body of a task, with its labels.
fn body(resolver: &Resolver, result: &SampleResult, row: &Row) -> Option<Listing> {
    let index = result.code.iter().position(|code| inside(&code.body, row.address))?;
    let known = resolver.tasks.get(&result.item)?.get(index)?;
    let start = result.code[index].body[0].0;
    let label = |offset: usize| {
        let at = known.labels.iter().find(|(to, _)| *to == offset as u64);
        at.map(|(_, label)| label.clone())
    };
    let rows = all(&known.body, 0, row.bits, MAX_ROWS).into_iter().map(|one| Listed {
        address: start + one.offset as u64,
        label: label(one.offset),
        bytes: hex(&known.body[one.offset..(one.offset + one.bytes).min(known.body.len())]),
        text: one.text,
        line: None,
    });
    let name = result.tasks.get(index).cloned().unwrap_or_else(|| format!("task {index}"));
    Some(Listing { name, rows: rows.collect() })
}

/// The function of a program that a task calls, or of the firmware.
fn function(resolver: &Resolver, result: &SampleResult, row: &Row) -> Option<Listing> {
    let index = result.tasks.iter().position(|task| *task == row.task);
    let program = index.and_then(|index| result.code.get(index)?.program);
    let mut programs = resolver.programs.borrow_mut();
    let called = program.and_then(|program| {
        listing(programs.symbols(program)?, row, row.address.checked_sub(program.bias.0)?)
    });
    called.or_else(|| {
        let kernel = resolver.kernel.as_ref()?;
        listing(&kernel.symbols, row, kernel.symbols.in_file(row.address, kernel.base))
    })
}

fn listing(symbols: &Symbols, row: &Row, in_file: u64) -> Option<Listing> {
    let code = symbols.function(in_file)?;
    // From an address of the file to one in memory.
    let moved = row.address.wrapping_sub(in_file);
    let mut before = None;
    let rows = all(&code.bytes, code.start.wrapping_add(moved), row.bits, MAX_ROWS);
    let rows = rows.into_iter().map(|one| {
        let address = code.start + one.offset as u64;
        let line = symbols.at(address).and_then(|frame| frame.location).map(|line| short(&line));
        // A line is told where it begins.
        let told = if line == before { None } else { line.clone() };
        before = line;
        let end = (one.offset + one.bytes).min(code.bytes.len());
        Listed {
            address: address.wrapping_add(moved),
            label: None,
            bytes: hex(&code.bytes[one.offset..end]),
            text: one.text,
            line: told,
        }
    });
    let rows: Vec<Listed> = rows.collect();
    Some(Listing { name: row.place.symbol.clone(), rows })
}
