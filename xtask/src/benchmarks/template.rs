//! A package to begin with: an example, and the crate `barecount` next to it, so that it builds wherever it is copied to.

use super::BenchmarkError;
use std::fs;
use std::path::Path;

/// The files, by their places in the new folder.
pub const FILES: [(&str, &str); 21] = [
    ("Cargo.toml", include_str!("../../../bench/template/Cargo.toml")),
    ("Cargo.lock", include_str!("../../../bench/template/Cargo.lock")),
    (".gitignore", "/target\n"),
    ("src/lib.rs", include_str!("../../../bench/template/src/lib.rs")),
    ("benches/counts.rs", include_str!("../../../bench/template/benches/counts.rs")),
    ("barecount/Cargo.toml", include_str!("../../../bench/Cargo.toml")),
    ("barecount/LICENSE-APACHE", include_str!("../../../LICENSE-APACHE")),
    ("barecount/LICENSE-MIT", include_str!("../../../LICENSE-MIT")),
    ("barecount/build.rs", include_str!("../../../bench/build.rs")),
    ("barecount/include/barecount.h", include_str!("../../../bench/include/barecount.h")),
    ("barecount/src/arena.rs", include_str!("../../../bench/src/arena.rs")),
    ("barecount/src/bare/memory.rs", include_str!("../../../bench/src/bare/memory.rs")),
    ("barecount/src/bare/mod.rs", include_str!("../../../bench/src/bare/mod.rs")),
    ("barecount/src/bare/start.rs", include_str!("../../../bench/src/bare/start.rs")),
    ("barecount/src/bare/unwind.rs", include_str!("../../../bench/src/bare/unwind.rs")),
    ("barecount/src/entry.rs", include_str!("../../../bench/src/entry.rs")),
    ("barecount/src/host.rs", include_str!("../../../bench/src/host.rs")),
    ("barecount/src/lib.rs", include_str!("../../../bench/src/lib.rs")),
    ("barecount/src/message.rs", include_str!("../../../bench/src/message.rs")),
    ("barecount/src/register.rs", include_str!("../../../bench/src/register.rs")),
    ("barecount/src/slot.rs", include_str!("../../../bench/src/slot.rs")),
];

/// Writes the package to the new folder `path`.
///
/// # Errors
/// Something is there already, or cannot be written.
pub fn write(path: &Path) -> Result<(), BenchmarkError> {
    let failed = |why: String| BenchmarkError::New { path: path.to_path_buf(), why };
    let occupied = match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(error.to_string())),
    };
    if occupied {
        return Err(failed("the folder is not empty, and nothing is overwritten".to_string()));
    }
    for (name, text) in FILES {
        let file = path.join(name);
        let folder = file.parent().unwrap_or(path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| failed(format!("{name}: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    fn files_below(folder: &Path, into: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, into);
            } else {
                into.insert(path);
            }
        }
    }

    /// A source that is not in the list would be missing from every new package.
    #[test]
    fn every_file_of_the_crate_goes_along() {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench");
        let mut there = BTreeSet::new();
        for part in ["src", "include"] {
            files_below(&crate_folder.join(part), &mut there);
        }
        let listed = FILES.iter().filter_map(|(name, _)| name.strip_prefix("barecount/"));
        let listed: BTreeSet<PathBuf> = listed.map(|name| crate_folder.join(name)).collect();
        for file in there {
            assert!(listed.contains(&file), "{}", file.display());
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let error = write(folder.path()).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
        let file = folder.path().join("Cargo.toml");
        let error = write(&file).unwrap_err().to_string();
        assert!(error.contains("Cargo.toml"), "{error}");
        assert!(fs::read_to_string(file).unwrap().contains("name = \"example\""));
    }
}
