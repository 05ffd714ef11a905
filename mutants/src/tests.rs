//! The tests: which there are, what each reaches, and whether they notice a mutant.

use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The variable that the switches read.
const SWITCH: &str = "SCHEMATA";
/// A mutant may ask for any amount of memory.
const LIMIT_KIB: u64 = 8 << 20;
/// Tests that a mutant is tried on first, the quickest ones: most mutants fail one of them.
const FIRST: usize = 6;

/// A program of tests.
#[derive(Clone)]
struct Program {
    path: PathBuf,
    /// Its package's folder, where tests run.
    folder: PathBuf,
}

/// A test.
#[derive(Clone)]
struct Test {
    /// Its program's place.
    program: usize,
    name: String,
    time: Duration,
}

/// The tests of some packages.
pub struct Tests {
    programs: Vec<Program>,
    /// Those that pass without a mutant, the quickest first.
    passing: Vec<Test>,
    /// Those that do not.
    pub failing: Vec<String>,
    /// For each mutant, the tests (places in `passing`) that reach it.
    reach: HashMap<usize, Vec<usize>>,
}

/// How a run ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    Passed,
    Failed(String),
    TimedOut,
}

impl Tests {
    /// Finds the tests, and runs each of them once to see what it reaches.
    pub fn find(programs: Vec<(PathBuf, PathBuf)>, scratch: &Path) -> Result<Self> {
        let programs = programs.into_iter().map(|(path, folder)| Program { path, folder });
        let programs: Vec<Program> = programs.collect();
        let mut failing = Vec::new();
        let mut found = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            for name in program.tests()? {
                let record = scratch.join("reach");
                let _ = std::fs::remove_file(&record);
                let value = format!("record:{}", record.display());
                let begin = Instant::now();
                if program.run(&[&name], &value, Duration::from_secs(300))? != End::Passed {
                    failing.push(name);
                    continue;
                }
                let test = Test { program: index, name, time: begin.elapsed() };
                let text = std::fs::read_to_string(&record).unwrap_or_default();
                let numbers: Result<Vec<usize>, _> = text.lines().map(str::parse).collect();
                found.push((test, numbers.context("what a test reached")?));
            }
        }
        found.sort_by_key(|(test, _)| test.time);
        let mut reach: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, (_, numbers)) in found.iter().enumerate() {
            for &number in numbers {
                reach.entry(number).or_default().push(index);
            }
        }
        let passing = found.into_iter().map(|(test, _)| test).collect();
        Ok(Self { programs, passing, failing, reach })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.passing.len()
    }

    /// How many tests reach a mutant.
    pub fn reached(&self, number: usize) -> usize {
        self.reach.get(&number).map_or(0, Vec::len)
    }

    /// Runs the tests that reach a switched mutant until one notices it.
    pub fn try_switched(&self, number: usize) -> Result<End> {
        let list = self.reach.get(&number).into_iter().flatten();
        try_on(&self.programs, list.map(|&index| &self.passing[index]), &number.to_string())
    }

    /// Runs all tests of other builds of some of the packages.
    pub fn try_all(&self, programs: Vec<(PathBuf, PathBuf)>) -> Result<End> {
        let of = |old: &Program| programs.iter().find(|(_, folder)| *folder == old.folder);
        let swap = |old: &Program| Program {
            path: of(old).map_or_else(PathBuf::new, |(path, _)| path.clone()),
            ..old.clone()
        };
        let swapped: Vec<Program> = self.programs.iter().map(swap).collect();
        let there =
            self.passing.iter().filter(|test| !swapped[test.program].path.as_os_str().is_empty());
        try_on(&swapped, there, "")
    }
}

fn try_on<'t>(
    programs: &[Program],
    tests: impl Iterator<Item = &'t Test>,
    value: &str,
) -> Result<End> {
    let tests: Vec<&Test> = tests.collect();
    let (first, rest) = tests.split_at(tests.len().min(FIRST));
    for chunk in [first, rest] {
        for (index, program) in programs.iter().enumerate() {
            let own = || chunk.iter().filter(|test| test.program == index);
            let names: Vec<&str> = own().map(|test| test.name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            // Others use the machine as well.
            let limit =
                Duration::from_secs(20) + own().map(|test| test.time * 20).sum::<Duration>();
            let end = program.run(&names, value, limit)?;
            if end != End::Passed {
                return Ok(end);
            }
        }
    }
    Ok(End::Passed)
}

impl Program {
    fn tests(&self) -> Result<Vec<String>> {
        let mut command = Command::new(&self.path);
        let output =
            command.args(["--list", "--format", "terse"]).current_dir(&self.folder).output()?;
        ensure!(output.status.success(), "{} lists no tests", self.path.display());
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_string())).collect())
    }

    fn run(&self, names: &[&str], value: &str, limit: Duration) -> Result<End> {
        let script = format!("ulimit -v {LIMIT_KIB}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .arg(&self.path)
            .args(["--exact", "--test-threads=1"])
            .args(names);
        command
            .env(SWITCH, value)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .current_dir(&self.folder);
        // Nobody reads the traces of failed tests, and to find names for them takes longer than the test.
        command.env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("the tests cannot be started")?;
        let (send, lines) = mpsc::channel();
        let stdout = child.stdout.take().context("a pipe")?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let end = watch(&lines, Instant::now() + limit);
        if end.is_some() {
            let _ = child.kill();
        }
        let status = child.wait()?;
        Ok(match end {
            Some(end) => end,
            None if status.success() => End::Passed,
            // Neither a test's result nor success: the process died.
            None => End::Failed(status.to_string()),
        })
    }
}

/// The first failure, or that time is up; nothing if the output ends.
fn watch(lines: &mpsc::Receiver<String>, until: Instant) -> Option<End> {
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let failed =
                    line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
                if let Some(name) = failed {
                    return Some(End::Failed(name.to_string()));
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => return Some(End::TimedOut),
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
        }
    }
}
