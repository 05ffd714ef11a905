//! What is in flight at once.

use super::Row;
use crate::primitives::number;
use protocol::record::WindowFact;

/// A row for each kind.
pub(super) fn rows(facts: &[WindowFact], unit: &str) -> impl Iterator<Item = Row> {
    facts.iter().map(move |fact| row(fact, unit))
}

fn row(fact: &WindowFact, unit: &str) -> Row {
    let saved = |between: i64| {
        let [_, tenths] = fact.evidence.iter().find(|[at, _]| *at == between)?;
        Some(format!("{between}: {}", number(*tenths as f64 / 10.0)))
    };
    // Of those around the step, or of none.
    let around = fact.entries.map_or(0..=0, |entries| {
        let entries = i64::from(entries);
        (entries - 3).max(0)..=entries
    });
    let saved: Vec<String> = around.filter_map(saved).collect();
    Row {
        figure: fact.name.clone(),
        value: fact.entries.map_or("not told".to_string(), |entries| format!("{entries} entries")),
        told: match (fact.entries, fact.doubtful) {
            (None, _) => String::new(),
            (_, 0) => "steady".to_string(),
            (_, 1) => "varies at 1 number".to_string(),
            (_, numbers) => format!("varies at {numbers} numbers"),
        },
        evidence: format!(
            "{unit} saved by two loads at once, with so many instructions between them: {}",
            saved.join(", ")
        ),
    }
}

/// What was not determined, and why.
pub(super) fn untold(facts: &[WindowFact]) -> impl Iterator<Item = String> {
    facts.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.reason.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_a_window_is_told_with_how_sure_it_is() {
        let fact = WindowFact {
            name: "reorder buffer".into(),
            entries: Some(224),
            reason: None,
            doubtful: 0,
            evidence: vec![[0, 2000], [192, 1500], [222, 1405], [223, 10], [224, 0], [256, 0]],
        };
        let told = row(&fact, "cycles");
        assert_eq!((told.value.as_str(), told.told.as_str()), ("224 entries", "steady"));
        assert!(told.evidence.ends_with("222: 140.5, 223: 1, 224: 0"), "{}", told.evidence);
        let sure = |doubtful| row(&WindowFact { doubtful, ..fact.clone() }, "cycles").told;
        assert_eq!([sure(1), sure(2)], ["varies at 1 number", "varies at 2 numbers"]);
        let reason = Some("it fades".to_string());
        let nothing = WindowFact { entries: None, reason, ..fact.clone() };
        let row = row(&nothing, "cycles");
        assert_eq!((row.value.as_str(), row.told.as_str()), ("not told", ""));
        assert!(row.evidence.ends_with(": 0: 200"), "{}", row.evidence);
        assert_eq!(untold(&[fact, nothing]).collect::<Vec<_>>(), ["reorder buffer: it fades"]);
    }
}
