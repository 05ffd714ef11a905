//! Calling labgrid, by a program in Python of which one runs for each machine.

use super::LabError;
use super::stage::Variable;
use crate::process::{said, wait_for_end};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// labgrid, and where it is.
#[derive(Clone, Debug)]
pub struct Engine {
    /// A Python that has it.
    pub python: PathBuf,
    /// The program.
    pub runner: PathBuf,
    /// The coordinator's address.
    pub coordinator: String,
}

/// A place of the coordinator.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Place {
    /// Its name.
    #[serde(rename = "place")]
    pub name: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// One line of the program's output.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    Error { error: String },
    Place(Place),
    State { state: String, complaint: Option<String> },
}

/// What is run for one machine.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// labgrid's environment.
    pub env: &'a Path,
    /// The target in it.
    pub target: &'a str,
    /// The place, if a coordinator has it.
    pub place: Option<&'a str>,
    /// How long to wait for it, and its machine's limits where they are not the environment's: options and seconds.
    pub limits: &'a [(&'static str, f64)],
    /// Where its files are; the log of its serial line becomes [`LOG`] there.
    pub folder: &'a Path,
    /// What the environment is told.
    pub variables: &'a [Variable],
}

/// Every byte of a machine's serial line.
pub const LOG: &str = "serial.log";
/// What labgrid said.
const LABGRID_LOG: &str = "labgrid.log";

impl Engine {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg("-u").arg(&self.runner).args(["--coordinator", &self.coordinator]);
        command.stdin(Stdio::null());
        command
    }

    /// The places that have these tags.
    ///
    /// # Errors
    /// There is no coordinator, or it has none.
    pub fn places(&self, tags: &[String]) -> Result<Vec<Place>, LabError> {
        let failed = |text: String| LabError::Engine(text);
        let output = self.command().arg("places").args(tags).output();
        let output = output.map_err(|error| failed(format!("labgrid: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut places = Vec::new();
        for line in text.lines() {
            match serde_json::from_str::<Said>(line) {
                Ok(Said::Place(place)) => places.push(place),
                Ok(Said::Error { error }) => return Err(failed(error)),
                _ => {}
            }
        }
        if !output.status.success() {
            return Err(failed(format!("labgrid: {}", said(&output))));
        }
        if places.is_empty() {
            let (coordinator, tags) = (self.coordinator.clone(), tags.join(","));
            return Err(LabError::NoPlace { coordinator, tags });
        }
        Ok(places)
    }

    /// Begins with one machine. The process is in a group of its own: who interrupts this program interrupts it by
    /// [`interrupt`], once, so that it switches its machine off and gives its place back.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, order: &Order) -> std::io::Result<Child> {
        let log = File::create(order.folder.join(LABGRID_LOG))?;
        let mut command = self.command();
        command.arg("run").arg("--env").arg(order.env).args(["--target", order.target]);
        command.arg("--log").arg(order.folder.join(LOG));
        for (limit, seconds) in order.limits {
            command.args([*limit, &seconds.to_string()]);
        }
        if let Some(place) = order.place {
            command.args(["--place", place]);
        }
        command.envs(order.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(order.folder).stdout(Stdio::piped()).stderr(log);
        command.process_group(0).spawn()
    }
}

/// Waits until the process of one machine has ended, whose output is `stdout`; hands each of its states on. Returns what went
/// wrong. The process keeps its number until somebody waits for its [`Child`]: whoever holds that can still [`interrupt`] it.
pub fn wait(id: u32, stdout: Option<ChildStdout>, mut state: impl FnMut(&str)) -> Option<String> {
    let mut complaint = Some("labgrid ended without a message".to_string());
    if let Some(stdout) = stdout {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            match serde_json::from_str::<Said>(&line) {
                Ok(Said::State { state: now, complaint: came }) if now == "done" => {
                    complaint = came;
                }
                Ok(Said::State { state: now, .. }) => state(&now),
                Ok(Said::Error { error }) => complaint = Some(error),
                _ => {}
            }
        }
    }
    wait_for_end(id);
    complaint
}

/// Ends one machine's run early.
pub fn interrupt(child: &Child) {
    let Ok(id) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: a plain system call. `drive` waits for a child only after it has taken it out of the list of those that are
    // interrupted, and the threads that see its end leave it to be waited for ([`wait`]): so the number is still its.
    unsafe { libc::kill(id, libc::SIGINT) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// An engine whose program is a shell script.
    fn engine(folder: &Path, script: &str) -> Engine {
        let python = folder.join("python");
        fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        Engine { python, runner: "lab_run.py".into(), coordinator: "127.0.0.1:1".to_string() }
    }

    #[test]
    fn x6_places_are_read_and_the_coordinators_absence_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let places = |script: &str| engine(folder.path(), script).places(&["cpu=zen4".to_string()]);
        let found = places(r#"echo '{"place": "a", "tags": {"cpu": "zen4"}}'"#).unwrap();
        assert_eq!((found.len(), &*found[0].name, &*found[0].tags["cpu"]), (1, "a", "zen4"));
        for (script, reason) in [
            ("true", "no place of the coordinator at 127.0.0.1:1 has the tags cpu=zen4"),
            (r#"echo '{"error": "nobody there"}'; exit 1"#, "nobody there"),
            ("echo no module >&2; exit 1", "no module"),
        ] {
            let error = places(script).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn x6_what_a_machine_came_to_is_told_whatever_its_program_does() {
        let folder = tempfile::tempdir().unwrap();
        let run = |script: &str| {
            let order = Order {
                env: Path::new("e.yaml"),
                target: "main",
                place: Some("a"),
                limits: &[("--wait", 1.0)],
                folder: folder.path(),
                variables: &[("LG_BARECOUNT_DIR", "x".to_string())],
            };
            let mut states = Vec::new();
            let mut child = engine(folder.path(), script).start(&order).unwrap();
            let stdout = child.stdout.take();
            let complaint = wait(child.id(), stdout, |state| states.push(state.to_string()));
            // It has ended, and its number is not given up yet: whoever interrupts it now hits no other process.
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            assert!(stat.rsplit(')').next().unwrap().starts_with(" Z "), "{stat}");
            assert!(child.wait().is_ok());
            (complaint, states)
        };
        let whole = r#"echo '{"state": "booting"}'; echo noise; echo '{"state": "done", "complaint": null}'"#;
        assert_eq!(run(whole), (None, vec!["booting".to_string()]));
        let hangs = r#"echo "{\"state\": \"done\", \"complaint\": \"$LG_BARECOUNT_DIR\"}""#;
        assert_eq!(run(hangs).0.as_deref(), Some("x"));
        assert_eq!(run("exit 3").0.as_deref(), Some("labgrid ended without a message"));
        // Its output ends before it does.
        assert!(run("exec >&-; sleep 0.3").0.is_some());
    }
}
