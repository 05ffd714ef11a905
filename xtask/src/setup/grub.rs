//! GRUB's rescue tools, which distributions call differently.

use super::Status;
use std::path::{Path, PathBuf};

/// What makes a disk that GRUB boots: Debian's and Arch Linux's name, Fedora's and openSUSE's.
const PROGRAMS: [&str; 2] = ["grub-mkrescue", "grub2-mkrescue"];
/// It calls these.
const TOOLS: [&str; 2] = ["xorriso", "mformat"];
/// Where its modules for BIOS machines are; the second is openSUSE's.
const MODULES: [&str; 2] = ["/usr/lib/grub/i386-pc", "/usr/share/grub2/i386-pc"];

/// What was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grub {
    /// What makes the disk.
    pub program: PathBuf,
    /// The modules for BIOS machines.
    pub modules: PathBuf,
}

/// Looks for it.
///
/// # Errors
/// What is missing.
pub fn find() -> Result<Grub, String> {
    find_among(|name| crate::process::find(name), Path::exists)
}

/// The same on a machine that has these programs in its search path and these folders.
pub(super) fn find_among(
    program: impl Fn(&str) -> Option<PathBuf>,
    is_there: impl Fn(&Path) -> bool,
) -> Result<Grub, String> {
    let made_by = PROGRAMS.into_iter().find_map(&program);
    let made_by =
        made_by.ok_or_else(|| format!("no {} in the search path", PROGRAMS.join(" or ")))?;
    if let Some(tool) = TOOLS.into_iter().find(|tool| program(tool).is_none()) {
        return Err(format!("no {tool} in the search path"));
    }
    let modules = MODULES.into_iter().map(Path::new).find(|folder| is_there(folder));
    let modules = modules.ok_or_else(|| format!("no {}", MODULES.join(" or ")))?;
    Ok(Grub { program: made_by, modules: modules.to_path_buf() })
}

pub(super) fn status() -> Status {
    match find() {
        Ok(found) => Status::Present(found.modules.display().to_string()),
        Err(why) => Status::Missing { why },
    }
}
