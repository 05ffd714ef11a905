//! `lab`: a job on many machines, through labgrid.

use crate::build::Tree;
use crate::cli::{Boot, Emulated, Lab, LabCommand, LabNew, LabRun};
use crate::commands::run::prepare;
use crate::job::{self, Packed, Purpose};
use crate::lab::engine::{Engine, LOG, Order, Place, interrupt as end_early, wait};
use crate::lab::machine::{Machine, exit_code};
use crate::lab::stage::{self, Variable};
use crate::lab::{LabError, files, render};
use crate::setup::{self, Need, Toolchain, labgrid};
use crate::{Failure, Result, interrupt, output, tool};
use pmu_model::Model;
use protocol::ramdisk::{self, SectionKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Runs the command.
///
/// # Errors
/// Why nothing could be run, or the new lab cannot be written.
pub fn run(arguments: &Lab) -> Result<u8> {
    match &arguments.command {
        LabCommand::New(arguments) => new(arguments),
        LabCommand::Run(arguments) => run_all(arguments),
    }
}

fn new(arguments: &LabNew) -> Result<u8> {
    files::write(&arguments.path)?;
    let path = arguments.path.display();
    output::say(&format!(
        "wrote {path}: environments for labgrid, and a job for LAVA; try `{} lab run --env {path}/qemu.yaml`",
        tool::called()
    ));
    Ok(0)
}

/// The files that the command reads.
fn inputs(arguments: &LabRun) -> Vec<&Path> {
    let events = arguments.overrides.event_files.iter().map(|file| file.path.as_path());
    events.chain(arguments.job.as_deref()).chain([arguments.env.as_path()]).collect()
}

fn run_all(arguments: &LabRun) -> Result<u8> {
    let out = arguments.output.out.as_deref();
    output::distinct(&out.into_iter().collect::<Vec<_>>(), &inputs(arguments))?;
    out.map_or(Ok(()), output::check)?;
    let env = fs::canonicalize(&arguments.env).map_err(Failure::file("read", &arguments.env))?;
    let text = fs::read_to_string(&env).map_err(Failure::file("read", &arguments.env))?;
    // The job is assembled by the compiler: without one that would be the job's fault.
    setup::assembler()?;
    let mut packed = job::load(arguments.job.as_deref(), &arguments.overrides, Purpose::Stick)?;
    if arguments.ktap {
        ramdisk::add_section(&mut packed.bytes, SectionKind::Ktap, &[])
            .map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let python = python(arguments)?;
    let _deferred = interrupt::defer();
    let (folder, _temporary) = folder(arguments.keep.as_deref())?;
    let runner = files::write_runner(&folder)?;
    let engine = Engine { python, runner, coordinator: arguments.coordinator.clone() };
    let places = match &arguments.places[..] {
        [] => vec![Place { name: arguments.target.clone(), ..Place::default() }],
        tags => engine.places(tags)?,
    };
    let pmus = pmus(&places, &text, arguments.pmu)?;
    let shared = stage::images(&text, arguments, &folder)?;
    let tree = stage::uses(&text, stage::DIR).then(|| prepare(&[Boot::Direct])).transpose()?;
    let mut orders = Vec::new();
    for (place, pmu) in places.iter().zip(pmus) {
        orders.push(prepared(place, pmu, (tree.as_ref(), &packed), &folder, &shared)?);
    }
    let complaints = drive(arguments, &engine, &env, &places, &orders);
    let interrupted = interrupt::take();
    let all = places.into_iter().zip(&orders).zip(complaints);
    let machines: Vec<Machine> = all
        .map(|((place, (folder, _)), complaint)| {
            let mut machine =
                Machine::of(place, folder, &packed, complaint, arguments.output.width());
            machine.context.interrupted = interrupted;
            machine
        })
        .collect();
    let text = render::render(&machines, &packed.job.name, arguments.output.format)?;
    match out {
        Some(path) => output::write(path, anstream::adapter::strip_str(&text).to_string())?,
        None => output::print(&text)?,
    }
    Ok(exit_code(&machines))
}

/// A Python that has labgrid.
fn python(arguments: &LabRun) -> Result<PathBuf> {
    if let Some(python) = &arguments.python {
        let failed = |why: &str| LabError::Python {
            python: python.display().to_string(),
            why: why.to_string(),
        };
        let found =
            crate::process::find(python).ok_or_else(|| failed("there is no such program"))?;
        labgrid::version(&found).ok_or_else(|| failed("it has no labgrid"))?;
        return Ok(found);
    }
    let toolchain = Toolchain::find()?;
    setup::ensure(&[Need::Python, Need::Labgrid], &toolchain)?;
    labgrid::python().ok_or_else(|| LabError::Engine("labgrid has vanished".to_string()).into())
}

/// Where everything is put.
fn folder(keep: Option<&Path>) -> Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(path) = keep {
        fs::create_dir_all(path).map_err(Failure::file("create", path))?;
        return Ok((path.canonicalize().map_err(Failure::file("open", path))?, None));
    }
    let folder = tempfile::tempdir();
    let folder = folder.map_err(Failure::file("create", &std::env::temp_dir()))?;
    Ok((folder.path().to_path_buf(), Some(folder)))
}

/// The PMU that each place is to have. If QEMU is not the environment's machine, the tag `pmu` may mean anything.
fn pmus(places: &[Place], env: &str, general: Option<Emulated>) -> Result<Vec<Option<Emulated>>> {
    if !stage::uses(env, stage::DIR) {
        return Ok(vec![None; places.len()]);
    }
    places.iter().map(|place| pmu(place, general)).collect()
}

fn pmu(place: &Place, general: Option<Emulated>) -> Result<Option<Emulated>> {
    match place.tags.get("pmu").map(String::as_str) {
        None => Ok(general),
        Some("none") => Ok(None),
        Some(name) => match Model::by_name(name) {
            Some(model) => Ok(Some(Emulated::Model(model))),
            None => {
                let (place, value) = (place.name.clone(), name.to_string());
                Err(LabError::Pmu { place, value }.into())
            }
        },
    }
}

/// A machine's folder, and what its environment is told.
fn prepared(
    place: &Place,
    pmu: Option<Emulated>,
    (tree, packed): (Option<&Tree>, &Packed),
    folder: &Path,
    shared: &[Variable],
) -> Result<(PathBuf, Vec<Variable>)> {
    // labgrid lets names have no slashes.
    let folder = folder.join(format!("place-{}", place.name.replace('/', "_")));
    fs::create_dir_all(&folder).map_err(Failure::file("create", &folder))?;
    // A log of another run would be read as this one's.
    match fs::remove_file(folder.join(LOG)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Failure::file("remove", &folder.join(LOG))(error));
        }
        _ => {}
    }
    let mut variables = shared.to_vec();
    variables.push(("LG_BARECOUNT_PLACE", place.name.clone()));
    if let Some(tree) = tree {
        variables.extend(stage::direct(tree, packed, pmu, &folder)?);
    }
    Ok((folder, variables))
}

/// Runs all machines at the same time. Returns what went wrong with each.
fn drive(
    arguments: &LabRun,
    engine: &Engine,
    env: &Path,
    places: &[Place],
    orders: &[(PathBuf, Vec<Variable>)],
) -> Vec<Option<String>> {
    let mut complaints = vec![Some("it was not started".to_string()); places.len()];
    let (sender, receiver) = channel();
    let mut running = Vec::new();
    let limits = [
        ("--wait", Some(arguments.wait)),
        ("--timeout", arguments.timeout),
        ("--silence", arguments.silence),
    ];
    let seconds = |limit: crate::cli::Timeout| limit.duration().as_secs_f64();
    let limits: Vec<_> =
        limits.into_iter().filter_map(|(name, limit)| Some((name, seconds(limit?)))).collect();
    for (index, (place, (folder, variables))) in places.iter().zip(orders).enumerate() {
        let order = Order {
            env,
            target: &arguments.target,
            place: (!arguments.places.is_empty()).then_some(&place.name),
            limits: &limits,
            folder,
            variables,
        };
        let mut child = match engine.start(&order) {
            Ok(child) => child,
            Err(error) => {
                // The others are on, and are waited for: who left them now would leave them on.
                let python = engine.python.display();
                complaints[index] = Some(format!("labgrid cannot be started by {python}: {error}"));
                continue;
            }
        };
        let (id, stdout) = (child.id(), child.stdout.take());
        running.push((index, child));
        let (sender, name) = (sender.clone(), place.name.clone());
        std::thread::spawn(move || {
            let say = |state: &str| output::say(&format!("{name}: {state} ..."));
            let complaint = wait(id, stdout, say);
            // Who waits for it is there until the last one has come.
            let _ = sender.send((index, complaint));
        });
    }
    drop(sender);
    let mut told = false;
    while !running.is_empty() {
        match receiver.recv_timeout(LOOK) {
            Ok((index, complaint)) => {
                if let Some(at) = running.iter().position(|(one, _)| *one == index) {
                    // It has ended. Its number is given up here, with its place in the list of what is interrupted.
                    let _ = running.swap_remove(at).1.wait();
                }
                complaints[index] = complaint;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if !told && interrupt::pending().is_some() {
            running.iter().for_each(|(_, child)| end_early(child));
            told = true;
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Arguments, Command, User};
    use clap::Parser;

    #[test]
    fn x6_a_tag_pmu_is_of_machines_of_qemu_only() {
        let tags = [("pmu".to_string(), "v5".to_string())].into();
        let board = [Place { name: "board".to_string(), tags }];
        let general = Some(Emulated::Model(Model::by_name("zen4").unwrap()));
        assert_eq!(pmus(&board, "stick: $LG_BARECOUNT_IMAGE", general).unwrap(), [None]);
        let error = pmus(&board, "direct: $LG_BARECOUNT_DIR/x", general).unwrap_err().to_string();
        assert_eq!(error, "the place board has the tag pmu=v5, which is not an emulated PMU");
        let none = [Place::default()];
        assert_eq!(pmus(&none, "direct: $LG_BARECOUNT_DIR/x", general).unwrap(), [general]);
    }

    #[test]
    fn x6_a_machine_that_cannot_be_begun_with_leaves_no_other_one_running() {
        let folder = tempfile::tempdir().unwrap();
        // In place of labgrid: it comes to its end later than the second machine fails.
        let runner = folder.path().join("runner");
        let script = r#"sleep 0.5; touch ended; echo '{"state": "done", "complaint": null}'"#;
        fs::write(&runner, script).unwrap();
        let engine = Engine { python: "/bin/sh".into(), runner, coordinator: "x:1".to_string() };
        let line = ["xtask", "lab", "run", "--env", "e.yaml", "--places", "cpu=zen4"];
        let Command::User(User::Lab(Lab { command: LabCommand::Run(arguments) })) =
            Arguments::try_parse_from(line).unwrap().command
        else {
            panic!("{line:?}")
        };
        let names = ["first", "second"];
        let places = names.map(|name| Place { name: name.to_string(), ..Place::default() });
        let orders = names.map(|name| (folder.path().join(name), Vec::new()));
        // The second one has no folder for what labgrid says.
        fs::create_dir(&orders[0].0).unwrap();
        let complaints = drive(&arguments, &engine, Path::new("e.yaml"), &places, &orders);
        assert_eq!(complaints[0], None);
        assert!(orders[0].0.join("ended").exists(), "it was waited for");
        let complaint = complaints[1].as_ref().unwrap();
        assert!(complaint.contains("cannot be started by /bin/sh: No such file"), "{complaint}");
    }
}
