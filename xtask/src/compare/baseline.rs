//! Reports under names, in the build folder.

use super::error::CompareError;
use super::near::near;
use super::saved::{self, Saved};
use crate::build::{self, BuildError};
use crate::parts::{self, project};
use crate::{Failure, output};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Longest name.
const MAX_BYTES: usize = 100;
/// After each name.
const ENDING: &str = "json";

/// A name that is one of a file and nothing else: no path, nothing hidden.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Name(String);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(format!("a baseline's name has 1 to {MAX_BYTES} characters"));
        }
        match text.chars().find(|&c| !is_good(c)) {
            Some('/') => {
                Err("a baseline's name is not a path; baselines are saved in the build folder"
                    .to_string())
            }
            Some(c) => Err(format!(
                "a baseline's name may have letters, digits, `-`, `_` and `.`, not {c:?}"
            )),
            None if text.starts_with(['.', '-']) => {
                Err("a baseline's name begins with a letter, a digit or `_`".to_string())
            }
            None => Ok(Self(text.to_string())),
        }
    }
}

/// Names another folder to keep them in.
const VARIABLE: &str = "BARECOUNT_BASELINES";

/// The baselines of a folder.
pub struct Baselines(PathBuf);

impl Baselines {
    /// Those of the folder that `BARECOUNT_BASELINES` names, else of this project: the checkout's, and for the installed
    /// program that of the working folder. Outside of a project it keeps them in the user's folder for state.
    ///
    /// # Errors
    /// There is no project here, or cargo refuses it; for the installed program, there is no home.
    pub fn find() -> crate::Result<Self> {
        match std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Ok(Self(folder.into())),
            None if parts::installed().is_some() => match project::build_folder()? {
                Some(target) => Ok(Self::in_folder(&target)),
                None => Ok(Self::in_folder(&parts::extract::state().map_err(BuildError::from)?)),
            },
            None => Ok(Self::in_folder(&build::target_folder()?)),
        }
    }

    /// Those of a build folder.
    #[must_use]
    pub fn in_folder(target: &Path) -> Self {
        Self(target.join("barecount").join("baselines"))
    }

    /// Where the one of that name is kept.
    #[must_use]
    pub fn path(&self, name: &Name) -> PathBuf {
        self.0.join(format!("{name}.{ENDING}"))
    }

    /// All names, in alphabetical order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let ours = paths.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
        let mut names: Vec<String> =
            ours.filter_map(|path| Some(path.file_stem()?.to_str()?.to_string())).collect();
        names.retain(|name| name.parse::<Name>().is_ok());
        names.sort();
        names
    }

    /// Makes sure that one can be kept, before work is done for it.
    ///
    /// # Errors
    /// The folder cannot be made, or the file not be written.
    pub fn check(&self, name: &Name) -> crate::Result<()> {
        fs::create_dir_all(&self.0).map_err(Failure::file("create", &self.0))?;
        output::check(&self.path(name))
    }

    /// Keeps a report.
    ///
    /// # Errors
    /// The folder cannot be made, or the file not be written.
    pub fn save(&self, name: &Name, report: &str) -> crate::Result<()> {
        fs::create_dir_all(&self.0).map_err(Failure::file("create", &self.0))?;
        output::write(&self.path(name), report)
    }

    /// Reads the one of that name.
    ///
    /// # Errors
    /// There is none, or it is not a report that can be compared.
    pub fn read(&self, name: &Name) -> Result<Saved, CompareError> {
        match saved::read(&self.path(name), &name.0) {
            Err(CompareError::Read { error, .. })
                if error.kind() == std::io::ErrorKind::NotFound =>
            {
                Err(self.unknown(&name.0))
            }
            other => other,
        }
    }

    fn unknown(&self, name: &str) -> CompareError {
        let known = self.names();
        let near = near(name, known.iter().map(String::as_str)).map(String::from);
        CompareError::UnknownBaseline { name: name.to_string(), near, known }
    }
}

/// The file that somebody named: a baseline's, or else the one of that name.
#[must_use]
pub fn file_of(named: &str, baselines: Option<&Baselines>) -> PathBuf {
    let name = named.parse::<Name>().ok();
    let known = name.zip(baselines).map(|(name, all)| all.path(&name));
    known.filter(|path| path.exists()).unwrap_or_else(|| PathBuf::from(named))
}

/// Reads what somebody named: a baseline, or else a file. `baselines`: none outside of a project.
///
/// # Errors
/// There is neither, or it is not a report that can be compared.
pub fn read_named(named: &str, baselines: Option<&Baselines>) -> Result<Saved, CompareError> {
    let name = named.parse::<Name>().ok();
    let known = name.as_ref().zip(baselines);
    if let Some((name, baselines)) = known.filter(|(name, all)| all.path(name).exists()) {
        return baselines.read(name);
    }
    match saved::read(Path::new(named), named) {
        // What ends like a report's file is meant as one.
        Err(CompareError::Read { error, path })
            if error.kind() == std::io::ErrorKind::NotFound
                && path.extension().is_none_or(|ending| ending != ENDING) =>
        {
            match known {
                Some((_, baselines)) => Err(baselines.unknown(named)),
                None => Err(CompareError::Read { path, error }),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
