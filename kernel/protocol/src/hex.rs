//! Addresses and register contents: hexadecimal text in JSON, as people read them.

use alloc::format;
use alloc::string::String;
use core::fmt;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 64-bit value that is written as `"0x1f"`.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Hex(pub u64);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").filter(|d| !d.starts_with('+'));
        digits
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Hex)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not a number like 0x1f")))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Hex {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Hex".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "hex" })
    }
}
