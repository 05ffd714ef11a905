//! Which events of several metrics are counted together: all of one metric's in one pass, in the fewest passes.
//!
//! Metrics share events, which a pass counts once, so metrics with much in common belong into one pass. That is not what the
//! machine's own planner looks for: it takes groups as they are. So the groups are made here, one for each
//! pass, and the machine's planner finds the counters for them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

/// A set of events by their numbers.
pub type Events = BTreeSet<usize>;

/// Combinations that are tried at most.
const MAX_TRIED: u32 = 20_000;

/// What is counted together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passes {
    /// The passes.
    pub passes: Vec<Events>,
    /// Numbers of the metrics whose events do not fit into one pass; they are spread over several.
    pub spread: Vec<usize>,
    /// Whether fewer passes would certainly not do.
    pub fewest: bool,
}

/// Puts metrics into passes. `fits` says whether so many events can be counted at the same time; what does not fit by
/// itself must not be among them, and a part of what fits must fit.
pub fn passes(metrics: &[Events], fits: impl Fn(&Events) -> bool) -> Passes {
    let mut known = Known { fits, answers: HashMap::new() };
    let (whole, parted): (Vec<usize>, Vec<usize>) =
        (0..metrics.len()).partition(|metric| known.fit(&metrics[*metric]));
    let mut whole: Vec<&Events> = whole.iter().map(|metric| &metrics[*metric]).collect();
    // The greatest first; what is a part of another comes with it.
    whole.sort_by_key(|events| std::cmp::Reverse(events.len()));
    let mut atoms: Vec<Events> = Vec::new();
    for events in whole {
        if !events.is_empty() && !atoms.iter().any(|atom| events.is_subset(atom)) {
            atoms.push(events.clone());
        }
    }
    let quick = first_fit(&atoms, &mut known);
    let mut search = Search { atoms: &atoms, best: quick, left: MAX_TRIED };
    search.go(0, &mut Vec::new(), &mut known);
    let (mut best, left) = (search.best, search.left);
    for metric in &parted {
        spread(&metrics[*metric], &mut best, &mut known);
    }
    Passes { passes: best, fewest: left > 0 && parted.is_empty(), spread: parted }
}

/// What is known of sets of events.
struct Known<F> {
    fits: F,
    answers: HashMap<Events, bool>,
}

impl<F: Fn(&Events) -> bool> Known<F> {
    fn fit(&mut self, events: &Events) -> bool {
        if let Some(answer) = self.answers.get(events) {
            return *answer;
        }
        let answer = (self.fits)(events);
        self.answers.insert(events.clone(), answer);
        answer
    }
}

/// Each into the pass to which it adds the fewest events.
fn first_fit<F: Fn(&Events) -> bool>(atoms: &[Events], known: &mut Known<F>) -> Vec<Events> {
    let mut passes: Vec<Events> = Vec::new();
    for atom in atoms {
        put(atom, &mut passes, known);
    }
    passes
}

fn put<F: Fn(&Events) -> bool>(atom: &Events, passes: &mut Vec<Events>, known: &mut Known<F>) {
    let mut order: Vec<usize> = (0..passes.len()).collect();
    order.sort_by_key(|pass| atom.difference(&passes[*pass]).count());
    let both = |pass: &usize| passes[*pass].union(atom).copied().collect::<Events>();
    match order.iter().map(|pass| (*pass, both(pass))).find(|(_, both)| known.fit(both)) {
        Some((pass, both)) => passes[pass] = both,
        None => passes.push(atom.clone()),
    }
}

/// Counts each event that is not counted yet wherever there is room.
fn spread<F: Fn(&Events) -> bool>(events: &Events, passes: &mut Vec<Events>, known: &mut Known<F>) {
    for event in events {
        if !passes.iter().any(|pass| pass.contains(event)) {
            put(&Events::from([*event]), passes, known);
        }
    }
}

struct Search<'a> {
    atoms: &'a [Events],
    best: Vec<Events>,
    left: u32,
}

impl Search<'_> {
    /// Tries every place of the atom with this number: each of the passes so far, and one of its own.
    fn go<F: Fn(&Events) -> bool>(
        &mut self,
        number: usize,
        passes: &mut Vec<Events>,
        known: &mut Known<F>,
    ) {
        if passes.len() >= self.best.len() || self.left == 0 {
            return;
        }
        self.left -= 1;
        let Some(atom) = self.atoms.get(number) else {
            self.best.clone_from(passes);
            return;
        };
        for pass in 0..passes.len() {
            let both: Events = passes[pass].union(atom).copied().collect();
            if known.fit(&both) {
                let before = std::mem::replace(&mut passes[pass], both);
                self.go(number + 1, passes, known);
                passes[pass] = before;
            }
        }
        passes.push(atom.clone());
        self.go(number + 1, passes, known);
        passes.pop();
    }
}
