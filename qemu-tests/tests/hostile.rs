//! Snippets that try to bring the run down.

mod isolation;

use qemu_tests::xtask;
use serde_json::Value;
use std::fmt::Write;

/// Times that the machine may have to be booted again for [`HOSTILE`] snippets: two for each that is lost.
const REBOOTS: u32 = 48;
const HOSTILE: usize = 500;
/// One benign snippet after so many hostile ones.
const CONTROL_EVERY: usize = 10;

/// What the first ones are, and the exception or other end that they must be reported with.
const KNOWN: [(&str, &str); 24] = [
    ("ud2", "#UD"),
    ("mov rax, [0x10]", "#PF"),
    ("xor ecx, ecx; div ecx", "#DE"),
    ("mov eax, 0x28; mov ss, eax", "#GP"),
    ("int3", "#BP"),
    (".byte 0xf1", "#DB"),
    ("pushfq; or qword ptr [rsp], 0x100; popfq; nop; nop", "#DB"),
    // QEMU's TCG raises neither #SS for an address that is not canonical nor #XM: these two come by INT n.
    ("int 12", "#SS"),
    ("movabs rax, 0x8000000000000000; mov rax, [rax]", "#GP"),
    ("fninit; mov word ptr [r14], 0x340; fldcw [r14]; fldz; fldz; fdivp; fwait", "#MF"),
    ("int 19", "#XM"),
    ("xor esp, esp; push rax", "#PF"),
    ("int 8", "#DF"),
    ("int 13", "#GP"),
    ("int 14", "#PF"),
    ("int 17", "#AC"),
    ("jmp r14", "#PF"),
    ("xor eax, eax; jmp rax", "#PF"),
    ("lea rax, [rip]; mov byte ptr [rax], 0", "#PF"),
    ("mov eax, 0x28; mov ds, eax", "#GP"),
    (
        "lea rax, [r14]; mov dr0, rax; mov eax, 0x30001; mov dr7, rax; mov byte ptr [r14], 1; nop",
        "#DB",
    ),
    ("cli; 2: hlt; jmp 2b", "silence"),
    ("xor eax, eax; push rax; push rax; lidt [rsp]; ud2", "the machine was reset"),
    ("xor eax, eax; mov cr3, rax; jmp rax", "the machine was reset"),
];

/// Instructions of the random sequences: each alone is harmless, or faults, or changes the machine.
const PIECES: [&str; 30] = [
    "add rax, rbx",
    "push rax",
    "pop rsp",
    "mov rsp, rax",
    "mov [rax], rbx",
    "mov rbx, [rsi]",
    "xchg rsp, rbp",
    "std",
    "sti",
    "cli",
    "mov eax, 0x10; mov ds, eax",
    "xor eax, eax; mov ss, eax",
    "mov rax, cr0; and eax, 0xfffeffff; mov cr0, rax",
    "mov rax, cr4; xor eax, 0x80; mov cr4, rax",
    "mov eax, 0x400; mov dr7, rax",
    "clts",
    "div rbx",
    "imul rax, rax, 0x7654321",
    "call r14",
    "ret",
    "int 0x81",
    "lock add [rdi], rax",
    "cpuid",
    "rep stosb",
    "mov eax, 9; mov cr8, rax",
    "mov rax, dr7; bts rax, 13; mov dr7, rax",
    "mov ecx, 0xc0000080; rdmsr; btc eax, 0; wrmsr",
    "mov ecx, 0x277; rdmsr; xor eax, 6; wrmsr",
    "mov ecx, 0xc0000100; mov eax, 1; xor edx, edx; wrmsr",
    "xor ecx, ecx; mov eax, 1; xor edx, edx; xsetbv",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }
}

fn hostile() -> Vec<String> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut all: Vec<String> = KNOWN.iter().map(|known| known.0.to_string()).collect();
    all.extend(isolation::repaired().into_iter().map(|(_, code, _)| code));
    all.push(isolation::LOWER_HALF.to_string());
    all.push(forger());
    while all.len() < HOSTILE {
        all.push(if all.len().is_multiple_of(2) {
            let bytes: Vec<_> = (0..16).map(|_| format!("{:#x}", random.next() as u8)).collect();
            format!(".byte {}", bytes.join(", "))
        } else {
            let pieces: Vec<_> = (0..6).map(|_| PIECES[random.below(PIECES.len())]).collect();
            pieces.join("; ")
        });
    }
    all
}

/// Records that look as if this item had passed, and the rest of the job as well.
fn forger() -> String {
    isolation::forger(&isolation::forged_lines(40, "forger"))
}

/// The job: hostile snippets with controls between them, and all names.
fn job(machine: &str) -> (String, Vec<String>) {
    let mut job =
        "[defaults]\nunroll = 1\nruns = 1\nwarmup = 0\ndifference = \"empty\"\n".to_string();
    let _ = writeln!(job, "machine = {{ {machine} }}");
    let mut names = Vec::new();
    for (index, code) in hostile().iter().enumerate() {
        names.push(format!("hostile {index}"));
        let _ = write!(job, "[[snippet]]\nname = \"hostile {index}\"\nasm = '''{code}'''\n");
        if index % CONTROL_EVERY == CONTROL_EVERY - 1 {
            names.push(format!("control {index}"));
            let asm = "push rax; pop rax; mov [r14], rax; add r15, 1; lea rax, [rsp]; xor eax, eax";
            let _ = write!(
                job,
                "[[snippet]]\nname = \"control {index}\"\nasm = \"{asm}\"\nexpect = 6\n"
            );
        }
    }
    (job, names)
}

/// Runs the job, and returns its items' records, after a look at what holds for each: every item is reported once and in
/// order, and the controls are right.
fn items(machine: &str, pmu: &str, reboots: u32) -> Vec<Value> {
    let (job, names) = job(machine);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    let reboots = reboots.to_string();
    let mut arguments = vec!["run", "job.toml", "--accel", "tcg", "--pmu", pmu, "--format", "json"];
    arguments.extend(["--item-timeout", "2", "--reboots", &reboots]);
    let called = xtask(folder.path(), &arguments);
    assert_eq!(called.code, 1, "{}", called.err);
    let report: Value = serde_json::from_str(&called.out).unwrap();
    let records = report["records"].as_array().unwrap();
    let of_item = |record: &&Value| record["item"].is_u64() && record["type"] != "crash";
    let items: Vec<Value> = records.iter().filter(of_item).cloned().collect();
    let seen: Vec<_> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
    assert_eq!(seen, names, "each is reported once, in order");
    for item in &items {
        if item["name"].as_str().unwrap().starts_with("control") {
            assert_eq!(item["verdict"], "pass", "{item:#}");
            assert!(item["restored"].is_null(), "{item:#}");
        }
    }
    items
}

fn lost(items: &[Value]) -> usize {
    items.iter().filter(|item| item["code"] == "snippet_lost").count()
}

#[test]
fn x1_five_hundred_hostile_snippets_are_each_reported_and_the_controls_between_them_right() {
    let items = items("", "none", REBOOTS);
    let mut wrong = Vec::new();
    let repaired = isolation::repaired();
    let repaired = repaired.iter().map(|(_, code, changed)| (code.as_str(), *changed));
    let forger = forger();
    let last = [(isolation::LOWER_HALF, "the firmware failed"), (&forger, "is forged")];
    for (index, (code, expected)) in KNOWN.into_iter().chain(repaired).chain(last).enumerate() {
        let name = format!("hostile {index}");
        let item = items.iter().find(|item| item["name"] == name.as_str()).unwrap();
        let text = format!("{}{}", item["text"].as_str().unwrap_or_default(), item["restored"]);
        if !text.contains(expected) {
            wrong.push(format!("{code}: {expected} expected: {text}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
    let lost = lost(&items);
    assert!((4..=REBOOTS as usize / 2).contains(&lost), "{lost} were lost");
    eprintln!("{lost} were lost");
}

/// In ring 3, with a watchdog, none of them takes the machine down.
#[test]
fn x1_in_ring_3_five_hundred_hostile_snippets_need_no_reboot_at_all() {
    let items = items("ring = 3, time-limit = 5", "skylake", 1);
    assert_eq!(lost(&items), 0);
    let faults = items.iter().filter(|item| item["code"] == "snippet_fault").count();
    assert!(faults > HOSTILE * 9 / 10, "{faults} faults");
    // What ring 3 can change by itself: a single step leaves its mark, and FS and GS take the data segment of ring 3.
    let allowed = ["DR6", "FS", "GS", "IA32_FS_BASE", "IA32_GS_BASE"];
    for item in &items {
        let restored = item["restored"].as_array().into_iter().flatten();
        for name in restored.filter_map(Value::as_str) {
            assert!(allowed.contains(&name), "{item:#}");
        }
    }
}
