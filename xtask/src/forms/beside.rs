//! Throughput of forms that others stand beside: what these take by themselves is subtracted.

use super::{FormRow, Throughput, broken};
use crate::primitives::number;
use std::collections::HashMap;

/// What a form takes by itself, and which events it has.
type Alone = (f64, Vec<(String, f64)>);

/// Subtracts from each form what those beside it take. These may have others beside themselves, so the simple ones come
/// first.
pub(super) fn subtract(rows: &mut [FormRow]) {
    let mut alone: HashMap<String, Alone> = HashMap::new();
    let mut left: Vec<&mut FormRow> =
        rows.iter_mut().filter(|row| row.throughput.is_some()).collect();
    while !left.is_empty() {
        let known = |row: &FormRow| {
            let with = row.throughput.iter().flat_map(|one| &one.with);
            with.into_iter().all(|form| alone.contains_key(form))
        };
        let (mut ready, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|row| known(row));
        left = rest;
        // What is left waits for forms that were not measured.
        let last = ready.is_empty();
        if last {
            ready = std::mem::take(&mut left);
        }
        for row in ready {
            let Some(one) = &mut row.throughput else { continue };
            without(one, &alone);
            if !last {
                alone.insert(row.form.clone(), (one.value, one.events.clone()));
            }
        }
    }
}

fn without(one: &mut Throughput, alone: &HashMap<String, Alone>) {
    if one.with.is_empty() {
        return;
    }
    let Some(others) = one.with.iter().map(|form| alone.get(form)).collect::<Option<Vec<_>>>()
    else {
        one.bound = Some("at most");
        return;
    };
    one.bound = Some("at least");
    for (value, events) in others {
        one.value -= value;
        for (name, count) in &mut one.events {
            let other = events.iter().find(|(other, _)| other == name);
            *count -= other.map_or(0.0, |(_, count)| *count);
        }
    }
    // Beside others it may take nothing that shows.
    one.value = one.value.max(0.0);
}

impl Throughput {
    /// The figure, with its bound.
    pub(crate) fn text(&self) -> String {
        let bound = match self.bound {
            Some("at least") => "≥ ",
            Some(_) => "≤ ",
            None => "",
        };
        format!("{bound}{}", number(self.value))
    }

    /// How it was measured.
    pub(crate) fn how(&self) -> String {
        let mut how = format!("{} apart", self.copies);
        if !self.with.is_empty() {
            how += &format!(", {} with {}", number(self.measured), self.with.join(" + "));
        }
        how + &broken(&self.breaking)
    }
}
