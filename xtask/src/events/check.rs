//! A look at a job's events before it goes out: the target resolves them, but a name that no table has is worth a word
//! here, where it can be corrected without a boot.

use super::Block;
use events::energy;
use events::generic::{Generic, NAMES};
use events::parse::{ParseError, is_modifier, parse_list};
use events::perf_metrics;
use events::request::{Base, NamePart};
use events::tables::{Core, Tables, nearest};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How many names are offered in place of one that is not known.
pub(super) const OFFERED: usize = 3;

/// Events as a job or the command line writes them: one, several, or groups. The text is understood; which events a
/// processor has is its own business.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub struct EventText(String);

/// A text that requests no events.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{text}` is not an event: {error}; events are names with modifiers (inst_retired.any:u), event and unit mask \
     (0xc4.0x20), perf's forms (r20c4, cpu/event=0xc4,umask=0x20/), or several of these in braces"
)]
pub struct NoEvent {
    text: String,
    error: ParseError,
}

impl FromStr for EventText {
    type Err = NoEvent;

    fn from_str(text: &str) -> Result<Self, NoEvent> {
        // perf's form of a threshold, which elsewhere would be two events.
        let threshold =
            text.trim().strip_prefix("mem-loads,").filter(|rest| rest.starts_with("ldlat="));
        let text =
            &*threshold.map_or(Cow::Borrowed(text), |rest| Cow::Owned(format!("mem-loads:{rest}")));
        match parse_list(text) {
            Ok(_) => Ok(Self(text.to_string())),
            Err(error) => Err(NoEvent { text: text.to_string(), error }),
        }
    }
}

impl TryFrom<String> for EventText {
    type Error = NoEvent;

    fn try_from(text: String) -> Result<Self, NoEvent> {
        text.parse()
    }
}

impl fmt::Display for EventText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line for each name that no table of `block` has, with what may have been meant. The block is what the target gets,
/// a user's own events included, so the target knows none of these either.
#[must_use]
pub fn unknown<'t>(block: &Block, texts: impl Iterator<Item = &'t EventText>) -> Vec<String> {
    let tables = block.tables();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut lines = Vec::new();
    let mut all = None;
    for text in texts {
        if !seen.insert(&text.0) {
            continue;
        }
        let items = parse_list(&text.0).unwrap_or_default();
        for request in items.iter().flat_map(|item| &item.requests) {
            let Base::Name(pieces) = &request.base else { continue };
            if !is_known(&tables, pieces) {
                let all = all.get_or_insert_with(|| all_names(&tables));
                lines.push(line(all, &request.text, &pieces[0].text));
            } else if let Some(wrong) = pieces.get(understood(&tables, pieces)) {
                let (event, wrong) = (&request.text, &wrong.text);
                lines.push(format!(
                    "event {event}: `{wrong}` is no modifier, and in no event table a unit mask of the event"
                ));
            }
        }
    }
    lines
}

/// Whether some table has an event whose name is a beginning of `pieces`, or events of which the first piece is the
/// beginning: what follows are then unit masks or modifiers, see [`understood`].
fn is_known(tables: &Tables<'_>, pieces: &[NamePart]) -> bool {
    let first = pieces[0].text.as_str();
    if is_generic(first) {
        return true;
    }
    let beginnings: Vec<String> = (1..=pieces.len())
        .map(|end| pieces[..end].iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>())
        .map(|pieces| pieces.join(":"))
        .collect();
    tables.cores().any(|core| {
        beginnings.iter().any(|name| core.find(name).is_some())
            || pieces.len() > 1 && core.with_prefix(first).next().is_some()
    })
}

/// Whether it has this name whatever the table.
fn is_generic(name: &str) -> bool {
    let number = name.strip_prefix("generic").and_then(|number| number.parse().ok());
    let special = perf_metrics::by_name(name).is_some() || energy::by_name(name).is_some();
    special || Generic::from_name(name).is_some() || number.and_then(Generic::from_number).is_some()
}

/// How many of the pieces of a known name some table understands: the event, then unit masks and modifiers, which are
/// the same everywhere.
fn understood(tables: &Tables<'_>, pieces: &[NamePart]) -> usize {
    let rest = &pieces[1..];
    let modifiers = rest.iter().take_while(|piece| is_modifier(&piece.text)).count();
    let most = tables.cores().map(|core| of_core(&core, pieces)).max();
    // A generic event has no unit masks; of one that the tables have, either reading counts.
    most.unwrap_or_default().max(1 + modifiers * usize::from(is_generic(&pieces[0].text)))
}

/// The same of one table.
fn of_core(core: &Core<'_>, pieces: &[NamePart]) -> usize {
    let first = pieces[0].text.as_str();
    let event = first.split('.').next().unwrap_or(first);
    let is_mask = |piece: &NamePart| core.find(&format!("{event}.{}", piece.text)).is_some();
    let known = |end: usize| {
        let name: Vec<&str> = pieces[..end].iter().map(|piece| piece.text.as_str()).collect();
        // Without a unit mask it is no event by itself.
        core.find(&name.join(":")).is_some() || end > 1 && pieces[1..end].iter().all(is_mask)
    };
    let whole = (1..=pieces.len()).filter(|&end| known(end)).map(|end| {
        let rest = pieces[end..].iter();
        end + rest.take_while(|piece| is_mask(piece) || is_modifier(&piece.text)).count()
    });
    whole.max().unwrap_or_default()
}

/// Every name of every table once, and the generic ones.
fn all_names<'t>(tables: &Tables<'t>) -> Vec<&'t str> {
    let of_tables =
        tables.cores().flat_map(|core| core.events().map(|event| event.name).collect::<Vec<_>>());
    let shares = perf_metrics::FIELDS.iter().flat_map(|field| [field.name, field.perf]);
    let energy = energy::NAMES.iter().map(|(_, name, _)| *name);
    let mut all: Vec<&str> =
        NAMES.into_iter().chain(shares).chain(energy).chain(of_tables).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn line(all: &[&str], event: &str, name: &str) -> String {
    let near = nearest(all.iter().copied(), name, OFFERED);
    let offer = match &near[..] {
        [] => String::new(),
        near => format!("; near it are {}", near.join(", ")),
    };
    format!("event {event}: no event table has this name{offer}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(text: &str) -> Vec<String> {
        unknown(&Block::embedded(), [text.parse().unwrap()].iter())
    }

    #[test]
    fn p4_names_of_some_table_are_let_through() {
        for text in [
            "inst_retired.any_p",
            "cycles:u",
            "CPU-CYCLES",
            "generic7",
            "l2_rqsts.miss:c=1",
            "l2_rqsts:demand_data_rd_hit:rfo_hit:u",
            "{ex_ret_instr,ls_dispatch.ld_dispatch}:k",
            "0xc4.0x20",
            "r20c4",
            "cpu/event=0xc4,umask=0x20/",
            "fixed0",
            "zen4::ex_ret_instr",
            "PERF_METRICS.RETIRING",
            "topdown-fe-bound:u",
            "energy-pkg",
            "power/energy-ram/",
            "PWR_DRAM_ENERGY",
            "cycles:ukp",
            "cycles:u:c=2:name=x",
            "uops_issued:any",
            "inst_retired.any:p",
            "mem-loads:ldlat=30",
        ] {
            assert_eq!(warned(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn c7_a_name_of_no_table_is_told_once_with_what_is_near_it() {
        let [line] = &warned("energy-pgk")[..] else { panic!() };
        assert!(line.contains("energy-pkg"), "{line}");
        let lines = warned("{cycle,inst_retired.any_pp:u,ex_ret_brn}");
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        assert!(first.contains("event cycle: ") && first.contains("cycles"), "{first}");
        assert!(second.contains("INST_RETIRED.ANY_P"), "{second}");
        let twice = ["l2_rqst.mis".parse().unwrap(), "l2_rqst.mis".parse().unwrap()];
        let lines = unknown(&Block::embedded(), twice.iter());
        assert!(lines.len() == 1 && lines[0].contains("L2_RQSTS.MISS"), "{lines:?}");
    }

    #[test]
    fn what_no_table_has_as_modifier_or_unit_mask_is_named() {
        for (text, wrong) in [
            ("cycles:z", "z"),
            ("cycles:u:zz", "zz"),
            ("inst_retired.any:nosuch", "nosuch"),
            ("l2_rqsts:miss:nosuch:u", "nosuch"),
            ("l2_rqsts:u", "u"),
            ("energy-pkg:z", "z"),
        ] {
            let [line] = &warned(text)[..] else { panic!("{text}: {:?}", warned(text)) };
            let start = format!("event {text}: `{wrong}` is no modifier");
            assert!(line.starts_with(&start), "{line}");
        }
    }

    #[test]
    fn c7_a_text_that_asks_for_no_event_is_refused() {
        for text in ["", "cycles,", "{a", "0xzz.0x1", "a b"] {
            let error = text.parse::<EventText>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}` is not an event: byte ")), "{error}");
        }
    }
}
