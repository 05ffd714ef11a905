//! What was counted in the runs of one code size.

use alloc::vec::Vec;
use serde::{Deserialize, Deserializer, Serialize};

/// The values of one code size, as counted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Least; negative only of a model-specific register that fell during the run.
    #[serde(deserialize_with = "signed")]
    pub min: i64,
    /// Greatest.
    #[serde(deserialize_with = "signed")]
    pub max: i64,
    /// How many different values occurred.
    pub distinct: u32,
    /// Every run in order, if the job asked for it.
    #[serde(default, deserialize_with = "all_signed", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<i64>>,
}

/// A value as reports have it. Earlier versions wrote the fall of a register without a sign: -100 as 2^64 - 100.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a whole number of 64 bits")]
enum Written {
    Signed(i64),
    Unsigned(u64),
}

impl From<Written> for i64 {
    fn from(written: Written) -> Self {
        match written {
            Written::Signed(value) => value,
            Written::Unsigned(value) => value.cast_signed(),
        }
    }
}

fn signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Written::deserialize(deserializer).map(Into::into)
}

fn all_signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<i64>>, D::Error> {
    let written = Option::<Vec<Written>>::deserialize(deserializer)?;
    Ok(written.map(|all| all.into_iter().map(Into::into).collect()))
}
