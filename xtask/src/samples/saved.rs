//! Resolved samples as a report keeps them: whoever reads it later has neither the job nor the firmware's file.

use super::stacks::StackRow;
use super::{Listed, Listing, Place, Profile, Row, data};
use crate::collect::Report;
use protocol::hex::Hex;
use serde::{Deserialize, Serialize};

/// The profile of one item.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SavedProfile {
    /// Index of the item in the job.
    pub item: u32,
    rows: Vec<SavedRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    listings: Vec<SavedListing>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stacks: Vec<SavedStack>,
}

fn is_boot(cpu: &u16) -> bool {
    *cpu == 0
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SavedStack {
    event: usize,
    task: String,
    ring: u8,
    #[serde(default, skip_serializing_if = "is_boot")]
    cpu: u16,
    count: u64,
    frames: Vec<SavedFrame>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SavedFrame {
    address: Hex,
    symbol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    instruction: String,
}

impl SavedStack {
    fn of(row: &StackRow) -> Self {
        let frame = |(address, place): &(u64, Place)| {
            let Place { symbol, offset, line, instruction } = place.clone();
            SavedFrame { address: Hex(*address), symbol, offset, line, instruction }
        };
        let StackRow { event, ring, cpu, count, .. } = *row;
        let frames = row.frames.iter().map(frame).collect();
        Self { event, task: row.task.clone(), ring, cpu, count, frames }
    }

    fn row(&self) -> StackRow {
        let frame = |frame: &SavedFrame| {
            let SavedFrame { address, symbol, offset, line, instruction } = frame.clone();
            (address.0, Place { symbol, offset, line, instruction })
        };
        let Self { event, ring, cpu, count, .. } = *self;
        let frames = self.frames.iter().map(frame).collect();
        StackRow { event, task: self.task.clone(), ring, cpu, frames, count }
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SavedRow {
    event: usize,
    task: String,
    ring: u8,
    bits: u8,
    #[serde(default, skip_serializing_if = "is_boot")]
    cpu: u16,
    address: Hex,
    symbol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    instruction: String,
    count: u64,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SavedListing {
    name: String,
    rows: Vec<SavedInstruction>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct SavedInstruction {
    address: Hex,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    bytes: String,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
}

impl SavedProfile {
    /// What is kept of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let row = |row: &Row| {
            let Place { symbol, offset, line, instruction } = row.place.clone();
            let Row { event, ring, bits, cpu, count, .. } = *row;
            let (task, address) = (row.task.clone(), Hex(row.address));
            SavedRow {
                event,
                task,
                ring,
                bits,
                cpu,
                address,
                symbol,
                offset,
                line,
                instruction,
                count,
            }
        };
        let instruction = |one: &Listed| {
            let Listed { address, label, bytes, text, line } = one.clone();
            SavedInstruction { address: Hex(address), label, bytes, text, line }
        };
        let listing = |one: &Listing| {
            let rows = one.rows.iter().map(instruction).collect();
            SavedListing { name: one.name.clone(), rows }
        };
        let rows = profile.rows.iter().map(row).collect();
        let listings = profile.listings.iter().map(listing).collect();
        let stacks = profile.stacks.iter().map(SavedStack::of).collect();
        Self { item: profile.result.item, rows, listings, stacks }
    }

    /// The profile again; nothing if `report` has no such item.
    #[must_use]
    pub fn profile<'a>(&self, report: &'a Report) -> Option<Profile<'a>> {
        let result = report.sampled().find(|result| result.item == self.item)?;
        let row = |row: &SavedRow| {
            let SavedRow { symbol, offset, line, instruction, .. } = row.clone();
            let SavedRow { event, ring, bits, cpu, count, .. } = *row;
            let place = Place { symbol, offset, line, instruction };
            let (task, address) = (row.task.clone(), row.address.0);
            Row { event, task, ring, bits, cpu, address, place, count }
        };
        let instruction = |one: &SavedInstruction| {
            let SavedInstruction { address, label, bytes, text, line } = one.clone();
            Listed { address: address.0, label, bytes, text, line }
        };
        let listing = |one: &SavedListing| Listing {
            name: one.name.clone(),
            rows: one.rows.iter().map(instruction).collect(),
        };
        Some(Profile {
            result,
            rows: self.rows.iter().map(row).collect(),
            data: data::addresses(report, result),
            // Places of branches are not saved: what is known of the tasks' code is.
            edges: super::edges::rows(result, &super::Resolver::default()),
            stacks: self.stacks.iter().map(SavedStack::row).collect(),
            values: super::groups::values(report, result),
            vectors: super::groups::vectors(report, result),
            listings: self.listings.iter().map(listing).collect(),
        })
    }
}
