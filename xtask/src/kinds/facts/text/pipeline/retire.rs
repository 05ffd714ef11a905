//! The width of retirement.

use super::{Row, instructions};
use protocol::record::RetireFact;

/// Numbers of instructions around the width that are shown.
const AROUND: u64 = 1;

pub(super) fn row(fact: &RetireFact) -> Row {
    let width = u64::from(fact.width.unwrap_or(0));
    let shown = |at_least: u64| match width {
        0 => at_least <= 1 + AROUND,
        _ => at_least.abs_diff(width) <= AROUND,
    };
    let cycles = fact.evidence.iter().filter(|[at_least, _]| shown(*at_least));
    let cycles: Vec<String> =
        cycles.map(|[at_least, cycles]| format!("{at_least}: {cycles}")).collect();
    let past = fact.evidence.get(width as usize).map_or(0, |[_, cycles]| *cycles);
    Row {
        figure: "retirement".to_string(),
        value: fact.width.map_or("not told".to_string(), instructions),
        told: match (fact.width, past) {
            (None, _) => String::new(),
            (_, 0) => "steady".to_string(),
            (_, 1) => "varies in 1 cycle".to_string(),
            (_, cycles) => format!("varies in {cycles} cycles"),
        },
        evidence: match cycles.is_empty() {
            true => String::new(),
            false => format!("cycles in which at least so many retired: {}", cycles.join(", ")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_the_width_of_retirement_is_told_with_the_cycles_that_show_it() {
        let evidence = vec![[1, 700], [2, 300], [3, 200], [4, 120], [5, 0]];
        let fact = RetireFact { width: Some(4), reason: None, evidence };
        let told = row(&fact);
        assert_eq!((&*told.value, &*told.told), ("4 instructions a cycle", "steady"));
        assert_eq!(told.evidence, "cycles in which at least so many retired: 3: 200, 4: 120, 5: 0");
        let mut more = fact.clone();
        more.evidence[4][1] = 2;
        assert_eq!(row(&more).told, "varies in 2 cycles");
        let none = row(&RetireFact { width: None, ..fact });
        assert_eq!((&*none.value, &*none.told), ("not told", ""));
        assert!(none.evidence.ends_with(": 1: 700, 2: 300"), "{}", none.evidence);
        assert_eq!(row(&RetireFact::default()).evidence, "");
    }
}
