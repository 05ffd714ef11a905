//! Conformance suites as matrices.

use crate::document::Document;
use html_report::model::{Badge, Check, Checked, Matrix, Tone};
use protocol::record::{CheckVerdict, Suite};

/// One matrix for each name of a suite; a check that several runs made is there once.
pub(super) fn of(documents: &[Document]) -> Vec<Matrix> {
    let runs = documents.len();
    let mut all: Vec<Matrix> = Vec::new();
    for (run, document) in documents.iter().enumerate() {
        let suites: Vec<&Suite> = document.report.suites().collect();
        for suite in &suites {
            let index = place(&mut all, &suite.name, runs);
            all[index].summaries[run] = summary(suite);
        }
        for check in document.report.checks() {
            // A report that broke off has checks without their suite.
            let suite = suites.iter().find(|suite| suite.item == check.item);
            let index = place(&mut all, suite.map_or("conformance", |suite| &suite.name), runs);
            let (family, name) = check.name.split_once('.').unwrap_or(("", &check.name));
            let checks = &mut all[index].checks;
            let known = checks.iter().position(|one| one.family == family && one.name == name);
            let known = known.unwrap_or_else(|| {
                // After the last one of its family.
                let behind = checks.iter().rposition(|one| one.family == family);
                let at = behind.map_or(checks.len(), |at| at + 1);
                let (family, name, source) =
                    (family.to_string(), name.to_string(), check.source.clone());
                checks.insert(at, Check { family, name, source, results: vec![None; runs] });
                at
            });
            let verdict = match check.verdict {
                CheckVerdict::Pass => Badge::new(Tone::Good, "pass"),
                CheckVerdict::Fail => Badge::new(Tone::Bad, "fail"),
                CheckVerdict::Skip => Badge::new(Tone::Plain, "skip"),
                CheckVerdict::KnownErratum => Badge::new(Tone::Warn, "erratum"),
                CheckVerdict::KnownBehaviour => Badge::new(Tone::Warn, "known"),
            };
            let (expected, seen) = (check.expected.clone(), check.seen.clone());
            checks[known].results[run] = Some(Checked { verdict, expected, seen });
        }
    }
    all
}

fn place(all: &mut Vec<Matrix>, name: &str, runs: usize) -> usize {
    all.iter().position(|one| one.name == name).unwrap_or_else(|| {
        all.push(Matrix {
            name: name.to_string(),
            summaries: vec![String::new(); runs],
            checks: Vec::new(),
        });
        all.len() - 1
    })
}

fn summary(suite: &Suite) -> String {
    let Suite { passed, failed, skipped, known_errata, known_behaviours, .. } = suite;
    let mut text = format!("{passed} checks passed, {failed} failed, {skipped} skipped");
    if *known_errata > 0 {
        text += &format!(", {known_errata} explained by errata");
    }
    if *known_behaviours > 0 {
        text += &format!(", {known_behaviours} known for this hypervisor");
    }
    if suite.emulated {
        text += "; the PMU is emulated";
    }
    if let Some(reason) = &suite.reason {
        text += &format!("; skipped: {reason}");
    }
    if !suite.lacks.is_empty() {
        text += &format!(". It does not offer: {}", suite.lacks.join(", "));
    }
    text
}
