//! Annotations next to the job's lines: workflow commands of GitHub Actions.
//!
//! `::error file=…,line=…,title=…::message`; in the message `%`, CR and LF are escaped, in a property `:` and `,` as well
//! (`escapeData` and `escapeProperty` of actions/toolkit, packages/core/src/command.ts). GitHub shows ten annotations of each
//! kind for a step, so an item has one for all its figures.

use super::{sentence, state_word, summary};
use crate::compare::judge::Outcome;
use crate::compare::{Comparison, ItemCompared, ItemState};
use crate::text::printable;

/// Renders it.
pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    for item in &comparison.items {
        let of = |outcome| {
            let all = item.figures.iter().filter(move |one| one.compared.outcome == outcome);
            all.map(sentence).collect::<Vec<_>>()
        };
        let worse = of(Outcome::Worse);
        let title = |what: &str| format!("{}: {what}", item.name);
        if !worse.is_empty() {
            command(&mut out, "error", comparison, Some(item), &title("worse"), &worse);
        }
        let better = of(Outcome::Better);
        if !better.is_empty() {
            command(&mut out, "notice", comparison, Some(item), &title("better"), &better);
        }
        let level = match item.state {
            ItemState::Failed => "error",
            ItemState::Removed | ItemState::NoFigures => "warning",
            ItemState::Both | ItemState::Added | ItemState::Recovered => continue,
        };
        let title = title(state_word(item.state));
        let told = if item.notes.is_empty() { vec![title.clone()] } else { item.notes.clone() };
        command(&mut out, level, comparison, Some(item), &title, &told);
    }
    let differs = comparison.differences.iter();
    let differs = differs.map(|one| format!("{}: {}, now {}", one.what, one.old, one.new));
    let differs: Vec<String> = differs.chain(comparison.notes.iter().cloned()).collect();
    if !differs.is_empty() {
        command(&mut out, "notice", comparison, None, "the reports differ", &differs);
    }
    command(&mut out, "notice", comparison, None, "compared", &[summary(comparison)]);
    out
}

fn command(
    out: &mut String,
    level: &str,
    comparison: &Comparison,
    item: Option<&ItemCompared>,
    title: &str,
    lines: &[String],
) {
    let mut properties = Vec::new();
    if let Some((file, line)) = comparison.file.as_ref().zip(item.and_then(|item| item.line)) {
        // Names are relative to the repository's root, without `./`.
        let file = file.strip_prefix("./").unwrap_or(file);
        properties.push(format!("file={},line={line}", property(file)));
    }
    properties.push(format!("title={}", property(title)));
    *out += &format!("::{level} {}::{}\n", properties.join(","), data(&lines.join("\n")));
}

/// A message. What a terminal would obey is spelt out: the log shows it too.
fn data(text: &str) -> String {
    let clean: Vec<_> = text.split('\n').map(printable).collect();
    clean.join("\n").replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's value.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
