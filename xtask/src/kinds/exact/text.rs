//! What was stepped through: counts and a listing.

use crate::collect::Report;
use crate::disassembly::listed;
use crate::kinds::failed;
use crate::primitives::number;
use crate::primitives::style::{ERROR, FAINT, GOOD, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use crate::samples::width;
use crate::text::printable;
use comfy_table::{Cell, CellAlignment, Table};
use protocol::record::{Comparison, ExactResult, ListedInstruction};
use std::fmt::Write;

/// One section for each item.
pub(crate) fn sections(report: &Report, columns: Width) -> String {
    report.exact().map(|exact| section(exact, columns)).collect()
}

fn section(exact: &ExactResult, columns: Width) -> String {
    let mut out = String::new();
    let filtered = if exact.filtered { ", as far as the filter counts them" } else { "" };
    // Writing to a String does not fail, here and below.
    let (name, failed) = (paint(STRONG, &exact.name), failed(exact.verdict));
    let _ = writeln!(out, "{} {name}{failed}", exact.item);
    let text = format!("exact counts per execution, {} stepped through{filtered}", exact.per);
    let _ = writeln!(out, "{}", paint(FAINT, &text));
    for list in [&exact.counts, &exact.opcodes] {
        let parts = list.iter().filter(|count| count.value != 0.0);
        let parts = parts.map(|count| format!("{} {}", number(count.value), count.event));
        let parts: Vec<String> = parts.collect();
        let _ =
            writeln!(out, "  {}", if parts.is_empty() { "none".into() } else { parts.join(", ") });
    }
    let _ = writeln!(out, "{}", fit(listing(exact), columns));
    if exact.listed as usize > exact.listing.len() {
        let more = exact.listed as usize - exact.listing.len();
        let _ = writeln!(out, "  and {more} more instructions");
    }
    for one in &exact.uncounted {
        let _ = writeln!(out, "  not counted: {}: {}", one.event, one.reason);
    }
    for comparison in &exact.comparisons {
        let _ = writeln!(out, "  {}", compared(comparison, exact.emulated));
    }
    out
}

pub(crate) fn compared(comparison: &Comparison, emulated: bool) -> String {
    let Comparison { event, exact, pmu_min, pmu_max, agrees } = comparison;
    let pmu = if emulated { "emulated PMU" } else { "PMU" };
    if *agrees {
        return format!("{}: {pmu} and exact counts of {event}", paint(GOOD, "equal"));
    }
    let [exact, min, max] = [exact, pmu_min, pmu_max].map(|value| number(*value));
    let counted = if min == max { min } else { format!("{min} to {max}") };
    format!("{}: {event}: exact {exact}, {pmu} {counted}", paint(ERROR, "DISAGREE"))
}

fn listing(exact: &ExactResult) -> Table {
    let mut table = empty();
    let named = exact.listing.iter().any(|row| row.function.is_some());
    let header = ["byte", "code", "instruction", "executed"];
    table.set_header(header.into_iter().chain(named.then_some("function")));
    for index in [0, 3] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in &exact.listing {
        let instruction = format!("{}{}", listed(row), width(row.bits));
        let cells =
            [format!("{:#x}", row.offset), row.bytes.clone(), instruction, number(row.value)];
        let place = named.then(|| where_it_is(row));
        table.add_row(cells.into_iter().chain(place).map(Cell::new));
    }
    table
}

/// Function, file and line of an instruction of a program.
pub(crate) fn where_it_is(row: &ListedInstruction) -> String {
    let file = |location: &String| location.rsplit('/').next().unwrap_or_default().to_string();
    let parts = [row.function.clone(), row.location.as_ref().map(file)];
    printable(&parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Format;
    use crate::collect::Numbered;
    use crate::context::Context;
    use crate::render::render;
    use protocol::record::{ExactCount, Record, Verdict};

    /// A report of one item, whose PMU counted `pmu` branches.
    fn report(pmu: f64) -> Report {
        let count = |event: &str, value| ExactCount { event: event.into(), value, totals: [2, 4] };
        let exact = ExactResult {
            item: 7,
            name: "two".into(),
            verdict: if pmu == 1.0 { Verdict::Pass } else { Verdict::Fail },
            misses: vec![],
            restored: Vec::new(),
            uncounted: vec![],
            per: 2,
            filtered: true,
            counts: vec![count("branches", 1.0), count("loads", 0.0)],
            opcodes: vec![count("jmp", 1.0)],
            listing: vec![ListedInstruction {
                offset: 0,
                bytes: "ebfe".into(),
                value: 1.0,
                bits: 64,
                ..ListedInstruction::default()
            }],
            listed: 3,
            program: None,
            comparisons: vec![Comparison {
                event: "branches".into(),
                exact: 1.0,
                pmu_min: pmu,
                pmu_max: pmu,
                agrees: pmu == 1.0,
            }],
            emulated: true,
            tsc: [0; 2],
        };
        let records = vec![Numbered { seq: 0, record: Record::Exact(exact) }];
        Report { records, ..Report::default() }
    }

    fn rendered(pmu: f64, format: Format) -> String {
        render(&report(pmu), &Context::default(), format)
    }

    #[test]
    fn counts_and_listing_are_in_every_form() {
        let table = rendered(1.0, Format::Table);
        let parts = ["1 branches", "1 jmp", "jmp 0x0", "2 more", "the filter", "equal"];
        for part in parts {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert!(!table.contains("loads"), "{table}");
        let row = "7,two,exact branches,1,1,1,1,1,2,true,1,1,pass";
        assert!(rendered(1.0, Format::Csv).contains(row));
        let json: serde_json::Value = serde_json::from_str(&rendered(1.0, Format::Json)).unwrap();
        assert_eq!(json["records"][0]["counts"][0]["totals"], serde_json::json!([2, 4]));
        assert!(
            rendered(1.0, Format::Tap)
                .contains("ok 1 - two\n  ---\n  exact:\n    - event: \"branches\"\n")
        );
    }

    #[test]
    fn x2_a_pmu_that_disagrees_fails_in_every_form() {
        assert!(rendered(2.0, Format::Table).contains("branches: exact 1, emulated PMU 2"));
        assert!(rendered(2.0, Format::Csv).contains("true,1,1,fail"));
        assert!(rendered(2.0, Format::Tap).contains("not ok 1 - two"));
        assert_eq!(report(2.0).items(), 1);
    }

    #[test]
    fn t8_a_disagreement_is_shown_with_both_counts() {
        let comparison = |agrees, pmu_max| Comparison {
            event: "branches".into(),
            exact: 2.0,
            pmu_min: 2.0,
            pmu_max,
            agrees,
        };
        let text = compared(&comparison(false, 3.0), false);
        assert!(text.contains("branches: exact 2, PMU 2 to 3"), "{text}");
        assert!(compared(&comparison(true, 2.0), true).contains("emulated PMU and exact"));
    }
}
