//! Spelling: case and the separators `.`, `_`, `:` and `-` do not matter.

use core::cmp::Ordering;

/// Whether spelling ignores this byte.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b'.' | b'_' | b':' | b'-')
}

#[cfg(test)]
std::thread_local! {
    static WORK: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// For tests: how many spellings this thread has folded, which every look at a name costs.
#[cfg(test)]
pub(crate) fn work() -> usize {
    WORK.with(core::cell::Cell::get)
}

/// The bytes that matter, in lower case.
pub fn folded(text: &str) -> impl Iterator<Item = u8> + Clone {
    #[cfg(test)]
    WORK.with(|work| work.set(work.get() + 1));
    text.bytes().filter(|&b| !is_separator(b)).map(|b| b.to_ascii_lowercase())
}

/// The order of the tables: by folded spelling.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    folded(a).cmp(folded(b))
}

/// Whether two spellings mean the same name.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    folded(a).eq(folded(b))
}

/// Whether `text` starts with `prefix`, folded; gives what follows in `text`.
#[must_use]
pub fn strip_prefix<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let mut wanted = folded(prefix).peekable();
    for (at, byte) in text.bytes().enumerate() {
        if wanted.peek().is_none() {
            return text.get(at..);
        }
        if !is_separator(byte) && wanted.next() != Some(byte.to_ascii_lowercase()) {
            return None;
        }
    }
    wanted.peek().is_none().then_some("")
}

/// How [`compare`] places `text` before, after or among the names that start with `prefix`.
#[must_use]
pub fn compare_prefix(text: &str, prefix: &str) -> Ordering {
    let mut bytes = folded(text);
    for wanted in folded(prefix) {
        match bytes.next().map(|b| b.cmp(&wanted)) {
            None => return Ordering::Less,
            Some(Ordering::Equal) => {}
            Some(other) => return other,
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_forgiving() {
        assert!(same("INST_RETIRED.ANY_P", "inst-retired:any.p"));
        assert!(!same("INST_RETIRED.ANY_P", "inst_retired.any"));
        assert_eq!(strip_prefix("L2_RQSTS.RFO_HIT", "l2-rqsts"), Some(".RFO_HIT"));
        assert_eq!(strip_prefix("L2_RQSTS", "l2_rqsts."), Some(""));
        assert_eq!(strip_prefix("L2_RQSTS", "l2_rqsts.x"), None);
        assert_eq!(strip_prefix("L2", "l3"), None);
    }

    #[test]
    fn a_prefix_is_one_run_in_the_order() {
        let mut names = ["b", "a.b", "A_BC", "ab:d", "ac", "a"];
        names.sort_by(|a, b| compare(a, b));
        let places: Vec<Ordering> = names.iter().map(|n| compare_prefix(n, "ab")).collect();
        assert!(places.is_sorted(), "{names:?} {places:?}");
        assert_eq!(places.iter().filter(|p| **p == Ordering::Equal).count(), 3, "{names:?}");
    }
}
