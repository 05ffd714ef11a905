//! Arguments of `package`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `package`.
#[derive(Clone, Debug, Args)]
pub struct Package {
    /// Where to write the program.
    #[arg(long, value_name = "FILE", required_unless_present = "parts")]
    pub out: Option<PathBuf>,
    /// Cargo's profile for the build; it must inherit from `release`.
    #[arg(long, value_name = "NAME", default_value = "release")]
    pub profile: String,
    /// Write only the files that it contains, for the build script.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "out")]
    pub parts: Option<PathBuf>,
}
