//! The values of single parameters, out of text.

use super::super::transfer::MOST_TRANSFER;
use super::*;

/// `24k/6:fifo@4`, or `none`.
pub(super) fn cache(text: &str, cycles: u32) -> Result<Option<CacheShape>, &'static str> {
    if text == "none" {
        return Ok(None);
    }
    let (rest, cycles) = match text.split_once('@') {
        None => (text, Some(cycles)),
        Some((rest, cycles)) => (rest, cycles.parse().ok()),
    };
    let cycles = cycles.filter(|cycles| (1..=4000).contains(cycles)).ok_or(CYCLES)?;
    let (shape, policy) = match rest.split_once(':') {
        None => (rest, Policy::Lru),
        Some((shape, policy)) => (shape, Policy::by_name(policy).ok_or(POLICY)?),
    };
    let (size, ways) = shape.split_once('/').ok_or(CACHE)?;
    let shift = match size.as_bytes().last() {
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        _ => 0,
    };
    let digits = size.trim_end_matches(['k', 'K', 'm', 'M']);
    let bytes = digits.parse::<u32>().map_err(|_| CACHE)?;
    let bytes = u64::from(bytes) << shift;
    let ways = ways.parse().ok().filter(|ways| (1..=MAX_WAYS).contains(ways)).ok_or(SETS)?;
    Ok(Some(CacheShape { bytes, ways, policy, cycles }))
}

/// `32k/8@12`, or `none`.
pub(super) fn code_cache(text: &str) -> Result<Option<CacheShape>, &'static str> {
    match text.contains(':') {
        true => Err(CODE),
        false => cache(text, 12),
    }
}

/// `5/5/6/13/12/7`.
pub(super) fn forward(text: &str) -> Option<Forward> {
    let mut all = [0; 6];
    let mut parts = text.split('/');
    for cycles in &mut all {
        *cycles = parts.next()?.parse().ok().filter(|cycles| *cycles <= MOST_CYCLES)?;
    }
    parts.next().is_none().then_some(Forward::of(all))
}

/// `4/9/26/30`.
pub(super) fn transfer(text: &str) -> Option<Transfer> {
    let mut all = [0; 4];
    let mut parts = text.split('/');
    for cycles in &mut all {
        *cycles = parts.next()?.parse().ok().filter(|cycles| *cycles <= MOST_TRANSFER)?;
    }
    parts.next().is_none().then_some(Transfer::of(all))
}

/// `1/1/3/4/2`.
pub(super) fn prefetch(text: &str) -> Option<PrefetcherShape> {
    let mut all = [0; 5];
    let mut parts = text.split('/');
    for number in &mut all {
        *number = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then(|| PrefetcherShape::of(all)).flatten()
}

/// `512/4`.
pub(super) fn btb(text: &str) -> Result<TlbShape, &'static str> {
    tlb(text).ok().filter(|shape| is_btb(*shape)).ok_or(BTB)
}

/// `4096/8@8`.
pub(super) fn direct(text: &str) -> Option<(TlbShape, u32)> {
    let (shape, cycles) = text.split_once('@').unwrap_or((text, "8"));
    let cycles = cycles.parse().ok().filter(|cycles| (1..=4000).contains(cycles))?;
    Some((tlb(shape).ok()?, cycles))
}

/// `64/4`.
pub(super) fn tlb(text: &str) -> Result<TlbShape, &'static str> {
    let (entries, ways) = text.split_once('/').ok_or(TLB)?;
    let (entries, ways) = (entries.parse().map_err(|_| TLB)?, ways.parse().map_err(|_| TLB)?);
    let shape = TlbShape { entries, ways };
    let sets = "entries / ways must be a power of two, with at most 16384 entries";
    is_tlb(shape).then_some(shape).ok_or(sets)
}
