//! The verdicts, as sentences.

use super::{Class, Finding, Lie};

/// Events that count retired branches; those that rr uses first (conditional ones, rr's `PerfCounters_x86.h`).
const BRANCHES: [&str; 4] =
    ["br_inst_retired.conditional", "br_inst_retired.cond", "ex_ret_cond", "branches"];

/// For rr, for counting, for sampling.
#[must_use]
pub fn verdicts(honest: Option<bool>, findings: &[Finding]) -> [String; 3] {
    if honest.is_none() {
        return ["retired branches", "counts", "samples"]
            .map(|what| format!("there is no PMU, so {what} could not be tested"));
    }
    [branches(findings), counting(findings), sampling(findings)]
}

fn branches(findings: &[Finding]) -> String {
    let named = |name: &&str| findings.iter().find(|one| one.what == **name);
    let every = findings
        .iter()
        .find(|one| one.class.lies() && one.shown.item.is_none() && one.what == "every counter");
    let Some(one) = BRANCHES.iter().find_map(named).or(every) else {
        return "no event of retired branches could be checked, so rr cannot rely on one".into();
    };
    let what = &one.what;
    match one.class {
        Class::Exact => format!("retired branches ({what}) are deterministic: rr can rely on them"),
        Class::ExactUpTo { .. } => format!(
            "retired branches ({what}) are {}: rr can rely on them only where that does not happen",
            one.class.words()
        ),
        Class::Noisy { .. } => {
            format!(
                "retired branches ({what}) are not deterministic ({}): rr cannot rely on them",
                one.class.words()
            )
        }
        Class::Lying { how } => {
            format!(
                "retired branches ({what}) are not reliable ({}): rr cannot use them",
                how.words()
            )
        }
    }
}

/// Whether a lie spoils interrupts alone.
const fn of_interrupts(how: Lie) -> bool {
    matches!(how, Lie::DroppedInterrupts | Lie::StrayInterrupts | Lie::FrozenLate)
}

fn lies(findings: &[Finding], of: impl Fn(Lie) -> bool) -> Vec<String> {
    let said = findings.iter().filter_map(|one| match one.class {
        Class::Lying { how } if of(how) => Some(format!("{} ({})", one.what, how.words())),
        _ => None,
    });
    said.collect()
}

fn counting(findings: &[Finding]) -> String {
    let lies = lies(findings, |how| !of_interrupts(how));
    if lies.is_empty() {
        return "counts are reliable, each as its event is classified".into();
    }
    format!("counts are not reliable for: {}", lies.join(", "))
}

fn sampling(findings: &[Finding]) -> String {
    let lies = lies(findings, |_| true);
    let tried = findings.iter().any(|one| one.what == "interrupts at overflows");
    match (lies.is_empty(), tried) {
        (true, true) => "samples are reliable: every overflow interrupted".into(),
        (true, false) => {
            "no overflow could be tested, so it is unknown whether samples are reliable".into()
        }
        (false, _) => {
            format!("samples are not reliable if they use: {}", lies.join(", "))
        }
    }
}
