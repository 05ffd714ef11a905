//! What happens when things are wrong: jobs, the firmware itself, the line.

use protocol::job::SelfTest;
use protocol::record::{CrashKind, ErrorCode, Outcome};
use qemu_tests::{Guest, Ran, direct, tree};
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Ending;
use xtask::symbols::{Symbols, image_base};

const JOB: &str = "[[snippet]]\nasm = \"nop\"\n";

fn packed() -> Vec<u8> {
    Guest::new(Boot::Direct, JOB).ramdisk.unwrap()
}

fn refused(ramdisk: Vec<u8>, code: ErrorCode, part: &str) {
    let ran = Guest::with_ramdisk(Boot::Direct, Some(ramdisk)).run();
    // Without a job there is no exit device to use: the machine halts, and the host tool stops it.
    assert_eq!(ran.ending, Ending::Stopped);
    ran.ends_with(2);
    let [error] = ran.errors()[..] else { panic!("{:?}", ran.report) };
    assert_eq!(error.code, code);
    assert!(error.text.contains(part), "{}", error.text);
    assert_eq!(ran.report.end().unwrap().outcome, Outcome::BadJob);
}

#[test]
fn a_damaged_ramdisk() {
    let mut bytes = packed();
    // The first byte of the job; the event tables after it have a checksum of their own.
    bytes[20] ^= 1;
    refused(bytes, ErrorCode::BadJob, "its checksum is");
}

#[test]
fn a_truncated_ramdisk() {
    let mut bytes = packed();
    bytes.truncate(25);
    refused(bytes, ErrorCode::BadJob, "is truncated");
}

#[test]
fn a_ramdisk_of_a_newer_version() {
    let mut bytes = packed();
    bytes[8] = 2;
    refused(
        bytes,
        ErrorCode::BadJob,
        "protocol version 2; this firmware supports versions up to 1",
    );
}

#[test]
fn a_foreign_file_as_ramdisk() {
    refused(vec![0x7f; 5000], ErrorCode::BadJob, "magic");
}

/// Breaks the firmware on purpose; returns the run and the resolved backtrace as text.
fn broken(test: &str) -> (Ran, String) {
    let ran = direct(&format!("self-test = \"{test}\"\n{JOB}"));
    ran.ends_with(3);
    assert_eq!(ran.ending, Ending::Exited(Some(39)));
    let crash = ran.report.crash().expect("a crash record");
    let symbols = Symbols::of(&tree().kernel_with_symbols());
    let base = image_base(&ran.report);
    let frames = symbols.resolve(&crash.backtrace, base, crash.vector.is_some());
    let text = frames.iter().map(|frame| format!("{frame}\n")).collect();
    (ran, text)
}

#[test]
fn a_panic_is_a_record_with_a_backtrace_that_names_functions() {
    let (ran, trace) = broken("panic");
    let crash = ran.report.crash().unwrap();
    assert_eq!((crash.kind, crash.text.as_str()), (CrashKind::Panic, "a panic on purpose"));
    assert!(crash.location.as_ref().unwrap().contains("crash.rs"));
    assert!(trace.contains("self_test") && trace.contains("kernel::main"), "{trace}");
    assert!(trace.contains("crash.rs:"), "{trace}");
}

#[test]
fn a_page_fault_is_a_record_with_registers() {
    let (ran, trace) = broken("page-fault");
    let crash = ran.report.crash().unwrap();
    assert_eq!((crash.kind, crash.vector), (CrashKind::Exception, Some(14)));
    assert_eq!(crash.registers.cr2.0, 0x6666_0000);
    assert!(crash.text.contains("#PF") && crash.text.contains("0x66660000"), "{}", crash.text);
    assert!(trace.contains("self_test"), "{trace}");
}

#[test]
fn a_stack_overflow_hits_the_guard_page_and_is_named() {
    let (ran, trace) = broken("stack-overflow");
    let crash = ran.report.crash().unwrap();
    assert!(crash.text.contains("the stack overflowed"), "{}", crash.text);
    assert!(trace.contains("recurse"), "{trace}");
}

#[test]
fn the_firmwares_code_cannot_be_written() {
    let (ran, _) = broken("write-code");
    // Error code 3: a write, to a present page.
    let crash = ran.report.crash().unwrap();
    assert_eq!((crash.vector, crash.error_code.map(|c| c.0)), (Some(14), Some(3)));
}

#[test]
fn the_firmwares_data_cannot_be_executed() {
    let (ran, _) = broken("execute-data");
    // Error code 0x11: an instruction fetch, from a present page.
    let crash = ran.report.crash().unwrap();
    assert_eq!((crash.vector, crash.error_code.map(|c| c.0)), (Some(14), Some(0x11)));
}

#[test]
fn a_hang_is_ended_by_the_timeout() {
    let guest = Guest::new(Boot::Direct, &format!("self-test = \"hang\"\n{JOB}"));
    let ran = Guest { timeout: Duration::from_secs(2), ..guest }.run();
    assert_eq!(ran.ending, Ending::TimedOut(Duration::from_secs(2)));
    assert_eq!(ran.report.exit_code(), 3);
    assert!(ran.complaint.unwrap().contains("stopped after 2 s"));
    assert!(ran.report.problems.iter().any(|p| p.to_string().contains("end record is missing")));
}

#[test]
fn a_hanging_snippet_is_ended_by_the_timeout_and_what_was_measured_is_kept() {
    let guest = Guest::new(
        Boot::Direct,
        "[[snippet]]\nname = \"good\"\nasm = \"nop\"\n[[snippet]]\nname = \"bad\"\nasm = \"2: jmp 2b\"\n",
    );
    let ran = Guest { timeout: Duration::from_secs(3), ..guest }.run();
    assert_eq!(ran.medians(), [("good", 1.0)]);
    assert_eq!(ran.report.exit_code(), 3);
}

#[test]
fn self_tests_have_the_names_that_jobs_use() {
    for (name, test) in [
        ("panic", SelfTest::Panic),
        ("page-fault", SelfTest::PageFault),
        ("stack-overflow", SelfTest::StackOverflow),
        ("write-code", SelfTest::WriteCode),
        ("execute-data", SelfTest::ExecuteData),
        ("hang", SelfTest::Hang),
        ("early-panic", SelfTest::EarlyPanic),
    ] {
        let file = xtask::job::file::parse(&format!("self-test = \"{name}\""), "x").unwrap();
        assert_eq!(file.self_test, Some(test));
    }
}
