//! The new report's figures for services that keep their own history.
//!
//! - `customSmallerIsBetter` of github-action-benchmark: a list of `name`, `unit`, `value`, and `range` and `extra` that may
//!   be left out (its README, "Tool specific setup", custom benchmarks). Figures of which less is worse have no place in it.
//! - Bencher Metric Format: an object of benchmarks, each an object of measures with `value`, and `lower_value` and
//!   `upper_value` that may be left out; names of benchmarks have at most 1,024 characters, of measures 64.

use super::number;
use crate::compare::{Comparison, FigureCompared, ItemCompared};
use crate::limits::Worse;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// Most characters of a benchmark's name in Bencher.
const MAX_BENCHMARK: usize = 1024;
/// Most characters of a measure's name there.
const MAX_MEASURE: usize = 64;

/// Figures of the new report, with names of items of which no two are the same.
fn figures(comparison: &Comparison) -> Vec<(String, &ItemCompared)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    // An item keeps its own name, even if another one's with its number would be the same.
    let mut taken: HashSet<String> = comparison.items.iter().map(|one| one.name.clone()).collect();
    let named = comparison.items.iter().filter(|item| item.of_new().next().is_some());
    let named = named.map(|item| {
        let number = seen.entry(&item.name).or_default();
        *number += 1;
        if *number == 1 {
            return (item.name.clone(), item);
        }
        loop {
            let name = format!("{} ({number})", item.name);
            if taken.insert(name.clone()) {
                return (name, item);
            }
            *number += 1;
        }
    });
    named.collect()
}

pub(super) fn smaller_is_better(comparison: &Comparison) -> Value {
    let mut all = Vec::new();
    for (name, item) in figures(comparison) {
        let judged = item.of_new().filter(|(figure, _)| figure.compared.worse == Worse::More);
        for (figure, value) in judged {
            let mut one = json!({
                "name": format!("{name} / {}", figure.name),
                "unit": figure.unit,
                "value": value,
            });
            if let Some([least, greatest]) = figure.new_range {
                one["range"] = format!("{} to {}", number(least), number(greatest)).into();
            }
            one["extra"] = format!("{} of {}", item.kind, comparison.new).into();
            all.push(one);
        }
    }
    Value::Array(all)
}

pub(super) fn bencher(comparison: &Comparison) -> Value {
    let mut all = Map::new();
    for (name, item) in figures(comparison) {
        let mut of_item = Map::new();
        for (figure, value) in item.of_new() {
            of_item.insert(cut(&figure.name, MAX_MEASURE), metric(figure, value));
        }
        all.insert(cut(&name, MAX_BENCHMARK), Value::Object(of_item));
    }
    Value::Object(all)
}

fn metric(figure: &FigureCompared, value: f64) -> Value {
    match figure.new_range {
        Some([least, greatest]) => json!({
            "value": value,
            "lower_value": least.min(value),
            "upper_value": greatest.max(value),
        }),
        None => json!({ "value": value }),
    }
}

/// A name of at most `max` characters; one that must be cut ends in a digest, so that it stays one of its own.
fn cut(name: &str, max: usize) -> String {
    if name.chars().count() <= max {
        return name.to_string();
    }
    let digest = format!("~{:x}", crate::job::digest(name.as_bytes()).0);
    let kept = max - digest.len();
    name.chars().take(kept).chain(digest.chars()).collect()
}
