use super::super::file::parse;
use super::super::{Purpose, pack};
use super::*;
use crate::job::run::RunFile;
use protocol::job::LoopCounter;
use protocol::job::workload::Ring;

const JOB: &str = r#"
[[run]]
tick-ns = 50000
jitter = 7
limit-us = 500

[[run.task]]
name = "parent"
init = "here: mov ecx, 1"
asm = '''
add rax, rcx
loop_head:
jmp loop_tail
loop_tail: nop
'''
turns = 100

[[run.task]]
name = "child"
asm = "addps xmm0, xmm1; add r15, 1"
ring = 3
parent = "parent"
cpu = 0
"#;

fn run(text: &str) -> RunFile {
    let file = parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"));
    file.runs.into_iter().next().expect("a run")
}

#[test]
fn t9_a_workload_is_read_with_its_tasks_timer_and_code() {
    let tasks = run(JOB).item().unwrap();
    let Workload { tasks: all, tick_ns, jitter } = &tasks.workload;
    let [parent, child] = &all[..] else { panic!("{all:?}") };
    assert_eq!((tasks.name.as_ref(), tasks.limit_us), ("run 1", 500));
    assert_eq!((*tick_ns, *jitter), (50_000, Some(7)));
    assert_eq!((parent.turns, parent.ring, parent.parent), (100, Ring::Kernel, None));
    assert_eq!((parent.loop_counter, parent.extended_state), (LoopCounter::R15, false));
    assert_eq!(
        (child.turns, child.ring, child.parent, child.cpu),
        (0, Ring::User, Some(0), Some(0))
    );
    assert_eq!((child.loop_counter, child.extended_state), (LoopCounter::Memory, true));
}

#[test]
fn labels_are_counted_from_where_the_task_begins() {
    let symbols = run(JOB).workload.assemble().unwrap().symbols;
    // MOV r32, imm32 has 5 bytes, ADD 3, a short JMP 2.
    let expected = [("here", 0), ("loop_head", 8), ("loop_tail", 10)];
    let seen: Vec<_> = symbols[0].iter().map(|(name, at)| (name.as_str(), *at)).collect();
    assert_eq!(seen, expected);
    assert_eq!(symbols[1], []);
}

#[test]
fn every_mistake_names_the_task_and_its_place() {
    let task = |text: &str| format!("[[run]]\n[[run.task]]\nname = \"t\"\n{text}");
    for (text, parts) in [
        (task("asm = \"add rax\"\n"), &["x.toml:4:", "task `t`", "in line 1 of its body"][..]),
        (task("asm = \"\"\ninit = \"bad\"\n"), &["x.toml:5:", "of its init code: bad"]),
        (
            task("asm = \"\"\nparent = \"u\"\n"),
            &["x.toml:2:", "`t`: its parent `u` does not exist"],
        ),
        (task("asm = \"\"\nparent = \"t\"\n"), &["its parent `t` does not stand before it"]),
        (task("asm = \"\"\nring = 1\n"), &["line 5", "ring is 1"]),
        (task("asm = \"\"\nturns = 1000000000001\n"), &["task `t`: turns is 1000000000001"]),
        (task("asm = \"\"\ntick = 3\n"), &["line 5", "unknown field `tick`"]),
        (task("turns = 3"), &["missing field `asm`"]),
        (
            task("asm = \"\"\n[[run.task]]\nname = \"t\"\nasm = \"\""),
            &["x.toml:5:", "another task before it has the same name"],
        ),
        ("[[run]]\nname = \"r\"".to_string(), &["x.toml:1:", "run `r`: the number of tasks is 0"]),
        (
            format!("{}\n[[run]]\ntick-ns = 5", task("asm = \"\"")),
            &["x.toml:5:", "run `run 2`: the number of tasks is 0"],
        ),
        (JOB.replace("50000", "5"), &["x.toml:2:", "run `run 1`: tick-ns is 5"]),
        (JOB.replace("500\n", "0\n"), &["run `run 1`: limit-us is 0"]),
    ] {
        let error = parse(&text, "x.toml").and_then(|file| pack(&file, Purpose::Qemu).map(|_| ()));
        let error = error.unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{text}\n{error}\nlacks {part}");
        }
    }
}
