//! How many of the metrics is not available, and why: the table in the guide is made here.

use super::{of_perfmon, sections, table};
use crate::events::{Block, CpuName};
use crate::metrics::names::not_yet;
use crate::metrics::request::{Constant, Meaning, Target, ask};
use std::collections::BTreeMap;

/// Where the counters are that a metric takes in addition to those of a core, by the beginning of its event's name, in the table's order.
const KINDS: [(&str, &[&str]); 7] = [
    ("caching agents", &["UNC_C_", "UNC_CHA_"]),
    ("memory", &["UNC_M_", "UNC_M2M_", "UNC_M2HBM_", "UNC_MC", "UNC_H_"]),
    ("links", &["UNC_Q_", "UNC_UPI_"]),
    ("PCIe", &["UNC_IIO_", "UNC_I_"]),
    ("power control", &["UNC_P_"]),
    ("arbiter", &["UNC_ARB_"]),
    ("clock", &["UNC_CLOCK"]),
];

/// The first reason for which it is not available.
fn kind(why: &str) -> &'static str {
    let starts = |(_, names): &&(&str, &[&str])| names.iter().any(|name| why.starts_with(name));
    let found = KINDS.iter().find(starts).map(|(kind, _)| *kind);
    found.unwrap_or_else(|| panic!("a reason of its own: {why}"))
}

/// The table, in Markdown.
fn counted() -> String {
    let block = Block::embedded();
    let tables = block.tables();
    let kinds: Vec<&str> = KINDS.iter().map(|one| one.0).collect();
    let line = |name: &str, all: usize, lacking: &BTreeMap<&str, usize>| {
        let cell = |kind| lacking.get(kind).map_or(String::new(), ToString::to_string);
        let cells: Vec<String> = kinds.iter().map(cell).collect();
        let had = all - lacking.values().sum::<usize>();
        format!("| {name} | {all} | {had} | {} |\n", cells.join(" | "))
    };
    let mut text = format!("| table | metrics | available | {} |\n", kinds.join(" | "));
    text += &format!("|{}\n", " --- |".repeat(3 + kinds.len()));
    let (mut all, mut all_lacking) = (0, BTreeMap::new());
    for (head, lines) in sections() {
        let name = &*head.table;
        let table = table(name);
        let cpu = CpuName::Name(table.events.clone());
        let target = Target { cpu, counters: None, model: None };
        let core = target.cpu.core(&tables).unwrap();
        let metrics = of_perfmon(name, lines);
        let mut lacking: BTreeMap<&str, usize> = BTreeMap::new();
        for metric in &metrics {
            let asked = || ask(&target, &core, &table, metric).err().map(|error| error.to_string());
            if let Some(why) = not_yet(metric).or_else(asked) {
                *lacking.entry(kind(&why)).or_default() += 1;
                *all_lacking.entry(kind(&why)).or_default() += 1;
            }
        }
        all += metrics.len();
        text += &line(name, metrics.len(), &lacking);
    }
    text + &line("all", all, &all_lacking)
}

/// Those of perfmon, each under the first thing that it lacks.
#[test]
fn s3_the_guide_says_how_many_metrics_cannot_be_had_and_why() {
    let guide = include_str!("../../../../docs/guide/metrics.md");
    let counted = counted();
    assert!(guide.contains(&counted), "docs/guide/metrics.md is to have this table:\n{counted}");
}

/// Those that need retire latencies, and those with a choice between threads: each can be had.
#[test]
fn s3_metrics_of_latencies_and_of_the_other_thread_are_there() {
    let block = Block::embedded();
    let tables = block.tables();
    let (mut latencies, mut threads) = (0, 0);
    for (head, lines) in sections() {
        let table = table(&head.table);
        let cpu = CpuName::Name(table.events.clone());
        let target = Target { cpu, counters: None, model: None };
        let core = target.cpu.core(&tables).unwrap();
        for metric in of_perfmon(&head.table, lines) {
            let has = |word: &str| metric.events.values().any(|event| event.ends_with(word));
            let uncore = metric.events.values().any(|event| event.starts_with("UNC_"));
            let of_latency = has(":retire_latency");
            if !of_latency && !has(":percore") || uncore {
                latencies += u32::from(of_latency);
                continue;
            }
            let name = format!("{}: {}", head.table, metric.name);
            assert_eq!(not_yet(&metric), None, "{name}");
            let asked = ask(&target, &core, &table, &metric).unwrap_or_else(|error| {
                panic!("{name}: {error}");
            });
            if of_latency {
                latencies += 1;
                let latency = asked.latencies().next().unwrap_or_else(|| panic!("{name}"));
                assert!(asked.events().all(|event| !event.contains("retire_latency")), "{name}");
                assert!(latency.ends_with(":retire_latency"), "{name}");
                // A count of the same event stands beside it.
                let event = latency.trim_end_matches(":retire_latency");
                assert!(asked.events().any(|other| other == event), "{name}: {event}");
            } else {
                threads += 1;
                assert_eq!(asked.events().next(), None, "{name}: the other thread is halted");
                assert_eq!(asked.formula.value(&values(&asked)), Ok(1.0), "{name}");
            }
        }
    }
    assert_eq!((latencies, threads), (114, 10));
}

/// The constants of a metric.
fn values(asked: &crate::metrics::Ask) -> Vec<Option<f64>> {
    let of = |meaning: &Option<Meaning>| match meaning {
        Some(Meaning::Constant(Constant::Number(number))) => Some(*number),
        _ => None,
    };
    asked.meanings.iter().map(of).collect()
}
