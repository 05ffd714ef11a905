//! The program on a host: runs each benchmark once.

use crate::entry::{Entry, entries};
use core::ffi::c_int;
use std::io::Write;
use std::panic::catch_unwind;

/// What was requested, in the words of Rust's own test harness: `cargo test`, `cargo bench` and cargo-nextest give those.
#[derive(Debug, Default, Eq, PartialEq)]
struct Asked {
    /// Names, or parts of names.
    filters: Vec<String>,
    /// Those of what is left out.
    skipped: Vec<String>,
    /// Whether they are whole names.
    exact: bool,
    /// Whether names are listed and nothing is run.
    list: bool,
    /// Whether what is left out of a usual run is meant, of which there is none.
    ignored: bool,
}

impl Asked {
    /// Reads the arguments; options that say nothing here are passed over.
    fn read(arguments: impl Iterator<Item = String>) -> Self {
        let mut asked = Self::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--exact" => asked.exact = true,
                "--list" => asked.list = true,
                "--ignored" => asked.ignored = true,
                "--skip" => asked.skipped.extend(arguments.next()),
                // The next word is the option's value, and no name.
                "--format" | "--color" | "--test-threads" | "--logfile" | "--shuffle-seed"
                | "-Z" => drop(arguments.next()),
                option if option.starts_with('-') => {
                    asked.skipped.extend(option.strip_prefix("--skip=").map(str::to_string));
                }
                _ => asked.filters.push(argument),
            }
        }
        asked
    }

    fn wants(&self, name: &str) -> bool {
        let is_it =
            |filter: &String| if self.exact { filter == name } else { name.contains(filter) };
        let is_filtered = !self.filters.is_empty() && !self.filters.iter().any(is_it);
        !self.ignored && !is_filtered && !self.skipped.iter().any(is_it)
    }
}

fn name(entry: &Entry) -> String {
    let (name, parameter) = entry.name();
    parameter.map_or(name.to_string(), |value| format!("{name}/{value}"))
}

/// The program. Its exit code is 101 when a benchmark panicked, like that of tests.
#[must_use]
pub fn run() -> c_int {
    let asked = Asked::read(std::env::args().skip(1));
    let mut entries: Vec<_> = entries().iter().filter(|entry| entry.is_valid()).collect();
    entries.sort_by_key(|entry| entry.name());
    entries.retain(|entry| asked.wants(&name(entry)));
    // Where nobody reads, nobody misses a line, here and below.
    let mut out = std::io::stdout();
    let mut failed = 0;
    for entry in &entries {
        let name = name(entry);
        if asked.list {
            let _ = writeln!(out, "{name}: benchmark");
            continue;
        }
        let is_ok = catch_unwind(|| entry.run()).is_ok();
        failed += u32::from(!is_ok);
        let _ = writeln!(out, "{name} ... {}", if is_ok { "ok" } else { "FAILED" });
    }
    if !asked.list {
        let _ = writeln!(out, "{} benchmarks ran once, {failed} failed", entries.len());
    }
    if failed == 0 { 0 } else { 101 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Asked {
        Asked::read(words.split_whitespace().map(str::to_string))
    }

    #[test]
    fn the_words_of_the_usual_harness_are_understood() {
        assert!(asked("").wants("a::b"));
        assert!(asked("--bench").wants("a::b"));
        assert!(asked("--test-threads 3 :: --nocapture").wants("a::b"));
        assert!(!asked("c").wants("a::b"));
        assert!(asked("--exact a::b").wants("a::b"));
        assert!(!asked("--exact a").wants("a::b"));
        assert!(!asked("--list --format terse --ignored").wants("a::b"));
        assert!(asked("--list --format terse").wants("a::b") && asked("--list").list);
        for options in ["-Z unstable-options", "--shuffle-seed 5", "--logfile log", "-Zx --quiet"] {
            assert!(asked(options).wants("a::b"), "{options}");
        }
        for skip in ["--skip slow", "--skip=slow"] {
            assert!(asked(skip).wants("a::b") && !asked(skip).wants("a::slow/3"), "{skip}");
            assert!(!asked(&format!("a {skip}")).wants("a::slow/3"), "{skip}");
        }
        assert!(asked("--exact --skip slow").wants("a::slow"));
        assert!(!asked("--skip a::b --exact").wants("a::b"));
    }
}
