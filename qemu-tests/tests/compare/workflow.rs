//! The example workflow, its commands run as a shell would, and the lines of the guide.

use super::JOB;
use qemu_tests::{Called, tree};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use yaml_rust2::{Yaml, YamlLoader};

/// Where the workflow keeps its baselines, relative to the checkout.
const BASELINES: &str = "baselines";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the checkout")
}

/// The commands of a job's steps, in order.
fn steps(workflow: &Yaml, job: &str) -> Vec<String> {
    let steps =
        workflow["jobs"][job]["steps"].as_vec().unwrap_or_else(|| panic!("{job}: {workflow:?}"));
    steps.iter().filter_map(|step| step["run"].as_str().map(String::from)).collect()
}

/// A folder with the files that the workflow names, and a `cargo` that installs this checkout's tool there, in a profile that
/// takes less time, and has the checkout's own as its `xtask`.
struct UserFolder(tempfile::TempDir);

impl UserFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        let cargo = folder.path().join("bin/cargo");
        let program = std::env::var_os("BARECOUNT_XTASK").map(PathBuf::from);
        let program = program.unwrap_or_else(|| tree().target().join("debug/xtask"));
        let [program, root, target] =
            [&program, tree().root(), &tree().target()].map(|path| path.display().to_string());
        let script = format!(
            "#!/bin/sh -e\ncommand=$1\nshift\ncase \"$command $*\" in\n\
             'install --locked --path barecount/xtask')\n\
             cd '{root}'\nexec \"$CARGO\" install --locked --path xtask --profile quick --target-dir '{target}' \
             --root \"$DESK\" ;;\n\
             barecount*) exec cargo-barecount barecount \"$@\" ;;\n\
             xtask*) exec '{program}' \"$@\" ;;\nesac\nexit 99\n"
        );
        fs::write(&cargo, script).unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a step's commands as GitHub does: `bash -e`.
    fn shell(&self, commands: &str) -> Called {
        let folder = self.0.path();
        let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
        // What builds asks for the real one by this variable, which `cargo` sets.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new("bash")
            .args(["-e", "-c", commands])
            .current_dir(folder)
            .env("PATH", path)
            .env("CARGO", cargo)
            .env("DESK", folder)
            .env("BARECOUNT_CACHE", folder.join("cache"))
            .env("BARECOUNT_BASELINES", BASELINES)
            .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
            .output()
            .expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("it ends by itself");
        Called { code, out: text(&output.stdout), err: text(&output.stderr) }
    }
}

#[test]
fn x4_the_workflow_keeps_a_baseline_passes_what_is_equal_and_fails_what_is_worse() {
    let _ = tree();
    let text = fs::read_to_string(root().join("docs/ci/github.yml")).unwrap();
    let workflow = YamlLoader::load_from_str(&text).expect("a workflow").remove(0);
    // `on` is a key of YAML 1.2, and what it names are events of GitHub.
    assert!(!workflow["on"]["pull_request"].is_badvalue() && !workflow["on"]["push"].is_badvalue());
    assert_eq!(workflow["env"]["BARECOUNT_BASELINES"].as_str(), Some(BASELINES));
    let user_folder = UserFolder::new();
    user_folder.write("job.toml", &JOB.replace("name = \"memory\"", "name = \"store-to-load\""));
    user_folder
        .write("limits.toml", &fs::read_to_string(root().join("docs/ci/limits.toml")).unwrap());
    let baseline = steps(&workflow, "baseline");
    assert!(baseline.len() == 2 && baseline[0].starts_with("cargo install"), "{baseline:?}");
    for step in &baseline {
        let called = user_folder.shell(step);
        assert_eq!(called.code, 0, "{step}\n{called:#?}");
    }
    assert!(user_folder.read("baselines/main.json").contains("\"values\""));
    let compare = steps(&workflow, "compare");
    let (gate, before) = compare.split_last().expect("steps");
    assert!(gate.contains("--format annotations") && before.len() == 4, "{compare:?}");
    for step in before {
        let called = user_folder.shell(step);
        assert_eq!(called.code, 0, "{step}\n{called:#?}");
    }
    let called = user_folder.shell(gate);
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(!called.out.contains("::error"), "{called:#?}");
    assert!(user_folder.read("summary.md").starts_with("### barecount: nothing is worse\n"));
    // The same commands for a change that is worse: all but the gate pass, and say it.
    user_folder.write(
        "job.toml",
        &user_folder.read("job.toml").replacen("add rax, rbx", "add rax, [r14]", 1),
    );
    fs::remove_file(user_folder.0.path().join("summary.md")).unwrap();
    for step in before {
        let called = user_folder.shell(step);
        assert_eq!(called.code, 0, "{step}\n{called:#?}");
    }
    let called = user_folder.shell(gate);
    assert_eq!(called.code, 1, "{called:#?}");
    assert_eq!(called.out.matches("::error ").count(), 1, "{called:#?}");
    assert!(called.out.contains("title=registers%3A worse::loads: 0 to 1"), "{called:#?}");
    assert!(
        user_folder.read("summary.md").contains("| `registers` | `loads` | 0 | 1 | +1 |"),
        "{}",
        user_folder.read("summary.md")
    );
    assert!(
        user_folder.read("figures.xml").contains("<failure"),
        "{}",
        user_folder.read("figures.xml")
    );
}

/// The guide's block about baselines, line by line and in its order.
#[test]
fn x4_the_guide_s_gate_works_as_it_stands() {
    let _ = tree();
    let page = fs::read_to_string(root().join("docs/guide/compare.md")).unwrap();
    let at = page.find("cargo xtask run job.toml --save-baseline main").expect("the block");
    let block: Vec<&str> = page[at..].lines().take_while(|line| *line != "```").collect();
    assert!(block.len() >= 3, "{block:?}");
    let user_folder = UserFolder::new();
    user_folder.write("job.toml", JOB);
    user_folder.write("limits.toml", "[limits]\ntsc = \"2 %\"\n");
    for line in block {
        let called = user_folder.shell(line);
        assert_eq!(called.code, 0, "{line}\n{called:#?}");
    }
}
