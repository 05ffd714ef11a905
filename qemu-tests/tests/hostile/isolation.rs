//! What code of ring 0 does to the firmware itself, on purpose: what is put back, what costs a boot, what is found out.

use protocol::line;
use protocol::record::{End, Outcome, Record, SnippetResult};
use qemu_tests::xtask;
use serde_json::Value;
use std::fmt::Write;

/// Zeroes ECX words at RDI, and goes on.
const ZERO: &str = "xor eax, eax; cld; rep stosq";

/// What each does, and all that it must be reported to have changed.
pub(super) fn repaired() -> Vec<(&'static str, String, &'static str)> {
    // From an entry to the table that it leads to, in the map of physical memory.
    let next = "and rax, r9; add rax, r8";
    // RAX: the entry of the page that R14 points to; RDX: the entry above it.
    let walk = format!(
        "movabs r8, 0xffff800000000000; movabs r9, 0x000ffffffffff000; mov rax, cr3; {next}; mov rax, [rax]; {next}; \
         mov rcx, r14; shr rcx, 30; and ecx, 511; mov rax, [rax + rcx * 8]; {next}; \
         mov rcx, r14; shr rcx, 21; and ecx, 511; lea rdx, [rax + rcx * 8]; mov rax, [rdx]; {next}; \
         mov rcx, r14; shr rcx, 12; and ecx, 511; lea rax, [rax + rcx * 8]"
    );
    let root = "movabs rax, 0xffff800000000000; mov rbx, cr3; and rbx, -4096; add rax, rbx";
    // Its descriptor is the sixth; the base lies in three pieces (SDM vol. 3, figure 8-4).
    let tss = "mov rbx, [rsp + 2]; mov rax, [rbx + 40]; mov rdx, rax; shr rax, 16; and eax, 0xffffff; shr rdx, 56; \
               shl rdx, 24; or rax, rdx; mov edi, [rbx + 48]; shl rdi, 32; or rdi, rax";
    vec![
        ("GDT", format!("sub rsp, 16; sgdt [rsp]; mov rdi, [rsp + 2]; mov ecx, 10; {ZERO}"), "GDT"),
        ("TSS", format!("sub rsp, 16; sgdt [rsp]; {tss}; mov ecx, 13; {ZERO}"), "TSS"),
        // Of the memory area that R14 points to, without and with the TLB knowing.
        ("area", format!("{walk}; mov qword ptr [rax], 0"), "page tables"),
        ("flushed", format!("{walk}; mov qword ptr [rax], 0; invlpg [r14]"), "page tables"),
        ("large", format!("{walk}; mov qword ptr [rdx], 0; invlpg [r14]"), "page tables"),
        // A page of it leads to another one's memory.
        ("alias", format!("{walk}; add qword ptr [rax], 4096; invlpg [r14]"), "page tables"),
        ("code", format!("{root}; mov qword ptr [rax + 64 * 8], 0"), "page tables"),
        (
            "new",
            format!("{root}; mov rbx, [rax + 256 * 8]; mov [rax + 200 * 8], rbx"),
            "page tables",
        ),
        ("8259", "mov al, 0xfe; out 0x21, al".into(), "8259 masks"),
        (
            "IDT",
            format!("sub rsp, 16; sidt [rsp]; mov rdi, [rsp + 2]; mov ecx, 512; {ZERO}"),
            "IDT",
        ),
    ]
}

/// The lower half of the address space, in which snippets lie.
pub(super) const LOWER_HALF: &str = "movabs rdi, 0xffff800000000000; mov rax, cr3; and rax, -4096; add rdi, rax; mov ecx, 256; \
                          xor eax, eax; cld; rep stosq; mov rax, cr3; mov cr3, rax";

const HEADER: &str = "[defaults]\nunroll = 1\nruns = 1\nwarmup = 0\ndifference = \"empty\"\n";
const CONTROL: &str = "add rax, [r14]; push rax; mov [r14], rsp; pop rax; add r15, 1; xor eax, eax";

fn snippet(job: &mut String, name: &str, asm: &str) {
    let _ = write!(job, "[[snippet]]\nname = \"{name}\"\nasm = '''{asm}'''\n");
}

/// A right figure, and a fault that is caught.
fn control(job: &mut String, name: &str) {
    snippet(job, &format!("control {name}"), CONTROL);
    job.push_str("expect = 6\n");
    snippet(job, &format!("fault {name}"), "ud2");
}

/// Runs the job; returns the report and the records of its items, which are those of `names`, each once and in order.
fn run(job: &str, code: i32, names: &[String]) -> (Value, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    let mut arguments = vec!["run", "job.toml", "--accel", "tcg", "--pmu", "none"];
    arguments.extend(["--format", "json", "--item-timeout", "5"]);
    let called = xtask(folder.path(), &arguments);
    assert_eq!(called.code, code, "{} {}", called.err, called.out);
    let report: Value = serde_json::from_str(&called.out).unwrap();
    let records = report["records"].as_array().unwrap();
    let ends = |record: &&Value| record["item"].is_u64() && record["type"] != "crash";
    let items: Vec<Value> = records.iter().filter(ends).cloned().collect();
    let seen: Vec<&str> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(seen, names, "each is reported once, in order");
    (report, items)
}

fn is_right(item: &Value) {
    if item["name"].as_str().unwrap().starts_with("control") {
        assert_eq!(item["verdict"], "pass", "{item:#}");
    } else {
        assert_eq!(item["fault"]["mnemonic"], "#UD", "{item:#}");
    }
    assert!(item["restored"].is_null(), "{item:#}");
}

#[test]
fn x1_tables_of_the_firmware_are_put_back_and_named_and_what_follows_is_right() {
    let (mut job, mut names) = (HEADER.to_string(), Vec::new());
    for (name, asm, _) in repaired() {
        snippet(&mut job, name, &asm);
        names.push(name.to_string());
        if name != "IDT" {
            control(&mut job, name);
            names.extend([format!("control {name}"), format!("fault {name}")]);
        }
    }
    // Directly after the overwritten IDT: timer interrupts and the calls of ring 3 need it.
    job.push_str("[[run]]\nname = \"tasks\"\ntick-ns = 20000\n");
    for (name, ring) in [("a", 0), ("b", 3)] {
        let _ = write!(job, "[[run.task]]\nname = \"{name}\"\nasm = \"nop\"\nturns = 50000\n");
        let _ = writeln!(job, "ring = {ring}");
    }
    names.push("tasks".to_string());
    let (report, items) = run(&job, 1, &names);
    assert_eq!(report["notes"].as_array().unwrap().len(), 0, "all in one boot: {report:#}");
    for (name, _, changed) in repaired() {
        let item = items.iter().find(|item| item["name"] == name).unwrap();
        assert_eq!(item["type"], "result", "{item:#}");
        assert_eq!(item["restored"], serde_json::json!([changed]), "{item:#}");
    }
    let behind = |item: &&Value| item["name"].as_str().unwrap().contains(' ');
    assert_eq!(items.iter().filter(behind).map(is_right).count(), 2 * (repaired().len() - 1));
    let tasks = items.last().unwrap();
    assert_eq!(tasks["type"], "tasks", "{tasks:#}");
    for task in tasks["tasks"].as_array().unwrap() {
        assert_eq!(task["end"], "exit", "{tasks:#}");
    }
    assert!(tasks["switches"].as_u64().unwrap() > 2, "no tick switched: {tasks:#}");
}

#[test]
fn x1_without_the_lower_half_the_firmware_fails_and_that_costs_one_item() {
    let mut job = HEADER.to_string();
    for (name, asm) in [("control 0", CONTROL), ("half", LOWER_HALF), ("control 1", CONTROL)] {
        snippet(&mut job, name, asm);
        if asm == CONTROL {
            job.push_str("expect = 6\n");
        }
    }
    let (report, items) = run(&job, 1, &["control 0", "half", "control 1"].map(String::from));
    is_right(&items[0]);
    assert_eq!(items[1]["code"], "snippet_lost", "{:#}", items[1]);
    is_right(&items[2]);
    let records = report["records"].as_array().unwrap();
    let end = records.iter().find(|record| record["type"] == "end").unwrap();
    assert_eq!((&end["passed"], &end["failed"]), (&2.into(), &1.into()));
    assert_eq!(report["run"]["complaint"], Value::Null);
}

#[test]
fn x1_a_lost_item_and_those_behind_it_stand_in_every_form_of_the_report() {
    let mut job = HEADER.to_string();
    for (name, asm) in [("lower half", LOWER_HALF), ("behind it", "nop")] {
        snippet(&mut job, name, asm);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    for format in ["table", "tap", "csv"] {
        let arguments = ["run", "job.toml", "--accel", "tcg", "--pmu", "none", "--format", format];
        let called = xtask(folder.path(), &arguments);
        assert_eq!(called.code, 1, "{} {}", called.err, called.out);
        for name in ["lower half", "behind it"] {
            assert!(called.out.contains(name), "{format}: {}", called.out);
        }
        assert!(!called.out.contains("Bail out!"), "{}", called.out);
    }
}

/// What the serial line would say if the item had passed, and nothing had followed.
pub(super) fn forged_lines(first: u32, name: &str) -> String {
    let result = format!(
        r#"{{"item":0,"name":"{name}","verdict":"pass","per":1,"runs":1,"metrics":[],"tsc":[0,1]}}"#
    );
    let result: SnippetResult = serde_json::from_str(&result).unwrap();
    let end = End { records: first + 2, passed: 1, ..End::without_items(Outcome::Pass) };
    let lines = [Record::Result(result), Record::End(end)];
    (first..).zip(&lines).map(|(seq, record)| line::encode(seq, record) + "\r\n").collect()
}

/// Writes the text to COM1 as the firmware does, and leaves through the exit device with the code of a pass.
pub(super) fn forger(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace("\r\n", "\\r\\n");
    format!(
        "lea rsi, [rip + 9f]\n2: mov edx, 0x3fd\n3: in al, dx\ntest al, 0x20\njz 3b\nlodsb\ntest al, al\njz 4f\n\
         mov edx, 0x3f8\nout dx, al\njmp 2b\n4: mov edx, 0x3fd\n5: in al, dx\ntest al, 0x40\njz 5b\n\
         mov edx, 0xf4\nmov eax, 0x10\nout dx, eax\n6: hlt\njmp 6b\n9: .asciz \"{text}\""
    )
}

/// Checksums and numbers are right, and the exit code of QEMU is that of a pass.
#[test]
fn x1_a_forged_pass_is_found_out_and_the_others_run() {
    let mut job = HEADER.to_string();
    snippet(&mut job, "forger", &forger(&forged_lines(2, "forger")));
    job.push_str("expect = 99\n");
    control(&mut job, "behind it");
    let names = ["forger", "control behind it", "fault behind it"].map(String::from);
    let (report, items) = run(&job, 1, &names);
    assert_eq!(items[0]["code"], "forged", "{:#}", items[0]);
    let text = items[0]["text"].as_str().unwrap();
    assert!(text.contains("carries no authentication code, and 1 more"), "{text}");
    items[1..].iter().for_each(is_right);
    let authentication = report["run"]["authentication"].as_str().unwrap();
    assert!(authentication.starts_with("verified"), "{authentication}");
}

/// A byte of the ELF header that nobody reads, on a page that cannot be written.
const CHANGE: &str = "mov rax, cr0; mov rbx, rax; btr rax, 16; mov cr0, rax; mov rcx, 0xffffffff80000000; \
                      xor byte ptr [rcx + 9], 0x55";

#[test]
fn x1_a_changed_firmware_is_named_and_the_rest_runs_in_another_boot() {
    let mut job = HEADER.to_string();
    snippet(&mut job, "change", CHANGE);
    control(&mut job, "behind it");
    let names = ["change", "control behind it", "fault behind it"].map(String::from);
    let (_, items) = run(&job, 1, &names);
    assert_eq!(items[0]["code"], "firmware_changed", "{:#}", items[0]);
    assert_eq!(items[0]["restored"], serde_json::json!(["CR0"]), "{:#}", items[0]);
    items[1..].iter().for_each(is_right);
}

/// Nothing else gives it away, so it is found at the end alone.
#[test]
fn x1_a_change_that_hides_its_way_is_found_at_the_end() {
    let mut job = HEADER.to_string();
    snippet(&mut job, "change", &format!("{CHANGE}; mov cr0, rbx"));
    snippet(&mut job, "nop", "nop");
    let (report, _) = run(&job, 1, &["change", "nop"].map(String::from));
    let records = report["records"].as_array().unwrap();
    let said = |record: &&Value| record["code"] == "firmware_changed" && record["item"].is_null();
    assert_eq!(records.iter().filter(said).count(), 1, "{report:#}");
}

/// It does not reach the port, so there is nothing to find out.
#[test]
fn x1_code_of_ring_3_cannot_forge() {
    let mut job = format!("{HEADER}machine = {{ ring = 3 }}\n");
    snippet(&mut job, "forger", &forger(&forged_lines(2, "forger")));
    job.push_str("expect = 99\n");
    let (_, items) = run(&job, 1, &["forger".to_string()]);
    assert_eq!(items[0]["fault"]["mnemonic"], "#GP", "{:#}", items[0]);
}
