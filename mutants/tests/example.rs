//! A run on a small package, whose outcomes were told by reading it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[test]
fn what_becomes_of_each_mutant_of_the_example() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (outcomes, journal) = (scratch.join("outcomes.json"), scratch.join("journal"));
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schemata"));
        command.arg("--source").arg(here.join("example")).arg("--copy").arg(scratch.join("copy"));
        command.arg("--list").arg(here.join("list.json")).arg("--outcomes").arg(&outcomes);
        let output = command.arg("--journal").arg(&journal).args(more).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    };
    // Of the lengths of arrays, 6; iterators of `&mut`, 2; the arm that may have no guard. Other iterators and constants
    // need none.
    let said = run(&[]);
    assert!(said.contains(" 9 mutants with a build of their own"), "{said}");

    let text = std::fs::read_to_string(&outcomes).unwrap();
    let account: Value = serde_json::from_str(&text).unwrap();
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for outcome in account["outcomes"].as_array().unwrap() {
        let name = outcome["scenario"]["Mutant"]["name"].as_str().unwrap();
        let (_, change) = name.split_once(": ").unwrap();
        found.entry(outcome["summary"].as_str().unwrap()).or_default().push(change);
    }
    let missed = [
        // 9 is odd.
        "replace > with >= in kind",
        // No test calls it.
        "replace unused -> u32 with 0",
        "replace unused -> u32 with 1",
        "replace - with + in unused",
        "replace - with / in unused",
        // No test has ten digits.
        "replace < with <= in digits",
    ];
    assert_eq!(found["MissedMutant"], missed);
    let unviable = [
        "replace kind -> Kind with Default::default()",
        // An array of another length than its value's.
        "replace twice -> usize with 0",
        "replace twice -> usize with 1",
        "replace * with + in twice",
        "replace * with / in twice",
        // Next to a `let`.
        "replace && with || in digits",
        // `&mut u32` is no `&u32`.
        "replace large -> impl Iterator<Item =&u32> with ::std::iter::once(Box::leak(Box::new(0)))",
        "replace large -> impl Iterator<Item =&u32> with ::std::iter::once(Box::leak(Box::new(1)))",
        // The same.
        "replace + with -",
        "replace + with *",
    ];
    assert_eq!(found["Unviable"], unviable);
    assert_eq!(found["CaughtMutant"].len(), 42);
    assert_eq!(found.len(), 3);

    // The copy is as it was, without a switch.
    let source = std::fs::read(here.join("example/src/lib.rs")).unwrap();
    assert_eq!(std::fs::read(scratch.join("copy/src/lib.rs")).unwrap(), source);

    // What was noticed or does not build is known; what was missed is tried again.
    let said = run(&["--resume"]);
    assert!(said.contains("52 of 58 mutants are known"), "{said}");
    assert!(said.contains("6 mutants are switched"), "{said}");
    let again: Value = serde_json::from_str(&std::fs::read_to_string(&outcomes).unwrap()).unwrap();
    assert_eq!(again, account);
    // A line that was cut off is of no use, and says nothing of the others.
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, &text[..text.len() - 10]).unwrap();
    assert!(run(&["--resume"]).contains("52 of 58 mutants are known"));
    // What the build told is known as soon as it is built: a run that was broken off does not begin with it again.
    let planned = |line: &&str| line.contains("\"Unviable\"") || line.contains("\"Alone\"");
    let lines: Vec<&str> = text.lines().filter(planned).collect();
    assert!(lines.len() > 6, "{text}");
    std::fs::write(&journal, lines.join("\n") + "\n").unwrap();
    let said = run(&["--resume"]);
    assert!(said.contains("10 of 58 mutants are known") && !said.contains("errors:"), "{said}");
}
