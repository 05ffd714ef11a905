//! No circle of imports spans two rooms. A room is a module at the top of a crate, with all that is below it: who reads or changes
//! one should not have to know another that in turn needs the first.
//!
//! Within a room, modules may need each other. What a module imports of the modules above it and below it does not count either:
//! declaring parts and collecting them is what a module with parts is for. What a module exports again is its own.
//!
//! - `source` reads a crate's modules, `names` the names in each.
//! - `imports` finds the modules that are meant; `circles` judges.

mod circles;
mod imports;
mod names;
mod source;

use source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates whose rooms may need each other, each with the reason.
const ONE_ROOM: [(&str, &str); 2] = [
    (
        "boot/emulated-pmu/plugin/src/lib.rs",
        "one room as a whole: the state of the translator's callbacks, and what each of them does to it",
    ),
    (
        "qemu-tests/guests/pmu/src/main.rs",
        "one room as a whole: its handlers belong to the measurements that they interrupt, and its instructions are counted by hand",
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout")
}

/// The first files of the workspace's libraries and programs; tests and build scripts are single files with their parts.
fn crates() -> Vec<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let output = cargo.output().expect("cargo can be called");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let targets = packages.iter().flat_map(|one| one["targets"].as_array().expect("targets"));
    let is_ours = |target: &&serde_json::Value| {
        let kinds = target["kind"].as_array().expect("kinds").iter();
        kinds.filter_map(|kind| kind.as_str()).any(|kind| kind.ends_with("lib") || kind == "bin")
    };
    let path = |target: &serde_json::Value| target["src_path"].as_str().map(PathBuf::from);
    targets.filter(is_ours).filter_map(path).collect()
}

#[test]
fn no_circle_of_imports_spans_two_rooms() {
    let (mut found, mut modules) = (Vec::new(), 0);
    let mut excused = BTreeSet::new();
    for file in crates() {
        let name = file.strip_prefix(root()).expect("a file of the checkout");
        let source = Source::read(&file, &|path| fs::read_to_string(path).ok());
        modules += source.modules.len();
        let circles = circles::across_rooms(&imports::of(&source));
        match ONE_ROOM.iter().find(|(one, _)| Path::new(one) == name) {
            Some((one, _)) if !circles.is_empty() => {
                excused.insert(*one);
            }
            _ => {
                let said = circles.iter().map(|circle| format!("{}:\n{circle}", name.display()));
                found.extend(said);
            }
        }
    }
    assert!(found.is_empty(), "modules of several rooms need each other:\n{}", found.join("\n"));
    assert_eq!(excused, ONE_ROOM.map(|(one, _)| one).into(), "one has no circle any more");
    assert!(modules > 1000, "{modules} modules: they are not read as they are written");
}

/// The circles of a crate with these files, as they are said.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<PathBuf, &str> =
        files.iter().map(|(name, text)| (Path::new("src").join(name), *text)).collect();
    let read = |path: &Path| files.get(path).map(ToString::to_string);
    let source = Source::read(Path::new("src/lib.rs"), &read);
    circles::across_rooms(&imports::of(&source))
}

#[test]
fn a_circle_across_rooms_is_found_and_one_within_a_room_is_none() {
    let lib = ("lib.rs", "mod high;\npub mod low;");
    let high = ("high.rs", "use crate::low::part::One;");
    let part = ("low/part.rs", "use super::other::two;\npub struct One;");
    let within = ("low/other.rs", "use super::part::One;\npub fn two(_: One) {}");
    let none = circles(&[lib, high, ("low/mod.rs", "mod part;\nmod other;"), part, within]);
    assert!(none.is_empty(), "{none:?}");
    let across = ("low/other.rs", "use super::part::One;\npub fn two(_: One) { crate::high::f() }");
    let found = circles(&[lib, high, ("low/mod.rs", "mod part;\nmod other;"), part, across]);
    let expected =
        "  high -> low::part\n  low::other -> high, low::part\n  low::part -> low::other\n";
    assert_eq!(found, [expected]);
}

/// Renamed, imported as a whole, of a function's own, or named in a macro or an attribute.
#[test]
fn an_import_is_found_by_any_name() {
    let lib = ("lib.rs", "mod a;\nmod b;");
    let a = ("a.rs", "use crate::b as other;\npub struct A(other::inner::B);");
    for inner in [
        "use crate::{a::A as Renamed};",
        "use crate::a::*;",
        "fn f() { println!(\"{}\", crate::a::A) }",
        "#[serde(with = \"crate::a\")] struct C;",
        "fn f() { use super::super::a::{self}; a::g() }",
        "impl From<crate::a::A> for C { fn from(_: crate::a::A) -> Self { C } }",
    ] {
        let found = circles(&[lib, a, ("b/mod.rs", "pub mod inner;"), ("b/inner.rs", inner)]);
        assert_eq!(found, ["  a -> b::inner\n  b::inner -> a\n"], "{inner}");
    }
}

#[test]
fn tests_do_not_count() {
    let lib = ("lib.rs", "mod a;\nmod b;");
    let b = ("b.rs", "use crate::a;");
    for a in [
        "#[cfg(test)] mod tests { use crate::b; }",
        "#[cfg(all(test, feature = \"f\"))] mod tests;",
        "#[cfg(test)] use crate::b;",
        "#[cfg(test)] impl A { fn f() { crate::b::g() } }",
        "/// See [`crate::b`].\nstruct A;",
    ] {
        let found = circles(&[lib, ("a.rs", a), b, ("a/tests.rs", "use crate::b;")]);
        assert!(found.is_empty(), "{a}: {found:?}");
    }
    let counts = "#[cfg(any(test, feature = \"f\"))] use crate::b;";
    assert_eq!(circles(&[lib, ("a.rs", counts), b]), ["  a -> b\n  b -> a\n"]);
}
