//! A conformance suite: a tile for each check, and below what was expected and what was seen.

use crate::model::{Check, Matrix, Run, Tone};
use crate::table::lines;
use maud::{Markup, html};

/// The suite of all runs.
pub fn render(matrix: &Matrix, runs: &[Run], number: usize) -> Markup {
    let many = runs.len() > 1;
    let mut families: Vec<(&str, Vec<(usize, &Check)>)> = Vec::new();
    for (index, check) in matrix.checks.iter().enumerate() {
        match families.last_mut() {
            Some((family, checks)) if *family == check.family => checks.push((index, check)),
            _ => families.push((&check.family, vec![(index, check)])),
        }
    }
    html! {
        @for (index, summary) in matrix.summaries.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
            p { @if many { b { (runs.get(index).map_or("", |run| &run.name)) ": " } } (summary) }
        }
        @for run in 0..runs.len() {
            div.tiles {
                @if many { h4 { (runs[run].name) } }
                @for (family, checks) in &families {
                    div.family {
                        @if many { h5 { (family) } } @else { h4 { (family) } }
                        ul { @for (index, check) in checks { (tile(check, run, number, *index)) } }
                    }
                }
            }
        }
        (table(matrix, runs, number))
    }
}

fn tile(check: &Check, run: usize, number: usize, index: usize) -> Markup {
    let Some(result) = check.results.get(run).and_then(Option::as_ref) else {
        return html! { li {} };
    };
    let name = format!("{}.{}: {}", check.family, check.name, result.verdict.text);
    html! {
        li {
            a.(result.verdict.tone.class()) href=(format!("#c{number}-{index}")) title=(name) aria-label=(name) {
                (sign(&result.verdict.text, result.verdict.tone))
            }
        }
    }
}

/// A skipped check is neither good nor bad.
fn sign<'a>(word: &str, tone: Tone) -> &'a str {
    if word == "skip" { "–" } else { tone.sign() }
}

fn table(matrix: &Matrix, runs: &[Run], number: usize) -> Markup {
    let heads: Vec<&str> = match runs {
        [_] => vec!["verdict"],
        runs => runs.iter().map(|run| &*run.name).collect(),
    };
    html! {
        div.scroll tabindex="0" role="group" aria-label=(format!("Checks of {}", matrix.name)) {
            table.sort.checks data-filter="" {
                caption { "Every check: what was expected, what was seen, and where the expectation comes from" }
                thead {
                    tr {
                        th scope="col" { "check" }
                        @for head in &heads { th scope="col" { (head) } }
                        th scope="col" { "expected" } th scope="col" { "seen" } th scope="col" { "source" }
                    }
                }
                tbody { @for (index, check) in matrix.checks.iter().enumerate() { (row(check, runs, number, index)) } }
            }
        }
    }
}

fn row(check: &Check, runs: &[Run], number: usize, index: usize) -> Markup {
    let results: Vec<_> = check.results.iter().flatten().collect();
    // Where all runs say the same it is said once.
    let expected = results.first().map_or("", |one| &one.expected);
    let expected_same = results.iter().all(|one| one.expected == expected);
    let seen = results.first().map_or("", |one| &one.seen);
    let seen_same = results.iter().all(|one| one.seen == seen);
    let each = |pick: fn(&crate::model::Checked) -> &str| {
        html! {
            @for (run, result) in runs.iter().zip(&check.results) {
                @if let Some(result) = result { div { b { (run.name) ": " } (lines(pick(result))) } }
            }
        }
    };
    html! {
        tr id=(format!("c{number}-{index}")) {
            th scope="row" { span.faint { (check.family) "." } wbr; (check.name) }
            @for result in &check.results {
                td {
                    @if let Some(result) = result {
                        @let verdict = &result.verdict;
                        span.tone.(verdict.tone.class()) { (sign(&verdict.text, verdict.tone)) " " (verdict.text) }
                    }
                }
            }
            td { @if expected_same { (lines(expected)) } @else { (each(|one| &one.expected)) } }
            td { @if seen_same { (lines(seen)) } @else { (each(|one| &one.seen)) } }
            td.faint { (check.source) }
        }
    }
}
