//! Prefetchers of data, in words.

use super::unit;
use protocol::record::{FactsResult, MemoryFacts, PrefetchFacts, Prefetched, slack};

/// Rows of the table of caches and TLBs.
pub(super) fn rows(sheet: &FactsResult, memory: &MemoryFacts) -> Vec<Vec<String>> {
    let Some(facts) = &memory.prefetch else { return Vec::new() };
    let unit = unit(sheet);
    let row = |figure: String, value: String, sure: String, evidence: String| {
        vec![figure, value, String::new(), sure, evidence]
    };
    let [upper, lower, beyond] = facts.pair;
    let pairs = match facts.pairs() {
        Some(true) => format!("the other line comes into {}", level(memory, upper)),
        Some(false) => "none seen".to_string(),
        None => "not told".to_string(),
    };
    let evidence = format!(
        "{unit} beyond a hit, after the other line: {upper}, {lower}; after another pair: {beyond}; cold: {}",
        facts.cold
    );
    let mut all = vec![row("prefetch, pairs".into(), pairs, "quickest of 3".into(), evidence)];
    for stride in facts.strides() {
        for found in facts.stream(stride).into_iter().flatten() {
            let [least, most] = found.cycles;
            let lines = if stride.abs() == 1 { "line" } else { "lines" };
            let figure = format!("prefetch, stride {stride} {lines}");
            let far = if found.ahead == 1 { "stride" } else { "strides" };
            let value = format!(
                "from load {} on, {} {} {far} ahead, into {}",
                found.after,
                if found.at_least { "at least" } else { "up to" },
                found.ahead,
                level(memory, least)
            );
            let times = match least == most {
                true => least.to_string(),
                false => format!("{least} to {most}"),
            };
            let evidence = format!("{times} {unit} beyond a hit; cold: {}", facts.cold);
            all.push(row(figure, value, sureness(facts, &found), evidence));
        }
    }
    if all.len() == 1 {
        let far = PrefetchFacts::STRIDES.iter().max().unwrap_or(&0);
        let evidence = format!(
            "1 to {} cold lines, 1 to {far} lines apart, in both directions",
            PrefetchFacts::MOST_LOADS
        );
        all.push(row("prefetch, streams".into(), "none seen".into(), String::new(), evidence));
    }
    if let (Some([up, down]), Some([first, last])) = (facts.crosses_pages(), facts.across) {
        let value = match (up, down) {
            (false, false) => "streams stop at its end",
            (true, true) => "streams go on in both directions",
            (true, false) => "streams go on upwards alone",
            (false, true) => "streams go on downwards alone",
        };
        let evidence = format!("first line after: {first}, last line before: {last}");
        all.push(row("prefetch, next page".into(), value.into(), "quickest of 3".into(), evidence));
    }
    all
}

/// The cache from which a load of so many cycles beyond a hit came.
fn level(memory: &MemoryFacts, cycles: u64) -> String {
    let beyond = |tenths: u64| tenths.saturating_sub(memory.first_tenths) / 10;
    let times = memory.caches.iter().filter_map(|one| Some((one.level, beyond(one.tenths?))));
    let near = |(_, own): &(u32, u64)| cycles <= own + slack(*own);
    times.into_iter().find(near).map_or("a cache".to_string(), |(level, _)| format!("L{level}"))
}

/// Whether it brings something after each greater number of loads as well.
fn sureness(facts: &PrefetchFacts, found: &Prefetched) -> String {
    let rows = facts.streams.iter().filter(|row| row.stride == found.stride);
    let later: Vec<bool> = rows
        .filter(|row| row.loads >= found.after)
        .map(|row| row.cycles.iter().any(|cycles| facts.is_early(*cycles)))
        .collect();
    match later.iter().filter(|early| !**early).count() {
        0 => "steady".to_string(),
        none => format!("varies: {none} of {} numbers of loads", later.len()),
    }
}

/// What was not determined, and why.
pub(super) fn untold(memory: &MemoryFacts) -> Vec<String> {
    let Some(facts) = &memory.prefetch else { return Vec::new() };
    let mut all = Vec::new();
    if facts.pairs().is_none() {
        all.push(
            "whether lines come in pairs: other lines come as well, or one of both".to_string(),
        );
    }
    for stride in facts.strides() {
        if let ([Some(_), None], [_, Some(_)]) = (facts.stream(stride), facts.stream(-stride)) {
            let reason = "the first level has it before";
            all.push(format!("what brings lines at stride {stride} into other levels: {reason}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::{CacheFact, PrefetchStream};

    fn memory(streams: &[(i32, u32, &[u64])], pair: [u64; 3]) -> MemoryFacts {
        let cache = |level, tenths| CacheFact { level, tenths, ..CacheFact::default() };
        let streams = streams.iter().map(|(stride, loads, cycles)| PrefetchStream {
            stride: *stride,
            loads: *loads,
            cycles: cycles.to_vec(),
        });
        let across = Some([196, 30]);
        let facts = PrefetchFacts { cold: 196, pair, streams: streams.collect(), across };
        let caches = vec![cache(1, Some(40)), cache(2, Some(140)), cache(3, Some(440))];
        MemoryFacts {
            first_tenths: 40,
            caches,
            prefetch: Some(facts.into()),
            ..MemoryFacts::default()
        }
    }

    #[test]
    fn d1_prefetchers_are_named_with_where_lines_come_to() {
        let one =
            memory(&[(1, 2, &[0, 196]), (1, 3, &[0, 10, 196]), (-1, 3, &[42, 196])], [11, 40, 196]);
        let facts = one.prefetch.as_ref().unwrap();
        let [first, other] = facts.stream(1).map(Option::unwrap);
        assert_eq!([level(&one, 0), level(&one, 10), level(&one, 42)], ["L1", "L2", "L3"]);
        assert_eq!(level(&one, 100), "a cache");
        assert_eq!([(first.after, first.ahead), (other.after, other.ahead)], [(2, 1), (3, 2)]);
        assert_eq!(sureness(facts, &first), "steady");
        assert_eq!(untold(&one), Vec::<String>::new());
    }

    #[test]
    fn d1_what_hides_another_prefetcher_and_what_comes_now_and_then_is_said() {
        let one = memory(&[(1, 2, &[0, 196]), (1, 3, &[196]), (-1, 3, &[10, 196])], [10, 196, 10]);
        let facts = one.prefetch.as_ref().unwrap();
        let [first, _] = facts.stream(1);
        assert_eq!(sureness(facts, &first.unwrap()), "varies: 1 of 2 numbers of loads");
        let untold = untold(&one);
        assert_eq!(untold.len(), 2, "{untold:?}");
        assert!(untold[0].contains("pairs") && untold[1].contains("at stride 1"), "{untold:?}");
    }
}
