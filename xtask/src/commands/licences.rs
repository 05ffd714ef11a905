//! `licences`: whose code is in the program.

use crate::build::{self, BuildError};
use crate::parts::{self, Part};
use crate::{Failure, Result, output};

/// Runs the command. The installed program carries the whole list, with every text; a checkout has the sources next to it.
///
/// # Errors
/// The program's file is damaged; the checkout's notice cannot be read.
pub fn run() -> Result<u8> {
    let text = match parts::installed() {
        Some(parts) => {
            let bytes = parts.content(Part::Licences).map_err(BuildError::from)?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None => {
            let file = build::root()?.join("NOTICE");
            std::fs::read_to_string(&file).map_err(Failure::file("read", &file))?
        }
    };
    output::print(&text)?;
    Ok(0)
}
