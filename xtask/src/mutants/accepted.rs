//! The survivors that are known.

use super::{ACCEPTED, Mutant, MutantsError};
use serde::Deserialize;

/// A survivor that may be one, and why. Without line numbers, which every change of the file moves: one entry stands for
/// every mutant of this name that begins in a line of this text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// The file, from the checkout's root.
    pub file: String,
    /// cargo-mutants' name of it, without the place.
    pub mutant: String,
    /// The line of source in which it begins, trimmed.
    pub line: String,
    /// Why no test has to notice it.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    accepted: Vec<Accepted>,
}

/// Reads the list.
///
/// # Errors
/// It is no such list, an entry lacks something, or is there twice.
pub fn read(text: &str) -> Result<Vec<Accepted>, MutantsError> {
    let list: List = toml::from_str(text)
        .map_err(|error| MutantsError::Malformed { file: ACCEPTED, reason: error.to_string() })?;
    for (index, entry) in list.accepted.iter().enumerate() {
        entry.check()?;
        if list.accepted[..index].iter().any(|other| other.is_same(entry)) {
            let Accepted { file, mutant, line, .. } = entry.clone();
            return Err(MutantsError::Twice { file, mutant, line });
        }
    }
    Ok(list.accepted)
}

impl Accepted {
    /// Whether it stands for this mutant, which begins in `line`.
    #[must_use]
    pub fn covers(&self, mutant: &Mutant, line: &str) -> bool {
        self.file == mutant.file && self.mutant == mutant.change() && self.line == line
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.file, &self.mutant, &self.line) == (&other.file, &other.mutant, &other.line)
    }

    fn check(&self) -> Result<(), MutantsError> {
        let fields = [
            ("file", &self.file),
            ("mutant", &self.mutant),
            ("line", &self.line),
            ("reason", &self.reason),
        ];
        match fields.into_iter().find(|(_, text)| text.trim().is_empty()) {
            Some((field, _)) => Err(MutantsError::Empty {
                file: self.file.clone(),
                mutant: self.mutant.clone(),
                field,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::config;

    fn entry(fields: &str) -> String {
        format!("[[accepted]]\n{fields}\n")
    }

    const WHOLE: &str = "file = \"a.rs\"\nmutant = \"replace + with - in f\"\nline = \"a + b\"\n";

    #[test]
    fn an_entry_needs_its_four_fields_and_stands_once() {
        let good = entry(&format!("{WHOLE}reason = \"why\""));
        assert_eq!(read(&good).unwrap().len(), 1);
        let said = |text: &str| read(text).unwrap_err().to_string();
        assert!(said(&entry(WHOLE)).contains("missing field `reason`"));
        let empty = entry(&format!("{WHOLE}reason = \" \""));
        let expected = "docs/mutants.toml: `replace + with - in f` in a.rs has no reason";
        assert_eq!(said(&empty), expected);
        let twice = good.clone() + &entry(&format!("{WHOLE}reason = \"another\""));
        assert!(said(&twice).ends_with("in a.rs, `a + b`, is listed twice"), "{}", said(&twice));
        assert!(said(&good.replace("reason", "because")).contains("unknown field"));
    }

    #[test]
    fn the_projects_own_list_names_files_that_are_examined() {
        let root = crate::build::root().expect("cargo runs this");
        let text = |file| std::fs::read_to_string(root.join(file)).expect("a file of ours");
        let globs = config::globs(&text(super::super::CONFIG)).unwrap();
        for entry in read(&text(ACCEPTED)).unwrap() {
            assert!(config::examines(&globs, &entry.file), "{}", entry.file);
            assert!(root.join(&entry.file).is_file(), "{}", entry.file);
        }
    }
}
