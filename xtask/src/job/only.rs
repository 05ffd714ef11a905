//! `only` in a job: of which instructions the events of a snippet are counted, or those of a sample estimated.

use super::exact::{Opcode, Range, filter};
use protocol::job::exact::Filter;
use schemars::JsonSchema;
use serde::Deserialize;

/// Of which instructions events are counted: of a snippet by the qualifiers of the emulated PMU, of a sample as an estimate.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table")]
#[schemars(rename = "OnlyTable")]
pub(super) struct RawOnly {
    /// Count only instructions with these mnemonics, 16 at most.
    #[schemars(with = "Vec<String>")]
    opcodes: Vec<Opcode>,
    /// Count only instructions in this range of bytes of the body: `0x10..0x20`.
    #[schemars(with = "Option<String>")]
    instructions: Option<Range>,
    /// Count only accesses to this range, and instructions that make one: `r14:-8..64`.
    #[schemars(with = "Option<String>")]
    data: Option<Range>,
}

impl RawOnly {
    /// The filter.
    pub(super) fn decide(&self) -> Filter<'static> {
        filter(&self.opcodes, [self.instructions, self.data], None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::super::{Purpose, pack};

    #[test]
    fn t8_only_is_read_and_what_is_wrong_is_named() {
        let read = |only: &str| {
            let text = format!("[[snippet]]\nasm = \"nop\"\nonly = {only}");
            parse(&text, "x.toml").map_err(|error| error.to_string())
        };
        let file = read("{ opcodes = [\"imul\"], instructions = \"0..4\", data = \"r14:-8..8\" }");
        let only = file.unwrap().snippets[0].options.only.clone();
        assert_eq!(
            (&only.opcodes[..], only.data),
            (&["imul".into()][..], "r14:-8..8".parse().ok())
        );
        // By default it holds for what is counted by events, and for nothing else.
        let by_default = |rest: &str| {
            let text = format!(
                "[defaults]\nevents = [\"instructions\"]\nonly = {{ opcodes = [\"imul\"] }}\n[[snippet]]\nname = \"s\"\nasm = \"nop\"\n{rest}"
            );
            let file = parse(&text, "x.toml").unwrap();
            let packed = pack(&file, Purpose::Qemu).map(|_| file.snippets[0].only().is_empty());
            (packed.map_err(|error| error.to_string()), file.dropped())
        };
        assert_eq!(by_default(""), (Ok(false), vec![]));
        for rest in ["exact = true", "exact = { opcodes = [\"nop\"] }", "history = 10"] {
            let (is_empty, said) = by_default(rest);
            assert_eq!(is_empty, Ok(true), "{rest}");
            let [line] = &said[..] else { panic!("{rest}: {said:?}") };
            assert!(line.starts_with("warning: `s`: only of [defaults] does not hold"), "{line}");
        }
        // What the snippet says itself is refused.
        let (refused, said) = by_default("exact = true\nonly = { opcodes = [\"nop\"] }");
        assert!(refused.unwrap_err().contains("exact has filters of its own") && said.is_empty());
        for (bad, part) in [
            ("{ data = \"8..8\" }", "range `8..8` is empty"),
            ("{ instructions = \"8..4\" }", "range `8..4` is empty"),
            ("{ opcodes = [\"imull\"] }", "`imull` is no opcode"),
            ("{ bits = 32 }", "`bits`"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains("line 3") && error.contains(part), "{error}");
        }
    }
}
