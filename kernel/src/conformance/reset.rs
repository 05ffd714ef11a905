//! The state in which the PMU was found, which is that after RESET unless somebody changed it.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use arch::pmu::numbers;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "reset.global_control",
        source: "SDM vol. 3, table 10-1: every general-purpose counter enabled, fixed ones not; APM vol. 2, 13.2.1",
        run: global_control,
    },
    Check { name: "reset.selects", source: "SDM vol. 3, table 10-1: 0", run: selects },
];

/// Firmware and hypervisors may have changed registers before us. On the emulated PMU nobody has.
fn judged(context: &Context, good: bool, expected: &str, seen: impl core::fmt::Display) -> Finding {
    if good || context.emulated.is_some() {
        return Finding::when(good, expected, seen);
    }
    let mut finding = Finding::skip(expected);
    finding.seen = alloc::format!("{seen}: changed since RESET");
    finding
}

fn global_control(context: &mut Context) -> Outcome {
    let Some(global) = context.driver.layout().global else {
        return Ok(Finding::skip("a global control"));
    };
    let expected = u64::from(context.has().general);
    let seen = context.found.found(global.control).unwrap_or(0);
    let text = alloc::format!("{expected:#x}");
    Ok(judged(context, seen == expected, &text, format_args!("{seen:#x}")))
}

fn selects(context: &mut Context) -> Outcome {
    let mut all = All::of("every event select and FIXED_CTR_CTRL is 0");
    let layout = *context.driver.layout();
    let mut list: alloc::vec::Vec<_> =
        context.has().generals().map(|counter| layout.select(counter.index() as u8)).collect();
    if context.has().fixed != 0 {
        list.push(numbers::FIXED_CTR_CTRL);
    }
    for msr in list {
        let seen = context.found.found(msr).unwrap_or(0);
        all.same(format_args!("MSR {:#x}", msr.0), 0, seen);
    }
    let finding = all.finish();
    let good = finding.verdict == protocol::record::CheckVerdict::Pass;
    Ok(judged(context, good, &finding.expected, &finding.seen))
}
