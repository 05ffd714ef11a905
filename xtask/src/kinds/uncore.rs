//! Events of the uncore in items that run on one processor or several: its counters are a package's, so they were read once for all of
//! them.

use super::energy::whose;
use crate::primitives::csv::Row;
use crate::primitives::number;
use crate::primitives::point::{Data, Point};
use protocol::record::{CountedUncore, Metric, ProcessorsResult};

/// An event of tasks in a sentence.
pub(crate) fn line(one: &CountedUncore) -> String {
    let CountedUncore { event, counter, count, units, ticks, .. } = one;
    let units = if *units > 1 { format!(", the sum of {units} units") } else { String::new() };
    let whose = whose(one.reader, &one.processors);
    format!(
        "{event}: {count} in {ticks} TSC ticks, of everything in the package ({counter}{units}{whose})"
    )
}

/// Events of a snippet on several processors, each in a sentence.
pub(crate) fn of_processors(result: &ProcessorsResult) -> Vec<String> {
    // Counted in several passes, each once.
    let once = |all: &[Metric]| -> Vec<Metric> {
        let mut kept: Vec<Metric> = Vec::new();
        for one in all {
            if !kept.iter().any(|other| other.is_of_same(one)) {
                kept.push(one.clone());
            }
        }
        kept
    };
    let all = result.processors.iter().flat_map(|one| once(&one.metrics));
    let line = |metric: Metric| {
        let counting = metric.counting.as_ref().filter(|counting| counting.units > 0)?;
        let whose = whose(counting.reader, &counting.processors);
        let (event, value) = (&metric.event, number(metric.value.median));
        Some(format!(
            "{event}: {value} of an execution on each, of everything in the package ({}{whose})",
            counting.counter
        ))
    };
    all.filter_map(line).collect()
}

/// Rows of a CSV: of several packages each with the number of the processor that read it.
pub(crate) fn rows((item, name): (u32, &str), all: &[CountedUncore], verdict: &str) -> Vec<Row> {
    let row = |one: &CountedUncore| {
        let several = all.iter().filter(|other| other.event == one.event).count() > 1;
        let cpu = if several { format!(", cpu {}", one.reader) } else { String::new() };
        let mut fields = vec![item.to_string(), name.to_string(), format!("{}{cpu}", one.event)];
        fields.extend(std::iter::repeat_n(one.count.to_string(), 4));
        fields.extend(["1", "1", "true", "1", "1", verdict].map(String::from));
        fields
    };
    all.iter().map(row).collect()
}

/// Adds them to a test point.
pub(crate) fn push(point: &mut Point, all: &[CountedUncore]) {
    for one in all {
        let data = Data::new().text("event", &one.event).plain("count", one.count);
        point.push("uncore", data.plain("units", one.units));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_counts_of_several_packages_are_named_by_their_readers_and_one_has_its_plain_name() {
        let of = |event: &str, units, reader, processors: &[u32]| CountedUncore {
            event: event.to_string(),
            counter: "counter 0 of the package's uncore_cha, MSR 0xe08".to_string(),
            units,
            count: 7 + u64::from(reader),
            ticks: 9,
            reader,
            processors: processors.to_vec(),
            ..CountedUncore::default()
        };
        let all = [of("reads", 28, 0, &[0, 1]), of("reads", 28, 4, &[5]), of("clocks", 1, 0, &[])];
        let shown: Vec<String> = all.iter().map(line).collect();
        let text = "reads: 7 in 9 TSC ticks, of everything in the package (counter 0 of the package's uncore_cha, MSR 0xe08";
        let of_28 = "the sum of 28 units, read once, by processor";
        assert_eq!(shown[0], format!("{text}, {of_28} 0, for processors 0, 1)"));
        let other = text.replace(": 7", ": 11");
        assert_eq!(shown[1], format!("{other}, {of_28} 4, for processor 5)"));
        assert!(shown[2].ends_with("uncore_cha, MSR 0xe08)"), "{shown:?}");
        let rows = rows((3, "n"), &all, "pass");
        let names: Vec<[&str; 3]> =
            rows.iter().map(|row| [&*row[2], &*row[3], row.last().unwrap()]).collect();
        let expected = [
            ["reads, cpu 0", "7", "pass"],
            ["reads, cpu 4", "11", "pass"],
            ["clocks", "7", "pass"],
        ];
        assert_eq!(names, expected);
        let sums = CountedUncore::sums(&all);
        let sums: Vec<(&str, u64)> = sums.iter().map(|(name, sum)| (&**name, *sum)).collect();
        let expected = [("reads", 18), ("reads, cpu 0", 7), ("reads, cpu 4", 11), ("clocks", 7)];
        assert_eq!(sums, expected);
    }
}
