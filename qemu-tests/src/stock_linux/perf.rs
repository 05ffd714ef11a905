//! What `perf` prints, read.

/// A line of `perf stat -x,`.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// As perf calls it; not always as it was asked for.
    pub event: String,
    /// The number, scaled by perf if others had the counter meanwhile; `None` where perf has no number.
    pub value: Option<f64>,
    /// How much of the time it was on a counter, in per cent.
    pub counted: f64,
}

/// Every count in `perf stat -x,`'s output: value, unit, event, nanoseconds on a counter, the same in per cent, and what perf
/// made of it. Other lines, such as the counted program's, are passed over.
#[must_use]
pub fn counts(output: &str) -> Vec<Count> {
    output.lines().filter_map(count).collect()
}

fn count(line: &str) -> Option<Count> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[value, _unit, event, _nanoseconds, counted, ..] = &fields[..] else { return None };
    let value = match value {
        "<not supported>" | "<not counted>" => None,
        number => Some(number.parse().ok()?),
    };
    Some(Count { event: event.to_string(), value, counted: counted.parse().ok()? })
}

/// The events of `perf report --stats`, in all: what kind of record, and how many.
#[must_use]
pub fn records(output: &str) -> Vec<(String, u64)> {
    // The same follows for each event of the PMU.
    let all = output.lines().skip_while(|line| !line.starts_with("Aggregated stats"));
    let all = all.take_while(|line| {
        line.starts_with("Aggregated") || line.starts_with(' ') || line.is_empty()
    });
    let record = |line: &str| -> Option<(String, u64)> {
        let (kind, rest) = line.split_once(" events:")?;
        Some((kind.trim().to_string(), rest.split_whitespace().next()?.parse().ok()?))
    };
    all.filter_map(record).collect()
}

/// The records of one kind.
#[must_use]
pub fn records_of(output: &str, kind: &str) -> u64 {
    records(output).iter().find(|record| record.0 == kind).map_or(0, |record| record.1)
}

/// "Event count (approx.)" of `perf report`: the samples' periods together.
#[must_use]
pub fn event_count(output: &str) -> Option<u64> {
    output.lines().find_map(|line| line.strip_prefix("# Event count (approx.): ")?.parse().ok())
}

/// "sample duration" of `perf report --header-only`: from the first sample to the last.
#[must_use]
pub fn sample_duration_ms(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|line| line.strip_prefix("# sample duration :"))?;
    line.trim().strip_suffix("ms")?.trim().parse().ok()
}

/// How many of /proc/interrupts' line `name` each processor took.
#[must_use]
pub fn interrupts(output: &str, name: &str) -> Vec<u64> {
    let line = output.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    let words = line.unwrap_or_default().split_whitespace();
    words.map_while(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_perf_stat_are_read_with_their_share_and_without_what_is_none() {
        let output = "hello, world\n3.09,msec,task-clock,3090368,100.00,0.775,CPUs utilized\n\
            <not supported>,,cycles,0,100.00,,\n\
            3000045,,instructions:u,1500000,66.25,1.0,insn per cycle\n";
        let count =
            |event: &str, value, counted| Count { event: event.to_string(), value, counted };
        let expected = [
            count("task-clock", Some(3.09), 100.0),
            count("cycles", None, 100.0),
            count("instructions:u", Some(3_000_045.0), 66.25),
        ];
        assert_eq!(counts(output), expected);
    }

    #[test]
    fn records_are_those_of_all_events_together() {
        let output = "\nAggregated stats:\n           TOTAL events:       3078\n\
            \x20         SAMPLE events:       3065  (99.6%)\n  FINISHED_ROUND events:          2  ( 0.1%)\n\
            cycles stats:\n          SAMPLE events:       1\n";
        assert_eq!(records_of(output, "SAMPLE"), 3065);
        assert_eq!(records_of(output, "FINISHED_ROUND"), 2);
        assert_eq!(records_of(output, "LOST"), 0);
        assert_eq!(records(output).len(), 3);
    }

    #[test]
    fn the_periods_sum_is_read() {
        let output = "# Samples: 3K of event 'cycles'\n# Event count (approx.): 306500000\n#\n";
        assert_eq!(event_count(output), Some(306_500_000));
        assert_eq!(event_count("# Samples: 3K\n"), None);
    }

    #[test]
    fn the_samples_time_is_read() {
        let output = "# time of first sample : 29.512\n# sample duration :   2289.123 ms\n";
        assert_eq!(sample_duration_ms(output), Some(2289.123));
        assert_eq!(sample_duration_ms("# sample duration : long\n"), None);
    }

    #[test]
    fn interrupts_are_read_for_each_processor() {
        let output = "           CPU0       CPU1       \n  4:  334  0  IO-APIC   4-edge  ttyS0\n\
            NMI:         12         7   Non-maskable interrupts\nERR:          0\n";
        assert_eq!(interrupts(output, "NMI"), [12, 7]);
        assert_eq!(interrupts(output, "4"), [334, 0]);
        assert_eq!(interrupts(output, "LOC"), [0; 0]);
    }
}
