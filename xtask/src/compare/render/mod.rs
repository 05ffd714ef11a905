//! A comparison in the forms that people and CI services read.
//!
//! Names come from a job and a machine, so each form escapes what it would take for its own.

mod annotations;
mod benchmark;
mod junit;
mod markdown;
mod table;

use super::judge::Outcome;
use super::{Comparison, FigureCompared, ItemCompared, ItemState};
use crate::cli::CompareFormat;
use crate::primitives::table::Width;
use crate::text::ascii_controls;
use html_report::decimals;

/// The comparison in `format`; `all`: also what is the same, in a table. Styled text, as the report's.
#[must_use]
pub fn render(comparison: &Comparison, format: CompareFormat, all: bool, width: Width) -> String {
    match format {
        CompareFormat::Table => table::render(comparison, all, width),
        CompareFormat::Json => json(comparison),
        CompareFormat::Html => crate::page::render(&[], Some(comparison)),
        CompareFormat::Markdown => markdown::render(comparison),
        CompareFormat::Junit => junit::render(comparison),
        CompareFormat::CustomSmallerIsBetter => pretty(&benchmark::smaller_is_better(comparison)),
        CompareFormat::Bencher => pretty(&benchmark::bencher(comparison)),
        CompareFormat::Annotations => annotations::render(comparison),
    }
}

fn json(comparison: &Comparison) -> String {
    let mut value = serde_json::to_value(comparison).expect("comparisons serialise");
    value["worse"] = comparison.is_worse().into();
    value["exit_code"] = comparison.exit_code().into();
    pretty(&value)
}

fn pretty(value: &serde_json::Value) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("values serialise");
    text.push('\n');
    ascii_controls(&text).into_owned()
}

/// Decimals of a figure, if it takes no more.
const DECIMALS: usize = 6;

/// A figure in as many digits as it takes.
fn number(value: f64) -> String {
    decimals::number(value, DECIMALS)
}

/// What was and what is, so that they do not look alike if they differ; an empty text for what is absent.
fn both(figure: &FigureCompared) -> [String; 2] {
    match figure.old.zip(figure.new) {
        Some((old, new)) => decimals::apart(&[old, new], DECIMALS).try_into().unwrap_or_default(),
        None => [figure.old, figure.new].map(|value| value.map_or(String::new(), number)),
    }
}

/// The same with its sign.
fn signed(value: f64) -> String {
    let text = number(value);
    if value > 0.0 { format!("+{text}") } else { text }
}

fn percent(figure: &FigureCompared) -> String {
    figure.percent().map_or(String::new(), |percent| format!("{percent:+.2} %"))
}

/// The interval of the change, if the figure varies.
fn interval(figure: &FigureCompared) -> String {
    let ends = figure.compared.interval;
    ends.map_or(String::new(), |[low, high]| format!("{} to {}", signed(low), signed(high)))
}

pub(crate) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Worse => "WORSE",
        Outcome::Changed => "changed",
        Outcome::Better => "better",
        Outcome::WithinLimit => "within its limit",
        Outcome::Undecided => "undecided",
        Outcome::NotCompared => "not compared",
        Outcome::NoChangeShown => "no change shown",
        Outcome::Equal => "equal",
    }
}

pub(crate) fn state_word(state: ItemState) -> &'static str {
    match state {
        ItemState::Both => "in both",
        ItemState::Added => "added",
        ItemState::Removed => "removed",
        ItemState::Failed => "FAILED",
        ItemState::Recovered => "has figures again",
        ItemState::NoFigures => "no figures",
    }
}

/// A figure's change in a sentence.
fn sentence(figure: &FigureCompared) -> String {
    let FigureCompared { name, unit, compared, .. } = figure;
    let [old, new] =
        both(figure).map(|text| if text.is_empty() { "nothing".to_string() } else { text });
    let mut text = format!("{name}: {old} to {new} {unit}");
    if compared.outcome != Outcome::NotCompared && compared.change != 0.0 {
        let parts = [signed(compared.change), percent(figure)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        text += &format!(" ({})", parts.join(", "));
    }
    if let Some([low, high]) = compared.interval {
        text += &format!("; by {} to {}", signed(low), signed(high));
    }
    text += &format!("; {}", word(compared.outcome));
    if matches!(compared.outcome, Outcome::Worse | Outcome::WithinLimit) {
        text += &format!(", {} is worse, by {} allowed", compared.worse, number(compared.limit));
    }
    if let Some(reason) = &compared.reason {
        text += &format!(": {reason}");
    }
    text
}

/// What everything came to, in a line without its first word.
pub(crate) fn summary(comparison: &Comparison) -> String {
    let figures = [
        (Outcome::Worse, "worse"),
        (Outcome::Changed, "changed"),
        (Outcome::Better, "better"),
        (Outcome::WithinLimit, "within their limits"),
        (Outcome::Undecided, "undecided"),
        (Outcome::NoChangeShown, "no change shown"),
        (Outcome::Equal, "equal"),
        (Outcome::NotCompared, "not compared"),
    ];
    let figures = figures.map(|(outcome, what)| (comparison.count(outcome), what));
    let items = [
        (ItemState::Failed, "failed"),
        (ItemState::Recovered, "recovered"),
        (ItemState::Added, "added"),
        (ItemState::Removed, "removed"),
        (ItemState::NoFigures, "without figures"),
    ];
    let items = items.map(|(state, what)| (comparison.items_in(state), what));
    let told = |all: &[(usize, &str)]| {
        let told = all.iter().filter(|(count, _)| *count > 0);
        told.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    };
    let (figures, items) = (told(&figures), told(&items));
    match items.is_empty() {
        true => format!("figures: {figures}"),
        false => format!("figures: {figures}; items: {items}"),
    }
}

/// How figures that vary were judged, if there are some.
pub(crate) fn test(comparison: &Comparison) -> Option<String> {
    let super::TestUsed { name, confidence, figures } = comparison.test;
    let percent = number(confidence * 100.0);
    (figures > 0).then(|| {
        let vary = if figures == 1 { "1 figure varies".to_string() } else { format!("{figures} figures vary") };
        format!(
            "{vary} from run to run: judged by the interval of the shift ({name} test); all these intervals hold together with \
             {percent} %"
        )
    })
}

/// What is to be known of items that are in both reports: each note with the names of its items.
pub(crate) fn shared_notes(comparison: &Comparison) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for item in comparison.items.iter().filter(|item| item.state == ItemState::Both) {
        for note in &item.notes {
            match all.iter_mut().find(|(known, _)| known == note) {
                Some((_, names)) => names.push(&item.name),
                None => all.push((note, vec![&item.name])),
            }
        }
    }
    all
}

/// The first of many names, each as `show` has it, and how many more there are.
fn listed(names: &[&str], show: impl Fn(&str) -> String) -> String {
    const MOST: usize = 5;
    let shown: Vec<String> = names.iter().take(MOST).map(|name| show(name)).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What could not be compared or decided: figure, reason, first item, how many more.
fn untold(comparison: &Comparison) -> Vec<(Outcome, String)> {
    let mut said: Vec<(Outcome, &str, &str, &ItemCompared, usize)> = Vec::new();
    for item in &comparison.items {
        for figure in &item.figures {
            let (outcome, Some(reason)) = (figure.compared.outcome, &figure.compared.reason) else {
                continue;
            };
            let known = said
                .iter_mut()
                .find(|(o, name, why, ..)| *o == outcome && *name == figure.name && *why == reason);
            match known {
                Some((.., more)) => *more += 1,
                None => said.push((outcome, &figure.name, reason, item, 0)),
            }
        }
    }
    let lines = said.into_iter().map(|(outcome, figure, reason, item, more)| {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (outcome, format!("{figure}: {reason}; in {}{more}", item.name))
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
