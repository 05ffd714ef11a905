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

/// Takes the first byte that matters, in lower case.
fn next(text: &mut &[u8]) -> Option<u8> {
    while let [first, rest @ ..] = *text {
        *text = rest;
        if !is_separator(*first) {
            return Some(first.to_ascii_lowercase());
        }
    }
    None
}

/// The order of the tables: by folded spelling.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    #[cfg(test)]
    WORK.with(|work| work.set(work.get() + 2));
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        // Bytes that are alike are alike when folded: names that are neighbours begin so, and this is the least work for them.
        if let ([first, a_rest @ ..], [other, b_rest @ ..]) = (a, b)
            && first == other
        {
            (a, b) = (a_rest, b_rest);
            continue;
        }
        let (first, other) = (next(&mut a), next(&mut b));
        if first != other || first.is_none() {
            return first.cmp(&other);
        }
    }
}

/// Whether two spellings mean the same name.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    compare(a, b) == Ordering::Equal
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
    fn names_are_compared_by_all_that_matters_in_them() {
        let names = ["", ".", "A", "a.", "a.b", "AB", "ab_c", "a_BD", "a:b.", "B", "ä", "a.ä"];
        for a in names {
            for b in names {
                assert_eq!(compare(a, b), folded(a).cmp(folded(b)), "{a} {b}");
                assert_eq!(same(a, b), folded(a).eq(folded(b)), "{a} {b}");
            }
        }
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
