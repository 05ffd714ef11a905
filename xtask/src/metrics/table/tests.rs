use super::*;
use crate::metrics::formula::Formula;

#[test]
fn s3_all_metrics_of_perfmon_are_there() {
    let all: Vec<Table> = names().iter().map(|name| table(name)).collect();
    let of_perfmon =
        sections().map(|(head, lines)| of_perfmon(&head.table, lines).len()).sum::<usize>();
    assert_eq!((sections().count(), of_perfmon), (22, 4714));
    assert_eq!(all.len(), 24, "two of AMD's beside");
    for table in &all {
        let mut names: Vec<String> =
            table.metrics.iter().map(|one| one.name.to_lowercase()).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{}: names twice", table.name);
        for metric in &table.metrics {
            if let Some(parent) = &metric.parent {
                assert!(table.metrics.iter().any(|one| one.name == *parent), "{metric:?}");
            }
        }
    }
}

/// Every name in a formula is an event or a constant, but for two that are constants by themselves.
#[test]
fn s3_every_name_of_every_formula_is_known() {
    for table in names().iter().map(|name| table(name)) {
        for metric in &table.metrics {
            let formula = Formula::parse(&metric.formula).unwrap_or_else(|error| {
                panic!("{}: {}: {error}", table.name, metric.name);
            });
            for name in formula.names() {
                let known = metric.events.contains_key(name)
                    || metric.constants.contains_key(name)
                    || name == "DURATIONTIMEINSECONDS";
                assert!(known, "{}: {}: {name}", table.name, metric.name);
            }
            if let Some(threshold) = &metric.threshold {
                Formula::parse(&threshold.formula).unwrap_or_else(|error| {
                    panic!("{}: {}: {error}", table.name, metric.name);
                });
            }
        }
    }
}

#[test]
fn s3_a_processor_without_a_table_of_perfmon_has_our_own() {
    let table = table("zen2");
    assert!(table.metrics.iter().any(|metric| metric.name == "ipc"));
    assert!(!table.metrics.iter().any(|metric| metric.name == "Retiring"));
    let zen4 = super::table("zen4");
    assert_eq!(zen4.metrics.iter().filter(|one| one.level == 2).count(), 8);
}
