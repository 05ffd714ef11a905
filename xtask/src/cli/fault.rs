//! `--pmu-fault`: the names are the emulated PMU's own list of faults.

use ::events::tables::nearest;
use pmu_model::Mutation;

/// The parser for the name of a fault.
///
/// # Errors
/// There is no such fault; the text has the name most like it.
pub(super) fn fault(text: &str) -> Result<String, String> {
    if Mutation::by_name(text).is_some() {
        return Ok(text.to_string());
    }
    let names: Vec<String> = Mutation::ALL.into_iter().map(name).collect();
    let near = nearest(names.iter().map(String::as_str), text, 1);
    let hint = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "they are those of `pmu_model::Mutation`, such as `freeze-ignored`".to_string(),
    };
    Err(format!("the emulated PMU has no such fault; {hint}"))
}

/// The variant's name in lower case, with a hyphen between words.
fn name(fault: Mutation) -> String {
    let mut name = String::new();
    for letter in format!("{fault:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Command, User};
    use clap::Parser;

    #[test]
    fn every_fault_has_a_name_that_leads_back() {
        for planted in Mutation::ALL {
            let name = name(planted);
            assert_eq!(Mutation::by_name(&name), Some(planted), "{name}");
            assert_eq!(fault(&name), Ok(name));
        }
    }

    #[test]
    fn a_fault_that_there_is_not_is_refused_before_anything_runs() {
        for words in [&["xtask", "run"][..], &["xtask", "replay", "report.json"]] {
            let words = words.iter().chain(&["--pmu-fault", "freeze-ignore"]);
            let error = Arguments::try_parse_from(words).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let text = error.to_string();
            for part in ["--pmu-fault", "'freeze-ignore'", "did you mean `freeze-ignored`?"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        let unlike = fault("xyzzy").unwrap_err();
        assert!(unlike.ends_with("such as `freeze-ignored`"), "{unlike}");
        let sound = ["xtask", "run", "--pmu-fault", "freeze-ignored"];
        let command = Arguments::try_parse_from(sound).unwrap().command;
        let Command::User(User::Run(run)) = command else { panic!("{command:?}") };
        assert_eq!(run.machine.pmu_fault.as_deref(), Some("freeze-ignored"));
    }
}
