//! The tests: which there are, what each reaches, and whether they notice a mutant.

use crate::group::Group;
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// The variable that the switches read.
const SWITCH: &str = "SCHEMATA";
/// A mutant may request any amount of memory.
const LIMIT_KIB: u64 = 8 << 20;
/// Tests that a mutant is tried on first, the quickest ones: most mutants fail one of them. Each time all pass, four times as
/// many follow: the harness runs what it is given in an order of its own.
const FIRST: usize = 6;
/// How much quicker a test of another package must be to come before one of the mutant's own.
const FOREIGN: u32 = 4;

/// The signal at the end of a process' time (Linux, signal(7)).
const SIGXCPU: i32 = 24;

/// How long tests may take.
#[derive(Clone, Copy)]
struct Limit {
    /// Seconds of the processor's time: what never ends is told by it on a busy machine as soon as on an idle one.
    processor: u64,
    /// For what waits.
    wall: Duration,
}

impl Limit {
    /// Where nothing is known of them.
    const UNKNOWN: Self = Self { processor: 300, wall: Duration::from_secs(300) };

    /// Of tests that took `time` in all without a mutant, while others used the machine as well.
    fn of(time: Duration) -> Self {
        Self { processor: 10 + 10 * time.as_secs(), wall: Duration::from_secs(60) + time * 60 }
    }
}

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
    /// Finds the tests, and runs each of them once, `jobs` at a time, to see what it reaches.
    pub fn find(programs: Vec<(PathBuf, PathBuf)>, scratch: &Path, jobs: usize) -> Result<Self> {
        let programs = programs.into_iter().map(|(path, folder)| Program { path, folder });
        let programs: Vec<Program> = programs.collect();
        let mut names = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            names.extend(program.tests()?.into_iter().map(|name| (index, name)));
        }
        let queue = Mutex::new(names.into_iter());
        let (failing, found) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let worker = |job: usize| -> Result<()> {
            let record = scratch.join(format!("reach{job}"));
            loop {
                let Some((index, name)) = queue.lock().expect("no thread panics").next() else {
                    return Ok(());
                };
                match programs[index].reach(&name, &record)? {
                    Some((time, numbers)) => {
                        let test = Test { program: index, name, time };
                        found.lock().expect("no thread panics").push((test, numbers));
                    }
                    None => failing.lock().expect("no thread panics").push(name),
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|job| scope.spawn(move || worker(job))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
        })?;
        let mut found = found.into_inner().expect("no thread panics");
        found.sort_by_key(|(test, _)| test.time);
        let mut reach: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, (_, numbers)) in found.iter().enumerate() {
            for &number in numbers {
                reach.entry(number).or_default().push(index);
            }
        }
        let passing = found.into_iter().map(|(test, _)| test).collect();
        let failing = failing.into_inner().expect("no thread panics");
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

    /// Runs the tests that reach a switched mutant of `file` until one notices it.
    pub fn try_switched(&self, number: usize, file: &str) -> Result<End> {
        let list = self.reach.get(&number).into_iter().flatten();
        let mut tests: Vec<&Test> = list.map(|&index| &self.passing[index]).collect();
        in_order(&self.programs, &mut tests, file);
        try_on(&self.programs, tests, file, &number.to_string())
    }

    /// Runs all tests of other builds of some of the packages, with a mutant of `file` in them. What each of them reaches is
    /// not known: those of the nearest modules come first.
    pub fn try_all(&self, programs: Vec<(PathBuf, PathBuf)>, file: &str) -> Result<End> {
        let of = |old: &Program| programs.iter().find(|(_, folder)| *folder == old.folder);
        let swap = |old: &Program| Program {
            path: of(old).map_or_else(PathBuf::new, |(path, _)| path.clone()),
            ..old.clone()
        };
        let swapped: Vec<Program> = self.programs.iter().map(swap).collect();
        let there =
            self.passing.iter().filter(|test| !swapped[test.program].path.as_os_str().is_empty());
        let mut tests: Vec<&Test> = there.collect();
        in_order(&swapped, &mut tests, file);
        tests.sort_by_key(|test| std::cmp::Reverse(shared(file, &test.name)));
        try_on(&swapped, tests, file, "")
    }
}

/// How many modules the path of a test begins with that are those of `file`.
fn shared(file: &str, test: &str) -> usize {
    let path = file.split_once("src/").map_or(file, |(_, path)| path);
    let modules = path.trim_end_matches(".rs").trim_end_matches("/mod").split('/');
    modules.zip(test.split("::")).take_while(|(module, name)| module == name).count()
}

/// Whether a program's tests are those of the package of `file`.
fn is_own(program: &Program, file: &str) -> bool {
    let package = file.split("src/").next().unwrap_or_default().trim_end_matches('/');
    program.folder.ends_with(package)
}

/// The fastest first, those of its own package before others.
fn in_order(programs: &[Program], tests: &mut [&Test], file: &str) {
    let foreign = |test: &Test| if is_own(&programs[test.program], file) { 1 } else { FOREIGN };
    tests.sort_by_key(|test| test.time * foreign(test));
}

fn try_on(programs: &[Program], tests: Vec<&Test>, file: &str, value: &str) -> Result<End> {
    let mut order: Vec<usize> = (0..programs.len()).collect();
    order.sort_by_key(|&index| !is_own(&programs[index], file));
    let mut rest = &tests[..];
    let mut size = FIRST;
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(rest.len().min(size));
        (rest, size) = (behind, size * 4);
        for &index in &order {
            let own = || chunk.iter().filter(|test| test.program == index);
            let names: Vec<&str> = own().map(|test| test.name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let limit = Limit::of(own().map(|test| test.time).sum());
            let end = programs[index].run(&names, value, limit)?;
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

    /// How long a test takes, and the mutants that it reaches; nothing if it fails.
    fn reach(&self, name: &str, record: &Path) -> Result<Option<(Duration, Vec<usize>)>> {
        let _ = std::fs::remove_file(record);
        let value = format!("record:{}", record.display());
        let begin = Instant::now();
        if self.run(&[name], &value, Limit::UNKNOWN)? != End::Passed {
            return Ok(None);
        }
        let time = begin.elapsed();
        let text = std::fs::read_to_string(record).unwrap_or_default();
        let numbers: Result<Vec<usize>, _> = text.lines().map(str::parse).collect();
        Ok(Some((time, numbers.context("what a test reached")?)))
    }

    /// Runs some tests. What they leave is removed with them: their temporary files, and processes that they have started.
    fn run(&self, names: &[&str], value: &str, limit: Limit) -> Result<End> {
        let Limit { processor, wall } = limit;
        let script = format!("ulimit -v {LIMIT_KIB}; ulimit -S -t {processor}; exec \"$0\" \"$@\"");
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
        let mut group = Group::start(&mut command)?;
        let (send, lines) = mpsc::channel();
        let stdout = group.stdout().context("a pipe")?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let until = Instant::now() + wall;
        let end = watch(&lines, until);
        if end.is_some() {
            group.kill();
        }
        let status = group.wait(until)?;
        Ok(match (end, status) {
            (Some(end), _) => end,
            (None, None) => End::TimedOut,
            (None, Some(status)) if status.success() => End::Passed,
            (None, Some(status)) if status.signal() == Some(SIGXCPU) => End::TimedOut,
            // Neither a test's result nor success: the process died.
            (None, Some(status)) => End::Failed(status.to_string()),
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

#[cfg(test)]
mod ends {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A program that does what `script` says, whatever tests it is to run.
    fn end_of(name: &str, script: &str, limit: Limit) -> End {
        let folder =
            std::env::temp_dir().join(format!("schemata-of-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let end = Program { path, folder: folder.clone() }.run(&["a"], "", limit).unwrap();
        fs::remove_file(folder.join(name)).unwrap();
        let _ = fs::remove_dir(folder);
        end
    }

    #[test]
    fn tests_of_a_files_own_module_are_nearest() {
        let near = |test| shared("arch/src/pmu/lbr/mod.rs", test);
        let tests = ["pmu::lbr::tests::a", "pmu::ibs::tests::a", "memory::lbr::a"].map(near);
        assert_eq!(tests, [2, 1, 0]);
    }

    /// A program that writes its own number, that of a process which it starts, and its folder for temporary files, into `told`.
    fn what_is_left(name: &str, then: &str, limit: Limit) -> (End, Vec<String>) {
        let told = std::env::temp_dir().join(format!("schemata-{name}-{}", std::process::id()));
        let script = format!(
            "sleep 300 &\necho $$ $! $TMPDIR >{}\ntouch $TMPDIR/left\n{then}",
            told.display()
        );
        let end = end_of(name, &script, limit);
        let text = fs::read_to_string(&told).unwrap();
        fs::remove_file(told).unwrap();
        (end, text.split_whitespace().map(str::to_string).collect())
    }

    #[test]
    fn nothing_is_left_of_a_program_however_it_ends() {
        let long = Limit { processor: 10, wall: Duration::from_secs(60) };
        let short = Limit { processor: 10, wall: Duration::from_millis(500) };
        let failed = End::Failed("a".to_string());
        for (name, then, limit, expected) in [
            ("late", "wait", short, End::TimedOut),
            ("failing", "echo 'test a ... FAILED'; wait", long, failed),
            // What it leaves holds its output.
            ("passing", "echo 'test a ... ok'", long, End::Passed),
            // Its output ends long before it does.
            ("mute", "exec >&-; exec sleep 300", short, End::TimedOut),
        ] {
            let (end, left) = what_is_left(name, then, limit);
            assert_eq!(end, expected, "{name}");
            for id in &left[..2] {
                // Killed it is, but its parent is some other program then, which may take its time to notice.
                let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
                let state = stat.rsplit(") ").next().unwrap_or_default();
                assert!(state.is_empty() || state.starts_with('Z'), "{name}: {stat}");
            }
            assert!(left[2].contains("schemata-") && !Path::new(&left[2]).exists(), "{left:?}");
        }
    }

    #[test]
    fn what_does_not_end_is_told_by_its_time_and_what_waits_by_the_clock() {
        let long = Limit { processor: 1, wall: Duration::from_secs(300) };
        assert_eq!(end_of("endless", "while :; do :; done", long), End::TimedOut);
        let short = Limit { processor: 300, wall: Duration::from_millis(200) };
        assert_eq!(end_of("waits", "exec sleep 300", short), End::TimedOut);
        assert_eq!(end_of("passes", "echo 'test a ... ok'", long), End::Passed);
        let failed = End::Failed("a".to_string());
        assert_eq!(end_of("fails", "echo 'test a ... FAILED'", long), failed);
        assert!(matches!(end_of("dies", "kill -SEGV $$", long), End::Failed(_)));
    }
}
