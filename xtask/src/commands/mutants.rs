//! `mutants`: plants mistakes in the code that makes figures and verdicts, and states which no test notices.

use crate::build::Tree;
use crate::cli;
use crate::mutants::{ACCEPTED, Accepted, CONFIG, Judgement, Mutant, Outcomes};
use crate::mutants::{accepted, config, outcomes};
use crate::process::{find, said};
use crate::setup::toolchain::cargo;
use crate::setup::{self, Need, Toolchain};
use crate::text::printable;
use crate::{Failure, Result, output};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the command. The exit code is 1 if a survivor is not on the list of those that may be, or if a run of everything
/// did not find one of the list.
///
/// # Errors
/// Something is missing, a path is not examined, or the tests fail without a planted mistake.
pub fn run(arguments: &cli::Mutants) -> Result<u8> {
    let toolchain = Toolchain::find()?;
    let tree = Tree::new(toolchain)?;
    tree.writable()?;
    let list = read_list(tree.root())?;
    let settings = narrowed(arguments, tree.root())?;
    setup::ensure(&[Need::Compiler, Need::Mutants], tree.toolchain())?;
    let folder = tree.target().join("mutants");
    fs::create_dir_all(&folder).map_err(Failure::file("create", &folder))?;
    let config = folder.join("mutants.toml");
    output::write(&config, settings)?;
    let mut command = command(arguments, &tree, &config)?;
    if arguments.list {
        return show(&mut command);
    }
    let outcomes = match arguments.fast {
        true => switch(&mut command, &tree, &folder, arguments.resume)?,
        false => plant(&mut command, &folder)?,
    };
    judge(&outcomes, &list, tree.root(), arguments)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Failure::file("read", path))
}

fn read_list(root: &Path) -> Result<Vec<Accepted>> {
    accepted::read(&read(&root.join(ACCEPTED))?).map_err(|error| Failure::Usage(error.to_string()))
}

/// The settings, of what was requested.
fn narrowed(arguments: &cli::Mutants, root: &Path) -> Result<String> {
    let text = read(&root.join(CONFIG))?;
    let mut paths = Vec::new();
    for path in &arguments.paths {
        paths.push(from_root(path, root)?);
    }
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    config::restrict(&text, &paths).map_err(|error| Failure::Usage(error.to_string()))
}

/// A path of the working folder as one from the checkout's root.
fn from_root(path: &Path, root: &Path) -> Result<PathBuf> {
    let found = path.canonicalize().map_err(Failure::file("read", path))?;
    let root = root.canonicalize().map_err(Failure::file("read", root))?;
    let outside = || Failure::Usage(format!("{} is not in the checkout", path.display()));
    found.strip_prefix(&root).map(Path::to_path_buf).map_err(|_| outside())
}

/// The call of cargo-mutants. It works on a copy of the checkout, one mutant at a time.
fn command(arguments: &cli::Mutants, tree: &Tree, config: &Path) -> Result<Command> {
    let program = setup::mutants::program().map_err(Failure::Tool)?;
    let mut command = Command::new(program);
    command.arg("mutants").current_dir(tree.root()).arg("--config").arg(config);
    if let Some(shard) = arguments.shard {
        command.args(["--shard", &shard.to_string()]);
    }
    if find("cargo-nextest").is_none() {
        command.args(["--test-tool", "cargo"]);
    }
    // The copy has a build folder of its own, and the program under test is not this one.
    for variable in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_MANIFEST_DIR"] {
        command.env_remove(variable);
    }
    Ok(command)
}

/// cargo-mutants' list, as JSON.
fn list(command: &mut Command) -> Result<String> {
    let output = command.args(["--list", "--json"]).output().map_err(not_run)?;
    if !output.status.success() {
        return Err(Failure::Tool(format!("cargo-mutants: {}", said(&output))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prints the mutants, one a line.
fn show(command: &mut Command) -> Result<u8> {
    let mutants = outcomes::planned(&list(command)?);
    let mutants = mutants.map_err(|error| Failure::Tool(error.to_string()))?;
    let lines = mutants.iter().map(|mutant| format!("{}\n", printable(&mutant.name)));
    output::print(&(lines.collect::<String>() + &format!("{} mutants\n", mutants.len())))?;
    Ok(0)
}

fn not_run(error: std::io::Error) -> Failure {
    Failure::Tool(format!("cargo-mutants cannot be run: {error}"))
}

/// Has them planted all at once (`mutants/`), and reads what became of them.
fn switch(command: &mut Command, tree: &Tree, folder: &Path, resume: bool) -> Result<Outcomes> {
    let wrong = |error: crate::mutants::MutantsError| Failure::Tool(error.to_string());
    let text = list(command)?;
    let planned = outcomes::planned(&text).map_err(wrong)?;
    let (list, account) = (folder.join("mutants.json"), folder.join("outcomes.json"));
    output::write(&list, text)?;
    let mut command = Command::new(cargo());
    command
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(tree.root().join("mutants/Cargo.toml"));
    command
        .arg("--target-dir")
        .arg(folder.join("schemata"))
        .arg("--")
        .arg("--source")
        .arg(tree.root());
    command
        .arg("--copy")
        .arg(folder.join("copy"))
        .arg("--list")
        .arg(list)
        .arg("--outcomes")
        .arg(&account)
        .arg("--journal")
        .arg(folder.join("journal"))
        .args(resume.then_some("--resume"));
    for package in config::packages(&read(&tree.root().join(CONFIG))?).map_err(wrong)? {
        command.args(["--package", &package]);
    }
    let status =
        command.status().map_err(|error| Failure::Tool(format!("cargo cannot be run: {error}")))?;
    if !status.success() {
        return Err(Failure::Tool(format!("schemata failed ({status})")));
    }
    Outcomes::read(&read(&account)?, planned.len()).map_err(wrong)
}

/// Has them planted, and reads what became of them.
fn plant(command: &mut Command, folder: &Path) -> Result<Outcomes> {
    let status = command.args(["--output".as_ref(), folder.as_os_str()]).status();
    let status = status.map_err(not_run)?;
    // Its own exit codes (its book, "Exit codes"): 2, some were missed; 3, some timed out; 4, the tests fail without any.
    match status.code() {
        Some(0 | 2 | 3) => {}
        Some(4) => {
            let why = "the tests fail, or do not build, without a planted mistake";
            return Err(Failure::Tool(why.to_string()));
        }
        _ => return Err(Failure::Tool(format!("cargo-mutants failed ({status})"))),
    }
    let written = folder.join("mutants.out");
    let wrong = |error: crate::mutants::MutantsError| Failure::Tool(error.to_string());
    let planned = outcomes::planned(&read(&written.join("mutants.json"))?).map_err(wrong)?;
    Outcomes::read(&read(&written.join("outcomes.json"))?, planned.len()).map_err(wrong)
}

fn judge(
    outcomes: &Outcomes,
    list: &[Accepted],
    root: &Path,
    arguments: &cli::Mutants,
) -> Result<u8> {
    // The file was there when it was mutated; without it, the mutant is on no list.
    let line = |mutant: &Mutant| {
        let text = fs::read_to_string(root.join(&mutant.file)).unwrap_or_default();
        mutant.line(&text).to_string()
    };
    let whole = arguments.shard.is_none() && arguments.paths.is_empty();
    let judgement = Judgement::new(outcomes, list, line, whole);
    output::print(&judgement.text())?;
    Ok(judgement.exit_code())
}
