//! What is shown of an item beside its figures.

use crate::model::{Item, Note, Part, Run};
use crate::{code, flame, heat, machine, plot, spread, table};
use maud::{Markup, html};

/// The item after its name; its parts of several runs stand side by side.
pub fn render(item: &Item, index: usize, runs: &[Run]) -> Markup {
    let beside = runs.len() > 1;
    html! {
        details.item id=(format!("i{index}")) open[item.open] {
            summary {
                span.faint { (item.number) } " " h3 { (item.name) } " " span.kind { (item.kind) }
                @if !item.verdict.text.is_empty() { " " span.tone.(item.verdict.tone.class()) { (item.verdict.tone.sign()) " " (item.verdict.text) } }
            }
            @if beside {
                div.runs {
                    @for (run, body) in &item.bodies { div { h4 { (runs.get(*run).map_or("", |run| &run.name)) } (parts(body, beside)) } }
                }
            } @else {
                @for (_, body) in &item.bodies { (parts(body, beside)) }
            }
        }
    }
}

/// Whether there is something after the item's name.
pub fn has_parts(item: &Item) -> bool {
    item.bodies.iter().any(|(_, parts)| !parts.is_empty())
}

fn parts(parts: &[Part], beside: bool) -> Markup {
    html! { @for part in parts { (self::part(part, beside)) } }
}

fn part(part: &Part, beside: bool) -> Markup {
    match part {
        // Below the run's name, if there is one.
        Part::Heading(text) if beside => html! { h5 { (text) } },
        Part::Heading(text) => html! { h4 { (text) } },
        Part::Text(text) => html! { p { (table::lines(text)) } },
        Part::Note(note) => note_of(note),
        Part::Table(one) => table::render(one),
        Part::Spreads(all) => spread::render(all),
        Part::Plot(one) => plot::render(one),
        Part::Heat(one) => heat::render(one),
        Part::Flame(one) => flame::render(one),
        Part::Code(one) => code::render(one),
    }
}

fn note_of(note: &Note) -> Markup {
    machine::notes(std::slice::from_ref(note))
}
