//! The value of every run, where a job or `--values` requests them.

use crate::collect::Report;
use crate::primitives::style::{FAINT, paint};
use crate::primitives::table::Width;
use protocol::record::{Metric, SnippetResult};
use std::fmt::Write;

/// Lines for each metric whose runs are listed: those of both codes that are subtracted from each other, in order.
pub(crate) fn section(report: &Report, width: Width) -> String {
    let mut out = String::new();
    let metrics =
        |result: &SnippetResult| result.metrics.iter().any(|metric| listed(metric).is_some());
    if !report.results().any(metrics) {
        return out;
    }
    let text = "each run, as counted: the code with fewer copies, then the code with more; the figures above are \
                their difference for one execution";
    // Writing to a String does not fail, here and below.
    let _ = writeln!(out, "{}", paint(FAINT, text));
    for result in report.results() {
        for metric in &result.metrics {
            let Some(series) = listed(metric) else { continue };
            let event = if metric.event == "tsc" { "TSC ticks" } else { &metric.event };
            let _ = writeln!(out, "{:>3}   {}: {event}", result.item, result.name);
            for (which, values) in ["fewer", "more"].into_iter().zip(series) {
                lines(&mut out, which, values, width);
            }
        }
    }
    out
}

/// Both series of a metric, if they are listed.
fn listed(metric: &Metric) -> Option<[&[i64]; 2]> {
    let [fewer, more] = &metric.series;
    Some([fewer.values.as_deref()?, more.values.as_deref()?])
}

/// The values, as many in a line as fit: the least width has room for one.
fn lines(out: &mut String, which: &str, values: &[i64], width: Width) {
    let mut line = format!("        {which:<6}");
    let indent = line.len();
    for value in values.iter().map(i64::to_string) {
        if line.len() + 1 + value.len() > width.columns() {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(indent);
        }
        line += &format!(" {value}");
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use crate::cli::Format;
    use crate::collect::{Numbered, Report};
    use crate::context::Context;
    use crate::primitives::table::Width;
    use crate::render::render;

    #[test]
    fn every_run_is_in_the_table_in_lines_that_fit() {
        let (fewer, more): (Vec<u64>, Vec<u64>) = (1000..1030).map(|n| (n, 2 * n)).unzip();
        let series = |values: &[u64]| {
            format!(r#"{{"min":1000,"max":2058,"distinct":30,"values":{values:?}}}"#)
        };
        let (a, b) = (series(&fewer), series(&more));
        let metric = |event: &str| {
            format!(
                r#"{{"event":"{event}","median":1.0,"min":1.0,"mean":1.0,"max":1.0,"deterministic":false,"series":[{a},{b}]}}"#
            )
        };
        let json = format!(
            r#"{{"type":"result","item":3,"name":"x","verdict":"none","per":1,"runs":30,
            "metrics":[{},{}],"tsc":[0,1]}}"#,
            metric("tsc"),
            metric("loads")
        );
        let record = serde_json::from_str(&json).unwrap();
        let report = Report { records: vec![Numbered { seq: 0, record }], ..Report::default() };
        let context = Context { width: Width::of(60), ..Context::default() };
        let text = render(&report, &context, Format::Table);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.contains("  3   x: TSC ticks\n        fewer  1000 1001 "), "{text}");
        let (_, loads) = text.split_once("x: loads\n").expect("the second metric");
        let numbers: Vec<u64> =
            loads.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert_eq!(numbers[..60], [fewer, more].concat());
        assert!(loads.lines().all(|line| line.len() <= 60), "{text}");
    }
}
