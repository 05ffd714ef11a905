//! Store forwarding and the store buffer.

use super::Row;
use crate::primitives::number;
use protocol::record::{ForwardFact, HazardFact, StoresFact};

/// Figures of both.
pub(super) fn rows(fact: &StoresFact, unit: &str) -> Vec<Row> {
    let mut all: Vec<Row> = fact.forward.iter().map(|one| forward(one, unit)).collect();
    if fact.forward.is_empty() && fact.evidence.is_empty() {
        return all;
    }
    let entries = fact.entries.map(i64::from);
    let cost = |stores: i64| {
        let [_, tenths] = fact.evidence.iter().find(|[at, _]| *at == stores)?;
        Some(format!("{stores}: {}", number(*tenths as f64 / 10.0)))
    };
    let which = entries.map_or([1, 64, 144], |entries| [entries - 1, entries, entries + 1]);
    let costs: Vec<String> = which.into_iter().filter_map(cost).collect();
    all.push(Row {
        figure: "store buffer".to_string(),
        value: entries.map_or("not told".to_string(), |entries| format!("{entries} entries")),
        told: match (entries, fact.doubtful) {
            (None, _) => String::new(),
            (_, 0) => "steady".to_string(),
            (_, 1) => "varies at 1 number".to_string(),
            (_, numbers) => format!("varies at {numbers} numbers"),
        },
        evidence: format!(
            "{unit} of storing to so many lines that no cache holds: {}",
            costs.join(", ")
        ),
    });
    all
}

/// What a hazard costs.
pub(super) fn hazard(one: &HazardFact, unit: &str) -> Row {
    let programs = "two programs with as many instructions";
    match one.tenths {
        Some(tenths) => difference(one.name.clone(), tenths, programs, unit),
        None => Row {
            figure: one.name.clone(),
            value: "not told".to_string(),
            told: String::new(),
            evidence: String::new(),
        },
    }
}

fn forward(one: &ForwardFact, unit: &str) -> Row {
    difference(one.name(), one.tenths, "loads of these bytes against loads of others", unit)
}

fn difference(figure: String, [least, median, most]: [i64; 3], of: &str, unit: &str) -> Row {
    let tenths = |value: i64| number(value as f64 / 10.0);
    let value = match median {
        0 => "none seen".to_string(),
        1.. => format!("{} {unit} more", tenths(median)),
        _ => format!("{} {unit} less", tenths(-median)),
    };
    // As for stolen time, but differences can be nothing at all.
    let told = match most - least {
        0..=10 => "steady",
        far if far * 4 <= median.abs() => "varies",
        _ => "unsteady",
    };
    let evidence = format!("{of}; 5 samples, {} to {}", tenths(least), tenths(most));
    Row { figure, value, told: told.to_string(), evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_what_a_hazard_costs_is_told_or_none_is_seen() {
        let of = |tenths| {
            let fact = HazardFact { name: "split lock".into(), tenths, reason: None };
            hazard(&fact, "cycles").value
        };
        assert_eq!(of(Some([0; 3])), "none seen");
        assert_eq!(of(Some([9900, 10_000, 10_100])), "1000 cycles more");
        assert_eq!(of(None), "not told");
    }

    #[test]
    fn d1_store_forwarding_is_told_with_how_sure_it_is() {
        let case =
            |offset, tenths| ForwardFact { store: 8, load: 4, offset, crosses: false, tenths };
        let told = |one: &ForwardFact| {
            let row = forward(one, "cycles");
            (row.figure, row.value, row.told)
        };
        let of = |a: &str, b: &str, c: &str| (a.to_string(), b.to_string(), c.to_string());
        let steady = of("forward 4 of 8 at 4", "1.5 cycles more", "steady");
        assert_eq!(told(&case(4, [10, 15, 20])), steady);
        assert_eq!(told(&case(0, [0; 3])), of("forward 4 of 8", "none seen", "steady"));
        let less = of("4K aliasing", "3 cycles less", "unsteady");
        assert_eq!(told(&case(4096, [-40, -30, -10])), less);
        // Over a cycle, samples may be a quarter of the difference apart.
        let sure = |tenths| told(&case(4, tenths)).2;
        assert_eq!([80, 79].map(|median| sure([70, median, 90])), ["varies", "unsteady"]);
        let evidence = vec![[1, 110], [2, 120], [3, 1000]];
        let fact = StoresFact { entries: Some(2), evidence, ..StoresFact::default() };
        let row = rows(&fact, "cycles").pop().unwrap();
        assert_eq!((row.value.as_str(), row.told.as_str()), ("2 entries", "steady"));
        assert!(row.evidence.ends_with("1: 11, 2: 12, 3: 100"), "{}", row.evidence);
        assert!(rows(&StoresFact::default(), "cycles").is_empty());
    }
}
