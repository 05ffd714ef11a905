//! Retire latencies of sampled events: what their PEBS records state.

use crate::primitives::number;
use protocol::record::SampledCount;

/// In a sentence, if the records of the event state any.
pub(crate) fn line(one: &SampledCount) -> Option<String> {
    let retired = one.retire_latency?;
    let mean = number(retired.mean()?);
    let (records, longest) = (retired.records, retired.longest);
    Some(format!(
        "retire latency of {}: {mean} cycles, the mean of {records} records; {longest} at most",
        one.event
    ))
}

/// For a CSV: names and figures.
pub(crate) fn rows(one: &SampledCount) -> Vec<(String, u64)> {
    let Some(retired) = one.retire_latency else { return Vec::new() };
    let row =
        |what: &str, figure| (format!("sampled {} retire latency, {what}", one.event), figure);
    vec![
        row("records", retired.records),
        row("cycles of all", retired.cycles),
        row("cycles at most", retired.longest.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::RetireLatency;

    #[test]
    fn s1_a_retire_latency_is_told_with_the_records_that_it_is_of() {
        let none = SampledCount { event: "e".to_string(), ..SampledCount::default() };
        let of = |records, cycles, longest| SampledCount {
            retire_latency: Some(RetireLatency { records, cycles, longest }),
            ..none.clone()
        };
        assert_eq!((line(&none), rows(&none)), (None, Vec::new()));
        assert_eq!(line(&of(0, 0, 0)), None);
        let text = "retire latency of e: 2.5 cycles, the mean of 4 records; 7 at most";
        assert_eq!(line(&of(4, 10, 7)).as_deref(), Some(text));
        let told: Vec<String> =
            rows(&of(4, 10, 7)).iter().map(|(name, figure)| format!("{name},{figure}")).collect();
        let expected = ["records,4", "cycles of all,10", "cycles at most,7"];
        assert_eq!(told, expected.map(|one| format!("sampled e retire latency, {one}")));
    }
}
