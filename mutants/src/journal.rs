//! What became of mutants, kept as it is found: a run that is broken off is not lost, and the next one takes over what
//! was noticed in code that has not changed since.

use crate::mutant::{Fate, Mutant, Tried};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

/// The journal of a run: lines of JSON.
pub struct Journal {
    file: Mutex<File>,
    /// By file, what its code was.
    codes: HashMap<String, u64>,
}

#[derive(Deserialize, Serialize)]
struct Line {
    name: String,
    /// The hash of its file's code.
    code: u64,
    fate: Fate,
    how: String,
}

impl Journal {
    /// Opens the journal at `path`. What `resume` takes over of it is handed out by the mutants' numbers: those that a test
    /// noticed and those that do not build; and those that are known to need a build of their own. One that was missed is
    /// tried again, since it is tests that have changed.
    pub fn open(
        path: &Path,
        resume: bool,
        mutants: &[Mutant],
        source: &Path,
    ) -> Result<(Self, Vec<Tried>, Vec<usize>)> {
        let mut codes = HashMap::new();
        for mutant in mutants {
            if !codes.contains_key(&mutant.read.file) {
                let text = fs::read_to_string(source.join(&mutant.read.file))
                    .with_context(|| mutant.read.file.clone())?;
                codes.insert(mutant.read.file.clone(), code(&text));
            }
        }
        let text =
            if resume { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
        // A line may be cut off; of a mutant's lines the last one counts.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let lines: HashMap<(String, u64), Line> =
            lines.map(|line| ((line.name.clone(), line.code), line)).collect();
        let (mut known, mut alone) = (Vec::new(), Vec::new());
        for (number, mutant) in mutants.iter().enumerate() {
            let key = (mutant.read.name.clone(), codes[&mutant.read.file]);
            match lines.get(&key) {
                Some(line) if line.fate.is_final() => {
                    known.push((number, line.fate.clone(), line.how.clone()));
                }
                Some(line) if line.fate == Fate::Alone => alone.push(number),
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        options.create(true).append(resume).write(true).truncate(!resume);
        let file = options.open(path).with_context(|| path.display().to_string())?;
        Ok((Self { file: Mutex::new(file), codes }, known, alone))
    }

    /// Adds what became of a mutant.
    pub fn add(&self, mutant: &Mutant, fate: &Fate, how: &str) -> Result<()> {
        let (name, code) = (mutant.read.name.clone(), self.codes[&mutant.read.file]);
        let line = Line { name, code, fate: fate.clone(), how: how.to_string() };
        let text = serde_json::to_string(&line)? + "\n";
        let mut file = self.file.lock().expect("no thread panics");
        file.write_all(text.as_bytes()).context("the journal cannot be written")
    }
}

/// The hash of a file's code: a new test at its end changes no mutant.
fn code(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text[..end_of_code(text)].hash(&mut hasher);
    hasher.finish()
}

/// Where a module of tests begins that reaches to the end of the file. Code comes after one in a file of its own, and after one
/// that is closed before: then all is code. As rustfmt writes it, only what closes an item at the top begins a line with a brace.
fn end_of_code(text: &str) -> usize {
    const TESTS: &str = "\n#[cfg(test)]\nmod ";
    let is_last = |at: usize| {
        let module = &text[at + TESTS.len()..];
        let (first, rest) = module.split_once('\n').unwrap_or((module, ""));
        let closed = rest.find("\n}");
        first.ends_with('{') && closed.is_some_and(|at| rest[at + 2..].trim().is_empty())
    };
    text.rfind(TESTS).filter(|at| is_last(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod what_is_code {
    use super::*;

    #[test]
    fn a_module_of_tests_is_none_if_it_is_inline_and_the_last_thing_of_the_file() {
        let changes = |one: &str, other: &str| code(one) != code(other);
        let inline = |code: &str, test: &str| {
            format!(
                "{code}\n#[cfg(test)]\nmod tests {{\n    fn a() {{\n        {test}\n    }}\n}}\n"
            )
        };
        assert!(!changes(&inline("fn f() {}", "1"), &inline("fn f() {}", "2")));
        assert!(changes(&inline("fn f() {}", "1"), &inline("fn g() {}", "1")));
        // In a file of its own, and before code.
        let named = |code: &str| format!("//! It.\n\n#[cfg(test)]\nmod tests;\n\n{code}\n");
        assert!(changes(&named("fn f() {}"), &named("fn g() {}")));
        let first = |code: &str| inline("fn f() {}", "1") + code + "\n";
        assert!(changes(&first("fn g() {}"), &first("fn h() {}")));
        // Both: what is between them is code, and what is in the last one is not.
        let both = |code: &str, test: &str| named(&inline(code, test));
        assert!(changes(&both("fn f() {}", "1"), &both("fn g() {}", "1")));
        assert!(!changes(&both("fn f() {}", "1"), &both("fn f() {}", "2")));
    }
}
