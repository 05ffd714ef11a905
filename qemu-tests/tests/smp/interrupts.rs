//! Interrupts of each processor's own.

use super::emulated::emulated;
use super::*;

/// Interrupts on all processors at once, with one host thread for each: every one on its own stacks.
#[test]
fn m13_every_processor_takes_its_own_interrupts() {
    let job = r#"
[[processors]]
name = "interrupts"
init = "mov rbx, 0x1122334455667788"
asm = "int 0xe0; int 0x90; cmp rbx, [rip + 2f]; jne 3f; jmp 4f; 2: .quad 0x1122334455667788; 3: ud2; 4:"
unroll = 20
loop = 100
"#;
    let guest = Guest { cpus: Cpus::Many(4), ..Guest::new(Boot::Direct, job) };
    let ran = Guest { icount: Icount::Off, ..guest }.run();
    ran.ends_with(0);
    assert_eq!(together(&ran).processors.len(), 4);
}

/// A thousand instructions from one interrupt to the next, on four processors with work of different length: each handler
/// works with its own processor's block, none is lost, and each costs what it costs on one processor.
#[test]
fn m13_every_processor_has_its_own_control_block() {
    let job = r#"
[[processors]]
name = "interrupted"
asm = "nop"
interrupt-every = 1000
"#;
    for model in [Model::Skylake, Model::Zen2] {
        let ran = emulated(model, Cpus::Many(4), job);
        ran.ends_with(0);
        let seen: Vec<_> =
            together(&ran).processors.iter().map(|one| one.interrupts.unwrap()).collect();
        let turns: Vec<u64> = seen.iter().map(|one| one.turns).collect();
        assert_eq!(turns, [10_000, 20_000, 30_000, 40_000]);
        for one in &seen {
            assert_eq!((one.taken, one.spurious), (one.overflows, 0), "{one:?}");
            assert_eq!(one.overflows, one.instructions / 1000, "{one:?}");
        }
        // What is counted besides the loop: a constant, and for each overflow the handler from the reload on.
        let besides = |index: usize| seen[index].instructions - 2 * seen[index].turns;
        let overflows = |index: usize| seen[index].overflows;
        let handler = (besides(3) - besides(0)) / (overflows(3) - overflows(0));
        assert!((15..=60).contains(&handler), "{handler}: {seen:?}");
        for index in 1..4 {
            let more = overflows(index) - overflows(0);
            assert_eq!(besides(index) - besides(0), handler * more, "{seen:?}");
        }
    }
}
