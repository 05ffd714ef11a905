//! By cycles alone.
//!
//! Instructions of one micro-operation that take 1/k cycles have k ports. Sixteen of them and one other instruction take longer than
//! sixteen exactly if micro-operations of that one have to run on the same ports: by 1/k for each. So the sets of two such
//! instructions are told to lie within each other or not, and every other instruction to have so many micro-operations in a set. The
//! ports' numbers cannot be told, nor how many ports two sets share of which none lies within the other.

use super::render::name_of;
use super::{BLOCKING, Figures, Mix, SLACK, Untold, WHOLE, WHOLE_PORTS, whole};

/// Of the instructions that the front end gives in a cycle, a set of ports has to take fewer: else the front end is what is measured.
const FRONT_END: f64 = 0.9;

/// A set of ports, named after the forms that have it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Set {
    /// `A` and so on.
    pub name: String,
    /// How many ports it has.
    pub ports: u32,
    /// Forms that have it, of which the first one is the blocking instruction.
    pub forms: Vec<usize>,
    /// The sets, by index, that lie within it.
    pub contains: Vec<usize>,
}

/// What cycles tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The sets of ports, smallest first.
    pub sets: Vec<Set>,
    /// For each form how many micro-operations are in which set, or why that is not told.
    pub forms: Vec<Result<Vec<(u32, usize)>, Untold>>,
}

/// The ports of each form by cycles. `nothing` is a form that takes no port, by which the front end's rate is known.
pub fn by_throughput(
    forms: usize,
    candidates: &[usize],
    nothing: usize,
    mut measure: impl FnMut(&Mix) -> Option<Figures>,
) -> Told {
    let alone: Vec<Option<Figures>> = (0..forms).map(|form| measure(&[(form, 1)])).collect();
    let none = |why| Told { sets: Vec::new(), forms: vec![Err(Untold::NoMethod(why)); forms] };
    let Some(front_end) = alone[nothing].as_ref().map(|figures| figures.cycles) else {
        return none("NOP was not measured, so the front end's rate is unknown");
    };
    if !candidates.iter().any(|form| alone[*form].as_ref().is_some_and(|one| one.uops.is_some())) {
        return none("no event counts micro-operations");
    }
    let mut work = Work { alone: &alone, front_end, measure: &mut measure };
    let mut sets: Vec<Set> = Vec::new();
    for &form in candidates {
        let Some(ports) = work.ports_of_single(form) else { continue };
        let same = sets.iter().position(|set| {
            set.ports == ports && work.within(form, set.forms[0], ports) == Some(true)
        });
        match same {
            Some(index) => sets[index].forms.push(form),
            None => {
                let (name, forms) = (String::new(), vec![form]);
                sets.push(Set { name, ports, forms, contains: Vec::new() });
            }
        }
    }
    if sets.is_empty() {
        return none("no instruction is slower than the front end, so no port is visible");
    }
    sets.sort_by_key(|set| set.ports);
    for index in 0..sets.len() {
        sets[index].name = name_of(index);
        let (ports, outer) = (sets[index].ports, sets[index].forms[0]);
        let smaller = (0..sets.len()).filter(|other| sets[*other].ports < ports);
        let inner =
            smaller.filter(|other| work.within(sets[*other].forms[0], outer, ports) == Some(true));
        sets[index].contains = inner.collect();
    }
    let told = (0..forms).map(|form| work.one(form, &sets)).collect();
    Told { sets, forms: told }
}

struct Work<'a, M> {
    alone: &'a [Option<Figures>],
    /// Cycles of an instruction that takes no port.
    front_end: f64,
    measure: &'a mut M,
}

impl<M: FnMut(&Mix) -> Option<Figures>> Work<'_, M> {
    /// Ports of a form with one micro-operation, if they are told by cycles.
    fn ports_of_single(&self, form: usize) -> Option<u32> {
        let alone = self.alone[form].as_ref()?;
        let is_one = whole(alone.uops?, WHOLE, "") == Ok(1);
        let ports = whole(1.0 / alone.cycles, WHOLE_PORTS, "").ok().filter(|ports| *ports > 0)?;
        (is_one && !self.is_hidden(ports, 1)).then_some(ports)
    }

    /// Whether the front end takes longer for the blocking instructions and so many micro-operations than a set of ports.
    fn is_hidden(&self, ports: u32, uops: u32) -> bool {
        let behind = f64::from(BLOCKING) / f64::from(ports);
        f64::from(BLOCKING + uops) * self.front_end > behind * FRONT_END
    }

    /// Micro-operations of a form that have to run on the ports of a blocking instruction.
    fn more(&mut self, form: usize, blocker: usize, ports: u32) -> Result<u32, Untold> {
        let figures = (self.measure)(&[(blocker, BLOCKING), (form, 1)])
            .ok_or_else(|| Untold::NotMeasured("it with a blocking instruction".to_string()))?;
        let more = figures.cycles * f64::from(ports) - f64::from(BLOCKING);
        whole(more, WHOLE, "its micro-operations on a set of ports")
    }

    /// Whether the ports of a form with one micro-operation are among those of another.
    fn within(&mut self, inner: usize, outer: usize, ports: u32) -> Option<bool> {
        self.more(inner, outer, ports).ok().map(|more| more == 1)
    }

    /// A micro-operation on ports that two sets share counts in both. Sets of which none lies within the other share none if one
    /// port is all that one of them has, or if instructions of both at once, as many as they have ports, do not hold each other up.
    fn overlaps(&mut self, found: &[(u32, usize)], sets: &[Set]) -> Result<(), Untold> {
        for (index, (_, outer)) in found.iter().enumerate() {
            for (_, inner) in &found[..index] {
                let (large, small) = (&sets[*outer], &sets[*inner]);
                if large.contains.contains(inner) || small.ports == 1 {
                    continue;
                }
                let least = if large.ports == small.ports { 1 } else { small.ports };
                if large.ports % least != 0 {
                    return Err(Untold::Overlap);
                }
                let many = BLOCKING * large.ports / small.ports;
                let mix = [(large.forms[0], many), (small.forms[0], BLOCKING)];
                let figures = (self.measure)(&mix).ok_or(Untold::Overlap)?;
                let alone = f64::from(BLOCKING) / f64::from(small.ports);
                let front_end = f64::from(many + BLOCKING) * self.front_end;
                // One port that is shared makes it longer by one part in so many.
                let longer = 1.0 + 1.0 / f64::from(2 * (large.ports + small.ports));
                if figures.cycles > alone * longer || front_end > alone * longer {
                    return Err(Untold::Overlap);
                }
            }
        }
        Ok(())
    }

    fn one(&mut self, form: usize, sets: &[Set]) -> Result<Vec<(u32, usize)>, Untold> {
        if let Some(index) = sets.iter().position(|set| set.forms.contains(&form)) {
            return Ok(vec![(1, index)]);
        }
        let alone = self.alone[form].as_ref();
        let alone = alone.ok_or_else(|| Untold::NotMeasured("it alone".to_string()))?;
        let uops = alone.uops.ok_or(Untold::NoMethod("no event counts micro-operations"))?;
        let all = whole(uops, WHOLE, "its number of micro-operations")?;
        if all == 0 {
            return Ok(Vec::new());
        }
        let mut found: Vec<(u32, usize)> = Vec::new();
        let mut explained = 0.0f64;
        for (index, set) in sets.iter().enumerate() {
            if self.is_hidden(set.ports, all) {
                continue;
            }
            let more = self.more(form, set.forms[0], set.ports)?;
            if all.saturating_sub(more) * set.ports > BLOCKING {
                return Err(Untold::TooMany { all });
            }
            explained = explained.max(f64::from(more) / f64::from(set.ports));
            let inner = found.iter().filter(|(_, inner)| set.contains.contains(inner));
            let known: u32 = inner.map(|(count, _)| count).sum();
            let new = more.checked_sub(known).ok_or(Untold::NotWhole {
                what: "its further micro-operations on a set of ports".to_string(),
                value: f64::from(more) - f64::from(known),
            })?;
            if new > 0 {
                found.push((new, index));
            }
        }
        self.overlaps(&found, sets)?;
        let told = found.iter().map(|(count, _)| count).sum();
        if told != all {
            return Err(Untold::Remainder { found: told, all });
        }
        let explained = explained.max(f64::from(all) * self.front_end);
        if alone.cycles > explained + SLACK {
            return Err(Untold::Slower { measured: alone.cycles, explained });
        }
        Ok(found)
    }
}
