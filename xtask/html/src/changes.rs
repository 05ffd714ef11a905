//! What changed from one run to another.

use crate::axis::{Scale, apart, exact};
use crate::model::{Change, Changes};
use crate::{machine, short};
use maud::{Markup, html};

/// The comparison: what else differs, and each figure with its change marked.
pub fn render(changes: &Changes) -> Markup {
    let largest = changes.figures.iter().filter_map(relative).map(f64::abs);
    let scale = Scale::of(largest.map(|share| share.min(1.0)));
    let quiet = changes.figures.iter().filter(|one| one.quiet).count();
    html! {
        p.lead { span.pill.(changes.verdict.tone.class()) { (changes.verdict.tone.sign()) " " (changes.verdict.text) } " " (changes.summary) }
        @if !changes.differences.is_empty() {
            div.scroll tabindex="0" role="group" aria-label="What else differs" {
                table {
                    caption { "What else differs" }
                    thead { tr { th scope="col" { "what" } th scope="col" { "old" } th scope="col" { "new" } } }
                    tbody { @for [what, old, new] in &changes.differences { tr { th scope="row" { (what) } td { (old) } td { (new) } } } }
                }
            }
        }
        (machine::notes(&changes.notes))
        @if !changes.figures.is_empty() {
            div.scroll tabindex="0" role="group" aria-label="Figures, old and new" {
                table.sort.changes data-filter="" data-quiet=[(quiet > 0).then_some("the same")] {
                    caption { "Figures, old and new" }
                    thead {
                        tr {
                            th scope="col" { "item" } th scope="col" { "figure" } th.n scope="col" { "old" } th.n scope="col" { "new" }
                            th.n scope="col" { "change" } th.n scope="col" { "%" } th.n scope="col" { "interval" } th scope="col" { "allowed" }
                            th scope="col" { "outcome" }
                        }
                    }
                    tbody { @for one in &changes.figures { (row(one, scale)) } }
                }
            }
        }
    }
}

/// The change as a share of what was.
fn relative(one: &Change) -> Option<f64> {
    let (old, new) = (one.old?, one.new?);
    (old != 0.0 && old.is_finite() && new.is_finite()).then(|| (new - old) / old.abs())
}

fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", exact(value)) } else { exact(value) }
}

fn row(one: &Change, scale: Scale) -> Markup {
    let [old, new] = match one.old.zip(one.new) {
        Some((old, new)) => apart(&[old, new]).try_into().unwrap_or_default(),
        None => [one.old, one.new].map(|value| value.map(exact).unwrap_or_default()),
    };
    let change = one.old.zip(one.new).map(|(old, new)| new - old).filter(|change| *change != 0.0);
    let share = relative(one).filter(|share| *share != 0.0);
    // From the middle to the left or the right, at most half the cell.
    let bar = share.map(|share| {
        let width = scale.place(share.abs().min(1.0)) * 50.0;
        let left = if share < 0.0 { 50.0 - width } else { 50.0 };
        format!("--l:{}%;--w:{}%", short(left, 1), short(width.max(1.0), 1))
    });
    html! {
        tr.quiet[one.quiet] {
            th scope="row" { (one.item) }
            td { (one.figure) @if !one.unit.is_empty() { span.faint { " " (one.unit) } } }
            td.n { (old) } td.n { (new) }
            td.n { (change.map(signed).unwrap_or_default()) }
            td.n.delta.(one.outcome.tone.class()) style=[bar] { @if let Some(share) = share { (signed((share * 1000.0).round() / 10.0)) } }
            td.n { @if let Some([low, high]) = one.interval { (signed(low)) " to " (signed(high)) } }
            td { (one.allowed) }
            td { span.tone.(one.outcome.tone.class()) { (arrow(one)) (one.outcome.text) } @if !one.reason.is_empty() { br; small { (one.reason) } } }
        }
    }
}

/// The direction of a change, for those who do not see its colour.
fn arrow(one: &Change) -> &'static str {
    match one.old.zip(one.new).map(|(old, new)| new.total_cmp(&old)) {
        Some(std::cmp::Ordering::Greater) => "▲ ",
        Some(std::cmp::Ordering::Less) => "▼ ",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Badge, Tone};

    #[test]
    fn x5_a_change_is_marked_with_its_direction_its_size_and_its_outcome() {
        let one = |old, new, tone, word: &str| Change {
            item: "<i>".into(),
            figure: "tsc".into(),
            old: Some(old),
            new: Some(new),
            outcome: Badge::new(tone, word),
            ..Change::default()
        };
        let figures = vec![
            one(100.0, 150.0, Tone::Bad, "worse"),
            one(100.0, 75.0, Tone::Good, "better"),
            Change { quiet: true, ..one(1.0, 1.0, Tone::Plain, "equal") },
        ];
        let text = render(&Changes { figures, ..Changes::default() }).into_string();
        for part in [
            "▲ worse",
            "▼ better",
            "+50",
            "−25",
            "--l:50%;--w:50%",
            "--l:25%;--w:25%",
            "&lt;i&gt;",
            "data-quiet",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("class=\"quiet\"").count(), 1);
    }

    #[test]
    fn x5_a_change_in_the_fourth_decimal_is_seen() {
        for (old, new, cells) in [
            (4.0, 4.0001, ["4", "4.0001", "+0.0001"]),
            (2e-6, 1.5e-6, ["2.00e-6", "1.50e-6", "−5.00e-7"]),
        ] {
            let change = Change { old: Some(old), new: Some(new), ..Change::default() };
            // 4.0001 - 4 is not 0.0001 exactly.
            let text = row(&change, Scale { low: 0.0, high: 1.0 }).into_string();
            for cell in cells {
                assert!(text.contains(&format!("<td class=\"n\">{cell}</td>")), "{cell}: {text}");
            }
        }
        let change = Change { old: None, new: Some(1e-4), ..Change::default() };
        let text = row(&change, Scale { low: 0.0, high: 1.0 }).into_string();
        assert!(text.contains("<td class=\"n\"></td><td class=\"n\">0.0001</td>"), "{text}");
    }
}
