//! What a lab begins with: environments for labgrid, the strategy that they use, and a job for LAVA.

use super::LabError;
use std::fs;
use std::path::Path;

/// The program that is run for each machine.
pub const RUNNER: &str = "lab_run.py";
/// Its text.
pub const RUNNER_TEXT: &str = include_str!("../../../lab/lab_run.py");

/// The files of a new lab.
pub const FILES: [(&str, &str); 6] = [
    ("barecount_lab.py", include_str!("../../../lab/barecount_lab.py")),
    ("qemu.yaml", include_str!("../../../lab/qemu.yaml")),
    ("stick.yaml", include_str!("../../../lab/stick.yaml")),
    ("pxe.yaml", include_str!("../../../lab/pxe.yaml")),
    ("lava.yaml", include_str!("../../../lab/lava.yaml")),
    ("test_barecount.py", include_str!("../../../lab/test_barecount.py")),
];

/// Writes them to the new folder `path`.
///
/// # Errors
/// Something is there already, or cannot be written.
pub fn write(path: &Path) -> Result<(), LabError> {
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
            assert!(name == RUNNER || path.join(&name).is_file(), "{name} is in no new lab");
        }
        let error = write(&path).unwrap_err().to_string();
        assert!(error.contains("not empty"), "{error}");
        let error = write(&path.join("qemu.yaml")).unwrap_err().to_string();
        assert!(error.contains("qemu.yaml"), "{error}");
    }
}
