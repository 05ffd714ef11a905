//! File systems in memory, in the form in which Linux takes them from its loader.

use super::Tools;
use super::steps::{self, Step};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

const EXECUTABLE: u32 = 0o100_755;
const FOLDER: u32 = 0o040_755;

/// Writes one whose only file is the program `init`.
///
/// # Errors
/// The host's file system's.
pub fn with_init(init: &Path, out: &Path) -> io::Result<()> {
    write(vec![("init".to_string(), fs::read(init)?)], out)
}

/// Writes one with the tools and further programs, by their names in `/bin`, which carries out `steps` and switches the
/// machine off.
///
/// # Errors
/// The host's file system's.
pub fn with_steps(
    tools: &Tools,
    programs: &[(&str, &Path)],
    steps: &[Step],
    out: &Path,
) -> io::Result<()> {
    let programs = programs.iter().map(|(name, file)| (format!("bin/{name}"), file.to_path_buf()));
    let files: Vec<_> = programs.chain(tools.files.iter().cloned()).collect();
    with_files(&files, steps, out)
}

/// The same of any files, by their names there.
///
/// # Errors
/// The host's file system's.
pub fn with_files(files: &[(String, PathBuf)], steps: &[Step], out: &Path) -> io::Result<()> {
    let mut all = vec![("init".to_string(), steps::script(steps).into_bytes())];
    for (name, file) in files {
        all.push((name.clone(), fs::read(file)?));
    }
    write(all, out)
}

fn write(files: Vec<(String, Vec<u8>)>, out: &Path) -> io::Result<()> {
    let all: BTreeSet<String> = files.iter().flat_map(|(name, _)| folders(name)).collect();
    // In order of their names, hence each after the one that it is in.
    let all = all.into_iter().map(|folder| (folder, FOLDER, Vec::new()));
    let files = files.into_iter().map(|(name, bytes)| (name, EXECUTABLE, bytes));
    let entries = all
        .chain(files)
        .map(|(name, mode, bytes)| (cpio::NewcBuilder::new(&name).mode(mode), Cursor::new(bytes)));
    cpio::write_cpio(entries, File::create(out)?)?;
    Ok(())
}

/// The folders that a file is in.
fn folders(name: &str) -> Vec<String> {
    let ends = name.match_indices('/').map(|(end, _)| end);
    ends.map(|end| name[..end].to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_what_lies_in_them() {
        let out = tempfile::NamedTempFile::new().unwrap();
        let files = ["a/b/c", "a/d", "e"].map(|name| (name.to_string(), name.as_bytes().to_vec()));
        write(files.to_vec(), out.path()).unwrap();
        let mut reader = cpio::NewcReader::new(File::open(out.path()).unwrap()).unwrap();
        let mut found = Vec::new();
        while !reader.entry().is_trailer() {
            let entry = reader.entry();
            found.push((entry.name().to_string(), entry.mode(), entry.file_size()));
            reader = cpio::NewcReader::new(reader.finish().unwrap()).unwrap();
        }
        let expected = [
            ("a", FOLDER, 0),
            ("a/b", FOLDER, 0),
            ("a/b/c", EXECUTABLE, 5),
            ("a/d", EXECUTABLE, 3),
            ("e", EXECUTABLE, 1),
        ];
        assert_eq!(found, expected.map(|(name, mode, size)| (name.to_string(), mode, size)));
    }
}
