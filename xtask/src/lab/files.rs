//! What a lab begins with: environments for labgrid, the strategy that they use, and a job for LAVA.

use super::LabError;
use crate::{Result, output};
use std::fs;
use std::path::{Path, PathBuf};

/// The program that is run for each machine.
const RUNNER: &str = "lab_run.py";
/// It, and the modules that it imports from its own folder.
const RUNNER_FILES: [(&str, &str); 3] = [
    (RUNNER, include_str!("../../../lab/lab_run.py")),
    ("lab_place.py", include_str!("../../../lab/lab_place.py")),
    ("lab_signals.py", include_str!("../../../lab/lab_signals.py")),
];

/// The files of a new lab.
pub const FILES: [(&str, &str); 6] = [
    ("barecount_lab.py", include_str!("../../../lab/barecount_lab.py")),
    ("qemu.yaml", include_str!("../../../lab/qemu.yaml")),
    ("stick.yaml", include_str!("../../../lab/stick.yaml")),
    ("pxe.yaml", include_str!("../../../lab/pxe.yaml")),
    ("lava.yaml", include_str!("../../../lab/lava.yaml")),
    ("test_barecount.py", include_str!("../../../lab/test_barecount.py")),
];

/// Writes the runner to `folder`; returns where it is.
///
/// # Errors
/// It cannot be written.
pub fn write_runner(folder: &Path) -> Result<PathBuf> {
    for (name, text) in RUNNER_FILES {
        output::write(&folder.join(name), text)?;
    }
    Ok(folder.join(RUNNER))
}

/// Writes them to the new folder `path`.
///
/// # Errors
/// Something is there already, or cannot be written.
pub fn write(path: &Path) -> std::result::Result<(), LabError> {
    let failed = |why: String| LabError::New { path: path.display().to_string(), why };
    match fs::read_dir(path) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                let why = "the folder is not empty, and nothing is overwritten".to_string();
                return Err(failed(why));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error.to_string())),
    }
    fs::create_dir_all(path).map_err(|error| failed(error.to_string()))?;
    for (name, text) in FILES {
        fs::write(path.join(name), text).map_err(|error| failed(format!("{name}: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x6_a_new_lab_has_every_file_and_overwrites_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lab");
        write(&path).unwrap();
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab");
        let entries = fs::read_dir(own).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.path().is_file());
        for name in files.map(|entry| entry.file_name().into_string().unwrap()) {
            let is_runner = RUNNER_FILES.iter().any(|(file, _)| *file == name);
            assert!(is_runner || path.join(&name).is_file(), "{name} is in no new lab");
        }
        let error = write(&path).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
        let error = write(&path.join("qemu.yaml")).unwrap_err().to_string();
        assert!(error.contains("qemu.yaml"), "{error}");
    }
}
