//! Names of the conformance suite's checks, by which a job selects some.

use protocol::job::conformance::matches;

/// The checks' names, in the suite's order. A test of the kernel compares them with the suite.
const NAMES: &str = include_str!("../../data/checks.txt");
/// Less alike is not suggested: Jaro-Winkler, from 0 to 1.
const ALIKE: f64 = 0.8;

/// What is wrong with a pattern that no check's name matches.
pub(super) fn unknown(pattern: &str) -> Option<String> {
    if NAMES.lines().any(|name| matches(pattern, name)) {
        return None;
    }
    let scored = NAMES.lines().map(|name| (strsim::jaro_winkler(name, pattern), name));
    let nearest = scored.filter(|(score, _)| *score > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match nearest {
        Some((_, name)) => format!("; there is `{name}`"),
        None => "; a pattern is a check's name, or its beginning and `*`".to_string(),
    };
    Some(format!("checks: no check is called `{pattern}`{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_selects_no_check_is_named_with_the_nearest() {
        for pattern in ["*", "pmi.*", "overflow.exact", "cost.re*"] {
            assert_eq!(unknown(pattern), None, "{pattern}");
        }
        let said = unknown("overflow.exakt").unwrap();
        assert_eq!(said, "checks: no check is called `overflow.exakt`; there is `overflow.exact`");
        let said = unknown("zz*").unwrap();
        assert!(
            said.ends_with("`zz*`; a pattern is a check's name, or its beginning and `*`"),
            "{said}"
        );
        // A family alone is no name.
        assert!(unknown("overflow").is_some());
    }
}
