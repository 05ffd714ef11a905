use super::*;
use crate::collect::Numbered;
use crate::job::assemble;
use crate::program::{Linked, Wanted, link};
use protocol::record::{ErrorCode, ErrorRecord, Hex, Registers};

/// A function `outer` that calls `inner`, linked.
fn linked() -> Linked {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("places.o");
    let text =
        ".globl outer, inner\nouter: call inner; ret\n.size outer, . - outer\ninner: ud2; ret";
    std::fs::write(&object, assemble::object(text).unwrap()).unwrap();
    let functions = vec!["outer".to_string(), "inner".to_string()];
    link(&Wanted { files: vec![object], functions, sections: Vec::new() }).unwrap()
}

fn failed(program: ProgramKey, rip: u64) -> Report {
    let registers = Registers { rip: Hex(rip), ..Registers::default() };
    let fault =
        Fault { part: PROGRAM.into(), program: Some(program), registers, ..Fault::default() };
    let record = Record::Error(ErrorRecord {
        code: ErrorCode::SnippetFault,
        item: Some(0),
        name: None,
        text: "it failed".into(),
        fault: Some(fault),
        restored: Vec::new(),
        more: false,
    });
    Report { records: vec![Numbered { seq: 0, record }], ..Report::default() }
}

fn told(report: &Report) -> (Option<&str>, &str) {
    let error = report.errors().next().unwrap();
    (error.fault.as_ref().unwrap().function.as_deref(), &error.text)
}

#[test]
fn the_key_in_a_report_is_enough_to_name_its_addresses() {
    let linked = linked();
    let head = protocol::program::Program::unpack(&linked.bytes).unwrap().head;
    assert_eq!((head.key, head.bias), (linked.key, linked.bias));
    for name in ["outer", "inner"] {
        let mut report = failed(head.name(), linked.functions[name]);
        assert_eq!(super::name(&mut report), None);
        assert_eq!(told(&report), (Some(name), &*format!("it failed: in `{name}`")));
    }
    // Addresses that were moved are moved back.
    let moved = ProgramKey { bias: Hex(0x1000), ..head.name() };
    let mut report = failed(moved, linked.functions["inner"] + 0x1000);
    assert_eq!(super::name(&mut report), None);
    assert_eq!(told(&report).0, Some("inner"));
}

#[test]
fn what_is_not_here_is_said_once_and_nothing_is_named() {
    let mut report = failed(ProgramKey { key: Hex(0xabcd), ..ProgramKey::default() }, 0x1000_0000);
    report.records.extend(failed(ProgramKey { key: Hex(0xabcd), bias: Hex(1) }, 2).records);
    let mut names = Names { find: |_| None, ..Names::default() };
    let said = name_with(&mut names, &mut report).unwrap();
    assert!(
        said.contains("the linked file of 000000000000abcd is not in the build folder"),
        "{said}"
    );
    assert_eq!(told(&report), (None, "it failed"));
}

/// What computed code requests is not found before the boot; its fault says so.
#[test]
fn a_fault_says_what_the_program_asked_for_that_nobody_gives_it() {
    let of = |bytes: &str| {
        asked(&Fault { bytes: Some(bytes.into()), ..Fault::default() }).unwrap_or_default()
    };
    for (bytes, expected) in [
        ("0f05c3", "syscall is a system call, and there is no operating system"),
        ("cd80c3", "int 0x80 is a system call"),
        ("0f34", "sysenter is a system call"),
        ("0f0bc3", "it aborted there (ud2)"),
        ("64488b042500000000", "thread-local storage, which does not exist"),
    ] {
        assert!(of(bytes).starts_with(expected), "{bytes}: {}", of(bytes));
    }
    let through = Fault { vector: 0x80, bytes: Some("c3".into()), ..Fault::default() };
    assert!(asked(&through).unwrap().starts_with("int 0x80 is a system call"));
    assert_eq!([of("488b00"), of("zz"), of("")], ["", "", ""]);
}
