//! Parts as files in the user's cache.
//!
//! Each archive has a folder of its own, so programs of two versions do not share a file. A file is looked at before it is
//! used: one that is not the part, whatever became of it, is replaced. It is written under another name and renamed, so
//! that of two programs at once neither sees half a file of the other's.

use super::{Part, Parts, PartsError, hash};
use etcetera::{BaseStrategy, base_strategy::Xdg};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Names another folder for the program's files.
pub const VARIABLE: &str = "BARECOUNT_CACHE";
/// Below the user's folder for such things.
const FOLDER: &str = "barecount";

/// The folder that the variable names, else the user's for what can be made again (XDG Base Directory Specification).
///
/// # Errors
/// There is no home.
pub fn cache() -> Result<PathBuf, PartsError> {
    if let Some(folder) = std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
        let folder = PathBuf::from(folder);
        return std::path::absolute(&folder)
            .map_err(|error| PartsError::Write { path: folder, error });
    }
    let home = Xdg::new().map_err(|_| PartsError::NoHome)?;
    Ok(home.cache_dir().join(FOLDER))
}

/// The user's folder for what cannot be made again and is not a document.
///
/// # Errors
/// There is no home.
pub fn state() -> Result<PathBuf, PartsError> {
    let home = Xdg::new().map_err(|_| PartsError::NoHome)?;
    // On Linux there always is one.
    Ok(home.state_dir().unwrap_or_else(|| home.data_dir()))
}

impl Parts {
    /// Where this archive's files are.
    ///
    /// # Errors
    /// There is no home.
    pub fn folder(&self) -> Result<PathBuf, PartsError> {
        Ok(cache()?.join(&self.id))
    }

    /// Makes sure that `parts` are in [`Parts::folder`].
    ///
    /// # Errors
    /// The folder takes no files; the program's own file is damaged.
    pub fn extract(&self, parts: &[Part]) -> Result<(), PartsError> {
        let folder = self.folder()?;
        parts.iter().try_for_each(|&part| self.extract_to(&folder, part))
    }

    pub(super) fn extract_to(&self, folder: &Path, part: Part) -> Result<(), PartsError> {
        let path = folder.join(part.file());
        if self.is_whole(&path, part)? {
            return Ok(());
        }
        let content = self.content(part)?;
        let failed = |error| PartsError::Write { path: path.clone(), error };
        fs::create_dir_all(folder).map_err(failed)?;
        let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempfile_in(folder);
        let mut unfinished = unfinished.map_err(failed)?;
        unfinished.write_all(&content).map_err(failed)?;
        let permissions = Permissions::from_mode(part.mode());
        unfinished.as_file().set_permissions(permissions).map_err(failed)?;
        unfinished.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Whether the file at `path` is the part.
    fn is_whole(&self, path: &Path, part: Part) -> Result<bool, PartsError> {
        let entry = self.entry(part)?;
        let Ok(data) = fs::metadata(path) else { return Ok(false) };
        let looks = data.is_file()
            && data.len() == entry.bytes as u64
            && data.permissions().mode() & 0o777 == part.mode();
        Ok(looks && fs::read(path).is_ok_and(|bytes| hash(&bytes) == entry.hash))
    }
}
