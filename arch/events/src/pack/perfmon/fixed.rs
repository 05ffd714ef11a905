//! Which fixed counter an event is on.
//!
//! perfmon's files do not agree on how to number them: most say "Fixed counter 0" for the first,
//! those of Nehalem, Westmere, Bonnell and Silvermont "Fixed counter 1", and Jaketown's numbers
//! from 0 but for one row. The number alone would make cycles of instructions. So what an event is
//! decides: its code, where it has the fixed counters' own (0, number + 1) or that of an
//! architectural event, and its name, where it is one of Intel's.

use super::entry::Entry;
use crate::architectural;
use crate::tables::fold;

/// The events on fixed counters of perfmon's files, and the counter of each. A test compares the
/// list with the tables.
pub(super) const NAMES: [(&str, u8); 13] = [
    ("INST_RETIRED.ANY", 0),
    ("INST_RETIRED.PREC_DIST", 0),
    ("CPU_CLK_UNHALTED.THREAD", 1),
    ("CPU_CLK_UNHALTED.THREAD_ANY", 1),
    ("CPU_CLK_UNHALTED.CORE", 1),
    ("CPU_CLK_UNHALTED.CORE_ANY", 1),
    ("CPU_CLK_UNHALTED.REF", 2),
    ("CPU_CLK_UNHALTED.REF_TSC", 2),
    ("CPU_CLK_UNHALTED.REF_TSC_ANY", 2),
    ("TOPDOWN.SLOTS", 3),
    ("TOPDOWN_BAD_SPECULATION.ALL", 4),
    ("TOPDOWN_FE_BOUND.ALL", 5),
    ("TOPDOWN_RETIRING.ALL", 6),
];

/// IA32_FIXED_CTR_CTRL has room for sixteen.
const MOST: u64 = 15;

/// What a file calls the first fixed counter, as far as its well-known events show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Numbering {
    /// No event shows it, or they do not agree.
    #[default]
    Unknown,
    /// 0.
    FromZero,
    /// 1.
    FromOne,
}

impl Numbering {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut shown = entries.iter().filter_map(|entry| {
            let number = entry.fixed_number()?.ok()?;
            let (name, code) = evidence(entry);
            // An event that contradicts itself shows nothing.
            let agreeing = name.is_none() || code.is_none() || name == code;
            let index = u64::from(name.or(code).filter(|_| agreeing)?);
            match number.checked_sub(index)? {
                0 => Some(Self::FromZero),
                1 => Some(Self::FromOne),
                _ => None,
            }
        });
        let first = shown.next().unwrap_or_default();
        if shown.all(|other| other == first) { first } else { Self::Unknown }
    }
}

/// The fixed counter that the event's name means, and the one that its code means.
fn evidence(entry: &Entry) -> (Option<u8>, Option<u8>) {
    let named = NAMES.iter().find(|(name, _)| fold::same(name, &entry.name));
    let code = match entry.code() {
        Some((0, umask @ 1..=16)) => Some(umask as u8 - 1),
        Some((event, umask)) => {
            let event = u16::try_from(event).ok().zip(u16::try_from(umask).ok());
            event.and_then(|(event, umask)| architectural::by_code(event, umask)?.fixed)
        }
        None => None,
    };
    (named.map(|(_, index)| *index), code)
}

/// The counter that an event is on which the file puts on fixed counter `number`.
///
/// # Errors
/// Name, code and number contradict each other, or nothing tells from what the file counts.
pub(super) fn index(entry: &Entry, number: u64, numbering: Numbering) -> Result<u8, &'static str> {
    let index = match evidence(entry) {
        (Some(name), Some(code)) if name != code => {
            return Err("its name and its code mean different fixed counters");
        }
        (Some(index), _) | (None, Some(index)) => u64::from(index),
        (None, None) => match (numbering, number) {
            // There is no counter before the first, whatever the file calls the others.
            (_, 0) => 0,
            (Numbering::FromZero, _) => number,
            (Numbering::FromOne, _) => number - 1,
            (Numbering::Unknown, _) => {
                return Err(
                    "it cannot be determined whether this file numbers fixed counters from 0 or from 1; \
                     EventCode 0x00 with the UMask of the counter (its number from 0, plus 1) \
                     tells",
                );
            }
        },
    };
    if number != index && number != index + 1 {
        return Err("the event is that of another fixed counter");
    }
    if index > MOST {
        return Err("a fixed counter has a number from 0 to 15");
    }
    Ok(index as u8)
}
