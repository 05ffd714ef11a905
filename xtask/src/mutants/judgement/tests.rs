use super::*;
use crate::mutants::accepted;

const OUTCOMES: &str = include_str!("../../../tests/mutants/outcomes.json");
const SOURCE: &str = include_str!("../../../tests/mutants/lib.rs.txt");

fn outcomes() -> Outcomes {
    Outcomes::read(OUTCOMES, 4).unwrap()
}

fn list(line: &str) -> Vec<Accepted> {
    let text = format!(
        "[[accepted]]\nfile = \"src/lib.rs\"\nmutant = \"replace < with <= in least\"\nline = \"{line}\"\nreason = \"equal\""
    );
    accepted::read(&text).unwrap()
}

fn judged<'a>(outcomes: &'a Outcomes, list: &'a [Accepted], whole: bool) -> Judgement<'a> {
    Judgement::new(outcomes, list, |mutant| mutant.line(SOURCE).to_string(), whole)
}

fn plain(judgement: &Judgement) -> String {
    anstream::adapter::strip_str(&judgement.text()).to_string()
}

const TALLY: &str = "4 mutants: 1 caught, 1 timed out, 1 that do not build";

#[test]
fn a_survivor_on_the_list_passes() {
    let (outcomes, list) = (outcomes(), list("if a < b { a } else { b }"));
    for whole in [false, true] {
        let judgement = judged(&outcomes, &list, whole);
        assert_eq!(judgement.exit_code(), 0);
        assert_eq!(plain(&judgement), format!("pass: {TALLY}, 1 missed and accepted, 0 missed\n"));
    }
}

#[test]
fn a_survivor_that_is_not_on_the_list_fails() {
    let outcomes = outcomes();
    let judgement = judged(&outcomes, &[], false);
    assert_eq!(judgement.exit_code(), 1);
    let expected = format!(
        "Not detected by a test, and not in docs/mutants.toml:\n  src/lib.rs:10:10: replace < with <= in least\n\
         FAIL: {TALLY}, 0 missed and accepted, 1 missed\n"
    );
    assert_eq!(plain(&judgement), expected);
}

/// The same change in another line is another mutant: the list says nothing of it.
#[test]
fn an_entry_of_another_line_or_file_or_function_does_not_cover() {
    let outcomes = outcomes();
    let right = list("if a < b { a } else { b }");
    let line = list("if b < a { a } else { b }");
    let file = vec![Accepted { file: "src/main.rs".to_string(), ..right[0].clone() }];
    let change = "replace < with <= in most".to_string();
    let function = vec![Accepted { mutant: change, ..right[0].clone() }];
    for wrong in [line, file, function] {
        assert_eq!(judged(&outcomes, &wrong, false).unlisted.len(), 1, "{wrong:?}");
    }
}

#[test]
fn an_entry_that_survives_no_more_fails_a_run_of_everything_alone() {
    let mut outcomes = outcomes();
    outcomes.missed.clear();
    let list = list("if a < b { a } else { b }");
    assert_eq!(judged(&outcomes, &list, false).exit_code(), 0, "it may not have been tried");
    let judgement = judged(&outcomes, &list, true);
    assert_eq!(judgement.exit_code(), 1);
    let text = plain(&judgement);
    let entry = "  src/lib.rs: replace < with <= in least in `if a < b { a } else { b }`\n";
    assert!(text.contains(entry), "{text}");
    assert!(text.ends_with("0 missed; 1 entries out of date\n"), "{text}");
}
