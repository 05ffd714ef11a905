//! `--counting`: who counts for the emulated PMU what QEMU's clock does not.

use clap::{Args, ValueEnum};
use std::fmt;

/// Environment variable in the option's place; the tests' library reads it too.
pub const VARIABLE: &str = "BARECOUNT_COUNTING";

/// What counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Counting {
    /// The plugin where QEMU has plugins, else stepping.
    #[default]
    Auto,
    /// A plugin in QEMU's translator.
    Plugin,
    /// The hypervisor, instruction by instruction.
    Stepping,
}

/// The option, for every command that starts an emulated PMU.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct CountingOption {
    /// What counts branches, memory accesses and similar events for an emulated PMU. plugin: a plugin in QEMU's translator, at nearly the
    /// translator's speed; stepping: the hypervisor, some 30,000 instructions a second; auto: the plugin if QEMU
    /// supports plugins. The counts are the same.
    #[arg(long, value_enum, default_value_t, env = VARIABLE, hide_env_values = true)]
    pub counting: Counting,
}

impl Counting {
    /// What the environment variable says.
    ///
    /// # Errors
    /// It says something else than a value of the option.
    pub fn from_environment() -> Result<Self, String> {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => {
                Self::from_str(&text, false).map_err(|error| format!("{VARIABLE}: {error}"))
            }
            _ => Ok(Self::Auto),
        }
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Plugin => "plugin",
            Self::Stepping => "stepping",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_as_it_is_written() {
        for value in Counting::value_variants() {
            assert_eq!(Counting::from_str(&value.to_string(), false), Ok(*value));
        }
        assert!(Counting::from_str("fast", false).is_err());
    }
}
