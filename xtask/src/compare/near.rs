//! What somebody may have meant.

/// The name most like `typed`, if one is.
#[must_use]
pub fn near<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| {
        strsim::normalized_damerau_levenshtein(&typed.to_lowercase(), &name.to_lowercase())
    };
    let scored = known.map(|name| (likeness(name), name));
    // Half of the letters may differ before a name is no longer worth suggesting.
    let best = scored.filter(|(likeness, _)| *likeness >= 0.5);
    best.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1))).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn the_most_alike_is_found_and_nothing_where_nothing_is() {
        let known = ["main", "master", "release-1"];
        let of = |typed| near(typed, known.into_iter());
        assert_eq!(of("mian"), Some("main"));
        assert_eq!(of("MASTER"), Some("master"));
        assert_eq!(of("release-2"), Some("release-1"));
        assert_eq!(of("xyzzy"), None);
    }
}
