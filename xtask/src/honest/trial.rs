//! What the trial at the start found: the firmware tries each counter before it measures, and says in words what it gives up.

use super::{Class, Finding, Lie, Shown};
use protocol::record::Machine;

/// What one of the firmware's sentences means; `None`: a feature that is missing and does not pretend to be there.
#[must_use]
pub fn meaning(text: &str) -> Option<Lie> {
    let has = |part: &str| text.contains(part);
    if has("freezing of the counters") {
        // A refusal is an answer, and the truth.
        return (!has("raised an exception") && !has("no second counter"))
            .then_some(Lie::FrozenLate);
    }
    if has("stood still") || has("was written") {
        return Some(Lie::Stuck);
    }
    if has("RDPMC cannot be relied on") {
        return Some(Lie::Deviates);
    }
    if has("interrupts at its overflow") {
        return Some(Lie::DroppedInterrupts);
    }
    if has("it went to") {
        return Some(Lie::Backwards);
    }
    if let Some((seen, truth)) = counted(text) {
        // More than any code can have done: the counter is below where it began.
        return Some(if seen > truth.saturating_mul(1 << 20) {
            Lie::Backwards
        } else {
            Lie::Scaled
        });
    }
    None
}

/// `it counted SEEN where the code has TRUTH`.
fn counted(text: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.split_once("it counted ")?;
    let (seen, rest) = rest.split_once(" where the code has ")?;
    let truth = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some((seen.parse().ok()?, truth.parse().ok()?))
}

/// Each sentence of the trial that is about a lie.
#[must_use]
pub fn findings(machine: &Machine) -> Vec<Finding> {
    let faults = machine.pmu.iter().flat_map(|pmu| &pmu.faults);
    let absent = machine.pmu_absent.iter().filter(|text| text.contains("none can be relied on"));
    let finding = |text: &String| {
        let how = meaning(text)?;
        let what = text.split(" is not used").next().unwrap_or(text);
        let what = match how {
            Lie::FrozenLate => "freezing of the counters on a PMI",
            Lie::Deviates => "RDPMC",
            _ if text.contains("none can be relied on") => "every counter",
            _ => what.split(" are not counted").next().unwrap_or(what),
        };
        let shown = Shown {
            item: None,
            ran: "the trial at the start".into(),
            expected: "what its loops of known code do".into(),
            came: text.clone(),
        };
        Some(Finding { what: what.to_string(), class: Class::Lying { how }, shown })
    };
    faults.chain(absent).filter_map(finding).collect()
}
