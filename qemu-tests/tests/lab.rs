//! Labs: labgrid drives machines, and kernel people's parsers and LAVA's monitor read our serial line.

use qemu_tests::lab::{Fault, Lab, Media, Wanted, environment};
use qemu_tests::{Started, skip, tree, xtask, xtask_in};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::commands::test::has;
use xtask::setup::{Need, labgrid, parsers};
use xtask::stock_linux;

/// Three items, of which the second misses where nothing goes wrong before: bounds that hold on any machine, and one that does on
/// none.
const JOB: &str = "
name = \"lab\"
[[snippet]]
name = \"imul\"
asm = \"imul rax, rax\"
[[snippet]]
name = \"two adds\"
asm = \"add rax, rbx; add rcx, rdx\"
expect = { min = 1_000_000_000 }
[[snippet]]
name = \"nop # one\"
asm = \"nop\"
expect = { max = 1_000_000_000 }
";

/// A folder with the job and a new lab, as the guide begins.
fn user_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), JOB).unwrap();
    let made = xtask(folder.path(), &words(&guide("cargo xtask lab new lab")));
    assert_eq!(made.code, 0, "{made:#?}");
    folder
}

/// The command line of the guide that begins so.
fn guide(begin: &str) -> String {
    let page = tree().root().join("docs/guide/labs.md");
    let blocks = crate::documents::blocks::of(&page);
    let lines = blocks.iter().flat_map(|block| block.text.lines());
    let line = lines.into_iter().find(|line| line.starts_with(begin));
    line.unwrap_or_else(|| panic!("the guide has no line that begins with {begin}")).to_string()
}

/// The block of the guide that has this.
fn guides_block(part: &str) -> String {
    let blocks = crate::documents::blocks::of(&tree().root().join("docs/guide/labs.md"));
    let found = blocks.into_iter().find(|block| block.text.contains(part));
    found.unwrap_or_else(|| panic!("the guide has no block with {part}")).text
}

/// Its words after the tool's name.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').skip(2).collect()
}

/// One job on three machines: one is fine, one hangs, and of one the serial line is lost. One report says so.
#[test]
fn x6_one_job_on_three_places_of_which_one_hangs_and_one_loses_its_line() {
    if !has(Need::Labgrid) {
        skip!("there is no labgrid");
    }
    let wanted = |place, cpu, fault| Wanted {
        place,
        tags: &["cpu=zen4", "rack=2"],
        cpu,
        media: Media::Network,
        fault,
    };
    let lab = Lab::new(&[
        wanted("fine", "EPYC-Genoa", Fault::None),
        wanted("hangs", "Skylake-Client", Fault::Hangs),
        wanted("lost", "Nehalem", Fault::LosesLine),
    ]);
    let (folder, path) = (user_folder(), lab.path());
    let line = guide("cargo xtask lab run job.toml --env lab/pxe.yaml");
    let line = [&words(&line)[..], &["--silence", "8", "--keep", "kept"]].concat();
    let ran = xtask_in(folder.path(), &line, &lab.environment(&path));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let text = fs::read_to_string(folder.path().join("lab.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&all["lab"], &all["exit_code"]), (&1.into(), &3.into()));
    let machines = all["machines"].as_array().unwrap();
    let names: Vec<_> = machines.iter().map(|one| one["place"].as_str().unwrap()).collect();
    assert_eq!(names, ["fine", "hangs", "lost"]);
    assert_eq!(machines[0]["tags"]["rack"], "2");
    let run = |at: usize| &machines[at]["report"];
    // The fine one has all, and the miss is its own.
    assert_eq!(
        (run(0)["exit_code"].as_u64(), &run(0)["run"]["complaint"]),
        (Some(1), &Value::Null)
    );
    assert_eq!(types(run(0)), ["start", "machine", "result", "result", "result", "end"]);
    let complaint = |at: usize| run(at)["run"]["complaint"].as_str().unwrap();
    assert_eq!(complaint(1), "silent for 8 s; item 1 (two adds) has no result");
    assert!(complaint(2).starts_with("the serial line was lost: "), "{}", complaint(2));
    assert!(complaint(2).ends_with("; item 1 (two adds) has no result"), "{}", complaint(2));
    for at in [1, 2] {
        assert_eq!(run(at)["exit_code"], 3);
        assert_eq!(types(run(at)), ["start", "machine", "result"]);
    }
    // Each was switched on once, and none is left on or acquired.
    for board in &lab.boards {
        assert_eq!((board.switched_on(), board.is_on()), (1, false), "{board:?}");
    }
    assert_eq!(lab.succeeds(&["places", "--acquired"]), "");
    assert_eq!(lab.succeeds(&["reservations"]), "");
    // What was kept reads as any log does.
    let log = "kept/place-fine/serial.log";
    let read = xtask(folder.path(), &["collect", "--serial", log]);
    assert!(read.out.contains("EPYC-Genoa") && read.code == 1, "{read:#?}");
    the_same_on_one_place(&lab, folder.path());
}

/// A column for each machine, and rows and pages of all; a place that somebody else has is waited for, and then named. What the
/// user's shell has for labgrid's client is about other places.
fn the_same_on_one_place(lab: &Lab, folder: &Path) {
    let path = lab.path();
    let other = "targets:\n  main:\n    resources:\n      RemotePlace:\n        name: other\n";
    fs::write(folder.join("other.yaml"), other).unwrap();
    let own = [("LG_ENV", "other.yaml"), ("LG_PLACE", "other"), ("LG_STATE", "off")];
    let own = own.map(|(name, value)| match name {
        "LG_ENV" => (name, folder.join(value).into_os_string()),
        _ => (name, OsString::from(value)),
    });
    let call = |more: &[&str]| {
        let line = ["lab", "run", "job.toml", "--ktap", "--env", "lab/pxe.yaml", "--places"];
        let line = [&line[..], more].concat();
        let own = own.iter().map(|(name, value)| (*name, value.as_os_str()));
        let environment: Vec<_> = lab.environment(&path).into_iter().chain(own).collect();
        xtask_in(folder, &line, &environment)
    };
    let ran = call(&["name=fine,cpu=zen4"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    for part in [
        "lab, on 1 machine\n",
        "fine: FAIL: 1 measured, 1 passed, 1 failed",
        "AMD EPYC-Genoa Processor",
        "two adds",
        " FAIL \n",
        "fine: missed: item 1 (two adds): tsc came to ",
    ] {
        assert!(ran.out.contains(part), "no `{part}`: {ran:#?}");
    }
    let none = call(&["cpu=stove"]);
    none.fails_with(77, &["has the tags cpu=stove"]);
    lab.succeeds(&["-p", "fine", "acquire"]);
    let taken = call(&["name=fine", "--wait", "4", "--format", "csv"]);
    assert_eq!(taken.code, 3, "{taken:#?}");
    lab.succeeds(&["-p", "fine", "release"]);
    assert_eq!(lab.succeeds(&["reservations"]), "", "{taken:#?}");
    assert_eq!(lab.boards[0].switched_on(), 2);
}

fn types(report: &Value) -> Vec<&str> {
    let records = report["records"].as_array().unwrap().iter();
    records.map(|one| one["type"].as_str().unwrap()).filter(|kind| *kind != "progress").collect()
}

/// The stick's environment, from the image to the report: the stick is written while it is with the lab's host.
#[test]
fn x6_a_stick_is_written_through_its_switch_and_booted_and_pytest_takes_the_same_environment() {
    if !has(Need::Labgrid) {
        skip!("there is no labgrid");
    }
    let lab = Lab::new(&[Wanted {
        place: "stick",
        tags: &["cpu=zen4"],
        cpu: "EPYC-Genoa",
        media: Media::Stick,
        fault: Fault::None,
    }]);
    let (folder, path) = (user_folder(), lab.path());
    let line = guide("cargo xtask lab run job.toml --env lab/stick.yaml");
    let csv = [&words(&line)[..], &["--ktap", "--format", "csv", "--keep", "kept"]].concat();
    let ran = xtask_in(folder.path(), &csv, &lab.environment(&path));
    assert_eq!(ran.code, 1, "{ran:#?}");
    let rows: Vec<&str> = ran.out.lines().collect();
    assert!(rows[0].starts_with("place,item,name,event,median,"), "{ran:#?}");
    assert!(rows.iter().any(|row| row.starts_with("stick,0,imul,tsc,")), "{ran:#?}");
    assert!(!lab.boards[0].is_on());
    by_the_guides_lines_of_pytest(&lab, folder.path());
}

/// By labgrid's own plugin of pytest, in a shell that has labgrid in its search path, as the guide's lines stand there.
fn by_the_guides_lines_of_pytest(lab: &Lab, folder: &Path) {
    let image = xtask(folder, &words(&guide("cargo xtask image job.toml --ktap --save off")));
    assert_eq!(image.code, 0, "{image:#?}");
    let python = labgrid::python().unwrap();
    let mut path = OsString::from(python.parent().unwrap());
    path.push(":");
    path.push(lab.path());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(guides_block("pytest --lg-env ")).current_dir(folder);
    let output = shell.envs(lab.environment(&path)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("missing: []; not ok: ['two adds']"), "{said}: {output:?}");
    assert_eq!(lab.succeeds(&["places", "--acquired"]), "", "{output:?}");
    assert_eq!(lab.succeeds(&["reservations"]), "", "{output:?}");
    assert_eq!((lab.boards[0].switched_on(), lab.boards[0].is_on()), (2, false));
}

/// While its machine is on, and hangs.
#[test]
fn x6_an_interrupted_run_leaves_no_machine_on_and_no_place_taken() {
    if !has(Need::Labgrid) {
        skip!("there is no labgrid");
    }
    let lab = Lab::new(&[Wanted {
        place: "hangs",
        tags: &["cpu=zen4", "rack=2"],
        cpu: "EPYC-Genoa",
        media: Media::Network,
        fault: Fault::Hangs,
    }]);
    let (folder, path) = (user_folder(), lab.path());
    let line = guide("cargo xtask lab run job.toml --env lab/pxe.yaml");
    let line = [&words(&line)[..], &["--keep", "kept"]].concat();
    let mut started = Started::with_environment(folder.path(), &line, &lab.environment(&path));
    let log = folder.path().join("kept/place-hangs/serial.log");
    started.wait_for("the first result", |_| {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("\"item\":0,"))
    });
    assert!(lab.boards[0].is_on());
    started.signal(libc::SIGINT);
    let called = started.wait();
    assert_eq!(called.code, 130, "{called:#?}");
    assert_eq!((lab.boards[0].switched_on(), lab.boards[0].is_on()), (1, false));
    assert_eq!(lab.succeeds(&["places", "--acquired"]), "");
    assert_eq!(lab.succeeds(&["reservations"]), "");
    let text = fs::read_to_string(folder.path().join("lab.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let complaint = &all["machines"][0]["report"]["run"]["complaint"];
    assert_eq!(complaint, "interrupted; item 1 (two adds) has no result");
}

/// Without a coordinator, in labgrid's own QEMU, with an emulated PMU.
#[test]
fn x6_an_environment_of_qemu_runs_a_job_with_an_emulated_pmu() {
    if !has(Need::Labgrid) {
        skip!("there is no labgrid");
    }
    let folder = user_folder();
    let line = guide("cargo xtask lab run job.toml --env lab/qemu.yaml");
    let more = ["--event", "instructions", "--format", "html", "--out", "lab.html"];
    let page = [&words(&line)[..], &more].concat();
    let ran = xtask(folder.path(), &page);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let page = fs::read_to_string(folder.path().join("lab.html")).unwrap();
    for part in ["AMD Ryzen 9 7950X", "imul", "two adds", "instructions"] {
        assert!(page.contains(part), "no `{part}` in the page: {ran:#?}");
    }
    that_ends_by_itself(folder.path());
    that_cannot_be_started(folder.path());
}

/// The job switches the machine off, or resets it, which ends QEMU: its report is whole all the same.
fn that_ends_by_itself(folder: &Path) {
    for end in ["power-off", "reboot"] {
        fs::write(folder.join("ends.toml"), format!("on-end = \"{end}\"\n{JOB}")).unwrap();
        let line = ["lab", "run", "ends.toml", "--env", "lab/qemu.yaml", "--format", "json"];
        let ran = xtask(folder, &line);
        let all: Value = serde_json::from_str(&ran.out).unwrap();
        let report = &all["machines"][0]["report"];
        assert_eq!((ran.code, &report["run"]["complaint"]), (1, &Value::Null), "{end}: {ran:#?}");
        assert_eq!(types(report), ["start", "machine", "result", "result", "result", "end"]);
    }
}

/// A QEMU that tells its version and nothing else: labgrid would wait for it without an end.
fn that_cannot_be_started(folder: &Path) {
    let program = folder.join("qemu");
    let script =
        "#!/bin/sh\n[ \"$1\" = -version ] && exec echo QEMU emulator version 10.0.0\nexit 1\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = fs::read_to_string(folder.join("lab/qemu.yaml")).unwrap();
    let own = text.replace("!template \"$LG_BARECOUNT_QEMU\"", &program.display().to_string());
    assert_ne!(own, text);
    fs::write(folder.join("lab/own.yaml"), own).unwrap();
    let ran = xtask(folder, &["lab", "run", "job.toml", "--env", "lab/own.yaml", "--timeout", "3"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let said = "main: not whole: switching it on took longer than 3 s; the firmware did not start";
    assert!(ran.out.contains(said), "{ran:#?}");
}

#[test]
fn x6_a_lab_that_cannot_be_used_is_an_error_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| xtask(folder.path(), &[&["lab", "run"], more].concat());
    run(&[]).fails_with(2, &["--env"]);
    run(&["--env", "none.yaml"]).fails_with(2, &["none.yaml", "No such file"]);
    fs::write(folder.path().join("e.yaml"), "targets: {}\n").unwrap();
    let python = ["--env", "e.yaml", "--python"];
    run(&[&python[..], &["nowhere/python"]].concat())
        .fails_with(2, &["--python nowhere/python", "there is no such program"]);
    run(&[&python[..], &["/bin/false"]].concat()).fails_with(2, &["it has no labgrid"]);
    run(&["--env", "e.yaml", "--places", "zen4"]).fails_with(2, &["as cpu=zen4"]);
    run(&["--env", "e.yaml", "--out", "e.yaml"]).fails_with(2, &["would overwrite"]);
    if !has(Need::Labgrid) {
        skip!("there is no labgrid");
    }
    let nobody = ["--env", "e.yaml", "--places", "a=b", "--coordinator", "127.0.0.1:1"];
    run(&nobody).fails_with(77, &["the coordinator at 127.0.0.1:1", "connect"]);
    let none = run(&["--env", "e.yaml"]);
    assert_eq!(none.code, 3, "{none:#?}");
    assert!(none.out.contains("has no target `main`"), "{none:#?}");
}

/// The strategy, and what is done around it, by themselves, in Python's own tests.
#[test]
fn x6_the_strategy_switches_writes_boots_and_waits_in_order_and_tells_what_went_wrong() {
    if !has(Need::Labgrid) {
        skip!("there is no labgrid");
    }
    let mut pytest = Command::new(labgrid::python().unwrap());
    pytest.args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.args(["tests/test_strategy.py", "tests/test_run.py"].map(environment));
    let output = pytest.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("47 passed"), "{said}");
}

/// What the kernel's parser is asked: its verdict on each test, nested ones by their path.
const KUNIT: &str = "
import json, sys
# Its printer takes standard output when it is imported.
real, sys.stdout = sys.stdout, sys.stderr
import kunit_parser
def walk(test, path=''):
    for one in test.subtests:
        yield [path + one.name, one.status.name]
        yield from walk(one, path + one.name + '/')
test = kunit_parser.parse_run_tests(open(sys.argv[1], errors='replace'))
json.dump({'status': test.status.name, 'errors': test.counts.errors, 'tests': list(walk(test))}, real)
";
/// What tap.py says of each line.
const TAP: &str = "
import json, sys
from tap.parser import Parser
found = {'results': [], 'plans': [], 'diagnostics': 0}
for line in Parser().parse_file(sys.argv[1]):
    if line.category == 'test':
        found['results'].append([line.number, line.ok, line.description, line.skip])
    elif line.category == 'plan':
        found['plans'].append(line.expected_tests)
    elif line.category == 'diagnostic':
        found['diagnostics'] += 1
json.dump(found, sys.stdout)
";

/// Runs a program in Python that has these modules; its output.
fn python(modules: &[&Path], program: &[&str], file: &Path) -> String {
    let paths = std::env::join_paths(modules).unwrap();
    let mut command = Command::new(labgrid::python().unwrap());
    command.arg("-B").args(program).arg(file).env("PYTHONPATH", paths);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Has the job with two more items run; returns its log, in KTAP.
fn log_of(folder: &Path) -> PathBuf {
    let more = "[[snippet]]\nname = \"faults\"\nasm = \"ud2\"\n[[snippet]]\nname = \"32 bits\"\nbits = 32\nasm = \"nop\"\n";
    fs::write(folder.join("job.toml"), format!("{JOB}{more}")).unwrap();
    let line = ["run", "job.toml", "--pmu", "none", "--ktap", "--keep", "kept"];
    let ran = xtask(folder, &line);
    assert_eq!(ran.code, 1, "{ran:#?}");
    folder.join("kept/serial.log")
}

/// What `collect` makes of a log in KTAP is what it makes of the records alone.
fn collect_sees_the_records_alone(log: &Path, folder: &Path) {
    let text = fs::read_to_string(log).unwrap();
    let records: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| line.starts_with("{\"seq\":"))
        .collect();
    assert!(records.len() > 7 && text.starts_with("\r\nKTAP version 1\r\n1..6\r\n"), "{text}");
    let collected = |text: &str| {
        let copy = folder.join("log");
        fs::write(&copy, text).unwrap();
        let read = xtask(folder, &["collect", "--format", "json", "--serial", "log"]);
        assert_eq!(read.code, 1, "{read:#?}");
        read.out
    };
    assert_eq!(collected(&text), collected(&(records.join("\r\n") + "\r\n")));
}

#[test]
fn x6_the_kernels_parser_lavas_monitor_and_a_parser_of_tap_read_one_serial_line() {
    for need in [Need::Labgrid, Need::Parsers] {
        if !has(need) {
            skip!("there are no {}", need.name());
        }
    }
    let kept = tree().target().join("tools/readers");
    let (kunit, lava) = match (stock_linux::kunit(&kept), stock_linux::lava(&kept)) {
        (Ok(kunit), Ok(lava)) => (kunit, lava),
        (Err(reason), _) | (_, Err(reason)) => skip!("no parsers of the distribution's: {reason}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let log = log_of(folder.path());
    collect_sees_the_records_alone(&log, folder.path());
    let read = |modules: &[&Path], program: &[&str]| -> Value {
        serde_json::from_str(&python(modules, program, &log)).unwrap()
    };
    let expected = [
        ("imul", "SUCCESS", "pass"),
        ("two adds", "FAILURE", "fail"),
        ("nop ＃ one", "SUCCESS", "pass"),
        ("faults", "FAILURE", "fail"),
        ("32 bits", "SUCCESS", "pass"),
        ("the run", "SUCCESS", "pass"),
    ];
    // The kernel's.
    let found = read(&[&kunit], &["-c", KUNIT]);
    let pairs = expected.map(|(name, status, _)| Value::from(vec![name, status]));
    assert_eq!(found["tests"], Value::from(pairs.to_vec()), "{found}");
    assert_eq!((&found["status"], &found["errors"]), (&"FAILURE".into(), &0.into()));
    // tap.py.
    let parsers = parsers::folder().unwrap();
    let found = read(&[&parsers], &["-c", TAP]);
    assert_eq!(found["plans"], Value::from(vec![6]));
    let results = (1..).zip(expected).map(|(number, (name, _, verdict))| {
        let name = format!("- {name}");
        Value::from(vec![number.into(), Value::from(verdict == "pass"), name.into(), false.into()])
    });
    assert_eq!(found["results"], Value::from(results.collect::<Vec<_>>()));
    assert!(found["diagnostics"].as_u64().unwrap() > 8, "{found}");
    // LAVA's monitor, by the expressions of the job; its cases have the first figure.
    let program = environment("tests/lava_monitor.py").display().to_string();
    let job = environment("lava.yaml").display().to_string();
    let said = python(&[&lava, &parsers], &[&program, &job], &log);
    let mut cases: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = cases.pop().unwrap();
    assert_eq!((&end["status"], &end["errors"]), (&"passed".into(), &Value::Array(Vec::new())));
    assert_eq!(cases.len(), expected.len(), "{said}");
    for (case, (name, _, verdict)) in cases.iter().zip(expected) {
        assert_eq!(case["extra"]["test_case_id"], name, "{said}");
        assert_eq!(case["result"], verdict, "{said}");
        let is_measured = !["faults", "the run"].contains(&name);
        assert_eq!(case["measurement"].is_string(), is_measured, "{said}");
        assert_eq!(case["units"], if is_measured { "tsc" } else { "" }, "{said}");
    }
    assert_eq!(cases[1]["measurement"], "2");
    a_suite_is_nested(folder.path(), &kunit);
}

/// Each check of the conformance suite is a test within its item's; without a PMU the item is skipped.
fn a_suite_is_nested(folder: &Path, kunit: &Path) {
    fs::write(folder.join("suite.toml"), "kind = \"conformance\"\nchecks = [\"rdpmc.*\"]\n")
        .unwrap();
    let run = |pmu: &str, code: i32| -> Value {
        let line = ["run", "suite.toml", "--ktap", "--pmu", pmu, "--keep", "suite"];
        let ran = xtask(folder, &line);
        assert_eq!(ran.code, code, "{ran:#?}");
        let log = folder.join("suite/serial.log");
        serde_json::from_str(&python(&[kunit], &["-c", KUNIT], &log)).unwrap()
    };
    let found = run("skylake", 0);
    let tests: Vec<String> =
        found["tests"].as_array().unwrap().iter().map(|test| test[0].to_string()).collect();
    assert!(tests.contains(&"\"suite/rdpmc.bad_index\"".to_string()), "{tests:?}");
    assert_eq!((&found["status"], &found["errors"]), (&"SUCCESS".into(), &0.into()), "{found}");
    let found = run("none", 77);
    assert_eq!(found["tests"][0], Value::from(vec!["suite", "SKIPPED"]), "{found}");
}
