//! Overflows, and what interrupts add to a count.

use super::experiments::{LEAVING, OVERFLOWS, SAMPLED, TASK, TIMER};
use super::{Base, Cause, Class, Finding, Lie, Shown};
use crate::collect::Report;
use protocol::record::{CountResult, ErrorCode, SampleResult};

/// What the items with interrupts show.
#[must_use]
pub fn findings(report: &Report) -> Vec<Finding> {
    let sampled = report.sampled().filter(|one| one.name == OVERFLOWS).filter_map(overflows);
    let counted = report.counts().filter(|one| one.name == TIMER).flat_map(timer);
    let stray = report.errors().filter(|error| error.code == ErrorCode::StrayInterrupt).take(1);
    let stray = stray.map(|error| Finding {
        what: "interrupts at overflows".into(),
        class: Class::Lying { how: Lie::StrayInterrupts },
        shown: Shown {
            item: error.item,
            ran: error.name.clone().unwrap_or_default(),
            expected: "interrupts at the vector of LVTPC alone".into(),
            came: error.text.clone(),
        },
    });
    stray.chain(sampled).chain(counted).collect()
}

/// How many interrupts came of how many overflows.
#[must_use]
pub fn overflows(sampled: &SampleResult) -> Option<Finding> {
    let one = sampled.events.iter().find(|one| one.event != "timer")?;
    let (period, truth) = SAMPLED;
    let seen = one.overflows + one.throttled;
    // At each, the handler may be counted too, which makes more of them; none may be missing but the last.
    let least = truth / period - 1;
    let class = match seen < least {
        true => Class::Lying { how: Lie::DroppedInterrupts },
        false => Class::Exact,
    };
    let shown = Shown {
        item: Some(sampled.item),
        ran: sampled.name.clone(),
        expected: format!("{} overflows in {truth} instructions", truth / period),
        came: format!("{seen} overflows in {} interrupts", sampled.interrupts),
    };
    Some(Finding { what: "interrupts at overflows".into(), class, shown })
}

/// What timer interrupts add to counts of ring 3.
#[must_use]
pub fn timer(counted: &CountResult) -> Vec<Finding> {
    let finding = |(event, truth): (&protocol::record::CountedEvent, u64)| {
        let (seen, ticks) = (event.sum.raw, counted.ticks);
        let over = i128::from(seen) - i128::from(truth);
        let class = if (0..=i128::from(LEAVING)).contains(&over) {
            Class::Exact
        } else if seen == 0 {
            Class::Lying { how: Lie::Stuck }
        } else if over > 0 && over <= i128::from(LEAVING + 2 * ticks) {
            Class::ExactUpTo {
                added: (over as f64 / ticks.max(1) as f64).round().max(1.0),
                per: Cause::Interrupt,
            }
        } else {
            let share = seen as f64 / truth as f64;
            if share < 0.99 {
                // Nothing that happens to a task takes from its count.
                Class::Lying { how: Lie::Incomplete }
            } else {
                Class::Noisy { least: share.min(1.0), most: share.max(1.0), of: Base::Truth }
            }
        };
        let shown = Shown {
            item: Some(counted.item),
            ran: counted.name.clone(),
            expected: format!("{truth}, and up to {LEAVING} of the task's end"),
            came: format!("{seen} with {ticks} ticks of the timer"),
        };
        Finding { what: event.event.clone(), class, shown }
    };
    let known = counted.events.iter().filter_map(|event| {
        let place = ["instructions:u", "branches:u"].iter().position(|one| *one == event.event)?;
        Some((event, TASK[place]))
    });
    known.map(finding).collect()
}
