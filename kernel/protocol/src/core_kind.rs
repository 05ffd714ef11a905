//! Kinds of core of a hybrid package.

use core::fmt;
use serde::{Deserialize, Serialize};

/// A kind of core.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CoreKind {
    /// A performance core: CPUID leaf 0x1A says Core.
    Performance,
    /// An efficient core: CPUID leaf 0x1A says Atom.
    Efficient,
    /// An efficient core without a cache of level 3, as those of a low-power island are.
    LowPower,
}

impl CoreKind {
    /// As a job says it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Efficient => "efficient",
            Self::LowPower => "low-power",
        }
    }
}

impl fmt::Display for CoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
