//! The table of all figures.

use crate::axis::{apart, exact, number};
use crate::model::{Badge, Figure, Item, Page, Tone, Value};
use maud::{Markup, html};

/// Every figure of every item: of one run with its range and spread, of several side by side.
pub fn render(page: &Page) -> Markup {
    let kinds = kinds(page);
    let kinds = (kinds.len() > 1).then(|| kinds.join("\n"));
    let columns = Columns::of(page);
    html! {
        @for (name, unit) in &columns.units { p { code { (name) } ": " (unit) } }
        div.scroll tabindex="0" role="group" aria-label="Figures" {
            table.sort.figures data-filter="" data-kinds=[kinds] {
                caption.sr { "Every figure of every item" }
                thead { tr { (columns.head(page)) } }
                tbody {
                    @for (index, item) in page.items.iter().enumerate() {
                        @if item.figures.is_empty() { (columns.without(item, index)) }
                        @for (number, figure) in item.figures.iter().enumerate() {
                            (columns.row(item, index, figure, number > 0))
                        }
                    }
                }
            }
        }
    }
}

fn kinds(page: &Page) -> Vec<&str> {
    let mut kinds: Vec<&str> = Vec::new();
    for item in &page.items {
        if !kinds.contains(&&*item.kind) {
            kinds.push(&item.kind);
        }
    }
    kinds
}

/// Units that the figures' names do not say, by name: those that all figures of a name have, and names that have several. A figure whose
/// runs have different units says them itself.
fn units(page: &Page) -> (Vec<(&str, &str)>, Vec<&str>) {
    let mut units: Vec<(&str, &str)> = Vec::new();
    let mut several: Vec<&str> = Vec::new();
    let figures = page.items.iter().flat_map(|item| &item.figures);
    for figure in figures.filter(|figure| !figure.unit.is_empty() && figure.has_one_unit()) {
        let one = (&*figure.name, &*figure.unit);
        match units.iter().find(|(name, _)| *name == one.0) {
            Some(known) if *known == one => {}
            Some(_) if several.contains(&one.0) => {}
            Some(_) => several.push(one.0),
            None => units.push(one),
        }
    }
    units.retain(|(name, _)| !several.contains(name));
    (units, several)
}

/// The columns that something stands in.
struct Columns<'a> {
    /// Names and their units.
    units: Vec<(&'a str, &'a str)>,
    /// Names that have several.
    several: Vec<&'a str>,
    runs: usize,
    range: bool,
    spread: bool,
    verdict: bool,
}

impl<'a> Columns<'a> {
    fn of(page: &'a Page) -> Self {
        let (units, several) = units(page);
        let values = || {
            page.items
                .iter()
                .flat_map(|item| &item.figures)
                .flat_map(|figure| figure.values.iter().flatten())
        };
        Self {
            units,
            several,
            runs: page.runs.len().max(1),
            range: values().any(|value| value.range.is_some()),
            spread: values().any(|value| !value.spread.text.is_empty()),
            verdict: values().any(|value| !value.verdict.text.is_empty())
                || page.items.iter().any(|item| !item.verdict.text.is_empty()),
        }
    }

    fn head(&self, page: &Page) -> Markup {
        html! {
            th.n scope="col" { "#" } th scope="col" { "item" } th scope="col" { "figure" }
            @if self.runs > 1 {
                @for run in &page.runs { th.n scope="col" { (run.name) } }
                th scope="col" { "difference" }
            } @else {
                th.n scope="col" { @if self.range { "median" } @else { "value" } }
                @if self.range { th.n scope="col" { "least" } th.n scope="col" { "mean" } th.n scope="col" { "greatest" } }
                th.n scope="col" { "runs" }
                @if self.spread { th scope="col" { "spread" } }
                @if self.verdict { th scope="col" { "verdict" } }
            }
        }
    }

    fn row(&self, item: &Item, index: usize, figure: &'a Figure, same: bool) -> Markup {
        let values: Vec<&Value> = figure.values.iter().flatten().collect();
        html! {
            tr.same[same] data-k=(item.kind) data-t=[tone(item, &values)] {
                (start(item, index, &figure.name, self.unit(figure)))
                @if self.runs > 1 { (beside(figure)) } @else { (self.cells(item, values.first().copied().unwrap_or(&Value::default()))) }
            }
        }
    }

    /// The unit, where it is not said above the table.
    fn unit(&self, figure: &'a Figure) -> &'a str {
        let said = !figure.has_one_unit() || !self.several.contains(&&*figure.name);
        if said { "" } else { &figure.unit }
    }

    fn cells(&self, item: &Item, value: &Value) -> Markup {
        let bounds = value.range.map_or([None; 3], |range| range.map(Some));
        let verdict = if value.verdict.text.is_empty() { &item.verdict } else { &value.verdict };
        html! {
            td.n.v { @if value.scaled { "~" } (value.value.map(number).unwrap_or_default()) }
            @if self.range { @for bound in bounds { td.n { (bound.map(number).unwrap_or_default()) } } }
            td.n { @if value.runs > 0 { (value.runs) } }
            @if self.spread { td.word.(value.spread.tone.class()) { (value.spread.text) } }
            @if self.verdict { td { (badge(verdict)) } }
        }
    }

    /// An item that ended without figures.
    fn without(&self, item: &Item, index: usize) -> Markup {
        let empty = match self.runs {
            1 => 2 + 3 * usize::from(self.range) + usize::from(self.spread),
            runs => runs,
        };
        html! {
            tr data-k=(item.kind) data-t=[tone(item, &[])] {
                (start(item, index, "", ""))
                @for _ in 0..empty { td {} }
                @if self.verdict || self.runs > 1 { td { (badge(&item.verdict)) } }
            }
        }
    }
}

fn start(item: &Item, index: usize, figure: &str, unit: &str) -> Markup {
    html! {
        td.n.faint { (item.number) }
        th scope="row" { a href=(format!("#i{index}")) { (item.name) } }
        td { (figure) @if !unit.is_empty() { span.faint { " " (unit) } } }
    }
}

fn badge(badge: &Badge) -> Markup {
    // A word stays on its line, a sentence may break.
    let word = !badge.text.contains(' ');
    html! {
        @if !badge.text.is_empty() { span.tone.word[word].(badge.tone.class()) { (badge.tone.sign()) " " (badge.text) } }
    }
}

fn tone(item: &Item, values: &[&Value]) -> Option<&'static str> {
    let tones = values.iter().flat_map(|value| [value.verdict.tone, value.spread.tone]);
    let all: Vec<Tone> = tones.chain([item.verdict.tone]).collect();
    [Tone::Bad, Tone::Warn].into_iter().find(|tone| all.contains(tone)).map(Tone::class)
}

fn beside(figure: &Figure) -> Markup {
    let numbers: Vec<Option<f64>> =
        figure.values.iter().map(|value| value.as_ref().and_then(|value| value.value)).collect();
    let mut texts = apart(&numbers.iter().copied().flatten().collect::<Vec<_>>()).into_iter();
    html! {
        @for value in &figure.values {
            td.n {
                @if let Some(value) = value {
                    @if value.scaled { "~" }
                    (value.value.and_then(|_| texts.next()).unwrap_or_default())
                    @if let Some([min, _, max]) = value.range { @if min < max { small { " " (number(min)) "…" (number(max)) } } }
                    @if !value.verdict.text.is_empty() { " " (badge(&value.verdict)) }
                }
            }
        }
        td { @if figure.has_one_unit() { (difference(&numbers)) } @else { span.faint { "different units: " (units_by_run(figure)) } } }
    }
}

/// The units of the runs that have it, in their order.
fn units_by_run(figure: &Figure) -> String {
    let counted = figure.values.iter().flatten().filter(|value| value.value.is_some());
    let units = counted.map(|value| value.other_unit.as_ref().unwrap_or(&figure.unit));
    // The figure's own may be said by its name.
    let units = units.map(|unit| if unit.is_empty() { &figure.name } else { unit });
    units.map(String::as_str).collect::<Vec<_>>().join(" / ")
}

/// From the first run to the last; of the runs between, that they differ.
fn difference(values: &[Option<f64>]) -> Markup {
    if values.iter().any(Option::is_none) {
        return html! { span.faint { "not in all" } };
    }
    let values: Vec<f64> = values.iter().copied().flatten().collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return html! {} };
    if values.iter().all(|value| value == first) {
        return html! { span.faint { "same" } };
    }
    let change = last - first;
    let arrow = if change > 0.0 {
        "▲ +"
    } else if change < 0.0 {
        "▼ "
    } else {
        "differs between "
    };
    let percent = if *first == 0.0 || change == 0.0 {
        String::new()
    } else {
        format!(" ({:+.1} %)", 100.0 * change / first.abs())
    };
    html! { b { (arrow) @if change != 0.0 { (exact(change)) } } (percent.replace('-', "−")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_runs_side_by_side_say_how_they_differ() {
        for (values, expected) in [
            (&[Some(1.0), Some(1.0)][..], "same"),
            (&[Some(2.0), Some(3.0)], "<b>▲ +1</b> (+50.0 %)"),
            (&[Some(4.0), Some(9.0), Some(3.0)], "<b>▼ −1</b> (−25.0 %)"),
            (&[Some(0.0), Some(3.0)], "<b>▲ +3</b>"),
            (&[Some(1.0), Some(2.0), Some(1.0)], "differs between"),
            (&[Some(1.0), None], "not in all"),
            (&[Some(4.0), Some(4.0001)], "<b>▲ +0.0001</b> (+0.0 %)"),
        ] {
            let seen = difference(values).into_string();
            assert!(seen.contains(expected), "{values:?}: {seen}");
        }
    }

    #[test]
    fn x5_figures_of_runs_that_differ_do_not_look_alike() {
        let value = |value| Some(Value { value: Some(value), ..Value::default() });
        let values = vec![value(4.0), None, value(4.0001)];
        let text = beside(&Figure { values, ..Figure::default() }).into_string();
        let cells = "<td class=\"n\">4</td><td class=\"n\"></td><td class=\"n\">4.0001</td>";
        assert!(text.contains(cells), "{text}");
    }

    fn figure(name: &str, unit: &str, values: &[f64]) -> Figure {
        let value = |&value| Some(Value { value: Some(value), ..Value::default() });
        let values = values.iter().map(value).collect();
        Figure { name: name.into(), unit: unit.into(), values }
    }

    #[test]
    fn x5_a_unit_is_told_above_the_table_or_in_the_row_if_a_name_has_several() {
        let item = |figures| Item { figures, ..Item::default() };
        let items = vec![
            item(vec![figure("tsc", "ticks", &[1.0]), figure("energy", "nJ", &[15.0])]),
            item(vec![figure("tsc", "ticks", &[2.0]), figure("energy", "mJ", &[15.0])]),
            item(vec![figure("energy", "nJ", &[16.0])]),
        ];
        let text = render(&Page { items, ..Page::default() }).into_string();
        assert_eq!(text.matches("<p>").count(), 1, "{text}");
        assert!(text.contains("<p><code>tsc</code>: ticks</p>"), "{text}");
        assert_eq!(text.matches("<td>tsc</td>").count(), 2, "{text}");
        let energy = |unit| format!("<td>energy<span class=\"faint\"> {unit}</span></td>");
        let seen = ["nJ", "mJ"].map(|unit| text.matches(&energy(unit)).count());
        assert_eq!(seen, [2, 1], "{text}");
    }

    #[test]
    fn x5_runs_of_different_units_are_not_subtracted() {
        let mut mixed = figure("tsc", "instructions", &[2.0, 3.0]);
        mixed.values[1].as_mut().unwrap().other_unit = Some("ticks".to_string());
        let text = beside(&mixed).into_string();
        assert!(text.contains(">different units: instructions / ticks<"), "{text}");
        assert!(!text.contains('%') && !text.contains('▲'), "{text}");
        let items = vec![Item { figures: vec![mixed], ..Item::default() }];
        let text = render(&Page { items, ..Page::default() }).into_string();
        assert!(!text.contains("<p>"), "neither is the unit of all: {text}");
    }
}
