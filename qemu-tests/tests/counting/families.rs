//! Parents and children.

use super::*;

/// A parent reads what its descendants have come to while they run; they outlive it, and nothing is lost or counted twice.
#[test]
fn i8_c3_a_parent_reads_its_childrens_sum_while_they_run_and_they_outlive_it() {
    // Yields, so that others run; then the descendants' count goes where the record shows it.
    let reads = "int 0x83; xor eax, eax; int 0x85; mov [r14], rdx";
    let task = |name: &str, asm: &str, rest: &str| {
        format!("[[count.task]]\nname = \"{name}\"\nring = 3\nasm = \"{asm}\"\n{rest}\n")
    };
    let job = "[[count]]\nevents = [\"instructions:u\"]\ntick-ns = 0\n".to_string()
        + &task("parent", reads, "turns = 4")
        + &task("child", "nop; nop; int 0x83", "turns = 30\nparent = \"parent\"\noutlives = true")
        + &task("grandchild", "nop; int 0x83", "turns = 50\nparent = \"child\"")
        + &task("other", "nop; int 0x83", "turns = 9");
    for model in [Model::Skylake, Model::Core2, Model::SapphireRapids, Model::Zen2, Model::Zen4] {
        let ran = on(model, &job);
        let counts = counted(ran.ends_with(0));
        let [count] = counts[..] else { panic!("{counts:?}") };
        // Bodies with the loop's two, and the INT at the end.
        let [parent, child, grandchild, other] = [4 * 6 + 1, 30 * 5 + 1, 50 * 4 + 1, 9 * 4 + 1];
        let (all, _, tasks) = raw(count, 0);
        // The grandchild's are its parent's when it exits, as that waits for it.
        assert_eq!(tasks, [parent, child + grandchild, grandchild, other], "{model:?}");
        assert_eq!(all, parent + child + grandchild + other, "{model:?}");
        let reading: Vec<_> =
            count.readings.iter().map(|one| (one.task, one.own.raw, one.children.raw)).collect();
        // The child's first turn is over when the parent reads first; from then on each reading has a turn of the child and
        // one of the grandchild more, which begins after the parent's second.
        let own = [3, 9, 15, 21];
        let found: Vec<u64> = reading.iter().map(|&(_, _, children)| children).collect();
        assert_eq!(reading.len(), 4, "{model:?}: {reading:?}");
        for (turn, &(task, itself, _)) in reading.iter().enumerate() {
            assert_eq!((task, itself), (0, own[turn]), "{model:?}");
        }
        assert_eq!(found, [3, 3 + 5 + 2, 3 + 10 + 6, 3 + 15 + 10], "{model:?}");
        assert_eq!(count.tasks[0].value.0, found[3], "{model:?}: as it was told");
        assert_eq!(count.tasks[1].outlived, Some(0), "{model:?}");
        assert_eq!(
            (count.tasks[2].added_to, count.tasks[2].outlived),
            (Some(1), None),
            "{model:?}"
        );
    }
}
