//! The document around everything.

use crate::model::{Note, Page, Run};
use crate::{changes, figures, item, machine, matrix, table};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("../assets/style.css");
const SCRIPT: &str = include_str!("../assets/script.js");

/// The page as the text of a file.
#[must_use]
pub fn render(page: &Page) -> String {
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // Nothing is loaded, and no script runs but the one whose digest stands here.
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(page.made_by);
                link rel="icon" href="data:,";
                title { (page.title) " · barecount" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "To the report" }
                (header(page))
                main #main { (sections(page)) }
                footer { p { (page.made_by) } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    text.into_string()
}

fn policy() -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; base-uri 'none'; \
         form-action 'none'"
    )
}

fn header(page: &Page) -> Markup {
    html! {
        header.top {
            p.brand { "barecount" }
            h1 { (page.title) }
            @if let [run] = &page.runs[..] {
                p.lead { span.pill.(run.verdict.tone.class()) { (run.verdict.tone.sign()) " " (run.verdict.text) } }
            }
            nav aria-label="Parts of the report" {
                ul { @for (id, name, count) in links(page) { li { a href=(format!("#{id}")) { (name) @if count > 0 { " " small { (count) } } } } } }
            }
        }
    }
}

/// The page's parts: place, name, how many things are in it.
fn links(page: &Page) -> Vec<(&'static str, &'static str, usize)> {
    let figures = page.items.iter().map(|item| item.figures.len()).sum();
    let notes = page.runs.iter().map(|run| run.notes.len()).sum();
    let forms = page.forms.iter().map(|table| table.rows.len()).sum();
    let checks = page.suites.iter().map(|suite| suite.checks.len()).sum();
    let changed = page
        .changes
        .as_ref()
        .map_or(0, |changes| changes.figures.iter().filter(|one| !one.quiet).count());
    let items = page.items.iter().filter(|item| item::has_parts(item)).count();
    let all = [
        ("changes", "Changes", page.changes.is_some(), changed),
        ("machine", "Machine and trust", !page.runs.is_empty(), 0),
        ("notes", "Notes", notes > 0, notes),
        ("forms", "Instruction forms", forms > 0, forms),
        ("found", "Bring-up", !page.found.is_empty(), page.found.len()),
        ("conformance", "Conformance", checks > 0 || !page.suites.is_empty(), checks),
        ("figures", "Figures", has_figures(page), figures),
        ("items", "Items", items > 0, items),
    ];
    all.into_iter()
        .filter(|(_, _, there, _)| *there)
        .map(|(id, name, _, count)| (id, name, count))
        .collect()
}

fn has_figures(page: &Page) -> bool {
    !page.items.is_empty()
}

fn sections(page: &Page) -> Markup {
    let shown: Vec<&str> = links(page).into_iter().map(|(id, ..)| id).collect();
    let shows = |id: &str| shown.contains(&id);
    html! {
        @if let Some(compared) = &page.changes { section #changes { h2 { "What changed" } (changes::render(compared)) } }
        @if shows("machine") {
            section #machine {
                h2 { "How far to trust these figures" }
                (machine::trust(&page.runs))
                h2 { @if page.runs.len() > 1 { "The machines" } @else { "The machine" } }
                (machine::facts(&page.runs))
            }
        }
        @if shows("notes") { section #notes { h2 { "Notes" } (notes(&page.runs)) } }
        @if shows("forms") { section #forms { h2 { "Instruction forms" } @for one in &page.forms { (table::render(one)) } } }
        @if shows("found") { section #found { h2 { "What the bring-up found" } @for one in &page.found { (table::render(one)) } } }
        @if shows("conformance") {
            section #conformance {
                h2 { "Conformance of the PMU" }
                @for (number, suite) in page.suites.iter().enumerate() { h3 { (suite.name) } (matrix::render(suite, &page.runs, number)) }
            }
        }
        @if shows("figures") { section #figures { h2 { "Figures" } (figures::render(page)) } }
        @if shows("items") {
            section #items {
                h2 { "Item by item" }
                div.items { @for (index, one) in page.items.iter().enumerate() { (item::render(one, index, &page.runs)) } }
            }
        }
    }
}

fn notes(runs: &[Run]) -> Markup {
    if let [run] = runs {
        return machine::notes(&run.notes);
    }
    let shared = |note: &&Note| runs.iter().all(|run| run.notes.contains(note));
    let common = runs.first().into_iter().flat_map(|run| &run.notes).filter(shared).cloned();
    let named = runs.iter().flat_map(|run| {
        let own = run.notes.iter().filter(|note| !shared(note));
        own.map(|note| Note { text: format!("{}: {}", run.name, note.text), ..note.clone() })
    });
    machine::notes(&common.chain(named).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in front of a number is passed over where a column is sorted: `≥ 3.5` is 3.5.
    #[test]
    fn x5_the_script_passes_over_every_mark_in_front_of_a_number() {
        let (_, rest) =
            SCRIPT.split_once("parseFloat(text.replace(/^[").expect("where it reads numbers");
        let (marks, _) = rest.split_once("]+/").expect("the end of the marks");
        for mark in ["~", "≤", "≥", "+", "\\s"] {
            assert!(marks.contains(mark), "{mark}: {marks}");
        }
    }
}
