//! `--cpu`: whether QEMU knows it.

use super::{Ending, Finished, MachineError};
use crate::process::stdout_of;
use crate::setup::qemu;
use std::process::Command;

/// Names that are offered in place of one that QEMU does not know.
const OFFERED: usize = 5;

/// Asks QEMU whether it has the model that `asked` begins with.
///
/// # Errors
/// [`MachineError::Contradiction`] with what it has. A QEMU that does not tell is not an error: it says it when it starts.
pub fn check(asked: &str) -> Result<(), MachineError> {
    match stdout_of(Command::new(qemu::program()).args(["-cpu", "help"])) {
        Some(help) => check_in(asked, &names(&help)).map_err(MachineError::Contradiction),
        None => Ok(()),
    }
}

/// The models of `-cpu help`: the first word of each line between the heading and the empty one; before QEMU 8 after
/// an `x86`.
fn names(help: &str) -> Vec<&str> {
    let models = help.lines().skip(1).take_while(|line| !line.trim().is_empty());
    models
        .filter_map(|line| line.strip_prefix("x86 ").unwrap_or(line).split_whitespace().next())
        .collect()
}

fn check_in(asked: &str, known: &[&str]) -> Result<(), String> {
    let model = asked.split(',').next().unwrap_or_default();
    if known.is_empty() || known.contains(&model) {
        return Ok(());
    }
    let typed = model.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let whole = strsim::normalized_damerau_levenshtein(&typed, &name);
        if !typed.is_empty() && name.contains(&typed) { 1.0 } else { whole }
    };
    let mut near: Vec<(f64, &str)> = known.iter().map(|name| (likeness(name), *name)).collect();
    // Half of the letters may differ before a name is no longer worth suggesting.
    near.retain(|(likeness, _)| *likeness >= 0.5);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let near: Vec<&str> = near.into_iter().take(OFFERED).map(|(_, name)| name).collect();
    let offer = match near[..] {
        [] => String::new(),
        _ => format!("; near it are {}", near.join(", ")),
    };
    let count = known.len();
    Err(format!(
        "--cpu {asked}: QEMU has no processor `{model}`{offer} ({count} in all: {} -cpu help)",
        qemu::program().display()
    ))
}

/// Why QEMU refused a property of `--cpu asked`, if that is why it ended before it started a machine.
#[must_use]
pub fn refused(asked: &str, finished: &Finished) -> Option<MachineError> {
    let before = finished.collector.raw().is_empty() && finished.ending == Ending::Exited(Some(1));
    let property = finished.said.contains("Property '") || finished.said.contains("CPU model");
    (before && property)
        .then(|| MachineError::Contradiction(format!("--cpu {asked}: {}", finished.said)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As QEMU 10.0 and 7.2 print them.
    const LISTS: [&str; 2] = [
        "Available CPUs:\n  486                   (alias configured by machine type)\n  Broadwell-v1          Intel \
         Core Processor (Broadwell)\n  qemu64                (alias configured by machine type)\n  max      Enables \
         all\n\nRecognized CPUID flags:\n  3dnow nosuch\n",
        "Available CPUs:\nx86 486                   (alias configured by machine type)\nx86 Broadwell-v1          \
         Intel Core Processor\nx86 qemu64                (alias)\nx86 max       Enables all\n\nRecognized CPUID \
         flags:\n  3dnow nosuch\n",
    ];

    #[test]
    fn a_model_that_qemu_does_not_list_is_answered_with_those_that_are_near() {
        for list in LISTS {
            let known = names(list);
            assert_eq!(known, ["486", "Broadwell-v1", "qemu64", "max"]);
            for good in ["max", "qemu64,-svm", "Broadwell-v1,+x2apic"] {
                assert_eq!(check_in(good, &known), Ok(()), "{good}");
            }
            let error = check_in("broadwell,-svm", &known).unwrap_err();
            assert!(
                error.contains("no processor `broadwell`; near it are Broadwell-v1 (4 in all"),
                "{error}"
            );
            let error = check_in("nosuch", &known).unwrap_err();
            assert!(
                error.starts_with("--cpu nosuch: QEMU has no processor `nosuch` (4"),
                "{error}"
            );
        }
        assert_eq!(check_in("anything", &names("")), Ok(()));
    }
}
