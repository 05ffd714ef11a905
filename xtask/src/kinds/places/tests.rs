use super::*;
use crate::collect::Numbered;
use crate::job::assemble;
use crate::program::{Linked, Wanted, link};
use protocol::hex::Hex;
use protocol::program::ProgramKey;
use protocol::record::{ErrorCode, ErrorRecord, Fault, Registers};

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
        Fault { part: "program".into(), program: Some(program), registers, ..Fault::default() };
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
    let mut names = Names::found_by(|_| None);
    let said = name_with(&mut names, &mut report).unwrap();
    assert!(
        said.contains("the linked file of 000000000000abcd is not in the build folder"),
        "{said}"
    );
    assert_eq!(told(&report), (None, "it failed"));
}
