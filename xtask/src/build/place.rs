//! Where the project is, and where it is built: found when the program runs, because a checkout can be copied or moved
//! together with what was built in it.

use crate::setup::SetupError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The project's folder: that of the package whose program or test cargo runs, else that of this program, else that of the
/// working folder.
///
/// # Errors
/// None of these is in a checkout.
pub fn root() -> Result<&'static Path, SetupError> {
    static ROOT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        // Set by cargo for what it runs, at run time: The Cargo Book, "Environment Variables".
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let places = [package, std::env::current_exe().ok(), std::env::current_dir().ok()];
        places.iter().flatten().find_map(|place| above(place))
    });
    root.as_deref().ok_or_else(|| SetupError {
        need: "barecount's source",
        why: "neither this program nor the working folder is in a checkout".to_string(),
        hint: "Go there, and type: cargo xtask".to_string(),
    })
}

/// The checkout that `place` is in.
fn above(place: &Path) -> Option<PathBuf> {
    let marks = ["Cargo.toml", "xtask/Cargo.toml", "kernel/protocol/Cargo.toml"];
    let is_root = |folder: &&Path| marks.iter().all(|mark| folder.join(mark).is_file());
    place.ancestors().find(is_root).map(Path::to_path_buf)
}

/// Where cargo builds: as its environment variables say, relative to the working folder, else in the checkout.
pub(crate) fn target(root: &Path) -> PathBuf {
    let variables = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"].map(std::env::var_os);
    chosen(root, variables).unwrap_or_else(|_| root.join("target"))
}

fn chosen(root: &Path, variables: [Option<OsString>; 2]) -> std::io::Result<PathBuf> {
    let chosen = variables.into_iter().flatten().find(|folder| !folder.is_empty());
    chosen.map_or_else(|| Ok(root.join("target")), std::path::absolute)
}

/// Makes sure that `target` can be built in.
///
/// # Errors
/// It is on a read-only disk, or another user's.
pub(super) fn writable(target: &Path) -> Result<(), SetupError> {
    let tried = std::fs::create_dir_all(target)
        .and_then(|()| tempfile::Builder::new().prefix(".writable-").tempfile_in(target));
    tried.map(drop).map_err(|error| SetupError {
        need: "a folder to build in",
        why: format!("{} cannot be written to: {error}", target.display()),
        hint: "Set CARGO_TARGET_DIR to a folder of your own: it takes 3 GB. Cargo itself says this as \
               \"failed to open … .cargo-lock\""
            .to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn checkout(folder: &Path) {
        for mark in ["Cargo.toml", "xtask/Cargo.toml", "kernel/protocol/Cargo.toml"] {
            let file = folder.join(mark);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
    }

    #[test]
    fn a_checkout_is_found_from_anywhere_in_it_wherever_it_was_moved() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        checkout(&old);
        let inside = |root: &Path| root.join("xtask");
        assert_eq!(above(&inside(&old)), Some(old.clone()));
        assert_eq!(above(&old.join("target/debug/xtask")), Some(old.clone()));
        fs::rename(&old, &new).unwrap();
        assert_eq!(above(&inside(&new)), Some(new.clone()));
        assert_eq!(above(&old), None);
        assert_eq!(above(folder.path()), None);
    }

    #[test]
    fn the_build_folder_is_what_cargo_takes() {
        let root = Path::new("/project");
        let chosen = |first: &str, second: &str| {
            super::chosen(root, [first, second].map(|text| Some(text.into()))).unwrap()
        };
        assert_eq!(super::chosen(root, [None, None]).unwrap(), root.join("target"));
        assert_eq!(chosen("", ""), root.join("target"));
        assert_eq!(chosen("/own", "/other"), Path::new("/own"));
        assert_eq!(chosen("", "/other"), Path::new("/other"));
        // Cargo takes it relative to where it was called, not to the project.
        let here = std::env::current_dir().unwrap();
        assert_eq!(chosen("own", ""), here.join("own"));
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_named_with_what_to_set() {
        let folder = tempfile::tempdir().unwrap();
        assert!(writable(&folder.path().join("a/b")).is_ok());
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 0, "nothing is left");
        // Where a file stands nobody can make a folder, not even root.
        fs::write(folder.path().join("file"), "").unwrap();
        let error = writable(&folder.path().join("file/target")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("file/target") && text.contains("CARGO_TARGET_DIR"), "{text}");
    }
}
