//! What the figures are of: how far to trust them, the machine, notes.

use crate::model::{Note, Run, Tone, Trust};
use crate::table::lines;
use maud::{Markup, html};

/// How far to trust the figures. What holds of all runs is said once, the rest of each run.
pub fn trust(runs: &[Run]) -> Markup {
    let many = runs.len() > 1;
    let shared = |label: &&Trust| runs.iter().all(|run| run.trust.contains(label));
    let common: Vec<&Trust> =
        runs.first().into_iter().flat_map(|run| &run.trust).filter(shared).collect();
    html! {
        @if many {
            div.runs {
                @for run in runs {
                    div {
                        h3 { (run.name) " " span.pill.(run.verdict.tone.class()) { (run.verdict.tone.sign()) " " (run.verdict.text) } }
                        (labels(&run.trust.iter().filter(|label| !shared(label)).collect::<Vec<_>>()))
                    }
                }
            }
            @if !common.is_empty() { h3 { @if runs.len() == 2 { "Both" } @else { "All of them" } } }
        }
        (labels(&common))
    }
}

fn labels(labels: &[&Trust]) -> Markup {
    html! {
        @if !labels.is_empty() {
            ul.trust {
                @for label in labels {
                    li.(label.tone.class()) { strong { span aria-hidden="true" { (label.tone.sign()) } " " (label.head) } " " (label.text) }
                }
            }
        }
    }
}

/// The machines: a list for one, a table for several, whose differences are marked.
pub fn facts(runs: &[Run]) -> Markup {
    let [one] = runs else { return beside(runs) };
    html! { dl.facts { @for (name, value) in &one.facts { div { dt { (name) } dd { (lines(value)) } } } } }
}

fn beside(runs: &[Run]) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|run| &run.facts) {
        if !names.contains(&&**name) {
            names.push(name);
        }
    }
    let of = |run: &Run, name: &str| {
        run.facts
            .iter()
            .find(|(known, _)| known == name)
            .map_or(String::new(), |(_, value)| value.clone())
    };
    html! {
        div.scroll tabindex="0" role="group" aria-label="The machines" {
            table.beside {
                caption { "The machines; what differs is marked" }
                thead { tr { th scope="col" { "what" } @for run in runs { th scope="col" { (run.name) } } } }
                tbody {
                    @for name in names {
                        @let values: Vec<String> = runs.iter().map(|run| of(run, name)).collect();
                        @let differs = values.iter().any(|value| *value != values[0]);
                        tr.differs[differs] {
                            th scope="row" { (name) @if differs { span.sr { " (differs)" } } }
                            @for value in &values { td { (lines(value)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Notes that are shown without being asked for.
const SHOWN: usize = 6;

/// Notes; many of them behind a heading.
pub fn notes(notes: &[Note]) -> Markup {
    if notes.is_empty() {
        return html! {};
    }
    // What went wrong comes first.
    let mut sorted: Vec<&Note> = notes.iter().collect();
    sorted.sort_by_key(|note| match note.tone {
        Tone::Bad => 0,
        Tone::Warn => 1,
        Tone::Good | Tone::Plain => 2,
    });
    let (shown, more) = sorted.split_at(sorted.len().min(SHOWN));
    let list = |notes: &[&Note]| {
        html! { ul.notes { @for note in notes { (self::note(note)) } } }
    };
    html! {
        (list(shown))
        @if !more.is_empty() { details.more { summary { (more.len()) " more notes" } (list(more)) } }
    }
}

fn note(note: &Note) -> Markup {
    html! { li.(note.tone.class()) { strong { (note.label) } " " span { (lines(&note.text)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_what_holds_of_all_runs_is_said_once() {
        let label = |head: &str| Trust { head: head.into(), ..Trust::default() };
        let run = |own: &str| Run { trust: vec![label("shared"), label(own)], ..Run::default() };
        let text = trust(&[run("one"), run("two")]).into_string();
        for (head, count) in [("shared", 1), ("one", 1), ("two", 1), ("Both", 1)] {
            assert_eq!(text.matches(&format!("{head}<")).count(), count, "{head}: {text}");
        }
        let alone = trust(&[run("one")]).into_string();
        assert!(
            alone.contains("shared") && alone.contains("one") && !alone.contains("Both"),
            "{alone}"
        );
    }
}
