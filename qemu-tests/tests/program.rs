//! The host tool as a user meets it: exit codes, errors, formats.

use qemu_tests::{Guest, tree, xtask};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;
use xtask::cli::Boot;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn job(folder: &Path, text: &str) -> String {
    let path = folder.join("job.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn bad_jobs_end_with_code_2_and_say_where() {
    let folder = folder();
    let nop = "[[snippet]]\nasm = \"nop\"\n";
    let long = format!("[[snippet]]\nasm = '''\n{}'''\n", ".byte 0x90\n".repeat(1 << 20));
    let cases: [(&str, &[&str]); 12] = [
        ("name = ", &["job.toml", "line 1, column 8"]),
        ("[[snippet]]\nasm = \"nop\"\nunrol = 3", &["line 3, column 1", "unknown field `unrol`"]),
        (
            "[[snippet]]\nasm = '''\nnop\nadd rax, rqx\n'''",
            &["job.toml:4:10", "`rqx` is neither a register nor a label"],
        ),
        (
            "[[snippet]]\nname = \"x\"\nasm = '''\nnop\nbogus rax\n'''",
            &["job.toml:5:", "snippet `x`", "bogus", "line 2 of its body"],
        ),
        (&long, &["job.toml:2:7", "11534336 bytes long; at most 8388608"]),
        (&format!("{nop}unroll = 0"), &["job.toml:1:1", "unroll is 0; it must be 1 to 1000000"]),
        (&format!("{nop}unroll = 4294967295"), &["unroll is 4294967295"]),
        (&format!("{nop}unroll = 99999999999"), &["line 3, column 10"]),
        ("[[snippet]]\nasm = \".skip 100000, 0x90\"", &["copies of a body of 100000 bytes"]),
        (
            &format!("{nop}expect = {{ min = 2, max = 1 }}"),
            &["expects `tsc` to be at least 2 and at most 1"],
        ),
        (&format!("version = 9\n{nop}"), &["version 9; this barecount knows up to 1"]),
        (&format!("baud = 1000000\n{nop}"), &["line 1, column 8", "baud is 1000000"]),
    ];
    for (text, parts) in cases {
        let path = job(folder.path(), text);
        let called = xtask(folder.path(), &["run", &path]);
        called.fails_with(2, parts);
        assert_eq!(called.out, "");
    }
}

#[test]
fn bad_usage_ends_with_code_2() {
    let folder = folder();
    let path = job(folder.path(), "[[snippet]]\nasm = \"nop\"");
    let nowhere = folder.path().join("no/such/folder/report");
    let nowhere = nowhere.to_str().unwrap();
    for (arguments, part) in [
        (&["run", "missing.toml"][..], "cannot read the job missing.toml"),
        (
            &["run", &path, "--asm", "nop"],
            "give one of a job file, --asm, --crate, --object and --function, or --latency and --throughput",
        ),
        (&["run", "--init", "nop"], "--init changes the snippet of --asm"),
        (&["run", "--asm", "nop", "--out", nowhere], "cannot write"),
        (&["run", "--asm", "nop", "--out", "/proc/version"], "cannot write /proc/version"),
        (&["image", "--out", nowhere], "cannot write"),
        (&["image", "--out", "/proc/version"], "cannot write /proc/version"),
        (&["run", "--timeout", "0"], "more than 0"),
        (&["run", "--icount", "11"], "0 to 10"),
        (&["run", "--memory", "16"], "16"),
        (&["run", "--boot", "tape"], "tape"),
        (&["run", "--pmu", "z80"], "possible values: auto, host, none, core2, "),
        (&["collect", "--serial", "/no/such/device"], "cannot read /no/such/device"),
        (&["frobnicate"], "frobnicate"),
    ] {
        xtask(folder.path(), arguments).fails_with(2, &[part]);
    }
}

#[test]
fn every_command_has_help() {
    let folder = folder();
    for command in [
        "run", "image", "collect", "compare", "events", "test", "bench", "mutants", "check",
        "doctor", "vm", "new", "package",
    ] {
        let called = xtask(folder.path(), &[command, "--help"]);
        assert_eq!(called.code, 0);
        assert!(called.out.contains("Usage: cargo xtask"), "{}", called.out);
    }
    let whole = xtask(folder.path(), &["--help"]).out;
    assert!(whole.contains("Exit codes:") && whole.contains("Start here:"), "{whole}");
}

#[test]
fn doctor_lists_every_need() {
    let called = xtask(folder().path(), &["doctor"]);
    assert_eq!(called.code, 0, "{called:#?}");
    for part in ["Rust 1.95.0", "QEMU", "OVMF", "KVM", "`run` would use"] {
        assert!(called.out.contains(part), "{called:#?}");
    }
}

#[test]
fn k2_run_prints_a_table_tap_and_every_other_form() {
    let folder = folder();
    let path = job(
        folder.path(),
        "[[snippet]]\nname = \"one # two\"\nasm = \"nop; nop\"\nexpect = 2\n[[snippet]]\nasm = \"ud2\"",
    );
    let run = |more: &[&str]| {
        let called = xtask(folder.path(), &[&["run", &path, "--accel", "tcg"], more].concat());
        assert_eq!(called.code, 1, "{called:#?}");
        called.out
    };
    let table = run(&[]);
    for part in ["i5-6400T", "icount: 1 tick per instruction", "one # two", "pass", "FAULT", "#UD"]
    {
        assert!(table.contains(part), "{table}");
    }
    let json: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(json["exit_code"], 1);
    assert_eq!(json["records"][2]["metrics"][0]["median"], 2.0);
    assert_eq!(json["run"]["accelerator"], "tcg");
    let tap = run(&["--format", "tap"]);
    assert!(tap.starts_with("TAP version 13\n1..2\nok 1 - one \u{ff03} two\n  ---\n"), "{tap}");
    assert!(tap.contains("\nnot ok 2 - ud2\n"), "{tap}");
    let csv = run(&["--format", "csv"]);
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[1].starts_with("0,one # two,tsc,2,2,2,2,10,100,true,1,1,pass"), "{csv}");
    assert!(rows[2].starts_with("1,ud2,") && rows[2].ends_with(",error"), "{csv}");
}

#[test]
fn a_report_goes_to_a_file_and_the_runs_files_are_kept() {
    let folder = folder();
    let arguments =
        ["run", "--asm", "nop", "--format", "json", "--out", "report.json", "--keep", "kept"];
    let called = xtask(folder.path(), &arguments);
    assert_eq!((called.code, called.out.as_str()), (0, ""), "{called:#?}");
    let report = fs::read_to_string(folder.path().join("report.json")).unwrap();
    serde_json::from_str::<Value>(&report).unwrap();
    for name in ["kernel", "ramdisk", "direct.bin", "serial.log", "command.txt"] {
        assert!(folder.path().join("kept").join(name).exists(), "{name}");
    }
}

#[test]
fn k2_the_command_line_overrides_every_snippet() {
    let folder = folder();
    let path = job(folder.path(), "[[snippet]]\nasm = \"nop\"\nunroll = 5\nruns = 3");
    let overrides =
        ["--unroll", "20", "--runs", "4", "--loop", "2", "--values", "--format", "json"];
    let called = xtask(folder.path(), &[&["run", path.as_str()][..], &overrides].concat());
    let json: Value = serde_json::from_str(&called.out).unwrap();
    let result = &json["records"][2];
    assert_eq!((&result["per"], &result["runs"]), (&40.into(), &4.into()));
    assert_eq!(result["metrics"][0]["series"][0]["values"].as_array().unwrap().len(), 4);
}

#[test]
fn a_snippet_in_at_and_t_syntax() {
    let arguments = ["run", "--asm", "addq %rbx, %rax", "--syntax", "att", "--format", "csv"];
    let called = xtask(folder().path(), &arguments);
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.out.contains("\"addq %rbx, %rax\",tsc,1,"), "{called:#?}");
}

#[test]
fn a_second_run_builds_nothing() {
    let folder = folder();
    let times = || {
        let time = |path: &Path| path.metadata().unwrap().modified().unwrap();
        let files = [tree().kernel(), tree().direct(), tree().kernel_with_symbols()];
        files.map(|file| time(&file))
    };
    xtask(folder.path(), &["run", "--asm", "nop"]);
    let (before, now): ([SystemTime; 3], _) = (times(), SystemTime::now());
    let called = xtask(folder.path(), &["run", "--asm", "nop; nop"]);
    assert_eq!(called.code, 0);
    assert_eq!(times(), before);
    assert!(before.iter().all(|time| *time < now));
}

#[test]
fn x3_an_image_boots_both_ways_and_collect_reads_its_log() {
    let folder = folder();
    let path = job(folder.path(), "name = \"stick\"\n[[snippet]]\nasm = \"nop\"");
    let called = xtask(folder.path(), &["image", &path, "--out", "usb.img"]);
    assert_eq!(called.code, 0, "{called:#?}");
    let image = folder.path().join("usb.img");
    for boot in [Boot::Bios, Boot::Uefi] {
        let files = match boot {
            Boot::Bios => xtask::machine::devices::Boot::Bios { image: image.clone() },
            _ => {
                let mut ovmf = xtask::setup::firmware::find().unwrap();
                let copy = folder.path().join("variables.fd");
                fs::copy(&ovmf.variables, &copy).unwrap();
                ovmf.variables = copy;
                xtask::machine::devices::Boot::Uefi { image: image.clone(), ovmf }
            }
        };
        let ran = Guest { boot_from: Some(files), ..Guest::with_ramdisk(boot, None) }.run();
        ran.ends_with(0);
        fs::write(folder.path().join("serial.log"), &ran.raw).unwrap();
        let called = xtask(folder.path(), &["collect", "--serial", "serial.log"]);
        assert_eq!(called.code, 0, "{called:#?}");
        assert!(called.out.contains("pass: 1 measured"), "{called:#?}");
    }
}

/// A pseudo terminal stands for the serial device; the other side is the machine.
#[test]
fn collect_reads_a_serial_device_until_the_end_record() {
    let folder = folder();
    let ran = Guest::new(Boot::Direct, "[[snippet]]\nasm = \"nop\"").run();
    let (mut machine, device) = qemu_tests::pseudo_terminal();
    let raw = ran.raw.clone();
    let sender = std::thread::spawn(move || {
        // A boot's silence first, then the report in pieces.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        for piece in raw.chunks(100) {
            machine.write_all(piece).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        machine
    });
    let called = xtask(folder.path(), &["collect", "--serial", &device, "--timeout", "30"]);
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.out.contains("pass: 1 measured"), "{called:#?}");
    drop(sender.join());
}

#[test]
fn collect_gives_up_on_a_silent_device() {
    let (_machine, device) = qemu_tests::pseudo_terminal();
    let called = xtask(folder().path(), &["collect", "--serial", &device, "--timeout", "1.5"]);
    assert_eq!(called.code, 3, "{called:#?}");
    assert!(called.out.contains("no end record within 1.5 s"), "{called:#?}");
}

#[test]
fn collect_names_every_defect_of_a_damaged_log() {
    let folder = folder();
    let ran = Guest::new(Boot::Direct, &xtask::bench::job_text(12)).run();
    ran.ends_with(0);
    let text = String::from_utf8(ran.raw).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 15);
    let damaged = lines[6].replace("nop", "mop");
    let log = [
        lines[0],
        lines[1],
        lines[1],
        "kernel: hello",
        lines[2],
        lines[4],
        lines[3],
        lines[5],
        &damaged,
        lines[7],
        lines[10],
        lines[11],
    ];
    fs::write(folder.path().join("log"), log.join("\n")).unwrap();
    let called = xtask(folder.path(), &["collect", "--serial", "log"]);
    assert_eq!(called.code, 3, "{called:#?}");
    for part in [
        "line 3 repeats record 1",
        "line 7 has record 3, which should have come before record 4",
        "line 9 is damaged: its checksum is",
        "record 6 is lost",
        "records 8 to 9 are lost",
        "the end record is missing; the last record is 11",
        "1 line of other text",
        "kernel: hello",
    ] {
        assert!(called.out.contains(part), "lacks `{part}`: {}", called.out);
    }
}

#[test]
fn a_crash_is_told_with_its_backtrace_and_code_3() {
    let folder = folder();
    let path = job(folder.path(), "self-test = \"panic\"\n[[snippet]]\nasm = \"nop\"");
    let called = xtask(folder.path(), &["run", &path]);
    assert_eq!(called.code, 3, "{called:#?}");
    for part in ["the firmware failed: a panic on purpose", "self_test", "crash.rs:", "rflags"] {
        assert!(called.out.contains(part), "lacks `{part}`: {}", called.out);
    }
}

#[test]
fn a_hang_is_told_with_the_item_and_code_3() {
    let folder = folder();
    let path = job(
        folder.path(),
        "[[snippet]]\nasm = \"nop\"\n[[snippet]]\nname = \"spin\"\nasm = \"2: jmp 2b\"",
    );
    let called = xtask(folder.path(), &["run", &path, "--timeout", "3"]);
    assert_eq!(called.code, 3, "{called:#?}");
    for part in ["item 1 (spin): the machine was stopped after 3 s", "LOST"] {
        assert!(called.out.contains(part), "lacks `{part}`: {}", called.out);
    }
}

#[test]
fn kvm_without_a_device_is_code_77_or_works() {
    let folder = folder();
    let called =
        xtask(folder.path(), &["run", "--asm", "nop", "--accel", "kvm", "--timeout", "60"]);
    if fs::File::options().read(true).write(true).open("/dev/kvm").is_ok() {
        assert_eq!(called.code, 0, "{called:#?}");
        let line = called.err.lines().find(|line| line.starts_with("pmu: ")).unwrap();
        assert!(line.contains("under KVM") || line.contains("the host's"), "{called:#?}");
    } else {
        called.fails_with(77, &["/dev/kvm cannot be opened"]);
    }
}
