//! `only` in a job: of which instructions the events of a snippet are counted, or those of a sample estimated.

use super::exact::{Opcode, Range, filter};
use protocol::exact::Filter;
use schemars::JsonSchema;
use serde::Deserialize;

/// Of which instructions events are counted: of a snippet by the qualifiers of the emulated PMU, of a sample as an estimate.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
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
