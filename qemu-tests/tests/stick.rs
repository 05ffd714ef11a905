//! Reports that are saved on the stick, by UEFI firmware's own file system.

mod cuts;
mod kinds;
mod watchdog;

use qemu_tests::stick::{Machine, On, OnReset, fsck, image, is_clean, report_of};
use qemu_tests::xtask;
use std::fs;
use std::path::Path;

/// Some kilobytes of report.
const JOB: &str = "
name = \"stick\"
[[snippet]]
name = \"imul\"
asm = \"imul rax, rax\"
runs = 200
values = true
[[snippet]]
name = \"an item that misses\"
asm = \"nop\"
expect = { max = -1_000_000 }
";
/// What the application asks when it has shown a report.
const QUESTION: &str = "O: switch off";

/// The folder with what `collect` copies from a stick.
#[track_caller]
fn collected(folder: &Path, image: &Path) -> Vec<(String, Vec<u8>)> {
    let copies = tempfile::tempdir_in(folder).unwrap();
    let (image, to) = (image.display().to_string(), copies.path().display().to_string());
    let called = xtask(folder, &["collect", "--image", &image, "--copy", &to, "--format", "json"]);
    assert!([0, 1, 2].contains(&called.code), "{called:#?}");
    let mut files: Vec<_> = fs::read_dir(copies.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| name != ::stick::JOB)
        .collect();
    files.sort_by_key(|(name, _)| name.rsplit('-').next().map(str::to_string));
    files
}

/// Number and kind of a file's name: the date is that of the machine's clock.
fn title(name: &str) -> (String, u32) {
    let name = ::stick::names::Name::parse(name).unwrap_or_else(|| panic!("{name}"));
    (format!("{:?}", name.kind), name.number)
}

/// Switches off by the application's menu.
fn switch_off(on: &mut On) {
    on.type_in("o");
    assert!(on.wait_off().success());
}

#[test]
fn x3_a_report_is_saved_on_the_stick_as_it_went_over_the_serial_line() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new(folder.path(), image(folder.path(), "stick.img", JOB, &[]));
    let job = fs::read(&machine.image).unwrap();
    let mut on = machine.start(OnReset::Boots);
    on.wait_for(QUESTION, 1);
    // Nothing is measured again unasked; asked for, it is, and has the next number.
    on.type_in("r");
    on.wait_for(QUESTION, 2);
    switch_off(&mut on);
    let (console, text) = (on.console(), on.text());
    assert_eq!(text.matches("{\"seq\":0,").count(), 2, "{text}");
    assert_eq!(text.matches(", found in memory").count(), 2, "{text}");
    for shown in ["FAIL: 0 passed, 1 failed, 1 measured", "an item that misses", "MISS"] {
        assert!(text.contains(shown), "{text}");
    }
    let files = collected(folder.path(), &machine.image);
    for (boot, (name, bytes)) in files.iter().enumerate() {
        assert_eq!(title(name), ("Report".to_string(), boot as u32 + 1));
        assert!(*bytes == report_of(&console, boot), "{name}: {}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(files.len(), 2);
    // The same report, read from the stick and from a log of the line.
    let log = folder.path().join("log");
    fs::write(&log, report_of(&console, 1)).unwrap();
    let [log, stick] = [&log, &machine.image].map(|path| path.display().to_string());
    let [one, other] = [["--serial", &log], ["--image", &stick]].map(|from| {
        let called = xtask(folder.path(), &["collect", from[0], from[1], "--format", "csv"]);
        assert_eq!(called.code, 1, "an item missed: {called:#?}");
        called.out
    });
    assert_eq!(one, other);
    // Beside the reports lies the job that they are of.
    let saved = ::xtask::stick::read(&machine.image).unwrap();
    let ramdisk = saved.job.unwrap();
    assert!(job.windows(512).any(|sector| *sector == ramdisk[..512]));
    assert_eq!(saved.rooms.len(), 11 - 2);
    if let Some(program) = fsck() {
        is_clean(program, &fs::read(&machine.image).unwrap());
    }
}

/// Nobody is there to turn the pages.
#[test]
fn x3_a_machine_without_anybody_switches_off_after_a_report_of_many_pages() {
    let folder = tempfile::tempdir().unwrap();
    let item = |n| format!("[[snippet]]\nname = \"item {n}\"\nasm = \"nop\"\nruns = 1\n");
    // More than any text mode has rows.
    let job = "on-end = \"power-off\"\n".to_string() + &(0..120).map(item).collect::<String>();
    let machine = Machine::new(folder.path(), image(folder.path(), "stick.img", &job, &[]));
    let mut on = machine.start(OnReset::Boots);
    assert!(on.wait_off().success());
    let (console, said) = (on.console(), on.text());
    assert!(said.contains("saved: barecount/REPORT-") && !said.contains("any key"), "{said}");
    let [(name, bytes)] = &collected(folder.path(), &machine.image)[..] else { panic!("{said}") };
    assert_eq!(title(name), ("Report".to_string(), 1));
    assert!(*bytes == report_of(&console, 0), "{said}");
}

/// The report of a crash is whole. What the job wants the machine to do then holds for it too.
#[test]
fn x3_a_machine_without_anybody_switches_off_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let ends = "name = \"stick\"\nself-test = \"panic\"\non-end = \"power-off\"";
    let job = JOB.replace("name = \"stick\"", ends);
    let machine = Machine::new(folder.path(), image(folder.path(), "stick.img", &job, &[]));
    let mut on = machine.start(OnReset::Boots);
    assert!(on.wait_off().success());
    let said = on.text();
    for shown in ["saved: barecount/REPORT-", "the firmware failed: a panic on purpose"] {
        assert!(said.contains(shown), "{said}");
    }
    assert!(!said.contains(QUESTION), "{said}");
}

#[test]
fn collect_says_what_is_no_stick_and_what_is_not_on_one() {
    let folder = tempfile::tempdir().unwrap();
    let call = |more: &[&str]| xtask(folder.path(), &[&["collect", "--image"], more].concat());
    fs::write(folder.path().join("text"), "no stick").unwrap();
    call(&["text"])
        .fails_with(2, &["text is not a stick of `image --save on`: no partition table"]);
    call(&["none"]).fails_with(2, &["cannot read none"]);
    image(folder.path(), "off.img", JOB, &["--save", "off"]);
    call(&["off.img"]).fails_with(2, &["off.img is not a stick", "no folder barecount"]);
    image(folder.path(), "new.img", JOB, &[]);
    call(&["new.img"]).fails_with(2, &["0 saved, room for 11 more", "it has no complete report"]);
    call(&["new.img", "--report", "7"]).fails_with(2, &["new.img: no report 7"]);
    let both = ["collect", "--image", "new.img", "--serial", "text"];
    xtask(folder.path(), &both).fails_with(2, &["cannot be used with"]);
}

/// A machine that has run its job and has its memory lost at the reset after it: the report is in its variables alone.
fn with_variables(folder: &Path) -> (Machine, Vec<u8>) {
    let machine = Machine::new(folder, image(folder, "stick.img", JOB, &[]));
    let mut on = machine.start(OnReset::Ends);
    on.wait_off();
    let report = report_of(&on.console(), 0);
    (machine, report)
}

/// Boots until the application asks, and switches off; returns what the console said.
fn save(machine: &Machine) -> String {
    let mut on = machine.start(OnReset::Ends);
    on.wait_for(QUESTION, 1);
    switch_off(&mut on);
    on.text()
}
