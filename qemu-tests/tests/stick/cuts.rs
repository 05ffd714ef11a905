//! Power that is cut while a report is saved. Its memory is lost then; the report is in EFI variables.

use super::*;
use ::xtask::stick::{Saved, Stick, read};
use qemu_tests::skip;
use qemu_tests::stick::writes;

/// Asserts that a stick is whole, and that what is called a report on it is the one that there was.
#[track_caller]
fn never_mixed(path: &Path, report: &[u8]) -> Stick {
    if let Some(program) = fsck() {
        is_clean(program, &fs::read(path).unwrap());
    }
    let stick = read(path).unwrap();
    for Saved { name, bytes } in &stick.saved {
        match title(&name.to_string()).0.as_str() {
            "Report" => assert!(bytes == report, "{name}"),
            // The beginning of it.
            "Damaged" => assert!(report.starts_with(&bytes[..bytes.len().min(512)]), "{name}"),
            other => panic!("{other}"),
        }
    }
    stick
}

/// After the power is back: the report is saved once, and what the cut left is beside it.
#[track_caller]
fn saved_in_the_end(machine: &Machine, report: &[u8]) {
    let before = never_mixed(&machine.image, report).saved.len();
    let is_saved = before == 1;
    let mut on = machine.start(OnReset::Ends);
    if is_saved {
        // The cut came after the last write: the variables may be as before, or say that it is saved, or not be there any more, and
        // then it measures again.
        on.wait_for("BdsDxe: starting", 1);
        on.wait_for_any(&["barecount: saving", QUESTION, "{\"seq\":0,"]);
        on.cut_power();
    } else {
        on.wait_for(QUESTION, 1);
        switch_off(&mut on);
        let stick = never_mixed(&machine.image, report);
        let reports =
            stick.saved.iter().filter(|saved| title(&saved.name.to_string()).0 == "Report");
        assert_eq!(reports.count(), 1, "{}", on.text());
    }
}

/// Every state that the stick has between two writes, and what comes of some of them.
#[test]
fn x3_a_power_cut_between_any_two_writes_leaves_a_whole_stick_and_no_mixed_report() {
    let Some(program) = fsck() else { skip!("fsck.fat (dosfstools) is not installed") };
    let folder = tempfile::tempdir().unwrap();
    let (machine, report) = with_variables(folder.path());
    let mut stick = fs::read(&machine.image).unwrap();
    is_clean(program, &stick);
    let (logged, log) = (machine.copy("logged"), folder.path().join("log"));
    let mut on = logged.start_logged(&log);
    on.wait_for(QUESTION, 1);
    assert!(on.text().contains(", found in EFI variables"), "{}", on.text());
    switch_off(&mut on);
    let written = writes(&log);
    assert!(written.len() >= 4, "content in several writes, then its name: {}", written.len());
    let path = folder.path().join("cut.img");
    let mut half = None;
    for (count, write) in written.iter().enumerate() {
        stick[write.at..][..write.bytes.len()].copy_from_slice(&write.bytes);
        fs::write(&path, &stick).unwrap();
        let saved = never_mixed(&path, &report).saved.len();
        assert!(saved <= 1, "after write {count}");
        // The content has begun, and has no name yet.
        let begun = stick.windows(9).any(|bytes| bytes == b"{\"seq\":0,");
        if begun && saved == 0 && half.is_none() {
            half = Some(stick.clone());
        }
    }
    assert!(stick == fs::read(&logged.image).unwrap(), "all writes are in the log");
    assert_eq!(never_mixed(&path, &report).saved.len(), 1);
    // The power comes back on a stick that was half written.
    let half = half.expect("a moment with a half-written file");
    let cut = machine.copy("half");
    fs::write(&cut.image, half).unwrap();
    saved_in_the_end(&cut, &report);
}

/// Ends QEMU at `count` moments of the save, by chance but the same ones each time.
fn cut_at_random(count: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (machine, report) = with_variables(folder.path());
    let whole = machine.copy("whole");
    let mut on = whole.start(OnReset::Ends);
    on.wait_for("barecount: saving", 1);
    let lasts = on.wait_for("barecount: saved", 1);
    drop(on);
    let mut random = 0x5eed_u64;
    for cut in 0..count {
        // A linear congruential generator (Knuth's MMIX).
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = lasts.mul_f64((random >> 40) as f64 / f64::from(1 << 24));
        let machine = machine.copy(&format!("cut{cut}"));
        let mut on = machine.start(OnReset::Ends);
        on.wait_for("barecount: saving", 1);
        std::thread::sleep(moment);
        on.cut_power();
        drop(on);
        never_mixed(&machine.image, &report);
        saved_in_the_end(&machine, &report);
        fs::remove_file(&machine.image).unwrap();
    }
}

#[test]
fn x3_qemu_killed_while_it_saves_leaves_a_whole_stick() {
    cut_at_random(2);
}

#[test]
#[ignore = "100 boots: some 20 minutes"]
fn x3_qemu_killed_at_fifty_moments_leaves_a_whole_stick() {
    cut_at_random(50);
}
