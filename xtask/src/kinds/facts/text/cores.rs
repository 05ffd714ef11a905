//! What lies between cores.

use super::{Grid, Row, sharing, sureness, ticks};
use crate::primitives::number;
use protocol::record::{Contention, CoreFacts, FactsResult, LineMatrix, Wake};

/// How it was measured.
pub(crate) fn heading(facts: &CoreFacts) -> String {
    let how = if facts.in_turn { "in turn" } else { "at the same time" };
    let count = facts.processors.len();
    format!("between cores: {count} processors, which run {how}; in ticks of the TSC")
}

/// All figures.
pub(crate) fn rows(sheet: &FactsResult, facts: &CoreFacts) -> Vec<Row> {
    let mut all: Vec<Row> = facts.matrices.iter().map(|matrix| line(facts, matrix)).collect();
    all.extend(sharing::rows(sheet, facts));
    all.extend(facts.contention.iter().filter_map(|by| contended(facts, by)));
    all.extend(facts.ways().into_iter().map(|way| {
        let wakes: Vec<&Wake> = facts.wakes_by(way).collect();
        woken(facts, &wakes)
    }));
    all
}

fn line(facts: &CoreFacts, matrix: &LineMatrix) -> Row {
    let mut pairs: Vec<([u64; 3], [usize; 2])> = Vec::new();
    for (from, row) in matrix.tenths.iter().enumerate() {
        pairs.extend(row.iter().enumerate().filter_map(|(to, cell)| Some(((*cell)?, [from, to]))));
    }
    pairs.sort_unstable_by_key(|([_, median, _], _)| *median);
    let steady =
        pairs.iter().filter(|([low, middle, high], _)| sureness(*low, *middle, *high) == "steady");
    let of = |at: usize| {
        let ([_, median, _], pair) = pairs[at];
        let [from, to] = pair.map(|place| facts.processors[place].number);
        format!("{}, {from} to {to}", ticks(median as f64 / 10.0, facts.tsc_hz))
    };
    let value = match pairs.len() {
        0 => "not told".to_string(),
        count => format!("nearest {}; farthest {}", of(0), of(count - 1)),
    };
    let (samples, rounds) = (matrix.samples, matrix.rounds);
    Row {
        figure: format!("line by {}, one way", matrix.by.name()),
        value,
        told: format!("{} of {} pairs steady", steady.count(), pairs.len()),
        evidence: format!("{samples} samples of each pair, each of {rounds} round trips"),
    }
}

fn contended(facts: &CoreFacts, by: &Contention) -> Option<Row> {
    let last = by.points.last()?;
    let each = |point: &protocol::record::ContentionPoint| {
        let tries = point.tries as f64 / f64::from(point.processors * point.changes).max(1.0);
        let more = if tries > 1.0 { format!(" ({} tries)", number(tries)) } else { String::new() };
        format!("{}: {}{more}", point.processors, number(point.tenths() as f64 / 10.0))
    };
    let curve = by.points.iter().map(each).collect::<Vec<_>>().join(", ");
    let changes = last.changes;
    Some(Row {
        figure: format!("change of a line by {}, contended", by.by.name()),
        value: format!(
            "{}, by {} processors",
            ticks(last.tenths() as f64 / 10.0, facts.tsc_hz),
            last.processors
        ),
        told: "one run each".to_string(),
        evidence: format!("ticks by processors, each {changes} changes: {curve}"),
    })
}

fn woken(facts: &CoreFacts, wakes: &[&Wake]) -> Row {
    let mut medians: Vec<u64> = wakes.iter().map(|one| one.ticks.median).collect();
    medians.sort_unstable();
    let middle = medians.get(medians.len() / 2).copied().unwrap_or(0);
    let steady = wakes
        .iter()
        .filter(|one| sureness(one.ticks.least, one.ticks.median, one.ticks.ninetieth) == "steady");
    let name = wakes.first().map_or(String::new(), |one| name(one));
    let runs = wakes.first().map_or(0, |one| one.ticks.runs);
    Row {
        figure: format!("{name}, round trip"),
        value: ticks(middle as f64, facts.tsc_hz),
        told: format!("{} of {} processors steady", steady.count(), wakes.len()),
        evidence: format!(
            "{runs} times on each of {} processors, including the way back",
            wakes.len()
        ),
    }
}

fn name(wake: &Wake) -> String {
    let state = wake.hint.map_or(String::new(), |hint| format!(" {hint:#x}"));
    match wake.waiting {
        protocol::record::Waiting::Runs => "interrupt from one to another".to_string(),
        other => format!("waking from {}{state}", other.name()),
    }
}

/// The matrices, and who took how long to wake.
pub(crate) fn tables(facts: &CoreFacts) -> Vec<Grid> {
    let number = |place: usize| facts.processors[place].number.to_string();
    let matrix = |matrix: &LineMatrix| {
        let cell = |cell: &Option<[u64; 3]>| {
            cell.map_or("–".to_string(), |[_, median, _]| {
                crate::primitives::number(median as f64 / 10.0)
            })
        };
        let row = |(place, row): (usize, &Vec<Option<[u64; 3]>>)| {
            std::iter::once(number(place)).chain(row.iter().map(cell)).collect()
        };
        Grid {
            caption: format!(
                "transfer of a line by {}, in ticks: row has the clock, column responds",
                matrix.by.name()
            ),
            head: std::iter::once(String::new())
                .chain((0..facts.processors.len()).map(number))
                .collect(),
            rows: matrix.tenths.iter().enumerate().map(row).collect(),
        }
    };
    facts.matrices.iter().map(matrix).chain(wakes(facts)).collect()
}

/// Each processor's way to wake.
pub(crate) fn wakes(facts: &CoreFacts) -> Option<Grid> {
    let row = |one: &Wake| {
        let times = one.ticks;
        let number = facts.processors.get(one.processor as usize).map_or(0, |place| place.number);
        let all =
            [times.least, times.median, times.ninetieth, times.most].map(|ticks| ticks.to_string());
        [name(one), number.to_string()].into_iter().chain(all).collect()
    };
    let head = ["", "processor", "least", "median", "nine of ten", "most"].map(String::from);
    Some(Grid {
        caption: "from the command or store of the first processor to the response, in ticks"
            .to_string(),
        head: head.to_vec(),
        rows: facts.wakes.iter().map(row).collect(),
    })
    .filter(|grid| !grid.rows.is_empty())
}

/// What was not determined, and why, in sentences.
pub(crate) fn untold(facts: &CoreFacts) -> Vec<String> {
    let mut all = facts.reasons.clone();
    if facts.in_turn && facts.processors.len() > 1 {
        let turns = "what lies between cores: QEMU runs one processor at a time where its clock counts instructions, so these times are \
                     those of turns, and contention has no contender";
        all.push(turns.to_string());
    }
    if facts.processors.len() > 1 && !facts.ways().iter().any(|(_, hint)| hint.is_some()) {
        all.push("waking by mwait: CPUID announces no MONITOR".to_string());
    }
    all
}
