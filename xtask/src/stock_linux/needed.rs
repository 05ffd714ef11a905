//! Which shared libraries a program needs, and those what they need in turn.

use super::error::StockError;
use elf::ElfBytes;
use elf::abi::DT_NEEDED;
use elf::endian::LittleEndian;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the distribution's packages have their libraries.
const FOLDERS: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// The libraries of a program.
#[derive(Debug, Default)]
pub struct Libraries {
    /// Those that are there: name as the programs know them, and file.
    pub found: BTreeMap<String, PathBuf>,
    /// Names of those that are not, and a file that needs each.
    pub missing: BTreeMap<String, PathBuf>,
}

/// Looks for all that `program` needs in `roots`, into each of which a package was unpacked.
pub fn libraries(program: &Path, roots: &[PathBuf]) -> Result<Libraries, StockError> {
    let places = || roots.iter().flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
    let mut libraries = Libraries::default();
    let mut left = vec![program.to_path_buf()];
    while let Some(file) = left.pop() {
        for name in names_in(&file)? {
            if libraries.found.contains_key(&name) || libraries.missing.contains_key(&name) {
                continue;
            }
            match places().map(|place| place.join(&name)).find(|file| file.exists()) {
                Some(found) => {
                    left.push(found.clone());
                    libraries.found.insert(name, found);
                }
                None => _ = libraries.missing.insert(name, file.clone()),
            }
        }
    }
    Ok(libraries)
}

fn names_in(file: &Path) -> Result<Vec<String>, StockError> {
    let bytes = fs::read(file).map_err(StockError::file(file))?;
    names(&bytes).map_err(|error| StockError::NoProgram { path: file.to_path_buf(), error })
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
        let libraries = libraries(&this, &[nowhere.path().to_path_buf()]).unwrap();
        assert!(libraries.found.is_empty());
        let missing = libraries.missing.iter().find(|missing| missing.0.starts_with("libc.so"));
        assert_eq!(missing.unwrap().1, &this);
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
        let libraries = libraries(&this, &[root.path().to_path_buf()]).unwrap();
        assert_eq!(libraries.found.len(), wanted.len());
        assert!(libraries.missing.is_empty());
    }

    #[test]
    fn a_file_that_is_no_program_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = libraries(file.path(), &[]).unwrap_err().to_string();
        assert!(error.starts_with(&file.path().display().to_string()), "{error}");
    }
}
