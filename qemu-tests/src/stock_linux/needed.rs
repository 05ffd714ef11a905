//! Which shared libraries a program needs, and those what they need in turn.

use elf::ElfBytes;
use elf::abi::DT_NEEDED;
use elf::endian::LittleEndian;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the distribution's packages have their libraries.
const FOLDERS: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// The libraries of `program`.
#[derive(Debug, Default)]
pub struct Libraries {
    /// Those that are there: name as the programs know them, and file.
    pub found: BTreeMap<String, PathBuf>,
    /// Names of those that are not.
    pub missing: Vec<String>,
}

/// Looks for all of them below `root`, into which packages were unpacked.
pub fn libraries(program: &Path, root: &Path) -> Result<Libraries, String> {
    let file = |name: &str| {
        FOLDERS.iter().map(|folder| root.join(folder).join(name)).find(|file| file.exists())
    };
    let mut libraries = Libraries::default();
    let mut left = names_in(program)?;
    while let Some(name) = left.pop() {
        if libraries.found.contains_key(&name) || libraries.missing.contains(&name) {
            continue;
        }
        match file(&name) {
            Some(file) => {
                left.extend(names_in(&file)?);
                libraries.found.insert(name, file);
            }
            None => libraries.missing.push(name),
        }
    }
    Ok(libraries)
}

fn names_in(file: &Path) -> Result<Vec<String>, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    names(&bytes).map_err(|error| format!("{}: {error}", file.display()))
}

/// The DT_NEEDED entries of an ELF file.
fn names(file: &[u8]) -> Result<Vec<String>, elf::ParseError> {
    let parts = ElfBytes::<LittleEndian>::minimal_parse(file)?.find_common_data()?;
    let (Some(dynamic), Some(strings)) = (parts.dynamic, parts.dynsyms_strs) else {
        return Ok(Vec::new());
    };
    let needed = dynamic.iter().filter(|entry| entry.d_tag == DT_NEEDED);
    needed.map(|entry| Ok(strings.get(entry.d_val() as usize)?.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_needs_the_c_library_and_what_is_not_there_is_named() {
        let this = std::env::current_exe().unwrap();
        assert!(names_in(&this).unwrap().iter().any(|name| name.starts_with("libc.so")));
        let nowhere = tempfile::tempdir().unwrap();
        let libraries = libraries(&this, nowhere.path()).unwrap();
        assert!(libraries.found.is_empty());
        assert!(libraries.missing.iter().any(|name| name.starts_with("libc.so")));
    }

    #[test]
    fn what_a_library_needs_is_looked_for_as_well_and_once() {
        let (this, root) = (std::env::current_exe().unwrap(), tempfile::tempdir().unwrap());
        let folder = root.path().join(FOLDERS[1]);
        fs::create_dir_all(&folder).unwrap();
        let wanted = names_in(&this).unwrap();
        // Each needs what this file needs, hence itself as well.
        for name in &wanted {
            fs::copy(&this, folder.join(name)).unwrap();
        }
        let libraries = libraries(&this, root.path()).unwrap();
        assert_eq!(libraries.found.len(), wanted.len());
        assert_eq!(libraries.missing, [""; 0]);
    }

    #[test]
    fn a_file_that_is_no_program_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = libraries(file.path(), Path::new("/")).unwrap_err();
        assert!(error.starts_with(&file.path().display().to_string()), "{error}");
    }
}
