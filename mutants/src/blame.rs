//! Which mutants an error of the compiler is of.

use crate::build::{Error, Place};
use crate::plan::{Copy, Plan};
use crate::rewrite::Written;
use std::ops::Range;

impl Plan<'_> {
    /// Leaves out what an error is of.
    pub fn blame(&mut self, error: &Error, copy: &Copy) {
        if error.code == "E0015" {
            return self.blame_constant(error, copy);
        }
        let why = format!("{} {}", error.code, error.text);
        let mut named = false;
        for (file, place) in places(error, copy) {
            for (range, number) in file.own.iter().filter(|(range, _)| holds(range, place)) {
                if place.primary {
                    self.unviable.insert(*number, why.clone());
                    self.alone.remove(number);
                } else if !self.unviable.contains_key(number) {
                    self.alone.insert(*number, why.clone());
                }
                named |= !range.is_empty();
            }
        }
        if !named {
            // Of an expression that no mutant of it has alone: none of them is switched.
            for (file, place) in places(error, copy).filter(|(_, place)| place.primary) {
                named |= choice(file, place).is_some();
                self.leave(choice(file, place).unwrap_or_default(), &why);
            }
        }
        if !named {
            self.leave(&guards(error, copy), &why);
        }
    }

    /// A call, where the compiler computes: of a switch, whose mutants are not switched; or of what was a `const fn`.
    fn blame_constant(&mut self, error: &Error, copy: &Copy) {
        if !error.text.contains("`planted`") {
            let path = error.text.split('`').nth(1).unwrap_or_default();
            self.constant.insert(path.rsplit("::").next().unwrap_or(path).to_string());
            return;
        }
        for (file, place) in places(error, copy).filter(|(_, place)| place.primary) {
            let own = || file.own.iter().filter(|(range, _)| holds(range, place)).map(|(_, n)| *n);
            let numbers = choice(file, place).map_or_else(|| own().collect(), <[usize]>::to_vec);
            self.leave(&numbers, "constant");
        }
    }

    fn leave(&mut self, numbers: &[usize], why: &str) {
        self.alone.extend(numbers.iter().map(|&number| (number, why.to_string())));
    }
}

fn places<'a>(error: &'a Error, copy: &'a Copy) -> impl Iterator<Item = (&'a Written, &'a Place)> {
    error.places.iter().filter_map(|place| Some((copy.get(&place.file)?, place)))
}

fn holds(range: &Range<usize>, place: &Place) -> bool {
    range.start <= place.bytes.start && place.bytes.end <= range.end
}

/// The mutants that give an arm a guard between the places of an error: what an arm borrows, the arms after one with a
/// guard may not.
fn guards(error: &Error, copy: &Copy) -> Vec<usize> {
    let mut numbers = Vec::new();
    for (file, first) in places(error, copy).filter(|(_, place)| place.primary) {
        let same = || error.places.iter().filter(|place| place.file == first.file);
        let begin = same().map(|place| place.bytes.start).min();
        let around =
            Place { bytes: begin.unwrap_or(first.bytes.start)..first.bytes.end, ..first.clone() };
        let inside = |range: &Range<usize>| {
            holds(&around.bytes, &Place { bytes: range.clone(), ..around.clone() })
                && file.text[range.clone()].starts_with(" if !")
        };
        numbers.extend(file.own.iter().filter(|(range, _)| inside(range)).map(|(_, n)| *n));
    }
    numbers
}

/// The mutants of the innermost choice that holds a place.
fn choice<'w>(file: &'w Written, place: &Place) -> Option<&'w [usize]> {
    let around = file.choices.iter().filter(|(range, _)| holds(range, place));
    around.min_by_key(|(range, _)| range.len()).map(|(_, numbers)| &numbers[..])
}
