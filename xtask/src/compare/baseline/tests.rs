use super::super::saved::tests::{document, result};
use super::*;
use std::os::unix::fs::PermissionsExt;

fn report() -> String {
    document(vec![result(0, "a", 3.0, 1.0)]).to_string()
}

fn name(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_name_is_no_path() {
    for good in ["main", "release-1.2", "_x", "2026-11-22", &"x".repeat(100)] {
        assert_eq!(name(good).to_string(), good);
    }
    for (bad, part) in [
        ("", "1 to 100 characters"),
        (&*"x".repeat(101), "1 to 100 characters"),
        ("../x", "is not a path"),
        ("a/b", "is not a path"),
        ("/etc/passwd", "is not a path"),
        (".hidden", "begins with a letter"),
        ("..", "begins with a letter"),
        ("-x", "begins with a letter"),
        ("a b", "may have letters, digits, `-`, `_` and `.`, not ' '"),
        ("a\0b", "may have letters"),
        ("a\u{1b}[31m", "not '\\u{1b}'"),
        ("ä", "may have letters"),
        ("a\\b", "may have letters"),
    ] {
        let error = bad.parse::<Name>().unwrap_err();
        assert!(error.contains(part), "{bad:?}: {error}");
    }
}

#[test]
fn what_is_kept_is_read_again_and_replaced_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let baselines = Baselines::in_folder(folder.path());
    assert!(baselines.names().is_empty());
    baselines.check(&name("main")).unwrap();
    assert!(!baselines.path(&name("main")).exists(), "nothing is kept yet");
    baselines.save(&name("main"), &report()).unwrap();
    baselines.save(&name("old-1"), "{").unwrap();
    fs::write(baselines.path(&name("main")).with_file_name("notes.txt"), "x").unwrap();
    assert_eq!(baselines.names(), ["main", "old-1"]);
    assert_eq!(baselines.read(&name("main")).unwrap().items.len(), 1);
    let broken = baselines.read(&name("old-1")).unwrap_err().to_string();
    assert!(broken.starts_with("old-1: it is not a complete JSON document"), "{broken}");
    baselines.save(&name("old-1"), &report()).unwrap();
    assert!(baselines.read(&name("old-1")).is_ok());
}

#[test]
fn an_unknown_name_has_what_is_near_it() {
    let folder = tempfile::tempdir().unwrap();
    let baselines = Baselines::in_folder(folder.path());
    let unknown = |text: &str| baselines.read(&name(text)).unwrap_err().to_string();
    assert!(unknown("main").contains("no baseline or file `main`"), "{}", unknown("main"));
    assert!(unknown("main").contains("`run --save-baseline NAME` saves one"));
    for kept in ["main", "release"] {
        baselines.save(&name(kept), &report()).unwrap();
    }
    assert!(unknown("mian").ends_with("did you mean `main`?"), "{}", unknown("mian"));
    assert!(unknown("xyzzy").ends_with("there are: `main`, `release`"), "{}", unknown("xyzzy"));
}

#[test]
fn a_baseline_goes_before_a_file_and_a_path_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let baselines = Baselines::in_folder(folder.path());
    baselines.save(&name("main"), &report()).unwrap();
    let file = folder.path().join("other.json");
    fs::write(&file, report()).unwrap();
    let read = |named: &str| read_named(named, Some(&baselines)).map(|saved| saved.source);
    assert_eq!(read("main").unwrap(), "main");
    assert_eq!(read(file.to_str().unwrap()).unwrap(), file.to_str().unwrap());
    for (named, part) in [
        ("mian", "no baseline or file `mian`; did you mean `main`?"),
        ("mian.json", "cannot read mian.json"),
        ("../x", "cannot read ../x"),
        ("/nonexistent/main", "cannot read /nonexistent/main"),
    ] {
        let error = read(named).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    // A folder is not a report.
    let error = read(folder.path().to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("directory"), "{error}");
    assert!(read_named("mian", None).unwrap_err().to_string().contains("cannot read mian"));
}

#[test]
fn folders_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    // A file where the folder should be: nobody, root neither, can make it.
    fs::write(folder.path().join("barecount"), "x").unwrap();
    let baselines = Baselines::in_folder(folder.path());
    for error in
        [baselines.check(&name("a")).unwrap_err(), baselines.save(&name("a"), "").unwrap_err()]
    {
        assert!(error.to_string().contains("cannot create") && error.exit_code() == 2, "{error}");
    }
    assert!(baselines.read(&name("a")).unwrap_err().to_string().contains("cannot read"));
    // Root may write and read all the same.
    let sealed = tempfile::tempdir().unwrap();
    let baselines = Baselines::in_folder(sealed.path());
    baselines.save(&name("a"), &report()).unwrap();
    let path = baselines.path(&name("a"));
    let own = path.parent().unwrap();
    let mode = |mode| fs::set_permissions(own, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    let is_root = fs::read_dir(own).is_ok();
    let (read, kept) = (baselines.read(&name("a")), baselines.check(&name("b")));
    mode(0o755);
    if !is_root {
        assert!(read.unwrap_err().to_string().contains("cannot read"));
        assert_eq!(kept.unwrap_err().exit_code(), 2);
    }
}
