//! Where the slots went: `perf stat --topdown` of Debian's Linux beside barecount's tree of the same code, and both against what the
//! emulated PMU's rule makes of a loop. Skipped where the packages cannot be had.

use crate::linux_judges::{SHIFT, boot_with};
use pmu_model::Model;
use qemu_tests::stock_linux::known::{Kind, Program};
use qemu_tests::stock_linux::perf;
use qemu_tests::stock_linux::steps::Console;
use qemu_tests::stock_linux::work::Work;
use qemu_tests::xtask;
use serde_json::Value;
use std::fs;

/// MOV from the stack, DEC, JNZ.
const LOOP: Program = Program { kind: Kind::Loop, rounds: 5_000_000 };
/// Something of every kind: a branch that goes as a pseudo-random bit says, a load that misses the first level as 16 lines of one set
/// take turns in its 8 ways, a call, a return and a jump. The store gives each page a frame of its own, which Linux does not for loads.
const MIXED: Work = Work {
    name: "mixed",
    init: "xor r15d, r15d; mov r14d, 0x800c0000; mov esp, 0x800a4000; xor ecx, ecx; mov r8d, 1",
    asm: "imul r8d, r8d, 1103515245; add r8d, 12345; bt r8d, 20; jc 2f; nop; 2: mov rdx, [r14+rcx]; \
          mov [r14+rcx+0x440], rdx; add ecx, 0x1000; and ecx, 0xf000; call 3f; jmp 4f; 3: ret; 4:",
    turns: 100_000,
};

/// The first level, by perf's names, and its parts of the slots of [`LOOP`], where an instruction has `width` slots in each of its four
/// cycles: one of the last retires, the others of a taken branch are the front end's, all others the back end's.
fn parts(width: f64) -> [(&'static str, f64); 4] {
    let each = 4.0 * width;
    [
        (LEVEL_1[0].0, 1.0 / each),
        (LEVEL_1[1].0, 0.0),
        (LEVEL_1[2].0, (each - 1.0) / 3.0 / each),
        (LEVEL_1[3].0, 2.0 * (each - 1.0) / 3.0 / each),
    ]
}

/// Events of perf and barecount, and the name in barecount's tree, in the order in which perf has its columns.
const LEVEL_1: [(&str, &str); 4] = [
    ("topdown-retiring", "Retiring"),
    ("topdown-bad-spec", "Bad_Speculation"),
    ("topdown-fe-bound", "Frontend_Bound"),
    ("topdown-be-bound", "Backend_Bound"),
];
/// The second level: where the processor has fields for it. perf has a column for each, and one for the rest of the field above.
const LEVEL_2: [(&str, [&str; 2]); 4] = [
    ("topdown-heavy-ops", ["Heavy_Operations", "Light_Operations"]),
    ("topdown-br-mispredict", ["Branch_Mispredicts", "Machine_Clears"]),
    ("topdown-fetch-lat", ["Fetch_Latency", "Fetch_Bandwidth"]),
    ("topdown-mem-bound", ["Memory_Bound", "Core_Bound"]),
];

/// What the register rounds off is less than this part of the slots; a little more is what begins and ends the program.
const SHARE: f64 = 2.0 / 255.0;

/// A model with its register.
struct Register {
    model: Model,
    /// Slots in a cycle.
    width: f64,
    /// Whether it has fields of the second level.
    deep: bool,
}

impl Register {
    fn events(&self) -> Vec<&'static str> {
        let deep = LEVEL_2.iter().map(|(event, _)| *event).filter(|_| self.deep);
        LEVEL_1.iter().map(|(event, _)| *event).chain(deep).collect()
    }

    fn columns(&self) -> Vec<&'static str> {
        let deep = LEVEL_2.iter().flat_map(|(_, names)| *names).filter(|_| self.deep);
        LEVEL_1.iter().map(|(_, name)| *name).chain(deep).collect()
    }

    fn check(&self) {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = MIXED.program(folder.path());
        let names = parts(self.width).map(|(name, _)| name).join(",");
        let (run, all) = (LOOP.command(), self.events().join(","));
        let mixed = MIXED.name;
        let Some(console) = boot_with(
            self.model,
            &[
                ("parts", format!("perf stat -x, -e '{{slots,{names}}}:u' {run}")),
                ("tree", format!("perf stat --topdown {run}")),
                ("mixed-parts", format!("perf stat -x, -e '{{slots,{all}}}:u' {mixed}")),
                ("mixed-tree", format!("perf stat --topdown --all-user {mixed}")),
            ],
            &[(mixed, file)],
        ) else {
            return;
        };
        self.the_loop_is_as_counted_by_hand(&console);
        self.barecount_has_the_same(&console);
    }

    fn the_loop_is_as_counted_by_hand(&self, console: &Console) {
        let output = console.output("parts");
        let slots = value(&output, "slots");
        let by_hand = LOOP.counts().instructions as f64 * 4.0 * self.width;
        assert!((slots / by_hand - 1.0).abs() < 1e-3, "{by_hand}: {output}");
        for (name, part) in parts(self.width) {
            let seen = value(&output, name) / slots;
            assert!((seen - part).abs() < SHARE, "{name}: {seen}, not {part}: {output}");
        }
        // The tree has the same in per cent, of the kernel's part as well.
        let tree = console.output("tree");
        let seen = percents(&tree);
        assert!(seen.len() >= parts(self.width).len(), "{tree}");
        for (seen, (name, part)) in seen.iter().zip(parts(self.width)) {
            assert!((seen - 100.0 * part).abs() < 3.0, "{name}: {seen}, not {part}: {tree}");
        }
    }

    /// The events of a `[[count]]`, and the tree of another.
    fn barecount_has_the_same(&self, console: &Console) {
        let folder = tempfile::tempdir().unwrap();
        let task = MIXED.task("count", MIXED.turns);
        let events: Vec<String> =
            self.events().iter().map(|event| format!("\"{event}:u\"")).collect();
        let level = if self.deep { 2 } else { 1 };
        let toml = format!(
            "[[count]]\nevents = [\"topdown.slots:u\", {}]\ntogether = true\ntick-ns = 0\n{task}\
             [[count]]\nmetrics = [\"topdown-{level}\"]\ntick-ns = 0\n{task}",
            events.join(", ")
        );
        fs::write(folder.path().join("job.toml"), toml).unwrap();
        let (model, shift) = (self.model.spec().name, SHIFT.to_string());
        let line = ["run", "job.toml", "--pmu", model, "--icount", &shift, "--format", "json"];
        let called = xtask(folder.path(), &line);
        assert_eq!(called.code, 0, "{called:#?}");
        let own: Value = serde_json::from_str(&called.out).unwrap();
        let output = console.output("mixed-parts");
        let counted = counted(&own);
        let (slots, ours) = (value(&output, "slots"), counted[0]);
        for (name, count) in self.events().iter().zip(&counted[1..]) {
            let (seen, ours) = (value(&output, name) / slots, count / ours);
            assert!((seen - ours).abs() < SHARE / 2.0, "{name}: {seen}, not {ours}: {output}");
        }
        assert!((slots / ours - 1.0).abs() < 1e-5, "{slots}, not {ours}");
        let tree = console.output("mixed-tree");
        let seen = percents(&tree);
        assert_eq!(seen.len(), self.columns().len(), "{tree}");
        for (name, seen) in self.columns().iter().zip(seen) {
            let ours = in_tree(&own, name);
            assert!((seen - ours).abs() < 100.0 * SHARE, "{name}: {seen}, not {ours}: {tree}");
        }
    }
}

/// A count of `perf stat -x,`.
fn value(output: &str, name: &str) -> f64 {
    let counts = perf::counts(output);
    let found = counts.iter().find(|one| one.event.starts_with(name));
    found.and_then(|one| one.value).unwrap_or_else(|| panic!("{name}: {output}"))
}

/// The numbers with a per cent sign, which have colours where much is lost.
fn percents(output: &str) -> Vec<f64> {
    let plain = output.replace("\u{1b}[31m", "").replace("\u{1b}[32m", "").replace("\u{1b}[m", "");
    let words = plain.split_whitespace().filter_map(|word| word.strip_suffix('%'));
    words.filter_map(|number| number.parse().ok()).collect()
}

/// What the first `[[count]]` counted in its task, in the order of its events.
fn counted(own: &Value) -> Vec<f64> {
    let records = own["records"].as_array().expect("records");
    let count = records.iter().find(|one| one["type"] == "count").expect("a count");
    let events = count["events"].as_array().expect("events");
    events.iter().map(|event| event["tasks"][0]["raw"].as_f64().expect("a number")).collect()
}

/// A share of the task, in per cent, of the tree of the second.
fn in_tree(own: &Value, name: &str) -> f64 {
    let all = own["metrics"].as_array().expect("metrics");
    let of_task = all.iter().find(|one| one["name"] == "count 2, task t").expect("of the task");
    let rows = of_task["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
    row["value"].as_f64().unwrap_or_else(|| panic!("{row:#}"))
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn s3_linux_and_barecount_tell_where_the_slots_of_the_emulated_ice_lake_went_soak() {
    Register { model: Model::IceLake, width: 5.0, deep: false }.check();
}

#[test]
fn s3_linux_and_barecount_tell_where_the_slots_of_the_emulated_sapphire_rapids_went() {
    Register { model: Model::SapphireRapids, width: 6.0, deep: true }.check();
}
