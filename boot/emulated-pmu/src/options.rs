//! The command line: words `key=value`, separated by white space. Unknown words are left to others.

use handover::Refusal;
use pmu_model::Model;

/// What the command line asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    /// `pmu=NAME`: the model to present.
    pub model: Model,
    /// `shift=N`: QEMU's icount shift, to be checked against the machine.
    pub shift: Option<u8>,
    /// `strings=decoded`: in code, only what decoding finds is taken for a repeated string instruction. Without it every
    /// byte sequence is that could be one: certain, and too slow for a large operating system.
    pub decoded: bool,
}

/// Reads the options. Without a `pmu=` there is nothing to start.
///
/// # Errors
/// An unknown model, or a shift that is no number.
pub fn parse(line: &str) -> Result<Option<Options>, Refusal> {
    let value = |key: &str| {
        line.split_ascii_whitespace()
            .rev()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    let Some(name) = value("pmu") else { return Ok(None) };
    if name == "none" {
        return Ok(None);
    }
    let model = Model::by_name(name).ok_or(Refusal::Options)?;
    let shift = match value("shift") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| Refusal::Options)?),
    };
    let decoded = match value("strings") {
        None | Some("all") => false,
        Some("decoded") => true,
        Some(_) => return Err(Refusal::Options),
    };
    Ok(Some(Options { model, shift, decoded }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_model_and_a_shift_among_other_words() {
        let seen = parse("quiet pmu=skylake  shift=4 root=/dev/sda").unwrap().unwrap();
        assert_eq!((seen.model, seen.shift), (Model::Skylake, Some(4)));
        assert_eq!(parse("pmu=zen4").unwrap().unwrap().shift, None);
        assert_eq!(parse("pmu=zen4 pmu=none"), Ok(None), "the last word counts");
        assert_eq!(parse("quiet"), Ok(None));
        assert_eq!(parse("pmu=z80"), Err(Refusal::Options));
        assert_eq!(parse("pmu=zen4 shift=x"), Err(Refusal::Options));
        assert!(parse("pmu=zen4 strings=decoded").unwrap().unwrap().decoded);
        assert!(!parse("pmu=zen4 strings=all").unwrap().unwrap().decoded);
        assert_eq!(parse("pmu=zen4 strings=some"), Err(Refusal::Options));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = parse(&text);
        }
    }
}
