//! The 444 recorded cores: see `data/README.md`.

use crate::Leaves;
use crate::text::parse;
use flate2::read::GzDecoder;
use std::io::Read as _;
use std::sync::OnceLock;

static COMPRESSED: &[u8] = include_bytes!("../data/cores.csv.gz");

/// A real core.
#[derive(Clone, Debug)]
pub struct Core {
    /// Maker, microarchitecture and brand, joined by hyphens; on a hybrid processor the kind of core.
    pub name: String,
    /// What it answers.
    pub leaves: Leaves,
}

/// All of them, by name.
///
/// # Panics
/// The file that is compiled in is damaged.
#[must_use]
pub fn all() -> &'static [Core] {
    static CORES: OnceLock<Vec<Core>> = OnceLock::new();
    CORES.get_or_init(|| {
        let mut text = String::new();
        GzDecoder::new(COMPRESSED).read_to_string(&mut text).expect("compressed text");
        let mut cores: Vec<(&str, String)> = Vec::new();
        for line in text.lines().skip(1) {
            let (name, rest) = line.split_once(',').expect("a name");
            if cores.last().is_none_or(|last| last.0 != name) {
                cores.push((name, String::new()));
            }
            let (_, lines) = cores.last_mut().expect("there is one");
            lines.push_str(rest);
            lines.push('\n');
        }
        let core = |(name, lines): (&str, String)| {
            let mut processors = parse(&lines).unwrap_or_else(|error| panic!("{name}: {error}"));
            Core { name: name.to_string(), leaves: processors.remove(0) }
        };
        cores.into_iter().map(core).collect()
    })
}

/// The one of this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Core> {
    all().iter().find(|core| core.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_444_are_there_each_with_a_maker_and_a_signature() {
        assert_eq!(all().len(), 444);
        for core in all() {
            assert!(core.leaves.recorded(0, 0).is_some(), "{}", core.name);
            assert!(core.leaves.recorded(1, 0).is_some(), "{}", core.name);
        }
        let mut names: Vec<_> = all().iter().map(|core| &core.name).collect();
        names.dedup();
        assert_eq!(names.len(), 444);
    }
}
