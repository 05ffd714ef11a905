//! Which programs of a cargo package hold benchmarks.

use super::BenchmarkError;
use crate::process::said;
use crate::setup::toolchain::cargo;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A package with benchmarks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Package {
    /// Its folder, as the user named it.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: PathBuf,
    /// Where cargo builds it.
    pub target_folder: PathBuf,
    /// Names of the bench targets that hold benchmarks.
    pub targets: Vec<String>,
}

/// What `cargo metadata` says: The Cargo Book, "cargo metadata".
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<About>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct About {
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

/// What of a manifest cargo does not tell.
#[derive(Default, Deserialize)]
struct Manifest {
    #[serde(default)]
    bench: Vec<Bench>,
    package: Option<Table>,
}

#[derive(Deserialize)]
struct Bench {
    name: Option<String>,
    harness: Option<bool>,
}

#[derive(Default, Deserialize)]
struct Table {
    #[serde(default)]
    metadata: Own,
}

#[derive(Default, Deserialize)]
struct Own {
    #[serde(default)]
    barecount: Chosen,
}

/// `[package.metadata.barecount]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    benches: Option<Vec<String>>,
}

impl Package {
    /// The package in the folder `path`, or the one whose manifest it is.
    ///
    /// # Errors
    /// There is none, or none of its programs holds benchmarks.
    pub fn find(path: &Path) -> Result<Self, BenchmarkError> {
        let manifest =
            if path.ends_with("Cargo.toml") { path.to_path_buf() } else { path.join("Cargo.toml") };
        let manifest =
            manifest.canonicalize().map_err(|_| BenchmarkError::NoManifest(path.to_path_buf()))?;
        let refused = |said| BenchmarkError::Refused { path: path.to_path_buf(), said };
        let mut command = Command::new(cargo());
        command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
        let output = command.arg(&manifest).stdin(Stdio::null()).output();
        let output = output.map_err(|error| refused(error.to_string()))?;
        if !output.status.success() {
            return Err(refused(said(&output)));
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .map_err(|error| refused(format!("its metadata cannot be read: {error}")))?;
        let Some(about) = metadata.packages.iter().find(|about| about.manifest_path == manifest)
        else {
            let members = metadata.packages.iter().map(|about| {
                let folder = about.manifest_path.parent().unwrap_or(&about.manifest_path);
                folder.display().to_string()
            });
            return Err(BenchmarkError::Workspace {
                path: path.to_path_buf(),
                members: members.collect(),
            });
        };
        let is_bench = |target: &&Target| target.kind.iter().any(|kind| kind == "bench");
        let names = about.targets.iter().filter(is_bench).map(|target| target.name.clone());
        let text =
            std::fs::read_to_string(&manifest).map_err(|error| refused(error.to_string()))?;
        let targets = choose(&text, names.collect())
            .map_err(|why| BenchmarkError::NoTarget { path: path.to_path_buf(), why })?;
        let (path, target_folder) = (path.to_path_buf(), metadata.target_directory);
        Ok(Self { path, manifest, target_folder, targets })
    }
}

/// The bench targets among `names` that hold benchmarks of ours: those that the manifest lists for us, else all without a
/// harness.
fn choose(manifest: &str, names: Vec<String>) -> Result<Vec<String>, String> {
    let manifest: Manifest = toml::from_str(manifest).map_err(|error| error.to_string())?;
    if let Some(chosen) = manifest.package.and_then(|package| package.metadata.barecount.benches) {
        return match chosen.iter().find(|name| !names.contains(name)) {
            Some(unknown) => Err(format!(
                "[package.metadata.barecount] lists the bench target `{unknown}`, which does not exist"
            )),
            None if chosen.is_empty() => {
                Err("[package.metadata.barecount] lists no bench target".to_string())
            }
            None => Ok(chosen),
        };
    }
    let has_none = |name: &String| {
        let own = |bench: &&Bench| bench.name.as_ref() == Some(name);
        manifest.bench.iter().find(own).is_some_and(|bench| bench.harness == Some(false))
    };
    let (without, with): (Vec<_>, Vec<_>) = names.into_iter().partition(has_none);
    match (&without[..], &with[..]) {
        ([], []) => Err("it has no bench target; `new PATH` writes an example of one".to_string()),
        ([], [first, ..]) => Err(format!(
            "its bench target `{first}` has a test harness, which needs an operating system: \
             Cargo.toml has to say [[bench]] name = \"{first}\", harness = false"
        )),
        _ => Ok(without),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn bench_targets_without_a_harness_are_taken_or_those_that_are_listed() {
        let two = "[[bench]]\nname = 'a'\nharness = false\n[[bench]]\nname = 'b'";
        assert_eq!(choose(two, names(&["a", "b"])), Ok(names(&["a"])));
        let listed = "[package]\nname = 'x'\n[package.metadata.barecount]\nbenches = ['b']";
        assert_eq!(choose(listed, names(&["a", "b"])), Ok(names(&["b"])));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (manifest, targets, expected) in [
            ("", &[][..], "no bench target"),
            ("", &["auto"], "`auto` has a test harness"),
            ("[[bench]]\nname = 'a'\nharness = true", &["a"], "harness = false"),
            ("[package.metadata.barecount]\nbenches = ['z']", &["a"], "`z`"),
            ("[package.metadata.barecount]\nbenches = []", &["a"], "lists no bench"),
            ("[package.metadata.barecount]\nbench = ['z']", &["a"], "unknown field `bench`"),
        ] {
            let why = choose(manifest, names(targets)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_folder_without_a_manifest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Package::find(folder.path()).unwrap_err().to_string();
        assert!(error.contains("no Cargo.toml"), "{error}");
    }
}
