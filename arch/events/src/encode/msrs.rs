//! The extra MSR that an event looks at: which, with what value, and in which ways that can be had.

use super::Refusal;
use super::draft::Draft;
use crate::cpu::Vendor;
use crate::event::Way;
use crate::msr::{
    self, FRONTEND, LOAD_LATENCY, MIN_LOAD_LATENCY, OFFCORE_RSP_0, OFFCORE_RSP_1, SNOOP_RSP_0,
    SNOOP_RSP_1,
};
use crate::processor::Processor;
use crate::request::Attributes;
use crate::tables::Core;
use alloc::vec::Vec;

/// A value that the request gives, and where it may go.
struct Wanted {
    term: &'static str,
    value: u64,
    /// Whether the MSR with this address is meant.
    takes: fn(u32) -> bool,
    /// Whether another code that looks at another MSR would do.
    other_code: bool,
}

fn wanted(attributes: &Attributes) -> Result<Option<Wanted>, Refusal> {
    let want = |term, value, takes, other_code| Wanted { term, value, takes, other_code };
    let a = attributes;
    let offcore_at = a.offcore_rsp_at.map(|(which, value)| match which {
        0 => want("offcore_rsp_0", value, |msr| msr == OFFCORE_RSP_0, false),
        _ => want("offcore_rsp_1", value, |msr| msr == OFFCORE_RSP_1, false),
    });
    let mut given = [
        a.offcore_rsp.map(|v| want("offcore_rsp", v, msr::is_offcore, true)),
        offcore_at,
        a.snoop_rsp
            .map(|v| want("snoop_rsp", v, |msr| matches!(msr, SNOOP_RSP_0 | SNOOP_RSP_1), true)),
        a.load_latency.map(|v| want("ldlat", v, |msr| msr == LOAD_LATENCY, true)),
        a.frontend.map(|v| want("frontend", v, |msr| msr == FRONTEND, true)),
        a.config1.map(|v| want("config1", v, |_| true, true)),
    ]
    .into_iter()
    .flatten();
    match (given.next(), given.next()) {
        (_, Some(_)) => Err(Refusal::TwoMsrValues),
        (first, None) => Ok(first),
    }
}

/// Resolves the draft's ways and the value of their MSRs.
///
/// # Errors
/// A value is missing, does not belong there, or must not be written.
pub(super) fn resolve_msrs(
    draft: &mut Draft,
    attributes: &Attributes,
    processor: &Processor,
    core: Option<&Core<'_>>,
) -> Result<(), Refusal> {
    let wanted = wanted(attributes)?;
    // An event of the table without an MSR looks at none, unless it is one that stands for all
    // offcore responses and leaves the value to the user: that has several codes.
    if draft.ways.iter().all(|way| way.msr.is_none())
        && (!draft.from_table || draft.ways.len() > 1 || wanted.is_some())
    {
        let own = draft.ways[0];
        let known = known_ways(&draft.ways, processor, core);
        if let Some(first) = known.first().and_then(|way| way.msr) {
            if wanted.is_none() {
                return Err(Refusal::NoMsrValue { msr: first, term: term(first) });
            }
            draft.ways = known;
        }
        if wanted.as_ref().is_some_and(|wanted| !wanted.other_code) {
            draft.ways.retain(|way| (way.event, way.umask) == (own.event, own.umask));
        }
    }
    if let Some(wanted) = wanted {
        if wanted.term == "ldlat"
            && wanted.value < MIN_LOAD_LATENCY
            && !core.is_some_and(|core| is_own_threshold(&draft.ways, wanted.value, core))
        {
            return Err(Refusal::LoadLatency { cycles: wanted.value });
        }
        draft.ways.retain(|way| way.msr.is_some_and(wanted.takes));
        if draft.ways.is_empty() {
            return Err(Refusal::MsrUnused { term: wanted.term });
        }
        draft.msr_value = Some(wanted.value);
    }
    let Some(value) = draft.msr_value else {
        return Ok(());
    };
    keep_possible(&mut draft.ways, value, processor)
}

/// Whether an event of the table with one of these codes has this very threshold: what a table says
/// can be requested in words, too.
fn is_own_threshold(ways: &[Way], cycles: u64, core: &Core<'_>) -> bool {
    let same = |way: &Way, own: &Way| {
        own.msr == Some(LOAD_LATENCY) && (way.event, way.umask) == (own.event, own.umask)
    };
    ways.iter().any(|way| {
        core.with_code(way.event)
            .any(|event| event.msr_value == cycles && event.ways().iter().any(|own| same(way, own)))
    })
}

/// Drops the ways whose MSR is not there or must not hold the value.
fn keep_possible(ways: &mut Vec<Way>, value: u64, processor: &Processor) -> Result<(), Refusal> {
    let mut refusal = None;
    ways.retain(|way| {
        let Some(address) = way.msr else { return true };
        let problem = match processor.extra_msr(address) {
            None => Refusal::NoMsr { msr: address },
            Some(msr) if value & !msr.valid_bits != 0 => {
                Refusal::MsrBits { msr: address, value, bad: value & !msr.valid_bits }
            }
            Some(_) => return true,
        };
        refusal.get_or_insert(problem);
        false
    });
    match refusal {
        Some(refusal) if ways.is_empty() => Err(refusal),
        _ => Ok(()),
    }
}

/// All ways to count what these codes count, if they look at an MSR: out of the table, or the codes
/// that have meant the same since they came up.
fn known_ways(codes: &[Way], processor: &Processor, core: Option<&Core<'_>>) -> Vec<Way> {
    let own = codes[0];
    let same = |way: &Way| (way.event, way.umask) == (own.event, own.umask);
    let in_table = core.and_then(|core| {
        core.with_code(own.event)
            .find(|event| event.ways().iter().any(|way| same(way) && way.msr.is_some()))
    });
    if let Some(event) = in_table {
        return event.ways().to_vec();
    }
    codes
        .iter()
        .filter_map(|way| {
            let msr = msr::usual(way).filter(|_| processor.vendor == Vendor::Intel);
            // A table that does not name the MSR may still mean it where it leaves the value to the
            // user: offcore responses.
            let open = |msr: &u32| msr::is_offcore(*msr) && processor.extra_msr(*msr).is_some();
            let msr = msr.filter(|msr| core.is_none() || open(msr));
            msr.map(|msr| Way { msr: Some(msr), ..*way })
        })
        .collect()
}

fn term(address: u32) -> &'static str {
    match address {
        msr::LOAD_LATENCY => "ldlat",
        msr::FRONTEND => "frontend",
        msr::SNOOP_RSP_0 | msr::SNOOP_RSP_1 => "snoop_rsp",
        address if msr::is_offcore(address) => "offcore_rsp",
        _ => "config1",
    }
}
