//! What a run comes to.

use super::{ACCEPTED, Accepted, Mutant, Outcomes};
use crate::primitives::style::{ERROR, GOOD, paint};
use crate::text::printable;
use std::fmt::Write;

/// A run, held against the list.
#[derive(Debug, Eq, PartialEq)]
pub struct Judgement<'a> {
    outcomes: &'a Outcomes,
    /// Survivors that are not on the list.
    pub unlisted: Vec<&'a Mutant>,
    /// Entries of the list that a run of everything did not find.
    pub gone: Vec<&'a Accepted>,
}

impl<'a> Judgement<'a> {
    /// Holds `outcomes` against the list. `line` gives the line of source in which a mutant begins. Of a run that is not
    /// `whole`, nothing can be said of entries that did not survive: they may not have been tried.
    pub fn new(
        outcomes: &'a Outcomes,
        accepted: &'a [Accepted],
        line: impl Fn(&Mutant) -> String,
        whole: bool,
    ) -> Self {
        let mut met = vec![false; accepted.len()];
        let mut unlisted = Vec::new();
        for mutant in &outcomes.missed {
            let line = line(mutant);
            match accepted.iter().position(|entry| entry.covers(mutant, &line)) {
                Some(index) => met[index] = true,
                None => unlisted.push(mutant),
            }
        }
        let gone = accepted.iter().zip(met).filter(|(_, met)| whole && !met);
        Self { outcomes, unlisted, gone: gone.map(|(entry, _)| entry).collect() }
    }

    /// 0 if every survivor is on the list, and every entry of the list is a survivor; else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.unlisted.is_empty() || !self.gone.is_empty())
    }

    /// It, for people: what is wrong, and a closing line.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        if !self.unlisted.is_empty() {
            let _ = writeln!(out, "Not detected by a test, and not in {ACCEPTED}:");
        }
        for mutant in &self.unlisted {
            let _ = writeln!(out, "  {}", printable(&mutant.name));
        }
        if !self.gone.is_empty() {
            let _ = writeln!(out, "In {ACCEPTED}, but now detected, or no longer there:");
        }
        for entry in &self.gone {
            let (file, mutant, line) = (&entry.file, &entry.mutant, &entry.line);
            let _ = writeln!(out, "  {file}: {} in `{}`", printable(mutant), printable(line));
        }
        let Outcomes { caught, timed_out, unviable, missed } = self.outcomes;
        let (all, unlisted) = (self.outcomes.tried(), self.unlisted.len());
        let mark = if self.exit_code() == 0 { paint(GOOD, "pass") } else { paint(ERROR, "FAIL") };
        let listed = missed.len() - unlisted;
        let _ = write!(
            out,
            "{mark}: {all} mutants: {caught} caught, {timed_out} timed out, {unviable} that do not build, \
             {listed} missed and accepted, {unlisted} missed"
        );
        if !self.gone.is_empty() {
            let _ = write!(out, "; {} entries out of date", self.gone.len());
        }
        out + "\n"
    }
}

#[cfg(test)]
mod tests;
