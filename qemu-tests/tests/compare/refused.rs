//! What is no report, and what is none that can be compared: exit code 2 and the reason. No machine is booted.

use super::call;
use std::fs;
use std::path::Path;

/// A report as `run --format json` writes it, of one snippet.
fn report(item: &str, ticks: f64) -> String {
    format!(
        r#"{{"report":1,"run":{{"source":"qemu","ticks_per_instruction":1}},"exit_code":0,"records":[{{"seq":0,"type":"result",
        "item":0,"name":"{item}","verdict":"none","per":1,"runs":10,"metrics":[{{"event":"tsc","min":{ticks},
        "median":{ticks},"mean":{ticks},"max":{ticks},"deterministic":true,"series":[{{"min":1,"max":1,"distinct":1}},
        {{"min":1,"max":1,"distinct":1}}]}}],"tsc":[0,1]}}],"problems":[],"notes":[],"foreign":[]}}"#
    )
}

fn user_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("old.json", report("a", 1.0)),
        ("new.json", report("a", 2.0)),
        ("other.json", report("b", 1.0)),
        ("newer.json", report("a", 1.0).replacen("\"report\":1", "\"report\":2", 1)),
        ("cut.json", report("a", 1.0)[..200].to_string()),
        ("failed.json", report("a", 1.0).replacen("\"exit_code\":0", "\"exit_code\":3", 1)),
        ("text.json", "TAP version 13\n1..0\n".to_string()),
        ("log.json", "boot\r\n{\"seq\":0,\"type\":\"start\"}\r\n".to_string()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let baselines = folder.path().join("baselines");
    fs::create_dir(&baselines).unwrap();
    fs::write(baselines.join("main.json"), report("a", 1.0)).unwrap();
    folder
}

fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    call(folder, &[&["compare"], arguments].concat()).fails_with(2, parts);
}

#[test]
fn files_that_are_no_reports_are_refused_with_the_reason() {
    let folder = user_folder();
    let folder = folder.path();
    for (file, part) in [
        ("text.json", "text.json: it is not a complete JSON document"),
        ("cut.json", "cut.json: it is not a complete JSON document: EOF"),
        ("log.json", "the log of a serial line; `cargo xtask collect"),
        ("newer.json", "the report has version 2; this barecount knows up to 1"),
        ("failed.json", "its run did not finish (exit code 3)"),
        ("missing.json", "cannot read missing.json"),
        (".", "cannot read ."),
        ("mian", "no baseline or file `mian`; did you mean `main`?"),
        ("../x", "cannot read ../x"),
    ] {
        refused(folder, &[file, "new.json"], &[part]);
        refused(folder, &["old.json", file], &[part]);
    }
    refused(folder, &["old.json", "other.json"], &["have no item in common: `a` there, `b` here"]);
}

#[test]
fn x4_limits_that_are_wrong_or_for_nothing_are_refused() {
    let folder = user_folder();
    let folder = folder.path();
    for (text, part) in [
        ("[limits]\ntsc = { bye = 1 }", "unknown field `bye`"),
        ("limit = 1", "unknown field `limit`"),
        (
            "[limits]\ntcs = 1",
            "`tcs` of [limits] has no effect: no figure of the reports matches it; the most similar is `tsc`",
        ),
        ("[[item]]\nname = 'ab'\nlimits = { tsc = 1 }", "[[item]] `ab` has no effect"),
        ("", "it has no limits"),
    ] {
        fs::write(folder.join("limits.toml"), text).unwrap();
        refused(
            folder,
            &["old.json", "new.json", "--limits", "limits.toml"],
            &["limits.toml: ", part],
        );
    }
    call(folder, &["run", "--limits", "limits.toml"]).fails_with(2, &["--baseline <NAME>"]);
}

#[test]
fn an_output_overwrites_no_input_and_has_to_be_writable() {
    let folder = user_folder();
    let folder = folder.path();
    refused(folder, &["old.json", "new.json", "--out", "old.json"], &["would overwrite old.json"]);
    refused(folder, &["old.json", "new.json", "--out", "nowhere/x"], &["cannot write nowhere/x"]);
    assert_eq!(fs::read_to_string(folder.join("old.json")).unwrap(), report("a", 1.0));
    for (words, part) in [
        (["--confidence", "100"], "less than 100 percent"),
        (["--format", "xml"], "invalid value 'xml'"),
    ] {
        refused(folder, &[&["old.json", "new.json"], &words[..]].concat(), &[part]);
    }
}

#[test]
fn x4_a_baseline_goes_before_a_file_and_the_exit_code_tells_what_got_worse() {
    let folder = user_folder();
    let folder = folder.path();
    fs::write(folder.join("main"), "not a report").unwrap();
    let called = call(folder, &["compare", "main", "new.json"]);
    assert_eq!(called.code, 1, "{called:#?}");
    assert!(called.out.contains("WORSE: figures: 1 worse"), "{called:#?}");
    refused(folder, &["./main", "new.json"], &["./main: it is not a complete JSON document"]);
    let called = call(folder, &["compare", "new.json", "main", "--out", "out.txt"]);
    assert_eq!((called.code, &*called.out), (0, ""), "{called:#?}");
    assert!(
        fs::read_to_string(folder.join("out.txt")).unwrap().contains("pass: figures: 1 better")
    );
}
