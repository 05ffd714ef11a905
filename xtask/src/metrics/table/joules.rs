//! Intel's metrics of energy, in joules: its tools count the ticks of RAPL, which each formula takes for so many microjoules.

use super::Definition;

/// Perfmon's event, our name for the energy, and the microjoules that perfmon's formulas multiply a tick by: 61 is 2^-14 J, and
/// 15.6 is what they take for the 15.3 of a server's memory.
const TICKS: [(&str, &str, &str); 3] = [
    ("UNC_PKG_ENERGY_STATUS", "energy-pkg", "61"),
    ("FREERUN_PKG_ENERGY_STATUS", "energy-pkg", "61"),
    ("FREERUN_DRAM_ENERGY_STATUS", "energy-ram", "15.6"),
];

/// The metric with [energy](::events::energy), in joules, in place of ticks: its formula then has no processor's units in it.
pub(super) fn of(mut metric: Definition) -> Definition {
    let events: Vec<_> = metric.events.iter().map(|(a, b)| (a.clone(), b.clone())).collect();
    for (name, event) in events {
        let Some((_, energy, microjoules)) = TICKS.iter().find(|one| one.0 == event) else {
            continue;
        };
        let ticks = format!("( {name} * 1000000 / {microjoules} )");
        let word = |word: &str| if word == name { ticks.clone() } else { word.to_string() };
        // Perfmon's formulas have spaces between all words.
        metric.formula = metric.formula.split(' ').map(word).collect::<Vec<_>>().join(" ");
        metric.events.insert(name, (*energy).to_string());
    }
    metric
}

#[cfg(test)]
mod tests {
    use crate::metrics::formula::Formula;
    use crate::metrics::table::{Table, names, table};

    /// Two watts of the package, one of the memory where it is in the formula.
    #[test]
    fn s3_s4_intels_power_is_in_watts_on_every_processor() {
        let mut seen = 0;
        for Table { name, metrics, .. } in names().iter().map(|name| table(name)) {
            for metric in metrics.iter().filter(|one| one.brief == "Total package Power in Watts") {
                let formula = Formula::parse(&metric.formula).unwrap();
                let value =
                    |name: &String| match metric.events.get(name.as_str()).map(String::as_str) {
                        Some("energy-pkg") => Some(20.0),
                        Some("energy-ram") => Some(10.0),
                        Some(other) => panic!("{other}"),
                        // Ten seconds.
                        None => Some(10_000.0),
                    };
                let values: Vec<_> = formula.names().iter().map(value).collect();
                let watts = formula.value(&values).unwrap();
                let expected = 1.0 + metric.events.len() as f64;
                assert!((watts - expected).abs() < 1e-9, "{name}: {watts}, {metric:?}");
                seen += 1;
            }
        }
        assert_eq!(seen, 19);
    }
}
