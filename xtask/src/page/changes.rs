//! A comparison of two reports.

use crate::compare::judge::Outcome;
use crate::compare::render::{shared_notes, state_word, summary, test, word};
use crate::compare::{Comparison, FigureCompared, ItemState};
use crate::kinds::figures::JOULES;
use crate::primitives::unit_of_joules;
use html_report::decimals;
use html_report::model::{Badge, Change, Changes, Note, Tone};

pub(super) fn of(comparison: &Comparison) -> Changes {
    let verdict = match comparison.is_worse() {
        true => Badge::new(Tone::Bad, "worse"),
        false => Badge::new(Tone::Good, "nothing is worse"),
    };
    let differences = comparison.differences.iter();
    let differences =
        differences.map(|one| [one.what.to_string(), one.old.clone(), one.new.clone()]);
    let figures = comparison
        .items
        .iter()
        .flat_map(|item| item.figures.iter().map(|figure| change(&item.name, figure)));
    let mut figures: Vec<Change> = figures.collect();
    // What got worse comes first.
    figures.sort_by_key(|one| match one.outcome.tone {
        Tone::Bad => 0,
        Tone::Warn => 1,
        Tone::Good => 2,
        Tone::Plain => 3 + u8::from(one.quiet),
    });
    Changes {
        verdict,
        summary: summary(comparison),
        differences: differences.collect(),
        notes: notes(comparison),
        figures,
    }
}

fn notes(comparison: &Comparison) -> Vec<Note> {
    let mut all = Vec::new();
    let mut say =
        |tone, label: &str, text: String| all.push(Note { tone, label: label.to_string(), text });
    for item in comparison.items.iter().filter(|item| item.state != ItemState::Both) {
        let tone = if item.state == ItemState::Failed { Tone::Bad } else { Tone::Warn };
        let text =
            std::iter::once(&item.name).chain(&item.notes).cloned().collect::<Vec<_>>().join(": ");
        say(tone, state_word(item.state), text);
    }
    comparison.notes.iter().for_each(|note| say(Tone::Warn, "note", note.clone()));
    for (note, names) in shared_notes(comparison) {
        say(Tone::Plain, "items", format!("{}: {note}", names.join(", ")));
    }
    test(comparison).into_iter().for_each(|text| say(Tone::Plain, "test", text));
    all
}

fn change(item: &str, figure: &FigureCompared) -> Change {
    let compared = &figure.compared;
    let tone = match compared.outcome {
        Outcome::Worse => Tone::Bad,
        Outcome::Better => Tone::Good,
        Outcome::Changed | Outcome::Undecided => Tone::Warn,
        _ => Tone::Plain,
    };
    let (unit, scale) = match figure.unit {
        JOULES => unit_of_joules([figure.old, figure.new].into_iter().flatten()),
        unit => (unit, 1.0),
    };
    Change {
        item: item.to_string(),
        figure: figure.name.clone(),
        unit: unit.to_string(),
        old: figure.old.map(|value| scale * value),
        new: figure.new.map(|value| scale * value),
        interval: compared.interval.map(|ends| ends.map(|end| scale * end)),
        allowed: format!(
            "{} ({} is worse)",
            decimals::number(scale * compared.limit, 3),
            compared.worse
        ),
        outcome: Badge::new(tone, word(compared.outcome).to_lowercase()),
        reason: compared.reason.clone().unwrap_or_default(),
        quiet: matches!(compared.outcome, Outcome::Equal | Outcome::NoChangeShown),
    }
}
