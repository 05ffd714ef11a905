//! By events that count the micro-operations of each port.

use super::{BLOCKING, Figures, Mix, SLACK, USED, Untold, Usage, WHOLE, bottleneck, whole};

/// An instruction that keeps a set of ports busy.
#[derive(Clone, Copy, Debug)]
struct Blocker {
    form: usize,
    ports: u32,
    cycles: f64,
}

/// The ports of each form, out of `measure`, which has figures with ports or `None` for what was not measured. `candidates` are the
/// forms that may block: those of them with one micro-operation do.
pub fn by_events(
    forms: usize,
    candidates: &[usize],
    mut measure: impl FnMut(&Mix) -> Option<Figures>,
) -> Vec<Result<Usage, Untold>> {
    let alone: Vec<Option<Figures>> = (0..forms).map(|form| measure(&[(form, 1)])).collect();
    let mut blockers: Vec<Blocker> = Vec::new();
    for &form in candidates {
        let Some(figures) = &alone[form] else { continue };
        let Some(ports) = single(figures) else { continue };
        let blocker = Blocker { form, ports, cycles: figures.cycles };
        match blockers.iter_mut().find(|known| known.ports == ports) {
            // The quicker one keeps them busier.
            Some(known) if blocker.cycles < known.cycles => *known = blocker,
            Some(_) => {}
            None => blockers.push(blocker),
        }
    }
    blockers.sort_by_key(|blocker| blocker.ports.count_ones());
    let each = alone.iter().enumerate().map(|(form, alone)| {
        let alone = alone.as_ref().ok_or_else(|| Untold::NotMeasured("it alone".to_string()))?;
        one(form, alone, &blockers, &mut measure)
    });
    each.collect()
}

/// The ports of an instruction with one micro-operation; `None` if it has not.
fn single(alone: &Figures) -> Option<u32> {
    let all: f64 = alone.ports.iter().sum();
    (whole(all, WHOLE, "") == Ok(1)).then(|| used(alone))
}

fn used(alone: &Figures) -> u32 {
    let used = alone.ports.iter().enumerate().filter(|(_, count)| **count >= USED);
    used.fold(0, |bits, (port, _)| bits | 1 << port)
}

fn sum(figures: &Figures, ports: u32) -> f64 {
    let within = figures.ports.iter().enumerate().filter(|(port, _)| ports >> port & 1 != 0);
    within.map(|(_, count)| count).sum()
}

fn one(
    form: usize,
    alone: &Figures,
    blockers: &[Blocker],
    measure: &mut impl FnMut(&Mix) -> Option<Figures>,
) -> Result<Usage, Untold> {
    let all = whole(alone.ports.iter().sum(), WHOLE, "its number of micro-operations")?;
    if all <= 1 {
        return Ok(Usage(if all == 0 { Vec::new() } else { vec![(1, used(alone))] }));
    }
    let mut found: Vec<(u32, u32)> = Vec::new();
    for blocker in blockers {
        // What has to run there does so if nothing is in the way, too.
        if sum(alone, blocker.ports) < 1.0 - WHOLE {
            continue;
        }
        let figures = measure(&[(blocker.form, BLOCKING), (form, 1)])
            .ok_or_else(|| Untold::NotMeasured("it with a blocking instruction".to_string()))?;
        let more = sum(&figures, blocker.ports) - f64::from(BLOCKING);
        let within = found.iter().filter(|(_, ports)| ports & !blocker.ports == 0);
        let known: u32 = within.map(|(count, _)| count).sum();
        let more = whole(more, WHOLE, "its micro-operations on a set of ports")?;
        if (all.saturating_sub(more)) * blocker.ports.count_ones() > BLOCKING {
            return Err(Untold::TooMany { all });
        }
        let new = more.checked_sub(known).ok_or(Untold::NotWhole {
            what: "its further micro-operations on a set of ports".to_string(),
            value: f64::from(more) - f64::from(known),
        })?;
        if new > 0 {
            found.push((new, blocker.ports));
        }
    }
    let told = found.iter().map(|(count, _)| count).sum();
    if told != all {
        return Err(Untold::Remainder { found: told, all });
    }
    overlaps(form, &found, blockers, measure)?;
    let usage = Usage(found);
    let (measured, explained) =
        (alone.ports.iter().copied().fold(0.0, f64::max), bottleneck(&usage));
    if measured > explained + SLACK {
        return Err(Untold::Slower { measured, explained });
    }
    Ok(usage)
}

/// A micro-operation that has just the ports which two sets share counts in both, unless a set has just these. Both blocked together
/// it counts once.
fn overlaps(
    form: usize,
    found: &[(u32, u32)],
    blockers: &[Blocker],
    measure: &mut impl FnMut(&Mix) -> Option<Figures>,
) -> Result<(), Untold> {
    let blocker = |ports: u32| blockers.iter().find(|one| one.ports == ports);
    for (index, (_, one)) in found.iter().enumerate() {
        for (_, other) in &found[..index] {
            let (shared, both) = (one & other, one | other);
            if shared == 0 || blocker(shared).is_some() || both == *one || both == *other {
                continue;
            }
            let (Some(first), Some(second)) = (blocker(*one), blocker(*other)) else { continue };
            let mix = [(first.form, BLOCKING), (second.form, BLOCKING), (form, 1)];
            let figures = measure(&mix).ok_or(Untold::Overlap)?;
            let more = sum(&figures, both) - f64::from(2 * BLOCKING);
            let within = found.iter().filter(|(_, ports)| ports & !both == 0);
            let told: u32 = within.map(|(count, _)| count).sum();
            if whole(more, WHOLE, "")? != told {
                return Err(Untold::Overlap);
            }
        }
    }
    Ok(())
}
