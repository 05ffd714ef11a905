//! What is no whole report of this stick is kept beside the others, under another name.

use super::*;

#[test]
fn x3_through_variables_with_the_memory_cleared_and_what_is_foreign_or_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (machine, report) = with_variables(folder.path());
    // The same report through variables, in another process with other memory.
    let whole = machine.copy("whole");
    let said = save(&whole);
    assert!(said.contains(", found in EFI variables"), "{said}");
    let [(name, bytes)] = &collected(folder.path(), &whole.image)[..] else { panic!("{said}") };
    assert_eq!(title(name), ("Report".to_string(), 1));
    assert!(*bytes == report, "{}", String::from_utf8_lossy(bytes));
    // Nothing of it is left in the variables: the next boot measures.
    let mut on = whole.start(OnReset::Ends);
    on.wait_for("{\"seq\":0,", 1);
    drop(on);
    // Another stick in the same machine.
    let mut other = machine.copy("other");
    other.image = image(folder.path(), "other.img", &JOB.replace("nop", "cpuid"), &[]);
    let said = save(&other);
    assert!(said.contains("this report was made by another image"), "{said}");
    let [(name, bytes)] = &collected(folder.path(), &other.image)[..] else { panic!("{said}") };
    assert_eq!(title(name), ("Foreign".to_string(), 1));
    assert!(*bytes == report);
    // A bit of the variables has changed.
    let damaged = machine.copy("damaged");
    let mut variables = fs::read(damaged.variables()).unwrap();
    let at = variables.windows(8).rposition(|bytes| bytes == b"BCINDEX1").unwrap();
    variables[at + 9] ^= 1;
    fs::write(damaged.variables(), variables).unwrap();
    let said = save(&damaged);
    assert!(said.contains("the report in EFI variables is damaged"), "{said}");
    let [(name, _)] = &collected(folder.path(), &damaged.image)[..] else { panic!("{said}") };
    assert_eq!(title(name), ("Damaged".to_string(), 1));
}

/// A report that no server takes. Whoever runs the job again gives it up: it is not there any more if the new run leaves none.
#[test]
fn x3_x9_running_the_job_again_discards_a_report_that_was_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (mut machine, _) = with_variables(folder.path());
    let hang = JOB.replace("name = \"stick\"", "name = \"stick\"\nself-test = \"hang\"");
    // The machine has no network card.
    let upload = ["--upload", "http://10.0.2.2:9/"];
    machine.image = image(folder.path(), "unsent.img", &hang, &upload);
    let mut on = machine.start(OnReset::Ends);
    on.wait_for(", found in EFI variables", 1);
    on.wait_for("NOT SENT", 1);
    on.wait_for(QUESTION, 1);
    on.type_in("r");
    on.wait_for("{\"seq\":0,", 1);
    on.cut_power();
    let mut on = machine.start(OnReset::Ends);
    on.wait_for_any(&["{\"seq\":0,", QUESTION]);
    let said = on.text();
    assert!(said.contains("{\"seq\":0,") && !said.contains(", found in"), "{said}");
}

/// The reset button in the middle of a run.
#[test]
fn x3_a_run_that_is_cut_off_leaves_its_lines_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let job = JOB.replace("name = \"stick\"", "name = \"stick\"\nself-test = \"hang\"");
    let machine = Machine::new(folder.path(), image(folder.path(), "stick.img", &job, &[]));
    let mut on = machine.start(OnReset::Boots);
    on.wait_for("\"type\":\"machine\"", 1);
    // The line's end.
    std::thread::sleep(std::time::Duration::from_secs(1));
    on.reset();
    on.wait_for(QUESTION, 1);
    switch_off(&mut on);
    let (console, said) = (on.console(), on.text());
    assert!(said.contains("this is a part"), "{said}");
    let [(name, bytes)] = &collected(folder.path(), &machine.image)[..] else { panic!("{said}") };
    assert_eq!(title(name), ("Partial".to_string(), 1));
    assert!(bytes.starts_with(b"{\"seq\":0,") && bytes.ends_with(b"\r\n"), "{said}");
    assert!(console.windows(bytes.len()).any(|part| part == &bytes[..]), "{said}");
    assert!(String::from_utf8_lossy(bytes).contains("\"type\":\"machine\""), "{said}");
}
