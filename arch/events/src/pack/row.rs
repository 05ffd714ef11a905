//! One event out of a CSV file, owned.

use super::PackError;
use super::sheet::Sheet;
use crate::cpu::Vendor;
use crate::event::{MAX_WAYS, Precise, Way};

/// An event as the packer keeps it. See [`crate::event::Event`] for the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of Event")]
pub struct Row {
    pub name: String,
    pub ways: Vec<Way>,
    pub cmask: u8,
    pub invert: bool,
    pub edge: bool,
    pub any_thread: bool,
    pub counters: u32,
    pub fixed: Option<u8>,
    pub msr_value: u64,
    pub precise: Precise,
    pub data_address: bool,
    pub taken_alone: bool,
    pub deprecated: bool,
    pub errata: String,
    pub doubtful: bool,
}

/// A value that the registers of its vendor do not have room for.
#[derive(Debug)]
pub(super) struct Misfit {
    /// Its field in perfmon's files.
    pub(super) field: &'static str,
    /// Its column in the tables.
    pub(super) column: &'static str,
    pub(super) value: String,
    pub(super) why: &'static str,
}

impl Row {
    /// Whether the registers of this vendor's processors have room for every value. A value that
    /// was cut off would count something else.
    pub(super) fn check(&self, vendor: Vendor) -> Result<(), Misfit> {
        let intel = vendor == Vendor::Intel;
        let event = if intel { 0xff } else { 0xfff };
        let umask = if intel { 0xffff } else { 0xff };
        let way =
            |wrong: fn(&Way, u16) -> bool, most| self.ways.iter().find(move |way| wrong(way, most));
        let hex = |value: u32| format!("{value:#x}");
        let misfit = |field, column, value, why| Err(Misfit { field, column, value, why });
        if let Some(way) = way(|way, most| way.event > most, event) {
            let why = "event codes have 8 bits on Intel processors, 12 on AMD's";
            return misfit("EventCode", "event", hex(way.event.into()), why);
        }
        if let Some(way) = way(|way, most| way.umask > most, umask) {
            let why = "unit masks have 8 bits on AMD processors";
            return misfit("UMask", "umask", hex(way.umask.into()), why);
        }
        if let (false, Some(fixed)) = (intel, self.fixed) {
            let why = "AMD processors have no fixed counters";
            return misfit("Counter", "fixed", format!("fixed counter {fixed}"), why);
        }
        if let (false, Some(msr)) = (intel, self.ways.iter().find_map(|way| way.msr)) {
            let why = "no event of AMD's processors uses an extra MSR";
            return misfit("MSRIndex", "msr", hex(msr), why);
        }
        if self.any_thread && !intel {
            let why = "AMD processors count one hyper-thread at a time";
            return misfit("AnyThread", "any", "1".to_string(), why);
        }
        if self.counters == 0 && self.fixed.is_none() {
            let why = "no counter can count it";
            return misfit("Counter", "counters", hex(0), why);
        }
        Ok(())
    }
}

/// The columns of a table.
pub(super) const COLUMNS: [&str; 16] = [
    "name",
    "event",
    "umask",
    "cmask",
    "inv",
    "edge",
    "any",
    "counters",
    "fixed",
    "msr",
    "msr_value",
    "precise",
    "data_la",
    "taken_alone",
    "errata",
    "deprecated",
];

/// Reads one line of a table of this vendor.
pub(super) fn read(sheet: &Sheet, line: usize, vendor: Vendor) -> Result<Row, PackError> {
    let name = sheet.field(line, "name");
    if name.is_empty() || !name.is_ascii() {
        return Err(sheet.wrong(
            line,
            "name",
            "a name has at least one character, all of them ASCII",
        ));
    }
    let events = sheet.list(line, "event", 0xfff)?;
    let umasks = sheet.list(line, "umask", 0xffff)?;
    let msrs = sheet.list(line, "msr", u64::from(u32::MAX - 1))?;
    let ways = ways(&events, &umasks, &msrs).ok_or_else(|| {
        sheet.wrong(
            line,
            "event",
            "the lists of events, unit masks and MSRs have different lengths",
        )
    })?;
    let row = Row {
        name: name.to_string(),
        ways,
        cmask: sheet.number(line, "cmask", 0xff)? as u8,
        invert: sheet.flag(line, "inv")?,
        edge: sheet.flag(line, "edge")?,
        any_thread: sheet.flag(line, "any")?,
        counters: sheet.number(line, "counters", u32::MAX.into())? as u32,
        fixed: sheet.optional(line, "fixed", 15)?.map(|fixed| fixed as u8),
        msr_value: sheet.optional(line, "msr_value", u64::MAX)?.unwrap_or(0),
        precise: match sheet.number(line, "precise", 2)? {
            0 => Precise::No,
            1 => Precise::Capable,
            _ => Precise::Only,
        },
        data_address: sheet.flag(line, "data_la")?,
        taken_alone: sheet.flag(line, "taken_alone")?,
        deprecated: sheet.flag(line, "deprecated")?,
        errata: sheet.field(line, "errata").to_string(),
        // Said apart from the tables, in `doubts.csv`.
        doubtful: false,
    };
    row.check(vendor).map_err(|misfit| sheet.wrong(line, misfit.column, misfit.why))?;
    Ok(row)
}

/// Pairs the n-th event and the n-th unit mask with the n-th MSR. A list of one goes with all.
fn ways(events: &[u64], umasks: &[u64], msrs: &[u64]) -> Option<Vec<Way>> {
    let count = events.len().max(umasks.len());
    let fits = |length: usize| length == count || length == 1;
    if !fits(events.len()) || !fits(umasks.len()) || count > MAX_WAYS {
        return None;
    }
    // Each code looks at one MSR.
    if !msrs.is_empty() && msrs.len() != count {
        return None;
    }
    let at = |list: &[u64], index: usize| *list.get(index).or(list.first()).unwrap_or(&0);
    Some(
        (0..count)
            .map(|index| Way {
                event: at(events, index) as u16,
                umask: at(umasks, index) as u16,
                msr: msrs.get(index).map(|msr| *msr as u32),
            })
            .collect(),
    )
}
