//! Events by name: the `events` command, and the tables that go along with a job.

use events::tables::layout;
use pmu_model::Model;
use protocol::ramdisk::{SectionKind, section};
use protocol::record::{ErrorCode, EventTables};
use qemu_tests::{Called, Guest, Ran, xtask};
use serde_json::Value;
use std::fs;
use std::path::Path;
use xtask::cli::{Boot, models};
use xtask::events::{Block, cpu};
use xtask::machine::Given;

const JOB: &str = "[[snippet]]\nname = \"nop\"\nasm = \"nop\"\n";

const MINE: &str = r#"[
  {"EventName": "MY.EVENT", "EventCode": "0xA1", "UMask": "0x7", "Counter": "0,1"},
  {"EventName": "inst_retired.any_p", "EventCode": "0xC0", "UMask": "0x1", "Counter": "0"}
]"#;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn events(folder: &Path, arguments: &[&str]) -> Called {
    xtask(folder, &[&["events"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    let called = events(folder().path(), &[arguments, &["--format", "json"]].concat());
    assert_eq!(called.code, 0, "{called:#?}");
    serde_json::from_str(&called.out).unwrap()
}

fn under(model: Model, toml: &str) -> Guest {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }
}

fn tables_of(ran: &Ran) -> EventTables {
    ran.report.machine().unwrap().event_tables.clone().unwrap()
}

#[test]
fn p4_events_are_listed_for_any_processor() {
    let list = json(&["--cpu", "skylakex", "inst_retired.any"]);
    assert_eq!(list["cpu"]["table"], "skylakex");
    let rows = list["events"].as_array().unwrap();
    let fixed = rows.iter().find(|row| row["name"] == "INST_RETIRED.ANY").unwrap();
    let general = rows.iter().find(|row| row["name"] == "INST_RETIRED.ANY_P").unwrap();
    assert_eq!((&fixed["fixed"], &general["select"]), (&0.into(), &"0x4300c0".into()));
    // By number, and of another maker.
    let list = json(&["--cpu", "0x19.0x61", "ex_ret_instr"]);
    assert_eq!(
        (&list["cpu"]["table"], &list["events"][0]["select"]),
        (&"zen4".into(), &"0x4300c0".into())
    );
    // The generic events that mean something here come first, then each event of the table.
    let generic = json(&["--cpu", "zen4", "--generic"]);
    let named = generic["generic"].as_array().unwrap().iter().filter(|row| row["event"] != "");
    let named: Vec<_> = named.map(|row| row["name"].as_str().unwrap()).collect();
    let called = events(folder().path(), &["--cpu", "zen4", "--format", "csv"]);
    assert!(called.out.starts_with("name,select,event,umask,"), "{}", called.out);
    let listed = called.out.lines().skip(1).map(|line| line.split(',').next().unwrap());
    let listed: Vec<_> = listed.collect();
    assert_eq!(listed[..named.len()], named[..]);
    assert_eq!(listed.len() - named.len(), list["cpu"]["events"].as_u64().unwrap() as usize);
    // A hybrid has a list for each kind of core, whether by number or by name.
    for cpu in ["6.0x97", "alderlake"] {
        let called = events(folder().path(), &["--cpu", cpu, "inst_retired.any"]);
        let cores: Vec<_> = called.out.lines().filter(|line| line.contains(" (Intel, ")).collect();
        assert_eq!(called.code, 0, "{called:#?}");
        assert!(
            matches!(cores[..], [core, atom] if core.starts_with("goldencove") && atom.starts_with("gracemont")),
            "{called:#?}"
        );
    }
    let called = events(folder().path(), &["--cpus"]);
    assert!(called.out.lines().count() > 52 && called.out.contains("0x6.0x97:Atom"), "{called:#?}");
}

#[test]
fn m1_a_register_is_read_back_to_names() {
    let readings = json(&["--cpu", "skylakex", "--decode", "0x4300c0"]);
    let first = &readings["readings"][0];
    assert_eq!(
        (&first["event"], &first["closeness"]),
        (&"INST_RETIRED.ANY_P".into(), &"exact".into())
    );
    let called = events(folder().path(), &["--cpu", "skylake", "--decode", "0x1433f24"]);
    assert!(
        called.out.contains("L2_RQSTS.MISS:c=1") || called.out.contains("cmask=1"),
        "{called:#?}"
    );
    // What is written for it gives the same register again.
    let text = json(&["--cpu", "skylake", "--decode", "0x1433f24"])["readings"][0]["text"].clone();
    let again = json(&["--cpu", "skylake", text.as_str().unwrap()]);
    assert_eq!(again["encodings"][0]["control"], "0x1433f24");
}

#[test]
fn m2_generic_events_are_the_same_everywhere_and_blanks_are_shown() {
    let names = |cpu: &str| -> Vec<(Value, Value)> {
        let list = json(&["--generic", "--cpu", cpu]);
        let rows = list["generic"].as_array().unwrap().clone();
        assert!(rows.iter().any(|row| row["event"] == ""), "{cpu} has everything");
        rows.iter().map(|row| (row["number"].clone(), row["name"].clone())).collect()
    };
    assert_eq!(names("bonnell"), names("zen5"));
    assert_eq!(names("zen1").len(), 46);
}

#[test]
fn bad_requests_end_with_code_2_and_say_what_may_have_been_meant() {
    let folder = folder();
    fs::write(folder.path().join("cut.json"), "[\n{\"EventName\": \"A\",\n").unwrap();
    let field = "[{\"EventName\": \"A\", \"EventCode\": \"0xzz\", \"Counter\": \"0\"}]";
    fs::write(folder.path().join("field.json"), field).unwrap();
    for (arguments, parts) in [
        (&["--cpu", "skylke"][..], &["did you mean skylake"][..]),
        (&["--cpu", "6.0x5d"], &["family 0x6 model 0x5d", "skylake (model 0x5e)"]),
        (&["--cpu", "6.0x55"], &["skylakex (stepping 0", "cascadelakex (stepping 5"]),
        (&["--cpu", "6.0x97", "nothing*"], &["no event of goldencove fits"]),
        (&["--cpu", "6.999"], &["its model is \"999\""]),
        (&["--cpu", "skylake", "l2_rqst.mis"], &["near it are L2_RQSTS.MISS"]),
        (&["--cpu", "skylake", "nothing*"], &["no event of skylake fits \"nothing*\""]),
        (&["--cpu", "skylake", "--decode", "zz"], &["\"zz\" is not a number"]),
        (&["--cpu", "zen4", "--decode", "0x200000"], &["reserved in an AMD"]),
        (&["--msr", "0x1a6=1"], &["--decode"]),
        (&["--cpu", "skylake", "--event-file", "none.json"], &["none.json"]),
        (&["--cpu", "skylake", "--event-file", "cut.json"], &["cut.json: ", "line 3 column"]),
        (
            &["--cpu", "skylake", "--event-file", "field.json"],
            &["field.json: no event of it can be taken", "event 0 (A): EventCode is \"0xzz\""],
        ),
    ] {
        events(folder.path(), arguments).fails_with(2, parts);
    }
    fs::write(folder.path().join("mine.json"), MINE).unwrap();
    let run =
        ["run", "--asm", "nop", "--pmu", "none", "--accel", "tcg", "--event-file", "mine.json"];
    xtask(folder.path(), &run).fails_with(2, &["mine.json: name the processor"]);
}

#[test]
fn i11_each_model_finds_its_table() {
    let block = Block::embedded();
    for model in models() {
        let ran = under(model, JOB).run();
        ran.ends_with(0);
        let seen = tables_of(&ran);
        let expected = block.tables().core(&cpu::key_of(model).unwrap()).ok();
        assert_eq!(seen.table.as_deref(), expected.map(|core| core.name()), "{model:?}");
        assert_eq!(seen.events as usize, expected.map_or(0, |core| core.len()), "{model:?}");
        assert_eq!(
            (seen.version, seen.absent.is_none()),
            (Some(layout::VERSION), expected.is_some()),
            "{model:?}"
        );
        assert!(ran.errors().is_empty(), "a processor without a table is no error");
    }
}

#[test]
fn events_of_the_user_go_along_with_the_job() {
    let folder = folder();
    fs::write(folder.path().join("mine.json"), MINE).unwrap();
    let run = |more: &[&str]| -> Value {
        let arguments = [&["run", "--asm", "nop", "--pmu", "skylake", "--format", "json"], more];
        let called = xtask(folder.path(), &arguments.concat());
        assert_eq!(called.code, 0, "{called:#?}");
        let report: Value = serde_json::from_str(&called.out).unwrap();
        report["records"][1]["event_tables"]["events"].clone()
    };
    let without = run(&[]).as_u64().unwrap();
    assert_eq!(run(&["--event-file", "mine.json"]), without + 1);
    assert_eq!(run(&["--event-file", "zen4=mine.json"]), without);
    let called =
        events(folder.path(), &["--cpu", "skylake", "--event-file", "mine.json", "my.event"]);
    assert!(called.out.contains("0x4307a1"), "{called:#?}");
    assert!(called.err.contains("1 events added to skylake, 1 replaced"), "{called:#?}");
    // A processor that is not known at all has these events, and Intel's architectural ones.
    let arguments = ["--cpu", "6.0xfe", "--event-file", "mine.json", "--format", "json"];
    let called = events(folder.path(), &arguments);
    assert_eq!(called.code, 0, "{called:#?}");
    let list: Value = serde_json::from_str(&called.out).unwrap();
    let rows = list["events"].as_array().unwrap();
    let (own, generic): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["stands_for"] == "");
    let own: Vec<_> = own.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(own, ["inst_retired.any_p", "MY.EVENT"]);
    let architectural =
        |row: &&Value| row["stands_for"].as_str().unwrap().ends_with("(architectural)");
    assert!(!generic.is_empty() && generic.iter().all(architectural), "{generic:?}");
}

#[test]
fn an_image_has_the_tables_and_their_licence() {
    let packed = Guest::new(Boot::Bios, JOB).ramdisk.unwrap();
    assert_eq!(section(&packed, SectionKind::EventTables), Ok(Some(Block::embedded().bytes())));
    let licence = section(&packed, SectionKind::Licence).unwrap().unwrap();
    assert!(String::from_utf8_lossy(licence).contains("Intel Corporation"));
}

/// Counts instructions by event select 0xC0, mask 0, with counter 0: an undefined opcode if it stood still.
const RAW: &str = r#"
[[snippet]]
name = "raw"
unroll = 1
runs = 1
asm = """
mov ecx, 0x38f
mov eax, 1
xor edx, edx
wrmsr
mov ecx, 0xc1
xor eax, eax
wrmsr
mov ecx, 0x186
mov eax, 0x4300c0
wrmsr
nop
nop
nop
xor eax, eax
wrmsr
xor ecx, ecx
rdpmc
test eax, eax
jnz 2f
ud2
2:
"""
"#;

#[test]
fn a_damaged_table_is_refused_and_raw_events_still_work() {
    let whole = Guest::new(Boot::Direct, RAW).ramdisk.unwrap();
    let table = whole.len() - Block::embedded().bytes().len();
    let mut flipped = whole.clone();
    flipped[table + 100_000] ^= 4;
    let mut foreign = whole.clone();
    foreign[table] = b'X';
    let cut = whole[..whole.len() - 10_000].to_vec();
    for (ramdisk, part) in [
        (flipped, "the event table is damaged: its checksum is"),
        (foreign, "this is not an event table"),
        (cut, "section 1 of the ramdisk is truncated"),
    ] {
        let pmu = Given::Emulated(Model::Skylake);
        let ran = Guest { pmu, ..Guest::with_ramdisk(Boot::Direct, Some(ramdisk)) }.run();
        ran.ends_with(0);
        let [error] = ran.errors()[..] else { panic!("{:?}", ran.report) };
        assert_eq!(error.code, ErrorCode::EventTables);
        assert!(error.text.contains(part) && error.text.contains("raw events"), "{}", error.text);
        let seen = tables_of(&ran);
        assert_eq!((seen.version, seen.table, seen.events), (None, None, 0));
        assert!(seen.absent.unwrap().contains(part));
        assert_eq!(ran.results().len(), 1, "the raw event was counted");
    }
    // The same snippet with counter 1 switched on instead, so that it can tell.
    let still = RAW.replace("mov eax, 1\n", "mov eax, 2\n");
    assert_eq!(under(Model::Skylake, &still).run().errors()[0].code, ErrorCode::SnippetFault);
}
