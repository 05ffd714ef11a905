//! On what cargo-mutants 27.1.0 wrote of `xtask/tests/mutants/lib.rs.txt`.

use super::*;

const PLANNED: &str = include_str!("../../../tests/mutants/mutants.json");
const OUTCOMES: &str = include_str!("../../../tests/mutants/outcomes.json");
const SOURCE: &str = include_str!("../../../tests/mutants/lib.rs.txt");

#[test]
fn a_recorded_run_has_one_of_each_outcome() {
    let planned = planned(PLANNED).unwrap();
    let outcomes = Outcomes::read(OUTCOMES, planned.len()).unwrap();
    let Outcomes { caught, timed_out, unviable, missed } = &outcomes;
    assert_eq!((*caught, *timed_out, *unviable, missed.len()), (1, 1, 1, 1));
    assert_eq!(outcomes.tried(), 4);
    let survivor = &missed[0];
    assert!(planned.contains(survivor));
    assert_eq!(survivor.name, "src/lib.rs:10:10: replace < with <= in least");
    assert_eq!(survivor.change(), "replace < with <= in least");
    assert_eq!(survivor.line(SOURCE), "if a < b { a } else { b }");
    assert_eq!(survivor.line(""), "");
}

#[test]
fn a_run_that_was_cut_off_says_nothing_of_the_rest() {
    let said = Outcomes::read(OUTCOMES, 5).unwrap_err().to_string();
    assert_eq!(said, "cargo-mutants tested 4 of 5 mutants; the others are unknown");
    // A mutant whose run failed for no reason of its own was not tried.
    let failed = OUTCOMES.replace("\"CaughtMutant\"", "\"Failure\"");
    let said = Outcomes::read(&failed, 4).unwrap_err().to_string();
    assert!(said.starts_with("cargo-mutants tested 3 of 4 mutants"), "{said}");
}

#[test]
fn other_json_is_refused() {
    let said = Outcomes::read("{}", 0).unwrap_err().to_string();
    assert!(said.starts_with("outcomes.json: missing field `outcomes`"), "{said}");
    assert!(planned("{}").unwrap_err().to_string().starts_with("mutants.json: "));
    let unknown = OUTCOMES.replace("CaughtMutant", "Eaten");
    assert!(Outcomes::read(&unknown, 4).unwrap_err().to_string().contains("Eaten"));
}
