//! Reports as one HTML file: what the crate `html-report` is given to draw.
//!
//! A page is made of documents, which are what `--format json` writes. `run` and `collect` go through the same text, so that a
//! report that was kept gives the very page that its run would have given.
//!
//! - `trust` and `facts` tell in words what ran and how far to trust it.
//! - `items`: each kind of item; `forms`, `suites` and `changes` stand by themselves.

mod changes;
mod facts;
mod forms;
mod found;
mod items;
mod suites;
mod trust;

pub use crate::json::read;

use crate::compare::Comparison;
use crate::document::Document;
use html_report::model::{Badge, Note, Page, Run, Tone};

/// One page of all documents, side by side if there are several; with what changed from the first to the second, if they were
/// compared.
#[must_use]
pub fn render(documents: &[Document], comparison: Option<&Comparison>) -> String {
    html_report::render(&page(documents, comparison))
}

fn page(documents: &[Document], comparison: Option<&Comparison>) -> Page {
    Page {
        title: title(documents),
        made_by: format!("Made by barecount {}", env!("CARGO_PKG_VERSION")),
        runs: documents.iter().map(run).collect(),
        changes: comparison.map(changes::of),
        items: items::of(documents),
        forms: forms::of(documents),
        found: found::of(documents),
        suites: suites::of(documents),
    }
}

fn title(documents: &[Document]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in documents.iter().map(Document::title) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names[..] {
        [] => "report".to_string(),
        [one] => one.to_string(),
        [one, other] => format!("{one} and {other}"),
        [one, .., last] => format!("{one} to {last}"),
    }
}

fn run(document: &Document) -> Run {
    let notes = crate::notes::all(&document.report, &document.context);
    Run {
        name: document.name.clone(),
        verdict: verdict(document),
        facts: facts::of(document),
        trust: trust::of(document),
        notes: notes.into_iter().map(note).collect(),
    }
}

fn note(note: crate::notes::Note) -> Note {
    use crate::primitives::style::{ERROR, WARNING};
    let tone = match note.style {
        style if style == ERROR => Tone::Bad,
        style if style == WARNING => Tone::Warn,
        _ => Tone::Plain,
    };
    let lines = std::iter::once(note.text).chain(note.below);
    let text = lines.collect::<Vec<_>>().join("\n");
    Note {
        tone,
        label: note.label.to_string(),
        text: anstream::adapter::strip_str(&text).to_string(),
    }
}

/// How the run went, in its exit code's words.
fn verdict(document: &Document) -> Badge {
    let counts = document.report.end().map(|end| {
        let all = [(end.measured, "measured"), (end.passed, "passed"), (end.failed, "failed")];
        let told = all.iter().filter(|(count, _)| *count > 0);
        told.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    });
    let (tone, word) = match document.exit_code {
        0 => (Tone::Good, "pass"),
        1 => (Tone::Bad, "fail"),
        2 => (Tone::Bad, "no usable job"),
        77 => (Tone::Warn, "nothing could run"),
        130 => (Tone::Bad, "interrupted"),
        _ => (Tone::Bad, "the machine did not finish"),
    };
    match counts.filter(|counts| !counts.is_empty()) {
        Some(counts) => Badge::new(tone, format!("{word}: {counts}")),
        None => Badge::new(tone, word),
    }
}

#[cfg(test)]
mod tests;
