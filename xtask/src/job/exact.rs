//! Exact mode in a job: `exact = true`, or a table with filters.

use super::errors::JobError;
use super::schema::Width;
use iced_x86::Mnemonic;
use protocol::bits::Bits;
use protocol::job::exact::{AddressRange, DEFAULT_STEPS, Filter, NoRange};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// An opcode that no instruction has.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("`{opcode}` is no opcode: it must be a mnemonic without operands and size suffix{}", near(.opcode))]
pub struct NoOpcode {
    opcode: String,
}

/// The known opcode that is most alike.
fn near(opcode: &str) -> String {
    let names = Mnemonic::values().map(name);
    let scored = names.map(|name| (strsim::jaro_winkler(&name, opcode), name));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, name)) if score > 0.8 => format!(", as `{name}`"),
        _ => ", as `imul`".to_string(),
    }
}

fn name(mnemonic: Mnemonic) -> String {
    format!("{mnemonic:?}").to_ascii_lowercase()
}

/// The mnemonic of an instruction.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub struct Opcode(String);

impl TryFrom<String> for Opcode {
    type Error = NoOpcode;

    fn try_from(opcode: String) -> Result<Self, NoOpcode> {
        let known = Mnemonic::values().skip(1).any(|mnemonic| name(mnemonic) == opcode);
        if known { Ok(Self(opcode)) } else { Err(NoOpcode { opcode }) }
    }
}

impl std::str::FromStr for Opcode {
    type Err = NoOpcode;

    fn from_str(text: &str) -> Result<Self, NoOpcode> {
        text.to_string().try_into()
    }
}

/// A range of addresses as a job writes it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Range(pub(super) AddressRange);

impl TryFrom<String> for Range {
    type Error = NoRange;

    fn try_from(text: String) -> Result<Self, NoRange> {
        text.parse().map(Self)
    }
}

/// `exact = true`, or a table.
#[derive(Clone, JsonSchema)]
#[schemars(untagged, rename = "Exact")]
pub(super) enum RawExact {
    /// Whether it is stepped through.
    Switch(bool),
    /// What counts.
    Table(RawTable),
}

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawExact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawExact;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(
                    "true, false, or a table with opcodes, instructions, data, bits, steps or verify",
                )
            }

            fn visit_bool<E>(self, on: bool) -> Result<RawExact, E> {
                Ok(RawExact::Switch(on))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawExact, M::Error> {
                RawTable::deserialize(MapAccessDeserializer::new(map)).map(RawExact::Table)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// What is counted when code is stepped through.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table")]
#[schemars(rename = "ExactTable")]
pub(super) struct RawTable {
    /// Count only instructions with these mnemonics.
    #[schemars(with = "Vec<String>")]
    opcodes: Vec<Opcode>,
    /// Count only instructions in this range of bytes of the body: `0x10..0x20`.
    #[schemars(with = "Option<String>")]
    instructions: Option<Range>,
    /// Count only accesses to this range: `r14:-8..64`.
    #[schemars(with = "Option<String>")]
    data: Option<Range>,
    /// Count only instructions that are executed as 64-bit or as 32-bit code.
    #[schemars(with = "Option<Width>")]
    bits: Option<Bits>,
    /// Count with the PMU too, and fail where it differs. Default: false.
    verify: bool,
    /// Instructions after which the item ends with an error. Default: 250000.
    steps: Option<u64>,
}

/// How a snippet is stepped through, all decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExactOptions {
    /// What counts.
    pub filter: Filter<'static>,
    /// Whether the PMU counts as well, and the two are compared.
    pub verify: bool,
    /// Instructions after which stepping ends.
    pub steps: u64,
}

impl Default for ExactOptions {
    fn default() -> Self {
        Self { filter: Filter::default(), verify: false, steps: DEFAULT_STEPS }
    }
}

/// A filter of what a job says: opcodes, ranges of instructions and data, and the width of the code.
pub(super) fn filter(
    opcodes: &[Opcode],
    ranges: [Option<Range>; 2],
    bits: Option<Bits>,
) -> Filter<'static> {
    let opcodes = opcodes.iter().map(|opcode| Cow::Owned(opcode.0.clone())).collect();
    let [instructions, data] = ranges.map(|range| range.map(|range| range.0));
    Filter { opcodes, instructions, data, bits }
}

impl RawExact {
    /// The options; `None`: not stepped at all.
    pub(super) fn decide(&self) -> Option<ExactOptions> {
        match self {
            Self::Switch(on) => on.then(ExactOptions::default),
            Self::Table(table) => {
                let ranges = [table.instructions, table.data];
                let filter = filter(&table.opcodes, ranges, table.bits);
                let steps = table.steps.unwrap_or(DEFAULT_STEPS);
                Some(ExactOptions { filter, verify: table.verify, steps })
            }
        }
    }
}

/// What the command line says about it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Exact mode")]
pub struct ExactOverrides {
    /// Step through every snippet instead of measuring it: exact counts of instructions, branches, loads, stores, bytes
    /// and opcodes.
    #[arg(long)]
    pub exact: bool,
    /// Step through every snippet, count it with the PMU as well, and fail where the two disagree.
    #[arg(long)]
    pub verify: bool,
    /// With --exact: count only instructions with this mnemonic. Can be given several times.
    #[arg(long = "opcode", value_name = "MNEMONIC")]
    pub opcodes: Vec<Opcode>,
    /// With --exact: count only instructions that begin in this range of bytes of the body.
    #[arg(long, value_name = "FROM..TO")]
    pub instructions: Option<AddressRange>,
    /// With --exact: count only accesses to this range, and instructions that make one. From what a register points to
    /// at the start: rsp, rbp, rdi, rsi or r14.
    #[arg(long, value_name = "[REGISTER:]FROM..TO", allow_hyphen_values = true)]
    pub data: Option<AddressRange>,
    /// With --exact: count only instructions that are executed as code of this width.
    #[arg(long, value_name = "64|32")]
    pub executed_as: Option<Bits>,
    /// With --exact: end the item when so many instructions were stepped over.
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
}

impl ExactOverrides {
    /// Changes what a snippet says of itself.
    ///
    /// # Errors
    /// A filter without exact mode.
    pub(super) fn apply(&self, exact: &mut Option<ExactOptions>) -> Result<(), JobError> {
        if self.exact || self.verify {
            exact.get_or_insert_default().verify |= self.verify;
        }
        let given = [
            (!self.opcodes.is_empty(), "--opcode"),
            (self.instructions.is_some(), "--instructions"),
            (self.data.is_some(), "--data"),
            (self.executed_as.is_some(), "--executed-as"),
            (self.steps.is_some(), "--steps"),
        ];
        let Some(options) = exact else {
            return match given.iter().find(|(given, _)| *given) {
                Some(&(_, name)) => Err(JobError::NeedsExact(name)),
                None => Ok(()),
            };
        };
        options.steps = self.steps.unwrap_or(options.steps);
        let filter = &mut options.filter;
        filter.opcodes.extend(self.opcodes.iter().map(|opcode| Cow::Owned(opcode.0.clone())));
        filter.instructions = self.instructions.or(filter.instructions);
        filter.data = self.data.or(filter.data);
        filter.bits = self.executed_as.or(filter.bits);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::*;

    fn exact(value: &str) -> Result<Option<ExactOptions>, String> {
        let text = format!("[[snippet]]\nasm = \"nop\"\nexact = {value}");
        let file = parse(&text, "x.toml").map_err(|error| error.to_string())?;
        Ok(file.snippets[0].exact.clone())
    }

    #[test]
    fn t8_filters_are_read_and_bad_ones_named() {
        assert_eq!(exact("false"), Ok(None));
        assert_eq!(exact("true"), Ok(Some(ExactOptions::default())));
        let all = "{ opcodes = [\"imul\", \"add\"], instructions = \"0..4\", data = \"r14:-8..8\", bits = 32 }";
        let filter = exact(all).unwrap().unwrap().filter;
        assert_eq!(filter.opcodes, ["imul", "add"]);
        assert_eq!(filter.instructions, "0..4".parse().ok());
        assert_eq!(filter.data, "r14:-8..8".parse().ok());
        assert_eq!(filter.bits, Some(Bits::Compatibility));
        for (bad, part) in [
            ("{ bits = 16 }", "bits is 16; code has 64"),
            ("{ opcode = [] }", "`opcode`"),
            ("{ data = \"5\" }", "`5` is not a range"),
            ("{ opcodes = [\"imull\"] }", "`imull` is no opcode"),
            ("3", "true, false, or a table"),
        ] {
            let error = exact(bad).unwrap_err();
            assert!(error.contains("line 3") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn t2_an_unknown_opcode_is_answered_with_one_that_exists() {
        let error = "imull".parse::<Opcode>().unwrap_err().to_string();
        assert!(error.contains("`imull`") && error.contains("`imul`"), "{error}");
        assert!("".parse::<Opcode>().is_err() && "invalid".parse::<Opcode>().is_err());
    }

    #[test]
    fn t1_a_filter_without_exact_mode_is_refused() {
        let mut none = None;
        let line = ExactOverrides { data: "rsp:0..8".parse().ok(), ..Default::default() };
        let error = line.apply(&mut none).unwrap_err().to_string();
        assert!(error.contains("--data"), "{error}");
        let width = ExactOverrides { executed_as: Some(Bits::SixtyFour), ..Default::default() };
        let error = width.apply(&mut none).unwrap_err().to_string();
        assert!(error.contains("--executed-as"), "{error}");
        ExactOverrides { exact: true, ..line.clone() }.apply(&mut none).unwrap();
        assert_eq!(none.unwrap().filter.data, line.data);
    }
}
