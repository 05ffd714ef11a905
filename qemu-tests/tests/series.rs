//! Counts over time of several sets on several processors.

use pmu_model::Model;
use protocol::record::{CountInterval, CountResult};
use qemu_tests::Guest;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Two tasks and a child on the first processor, one task on the second, and three sets: of tasks, of another task, and of
/// the second processor. What the rows of a set come to on a processor is what it counted there, and each task's share is
/// exact, the child's too.
#[test]
fn m6_c3_each_set_has_a_series_on_each_processor_that_adds_up() {
    let task = |name: &str, rest: &str| {
        format!("[[count.task]]\nname = \"{name}\"\nasm = \"nop\"\nring = 3\n{rest}\n")
    };
    let set = |name: &str, bind: &str, events: &str| {
        format!("[[count.set]]\nname = \"{name}\"\nbind = {bind}\nevents = {events}\n")
    };
    let user = "[\"instructions:u\"]";
    let job = "[[count]]\ntick-ns = 400000\ninterval-ns = 800000\n".to_string()
        + &set("both", "{ tasks = [\"parent\", \"there\"] }", user)
        + &set("other", "{ task = \"other\" }", user)
        + &task("parent", "turns = 400000")
        + &task("child", "turns = 300000\nparent = \"parent\"")
        + &task("other", "turns = 500000")
        + &task("there", "turns = 900000\ncpu = 1");
    let whole = "[[count]]\ntick-ns = 400000\ninterval-ns = 800000\n".to_string()
        + &set("first", "{ cpu = 0 }", user)
        + &set("second", "{ cpu = 1 }", "[\"instructions:u\", \"instructions\"]")
        + &task("here", "turns = 400000")
        + &task("there", "turns = 900000\ncpu = 1");
    let job = job + &whole;
    // Bodies with the loop's two, and the INT at the end.
    let turns = |turns: u64| turns * 3 + 1;
    for model in [Model::Skylake, Model::Core2, Model::SapphireRapids, Model::Zen2, Model::Zen4] {
        let (pmu, cpus) = (Given::Emulated(model), Cpus::Many(2));
        let ran = Guest { pmu, cpus, ..Guest::new(Boot::Direct, &job) }.run();
        let counts: Vec<&CountResult> = ran.ends_with(0).report.counts().collect();
        let [tasks, processors] = counts[..] else { panic!("{counts:?}") };
        let rows = |count: &'_ CountResult, set: u32, cpu: u32| -> Vec<CountInterval> {
            let all = count.intervals.iter();
            all.filter(|row| (row.set, row.processor) == (set, cpu)).cloned().collect()
        };
        let sums = |rows: &[CountInterval]| -> (u64, Vec<u64>) {
            let of = |task: usize| rows.iter().map(|row| row.tasks[task][0]).sum();
            (rows.iter().map(|row| row.raw[0]).sum(), (0..rows[0].tasks.len()).map(of).collect())
        };
        let [parent, child, other, there] = [400_000, 300_000, 500_000, 900_000].map(turns);
        let of = |set, cpu| sums(&rows(tasks, set, cpu));
        assert_eq!(of(0, 0), (parent + child, vec![parent, child, 0, 0]), "{model:?}");
        assert_eq!(of(0, 1), (there, vec![0, 0, 0, there]), "{model:?}");
        assert_eq!(of(1, 0), (other, vec![0, 0, other, 0]), "{model:?}");
        assert!(rows(tasks, 1, 1).is_empty(), "{model:?}: it is bound to a task of processor 0");
        assert_eq!(tasks.sets[0].events[0].sum.raw, parent + child + there, "{model:?}");
        // A row is two ticks; nothing found no room.
        for cpu in [0, 1] {
            assert!(rows(tasks, 0, cpu).len() > 2, "{model:?}: {:?}", tasks.intervals);
        }
        assert_eq!((tasks.dropped, rows(tasks, 0, 0).len()), (0, rows(tasks, 1, 0).len()));
        let whole = |set, cpu| rows(processors, set, cpu);
        assert_eq!(sums(&whole(0, 0)), (parent, vec![parent, 0]), "{model:?}");
        assert_eq!(sums(&whole(1, 1)), (there, vec![0, there]), "{model:?}");
        let all: u64 = whole(1, 1).iter().map(|row| row.raw[1]).sum();
        assert_eq!(all, processors.sets[1].events[1].sum.raw, "{model:?}");
        assert!(all > there && whole(0, 1).is_empty() && whole(1, 0).is_empty(), "{model:?}");
    }
}
