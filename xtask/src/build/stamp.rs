//! Whether cargo has anything to do: a note of all that a build was made of, next to what it made.
//!
//! Cargo decides what is stale, but takes a few hundred milliseconds for each call to say that nothing is. So after a
//! successful call the size and time of every file that its dependency file names are noted, with those of the manifests and
//! the configuration, the arguments, and the environment that cargo reads. As long as all of it is the same, cargo is not
//! called. Whatever cannot be noted with certainty is not noted, and cargo is called again.

use super::Tree;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// All that a build depends on.
#[derive(Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Stamp {
    /// The compiler, the project's folder, and cargo's arguments.
    call: Vec<String>,
    /// What cargo reads from the environment.
    environment: BTreeMap<String, String>,
    /// Every file; None for one that is not there.
    files: BTreeMap<PathBuf, Option<State>>,
}

/// What tells a file from another version of it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct State {
    /// Nanoseconds since 1970.
    modified: u64,
    bytes: u64,
}

impl State {
    fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        let modified = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(Self { modified: u64::try_from(modified).ok()?, bytes: data.len() })
    }
}

/// Variables that change what cargo builds: The Cargo Book, "Environment Variables", and rustup's.
const VARIABLES: [&str; 8] = [
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_HOME",
    "CARGO_INCREMENTAL",
];
/// Beginnings of such variables' names.
const PREFIXES: [&str; 4] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_UNSTABLE_"];
/// The build folder's stand among the arguments.
const FOLDERS: [&str; 3] = ["CARGO_BUILD_TARGET_DIR", "CARGO_TARGET_DIR", "CARGO_TARGET_TMPDIR"];

fn environment(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let counts = |name: &str| {
        let begins = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        VARIABLES.contains(&name) || (begins && !FOLDERS.contains(&name))
    };
    variables.filter(|(name, _)| counts(name)).collect()
}

/// What `command` is called with.
fn call(tree: &Tree, command: &Command) -> Vec<String> {
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    let toolchain = tree.toolchain();
    let places = [tree.root(), &toolchain.sysroot].map(|path| text(path.as_os_str()));
    let mut call = vec![toolchain.version.clone()];
    call.extend(places);
    call.extend(command.get_args().map(text));
    call
}

/// Whether what `command` makes is noted in `file`, and nothing of it has changed.
pub(super) fn is_fresh(tree: &Tree, command: &Command, file: &Path) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let Ok(noted) = serde_json::from_str::<Stamp>(&text) else { return false };
    let now = environment(variables());
    noted.call == call(tree, command) && noted.environment == now && noted.is_unchanged()
}

/// Notes in `file` what `command`, which was started at `start`, made of the files that `dependencies` (cargo's `.d` file)
/// names.
pub(super) fn write(
    tree: &Tree,
    command: &Command,
    dependencies: &Path,
    start: SystemTime,
    file: &Path,
) {
    let Some(files) = inputs(tree.root(), dependencies, start) else {
        // A note of before would be as wrong.
        let _ = fs::remove_file(file);
        return;
    };
    let stamp = Stamp { call: call(tree, command), environment: environment(variables()), files };
    let text = serde_json::to_string(&stamp).expect("a stamp serialises");
    // Without a note the next command asks cargo.
    let _ = file.parent().map(fs::create_dir_all);
    let _ = fs::write(file, text);
}

fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
    })
}

impl Stamp {
    fn is_unchanged(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|(path, noted)| State::of(path) == *noted)
    }
}

/// The state of everything that went into a build. None if some of it is unknown, or was changed since its `start`.
fn inputs(
    root: &Path,
    dependencies: &Path,
    start: SystemTime,
) -> Option<BTreeMap<PathBuf, Option<State>>> {
    let text = fs::read_to_string(dependencies).ok()?;
    let (output, sources) = parse(&text)?;
    let start = u64::try_from(start.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()?;
    let mut files = BTreeMap::new();
    // Of a copied checkout the file may still name the sources of the old one.
    if sources.is_empty() || !sources.iter().all(|source| source.starts_with(root)) {
        return None;
    }
    for source in sources.into_iter().chain(manifests(root)) {
        let state = State::of(&source);
        // A folder's own time says nothing of what lies deeper.
        if source.is_dir() || state.is_some_and(|state| state.modified >= start) {
            return None;
        }
        files.insert(source, state);
    }
    let made = State::of(&output)?;
    files.insert(output, Some(made));
    Some(files)
}

/// What decides on a build without being compiled.
fn manifests(root: &Path) -> Vec<PathBuf> {
    let own = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"];
    let mut files: Vec<PathBuf> = own.iter().map(|name| root.join(name)).collect();
    let text = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let workspace: toml::Table = text.parse().unwrap_or_default();
    let members = workspace.get("workspace").and_then(|table| table.get("members")?.as_array());
    let members = members.into_iter().flatten().filter_map(toml::Value::as_str);
    for member in members.map(|member| root.join(member)) {
        files.extend([member.join("Cargo.toml"), member.join("build.rs")]);
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    // Cargo reads that of every folder above its own, whose name it asks the system for, under both names.
    let folder = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    let above = folder.ancestors().map(|folder| folder.join(".cargo"));
    for folder in above.chain(home) {
        files.extend(["config.toml", "config"].map(|name| folder.join(name)));
    }
    files
}

/// The output and the inputs that a dependency file names; spaces in names stand after a backslash.
fn parse(text: &str) -> Option<(PathBuf, Vec<PathBuf>)> {
    let line = text.lines().next()?;
    let (output, sources) = line.split_once(": ")?;
    let whole = |text: &str| PathBuf::from(text.replace('\0', " "));
    let sources = sources.replace("\\ ", "\0");
    let sources = sources.split(' ').filter(|name| !name.is_empty()).map(whole).collect();
    Some((whole(&output.replace("\\ ", "\0")), sources))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_dependency_file_with_spaces() {
        let (output, sources) = parse("/a\\ b/out: /a\\ b/x.rs /c/y.rs\n").unwrap();
        assert_eq!(output, Path::new("/a b/out"));
        assert_eq!(sources, ["/a b/x.rs", "/c/y.rs"].map(PathBuf::from));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn what_cargo_reads_is_noted_and_what_it_tells_its_programs_is_not() {
        let some = [
            "RUSTFLAGS",
            "CARGO_PROFILE_DEV_DEBUG",
            "CARGO_MANIFEST_DIR",
            "CARGO_TARGET_DIR",
            "CARGO",
        ];
        let seen = environment(some.map(|name| (name.to_string(), String::new())).into_iter());
        assert_eq!(seen.into_keys().collect::<Vec<_>>(), ["CARGO_PROFILE_DEV_DEBUG", "RUSTFLAGS"]);
    }

    /// A project of one source, which was built.
    fn project(folder: &Path) -> PathBuf {
        let file = |name: &str| folder.join(name);
        fs::write(file("Cargo.toml"), "[workspace]\nmembers = [\"one\"]\n").unwrap();
        fs::create_dir(file("one")).unwrap();
        for name in ["one/Cargo.toml", "one/a.rs", "out", "b.ld"] {
            fs::write(file(name), "x").unwrap();
        }
        let [out, a, b] = ["out", "one/a.rs", "b.ld"].map(|name| file(name).display().to_string());
        fs::write(file("out.d"), format!("{out}: {a} {b}\n")).unwrap();
        file("out.d")
    }

    #[test]
    fn every_change_of_an_input_or_of_the_output_is_noticed() {
        for changed in [
            "one/a.rs",
            "b.ld",
            "one/Cargo.toml",
            "Cargo.toml",
            "out",
            "Cargo.lock",
            ".cargo/config.toml",
            ".cargo/config",
            "../.cargo/config.toml",
            "../../.cargo/config",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("above/checkout");
            fs::create_dir_all(&root).unwrap();
            let depfile = project(&root);
            let later = SystemTime::now() + Duration::from_secs(5);
            let files = inputs(&root, &depfile, later).expect("all is known");
            let stamp = Stamp { files, ..Stamp::default() };
            assert!(stamp.is_unchanged());
            let changed = root.join(changed);
            fs::create_dir_all(changed.parent().unwrap()).unwrap();
            fs::write(&changed, "other").unwrap();
            let changed = changed.display();
            assert!(!stamp.is_unchanged(), "{changed}");
        }
        assert!(!Stamp::default().is_unchanged(), "a note of nothing");
    }

    #[test]
    fn a_copy_whose_dependency_file_names_the_old_checkout_is_not_noted() {
        let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [depfile, _] = [&old, &new].map(|folder| project(folder.path()));
        let later = SystemTime::now() + Duration::from_secs(5);
        assert_eq!(inputs(new.path(), &depfile, later), None);
    }

    #[test]
    fn a_file_that_changed_while_cargo_ran_is_not_noted() {
        let folder = tempfile::tempdir().unwrap();
        let depfile = project(folder.path());
        let before = SystemTime::now() - Duration::from_secs(5);
        assert_eq!(inputs(folder.path(), &depfile, before), None);
    }
}
