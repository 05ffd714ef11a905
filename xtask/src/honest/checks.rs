//! What the conformance suite adds.
//!
//! One lie fails many checks: a counter that stands still does not overflow, so it does not interrupt and freezes nothing. A
//! check is a finding of its own only if no lie that was found explains it; of those that are left, the first cause counts.

use super::{Cause, Class, Finding, Lie, Shown};
use crate::collect::Report;
use protocol::record::{Check, CheckVerdict};

/// What a failed check shows, and what it is about; in the order in which one explains the next.
const MEANINGS: [(&str, Lie, &str); 17] = [
    ("enumeration.counters_exist", Lie::Deviates, "number of counters"),
    ("registers.counter_width", Lie::WrongWidth, "counters"),
    ("registers.full_width", Lie::WrongWidth, "counters"),
    ("overflow.width", Lie::WrongWidth, "counters"),
    ("fixed.each_counts", Lie::Stuck, "fixed counters"),
    ("events.reference_rate", Lie::Scaled, "reference cycles"),
    ("events.cycles", Lie::Deviates, "cycles"),
    ("counting.", Lie::Incomplete, "counting"),
    ("fixed.instructions", Lie::Incomplete, "fixed counter 0"),
    ("rdpmc.", Lie::WrongWidth, "RDPMC"),
    ("overflow.status_bit", Lie::DroppedInterrupts, "status bits of overflows"),
    (
        "overflow.fixed_status_bit",
        Lie::DroppedInterrupts,
        "status bits of fixed counters' overflows",
    ),
    ("overflow.", Lie::Deviates, "overflows"),
    ("pmi.each", Lie::DroppedInterrupts, "interrupts at overflows"),
    ("pmi.", Lie::DroppedInterrupts, "interrupts at overflows"),
    ("freeze.", Lie::FrozenLate, "freezing of the counters on a PMI"),
    ("interference.", Lie::Deviates, "counting across interrupts"),
];

fn rank(check: &Check) -> usize {
    MEANINGS.iter().position(|(name, ..)| check.name.starts_with(name)).unwrap_or(MEANINGS.len())
}

/// Adds what failed checks show beyond `findings`.
pub fn add(report: &Report, findings: &mut Vec<Finding>) {
    if let Some(fault) = report.checks().find(|check| check.name == "interference.page_faults") {
        page_faults(fault, findings);
    }
    // A freeze that is refused is an answer, and the truth: KVM refuses it.
    let refused = |check: &Check| {
        check.name.starts_with("freeze.") && check.seen.contains("raised an exception")
    };
    let failed = report.checks().filter(|check| check.verdict == CheckVerdict::Fail);
    let failed = failed.filter(|check| !refused(check));
    let mut failed: Vec<&Check> = failed.collect();
    failed.sort_by_key(|check| rank(check));
    drop_consequences(&failed, findings);
    if findings.iter().any(|one| one.class.lies()) {
        return;
    }
    let Some(&first) = failed.first() else { return };
    let (how, what) = MEANINGS
        .get(rank(first))
        .map_or((Lie::Deviates, first.name.as_str()), |(_, how, what)| (*how, *what));
    let all: Vec<&str> = failed.iter().map(|check| check.name.as_str()).collect();
    let also =
        if all.len() > 1 { format!("; also {}", all[1..].join(", ")) } else { String::new() };
    let shown = Shown {
        item: Some(first.item),
        ran: format!("check {}{also}", first.name),
        expected: first.expected.clone(),
        came: first.seen.clone(),
    };
    findings.push(Finding { what: what.to_string(), class: Class::Lying { how }, shown });
}

/// Takes out what the trial at the start says of a mechanism that cannot work because of a are below it.
fn drop_consequences(failed: &[&Check], findings: &mut Vec<Finding>) {
    let of_trial = |one: &Finding, lie: Lie| {
        one.shown.item.is_none() && one.class == Class::Lying { how: lie }
    };
    let fails = |name: &str| failed.iter().any(|check| check.name.starts_with(name));
    // A counter that is set to another value than it was told does not overflow when it should.
    if fails("registers.counter_width") || fails("registers.full_width") {
        findings.retain(|one| !of_trial(one, Lie::DroppedInterrupts));
    }
    // Where nothing interrupts, nothing freezes either.
    let dropped = findings.iter().any(|one| {
        one.shown.item.is_some() && one.class == Class::Lying { how: Lie::DroppedInterrupts }
    });
    if dropped || fails("pmi.each") {
        findings.retain(|one| !of_trial(one, Lie::FrozenLate));
    }
}

/// `N a turn: K over the loop's own`: what a page fault adds to instructions.
fn page_faults(check: &Check, findings: &mut [Finding]) {
    if check.verdict != CheckVerdict::Pass {
        return;
    }
    let over =
        check.seen.split_once(": ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let Some(added @ 1u32..) = over else { return };
    let exact = |one: &&mut Finding| one.what == "instructions" && one.class == Class::Exact;
    if let Some(finding) = findings.iter_mut().find(exact) {
        finding.class = Class::ExactUpTo { added: f64::from(added), per: Cause::Fault };
        finding.shown = Shown {
            item: Some(check.item),
            ran: format!("check {}", check.name),
            expected: check.expected.clone(),
            came: check.seen.clone(),
        };
    }
}
