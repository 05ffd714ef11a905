//! The top-down tree: which metrics are in it, and where their values lead.

use super::evaluate::MetricRow;
use super::names::{MetricError, not_yet};
use super::table::{Definition, Table};

/// What is at the top of every tree.
const TOP: [&str; 4] = ["Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"];
/// In addition to them on AMD.
const BESIDE: &str = "SMT_Contention";

fn is_top(metric: &Definition) -> bool {
    metric.parent.is_none() && (TOP.contains(&metric.name.as_str()) || metric.name == BESIDE)
}

/// The metrics of the tree down to `level`, each after its parent. Below the first level, one that needs what is not
/// read is left out with all that is below it.
///
/// # Errors
/// The processor has no tree, or its first level needs what is not read.
pub fn definitions(table: &Table, level: u8) -> Result<Vec<Definition>, MetricError> {
    let none = |why: String| {
        let some = ["ipc", "Info_Thread_IPC", "branch_miss_rate", "branch_mpki"];
        let has = |name: &&str| table.metrics.iter().any(|metric| metric.name == *name);
        let others = some.into_iter().filter(has).map(str::to_string).collect();
        MetricError::NoTree { table: table.name.clone(), why, others }
    };
    let tops: Vec<&Definition> = table.metrics.iter().filter(|metric| is_top(metric)).collect();
    if !TOP.iter().all(|name| tops.iter().any(|top| top.name == *name)) {
        return Err(none("no table derives one for it".to_string()));
    }
    if let Some((top, what)) = tops.iter().find_map(|top| Some((top, not_yet(top)?))) {
        return Err(none(format!("{} needs {what}", top.name)));
    }
    let mut all = Vec::new();
    tops.iter().for_each(|top| take(table, top, level, &mut all));
    Ok(all)
}

fn take(table: &Table, metric: &Definition, level: u8, all: &mut Vec<Definition>) {
    let known = all.iter().any(|one: &Definition| one.name == metric.name);
    if metric.level > level || known || not_yet(metric).is_some() {
        return;
    }
    all.push(metric.clone());
    let below = table.metrics.iter().filter(|one| one.parent.as_ref() == Some(&metric.name));
    below.for_each(|one| take(table, one, level, all));
}

/// Where the time goes, and what to look at next: from the top along what is over its threshold, the greatest first.
#[must_use]
pub fn way_down(rows: &[MetricRow]) -> Option<String> {
    let tops: Vec<&MetricRow> = rows
        .iter()
        .filter(|row| row.parent.is_none() && TOP.contains(&row.name.as_str()))
        .collect();
    if tops.is_empty() {
        return None;
    }
    let greatest = |rows: Vec<&MetricRow>| -> Option<MetricRow> {
        let over = rows.into_iter().filter(|row| row.exceeded == Some(true));
        over.max_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0))).cloned()
    };
    let Some(mut at) = greatest(tops) else {
        return Some("nothing of the tree is over its threshold".to_string());
    };
    let mut way = vec![at.name.clone()];
    let mut trusted = at.untrusted.is_empty();
    // No longer than there are rows, whatever parents a report names.
    while way.len() <= rows.len() {
        let below = rows.iter().filter(|row| row.parent.as_ref() == Some(&at.name)).collect();
        let Some(next) = greatest(below) else { break };
        way.push(next.name.clone());
        trusted &= next.untrusted.is_empty();
        at = next;
    }
    let measured = |name: &String| rows.iter().any(|row| row.name == *name);
    let below: Vec<&String> = at.below.iter().filter(|name| !measured(name)).collect();
    let is_open =
        |row: &&MetricRow| row.parent.as_ref() == Some(&at.name) && row.exceeded.is_none();
    let open: Vec<&str> = rows.iter().filter(is_open).map(|row| row.name.as_str()).collect();
    let next = match (&below[..], at.below.is_empty()) {
        ([], true) => "; there is nothing below it".to_string(),
        ([], false) if !open.is_empty() => {
            format!("; below it, there is no verdict on {}", open.join(", "))
        }
        ([], false) => "; below it, nothing is over its threshold".to_string(),
        (below, _) => {
            let names: Vec<&str> = below.iter().map(|name| name.as_str()).collect();
            let level = at.level.saturating_add(1);
            format!("; next: {} (topdown level {level})", names.join(", "))
        }
    };
    let doubt = if trusted { "" } else { ", which is not to be trusted" };
    Some(format!("most of it: {}{doubt}{next}", way.join(" > ")))
}

/// What is below a metric and can be had.
#[must_use]
pub fn below(table: &Table, metric: &Definition) -> Vec<String> {
    let is_child =
        |one: &&Definition| one.parent.as_ref() == Some(&metric.name) && not_yet(one).is_none();
    table.metrics.iter().filter(is_child).map(|one| one.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table;

    fn names(table: &str, level: u8) -> Vec<String> {
        let all = definitions(&table::table(table), level).unwrap();
        all.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn s3_the_tree_has_four_at_the_top_and_children_behind_their_parents() {
        for (table, second) in [
            ("haswell", 8),
            ("skylake", 8),
            ("zen4", 8),
            ("zen5", 8),
            ("sierraforest", 6),
            ("icelake", 8),
            ("sapphirerapids", 8),
            ("goldencove", 8),
        ] {
            let top = names(table, 1);
            assert!(TOP.iter().all(|name| top.iter().any(|one| one == name)), "{table}: {top:?}");
            let two = names(table, 2);
            assert_eq!(two.len(), top.len() + second, "{table}: {two:?}");
        }
        let two = names("skylake", 2);
        let at = |name: &str| two.iter().position(|one| one == name).unwrap();
        assert!(at("Backend_Bound") < at("Memory_Bound") && at("Memory_Bound") < at("Retiring"));
    }

    fn row(name: &str, parent: Option<&str>, value: f64, over: bool, below: &[&str]) -> MetricRow {
        MetricRow {
            name: name.to_string(),
            parent: parent.map(str::to_string),
            level: if parent.is_some() { 2 } else { 1 },
            value: Some(value),
            exceeded: Some(over),
            below: below.iter().map(ToString::to_string).collect(),
            ..MetricRow::default()
        }
    }

    #[test]
    fn s3_thresholds_lead_down_the_tree() {
        let mut rows = vec![
            row("Frontend_Bound", None, 20.0, true, &["Fetch_Latency"]),
            row("Backend_Bound", None, 60.0, true, &["Memory_Bound", "Core_Bound"]),
            row("Retiring", None, 10.0, false, &[]),
        ];
        let way = way_down(&rows).unwrap();
        assert_eq!(
            way,
            "most of it: Backend_Bound; next: Memory_Bound, Core_Bound (topdown level 2)"
        );
        rows.push(row("Memory_Bound", Some("Backend_Bound"), 5.0, false, &["L1_Bound"]));
        rows.push(row("Core_Bound", Some("Backend_Bound"), 55.0, true, &["Divider"]));
        let way = way_down(&rows).unwrap();
        assert!(
            way.ends_with("Backend_Bound > Core_Bound; next: Divider (topdown level 3)"),
            "{way}"
        );
        rows[4].exceeded = Some(false);
        assert!(way_down(&rows).unwrap().contains("nothing is over its threshold"));
        rows[4].exceeded = None;
        rows[1].untrusted = vec!["a reason".to_string()];
        let way = way_down(&rows).unwrap();
        let expected = "most of it: Backend_Bound, which is not to be trusted; below it, there is no verdict on Core_Bound";
        assert_eq!(way, expected);
        rows.iter_mut().for_each(|row| row.exceeded = Some(false));
        assert!(way_down(&rows).unwrap().starts_with("nothing of the tree"));
        assert_eq!(way_down(&[row("ipc", None, 1.0, false, &[])]), None);
    }
}
