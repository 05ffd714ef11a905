//! A comparison for people, and as a document.

use super::{CheckDifference, Comparison, Found, Pair};
use crate::primitives::table::{Width, empty, fit};
use crate::recording::Recorded;
use crate::text::ascii_controls;
use comfy_table::Table;
use protocol::record::CheckVerdict;
use serde_json::json;
use std::fmt::Write;

/// More CPUID answers than this are counted and not listed: a real processor has features that the emulated machine lacks.
const LISTED: usize = 20;

fn verdict(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Pass => "pass",
        CheckVerdict::Fail => "FAIL",
        CheckVerdict::Skip => "skip",
        CheckVerdict::KnownErratum => "erratum",
        CheckVerdict::KnownBehaviour => "known",
    }
}

fn found(found: Option<&Found>) -> String {
    found.map_or_else(
        || "not made".to_string(),
        |found| format!("{}: {}", verdict(found.verdict), found.seen),
    )
}

fn with_rows(title: &str, heads: [&str; 3], rows: Vec<[String; 3]>, width: Width) -> String {
    let mut table: Table = empty();
    table.set_header(heads);
    for row in rows {
        table.add_row(row);
    }
    format!("{title}\n{}\n", fit(table, width))
}

fn hex(value: Option<u64>) -> String {
    value.map_or_else(|| "absent".to_string(), |value| format!("{value:#x}"))
}

/// For people.
#[must_use]
pub fn table(comparison: &Comparison, machine: &Recorded, width: Width) -> String {
    let mut out = format!("{}\n", machine.what());
    let row = |one: &CheckDifference| {
        let Pair { there, here } = &one.found;
        [one.name.clone(), found(there.as_ref()), found(here.as_ref())]
    };
    let heads = |first| [first, "there", "here"];
    let (verdicts, figures): (Vec<_>, Vec<_>) =
        comparison.checks.iter().partition(|one| one.of_verdict());
    let mut section = |title: &str, first, rows: Vec<[String; 3]>| {
        if !rows.is_empty() {
            out.push_str(&with_rows(title, heads(first), rows, width));
        }
    };
    section("checks with another verdict", "check", verdicts.into_iter().map(row).collect());
    section("checks with other figures", "check", figures.into_iter().map(row).collect());
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_string());
    let facts = comparison.pmu.iter();
    let facts =
        facts.map(|one| [one.what.to_string(), text(&one.values.there), text(&one.values.here)]);
    section("facts about the PMU", "fact", facts.collect());
    let registers = comparison.registers.iter().map(|one| {
        let when = if one.found { ", as found" } else { "" };
        let named = format!("{:#x} {}{when}", one.msr, one.name);
        [named, hex(one.values.there), hex(one.values.here)]
    });
    section("registers with other values here", "register", registers.collect());
    let words = |answer: &Option<[u32; 4]>| {
        answer.map_or_else(
            || "zeros".to_string(),
            |words| words.map(|word| format!("{word:08x}")).join(" "),
        )
    };
    let cpuid = comparison.cpuid.iter().take(LISTED).map(|one| {
        let leaf = format!("{:#x}.{:#x}, processor {}", one.leaf, one.subleaf, one.cpu);
        [leaf, words(&one.answers.there), words(&one.answers.here)]
    });
    section("CPUID", "leaf", cpuid.collect());
    let three = |values: &Option<[i64; 3]>| {
        values.map_or_else(
            || "not measured".to_string(),
            |values| values.map(|one| one.to_string()).join(" "),
        )
    };
    let measures = comparison.measures.iter().map(|one| {
        [format!("{} ({})", one.name, one.unit), three(&one.values.there), three(&one.values.here)]
    });
    section("measured: least, middle, greatest", "what", measures.collect());
    if comparison.cpuid.len() > LISTED {
        let more = comparison.cpuid.len() - LISTED;
        let _ = writeln!(out, "and {more} more leaves of CPUID; --format json lists them");
    }
    for line in &machine.inferred {
        let _ = writeln!(out, "inferred: {line}");
    }
    let _ = writeln!(
        out,
        "{} differences: {} of {} checks, {} facts, {} registers, {} answers of CPUID",
        comparison.differences(),
        comparison.checks.len(),
        comparison.compared,
        comparison.pmu.len(),
        comparison.registers.len(),
        comparison.cpuid.len()
    );
    out
}

/// As a document.
#[must_use]
pub fn json(comparison: &Comparison, machine: &Recorded) -> String {
    let document = json!({
        "replay": 1,
        "report": machine.file.display().to_string(),
        "machine": machine.name,
        "behaves_as": machine.nearest.spec().name,
        "inferred": machine.inferred,
        "differences": comparison.differences(),
        "comparison": comparison,
    });
    let mut text = serde_json::to_string_pretty(&document).expect("comparisons serialise");
    text.push('\n');
    ascii_controls(&text).into_owned()
}
