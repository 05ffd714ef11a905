//! What several processors sampled, as one result.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use protocol::record::{
    Qualified, RetireLatency, SampleResult, SampledCount, SampledProcessor, SourceCount,
    StackCount, TimerResult,
};

/// What the processor with this number sampled, without what all have in common.
fn processor(cpu: u16, part: &SampleResult) -> SampledProcessor {
    SampledProcessor {
        cpu,
        events: part.events.clone(),
        elsewhere: part.elsewhere,
        logged: part.logged,
        dropped: part.dropped,
        stopped: part.stopped,
        interrupts: part.interrupts,
        spurious: part.spurious,
        timer: part.timer.clone(),
    }
}

/// The results of some processors, by their numbers, as one. Each task belongs to one processor, so no row of one is another's.
/// That of the boot processor alone names none. `None`: there is none.
#[must_use]
pub fn together(parts: Vec<(u16, SampleResult)>) -> Option<SampleResult> {
    let cpus: Vec<u16> = parts.iter().map(|(cpu, _)| *cpu).collect();
    let named: Vec<SampledProcessor> =
        parts.iter().map(|(cpu, part)| processor(*cpu, part)).collect();
    let mut parts = parts.into_iter();
    let (_, mut all) = parts.next()?;
    if cpus[..] == [0] {
        sort(&mut all);
        return Some(all);
    }
    for (event, count) in all.events.iter_mut().enumerate() {
        *count = sum(named.iter().filter_map(|one| Some((one.cpu, one.events.get(event)?))));
    }
    all.timer = intervals(&named);
    for (_, part) in parts {
        add(&mut all, part);
    }
    sort(&mut all);
    Some(SampleResult { processors: named, ..all })
}

/// What several processors counted of one event. The period is one.
fn sum<'a>(parts: impl Iterator<Item = (u16, &'a SampledCount)> + Clone) -> SampledCount {
    let total = |of: fn(&SampledCount) -> u64| parts.clone().map(|(_, one)| of(one)).sum();
    // One that is not known leaves the sum unknown.
    let known = |of: fn(&SampledCount) -> Option<u64>| -> Option<u64> {
        parts.clone().map(|(_, one)| of(one)).sum()
    };
    let first = parts.clone().next().map(|(_, one)| one.clone());
    let is_common = |remark: &String| parts.clone().all(|(_, one)| one.remarks.contains(remark));
    // What holds for all, as an erratum does, is said once.
    let common = first.iter().flat_map(|one| &one.remarks).filter(|remark| is_common(remark));
    let mut remarks: Vec<_> = common.cloned().collect();
    for (cpu, one) in parts.clone() {
        let own = one.remarks.iter().filter(|remark| !is_common(remark));
        remarks.extend(own.map(|remark| format!("on processor {cpu}: {remark}")));
    }
    SampledCount {
        overflows: total(|one| one.overflows),
        samples: total(|one| one.samples),
        dropped: total(|one| one.dropped),
        throttled: total(|one| one.throttled),
        last_period: parts.clone().filter_map(|(_, one)| one.last_period).max(),
        rest: total(|one| one.rest),
        witness: known(|one| one.witness),
        remarks,
        lost: total(|one| one.lost),
        filtered: total(|one| one.filtered),
        ended: known(|one| one.ended),
        retire_latency: RetireLatency::sum(parts.clone().map(|(_, one)| one.retire_latency)),
        qualified: Qualified::sum(parts.clone().map(|(_, one)| one.qualified.as_ref())),
        ..first.unwrap_or_default()
    }
}

/// The intervals of all: the least and the greatest of any, and the median of the medians.
fn intervals(parts: &[SampledProcessor]) -> Option<TimerResult> {
    let timers: Vec<&TimerResult> = parts.iter().filter_map(|one| one.timer.as_ref()).collect();
    let mut measured: Vec<[u64; 3]> = timers.iter().filter_map(|one| one.measured_ns).collect();
    measured.sort_unstable_by_key(|[_, median, _]| *median);
    let least = measured.iter().map(|[least, ..]| *least).min();
    let most = measured.iter().map(|[.., most]| *most).max();
    let measured_ns = match (least, measured.get(measured.len() / 2), most) {
        (Some(least), Some(&[_, median, _]), Some(most)) => Some([least, median, most]),
        _ => None,
    };
    let doubled = timers.iter().map(|one| one.doubled).max().unwrap_or(0);
    timers.first().map(|&first| TimerResult { doubled, measured_ns, ..first.clone() })
}

/// Adds what another processor sampled, but for its events and its timer.
fn add(all: &mut SampleResult, part: SampleResult) {
    all.addresses.extend(part.addresses);
    all.elsewhere += part.elsewhere;
    all.logged += part.logged;
    all.dropped += part.dropped;
    all.stopped |= part.stopped;
    all.interrupts += part.interrupts;
    all.spurious += part.spurious;
    all.back_to_back += part.back_to_back;
    all.throttled += part.throttled;
    all.eased += part.eased;
    all.data.extend(part.data);
    all.data_elsewhere += part.data_elsewhere;
    all.sources.extend(part.sources);
    all.sources_elsewhere += part.sources_elsewhere;
    all.outcomes.extend(part.outcomes);
    all.outcomes_elsewhere += part.outcomes_elsewhere;
    if let (Some(all), Some(part)) = (&mut all.branches, part.branches) {
        all.edges.extend(part.edges);
        all.elsewhere += part.elsewhere;
    }
    if let (Some(all), Some(part)) = (&mut all.stacks, part.stacks) {
        all.stacks.extend(part.stacks);
        all.elsewhere += part.elsewhere;
    }
}

/// Puts what came most often first.
fn sort(all: &mut SampleResult) {
    let first = |count: u64| Reverse(count);
    all.addresses.sort_by_key(|row| (first(row.count), row.event, row.address.0));
    all.data.sort_by_key(|row| (first(row.count), row.event, row.address.0, row.task));
    all.sources.sort_by(|one, other| {
        let key = |row: &SourceCount| (first(row.count), row.event, row.task, row.least);
        key(one).cmp(&key(other)).then_with(|| one.source.cmp(&other.source))
    });
    all.outcomes.sort_by_key(|row| (first(row.count), row.address.0, row.task));
    if let Some(branches) = &mut all.branches {
        branches.edges.sort_by_key(|row| (first(row.count), row.from.0, row.to.0, row.task));
    }
    if let Some(stacks) = &mut all.stacks {
        stacks.stacks.sort_by(|one, other| {
            let key = |row: &StackCount| (first(row.count), row.event);
            let frames = |row: &StackCount| row.frames.iter().map(|frame| frame.0).collect();
            let (ours, theirs): (Vec<u64>, Vec<u64>) = (frames(one), frames(other));
            key(one).cmp(&key(other)).then_with(|| ours.cmp(&theirs))
        });
    }
}
