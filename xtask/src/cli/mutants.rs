//! `mutants`: its arguments.

use clap::Args;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `mutants`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask mutants --list kernel/src/statistics.rs     the mistakes that would be planted there
  cargo xtask mutants kernel/src/history                  plant them, one after the other
  cargo xtask mutants --fast                              plant all of them at once, behind switches
  cargo xtask mutants --shard 0/16                        every sixteenth of all")]
pub struct Mutants {
    /// Files or folders to plant mistakes in; without them, all that .cargo/mutants.toml names, which takes half a day without `--fast`.
    pub paths: Vec<PathBuf>,
    /// Take every Nth mutant only, beginning with the Kth, from 0.
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Build all of them at once, each behind a switch, and try each on the tests that reach it.
    #[arg(long)]
    pub fast: bool,
    /// Take over what the run before noticed in code that has not changed since: try only the others.
    #[arg(long, requires = "fast")]
    pub resume: bool,
    /// Only list them.
    #[arg(long, conflicts_with = "fast")]
    pub list: bool,
}

/// A part of many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    /// Which, from 0.
    pub index: u32,
    /// How many parts there are.
    pub count: u32,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(index, count)| (index.parse(), count.parse()));
        match parts {
            Some((Ok(index), Ok(count))) if index < count => Ok(Self { index, count }),
            Some((Ok(_), Ok(_))) => Err("the first number is below the second".to_string()),
            _ => Err("it is two numbers, as 0/8".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn a_shard_is_one_of_its_number() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!((shard.index, shard.count, shard.to_string().as_str()), (2, 8, "2/8"));
        for bad in ["8/8", "1/0", "0/0", "1", "a/2", "-1/2", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
