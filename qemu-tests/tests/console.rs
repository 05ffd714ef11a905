//! The console of a count: a script starts, stops, reads and changes sets while tasks run. Tasks wait for it, so that what each
//! answer says is exact.

use pmu_model::Model;
use protocol::record::{
    ConsoleEvent, ConsoleRecord, ConsoleSet, ConsoleState, ConsoleWhat, CountResult, Record,
};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Three of Intel's and two of AMD's, with and without a global control.
const MODELS: [Model; 5] =
    [Model::Skylake, Model::Core2, Model::SapphireRapids, Model::Zen2, Model::Zen4];

fn ran(model: Model, job: &str, commands: &str) -> Ran {
    let (pmu, commands) = (Given::Emulated(model), Some(commands.to_string()));
    Guest { pmu, commands, ..Guest::new(Boot::Direct, job) }.run()
}

fn said(ran: &Ran) -> Vec<&ConsoleRecord> {
    let console = ran.report.records.iter().filter_map(|one| match &one.record {
        Record::Console(console) => Some(console),
        _ => None,
    });
    console.collect()
}

/// The answers to lines, in their order.
fn answers(ran: &Ran) -> Vec<&ConsoleRecord> {
    let mut answers = said(ran);
    answers.retain(|one| matches!(one.what, ConsoleWhat::Done | ConsoleWhat::Refused));
    answers
}

/// The one set, and its one event, that an answer is about.
fn one(answer: &ConsoleRecord) -> (&ConsoleSet, &ConsoleEvent) {
    let [set] = &answer.sets[..] else { panic!("{answer:?}") };
    let [event] = &set.events[..] else { panic!("{answer:?}") };
    (set, event)
}

fn raw(answer: &ConsoleRecord) -> u64 {
    one(answer).1.now.expect("a count").raw
}

/// A turn of the task is INT, two NOPs and the loop's two; it waits just behind the INT.
const JOB: &str = "
[[count]]
name = \"driven\"
console = true
tick-ns = 0

[[count.set]]
name = \"first set\"
bind = { task = \"first\" }
events = [\"instructions:u\"]

[[count.set]]
name = \"other\"
bind = { task = \"second\" }
events = [\"instructions:u\"]

[[count.task]]
name = \"first\"
ring = 3
asm = \"int 0x88; nop; nop\"
turns = 6

[[count.task]]
name = \"second\"
ring = 3
asm = \"nop\"
turns = 1000
";

const SCRIPT: &str = "
wait
list
read \"first set\"
go
wait
read 1
stop \"first set\"
go
wait
read \"first set\"
modify \"first set\" instructions:u every=2
start \"first set\"
go
wait
read \"first set\"
next \"first set\"
status \"first set\"
modify 1 1 every=0 preset=1_000
go
wait
read 1
read other
terminate 1
go
wait
start 1
go
";

/// Counts stand still where the script stops them, begin anew where it changes the request, and end where it ends them; the other
/// set is as if nothing had been.
#[test]
fn m7_c3_a_script_starts_stops_modifies_reads_and_turns_a_set_while_tasks_wait_for_it() {
    for model in MODELS {
        let ran = ran(model, JOB, SCRIPT);
        ran.ends_with(0);
        let answers = answers(&ran);
        let lines: Vec<&str> = SCRIPT.lines().filter(|line| !["", "wait"].contains(line)).collect();
        let answered: Vec<&str> = answers.iter().filter_map(|one| one.line.as_deref()).collect();
        assert_eq!(answered, lines, "{model:?}");
        let of = |place: usize| answers[place];
        let state = |place: usize| (one(of(place)).0.state, one(of(place)).0.generation);
        // list
        let names: Vec<_> =
            of(0).sets.iter().map(|set| (set.set, set.name.as_str(), set.task)).collect();
        assert_eq!(names, [(1, "first set", Some(0)), (2, "other", Some(1))], "{model:?}");
        assert!(of(0).sets.iter().all(|set| set.events[0].now.is_none()), "{model:?}");
        // Each turn is five instructions, of which the INT is the first.
        assert_eq!((raw(of(1)), raw(of(3))), (1, 6), "{model:?}");
        assert_eq!(state(4), (ConsoleState::Stopped, 0), "{model:?}");
        // The turn in which it was stopped does not count.
        assert_eq!((raw(of(6)), raw(of(4))), (6, 6), "{model:?}");
        let (set, changed) = one(of(7));
        let was = changed.was.as_ref().expect("what it was");
        assert_eq!((was.count.raw, was.every), (6, None), "{model:?}");
        assert_eq!((raw(of(7)), changed.every, set.generation), (0, Some(2), 1), "{model:?}");
        assert_eq!(state(8), (ConsoleState::Counts, 1), "{model:?}");
        // The rest of one turn and the next INT, with an overflow at each second one.
        assert_eq!((raw(of(10)), one(of(10)).1.overflows), (5, Some(2)), "{model:?}");
        let (next, status) = (one(of(11)).0, one(of(12)));
        assert_eq!((next.group, next.passes, raw(of(11))), ([0, 1], 1, 5), "{model:?}");
        assert_eq!((status.1.at_overflow, status.1.overflows), (Some(4), Some(2)), "{model:?}");
        assert!(!status.0.registers.is_empty() && status.1.control.is_some(), "{model:?}");
        let again = one(of(13));
        assert_eq!((raw(of(13)), again.1.every, again.0.generation), (1_000, None, 2), "{model:?}");
        assert_eq!((raw(of(15)), raw(of(16))), (1_005, 0), "{model:?}");
        assert_eq!(state(17), (ConsoleState::Ended, 2), "{model:?}");
        let refused = of(19);
        assert_eq!(refused.what, ConsoleWhat::Refused, "{model:?}");
        assert!(refused.text[0].contains("has ended"), "{refused:?}");
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        let [count] = counts[..] else { panic!("{counts:?}") };
        let [first, second] = &count.sets[..] else { panic!("{count:?}") };
        let of = |set: usize, task: usize| count.sets[set].events[0].tasks[task].raw;
        assert_eq!((first.events[0].sum.raw, of(0, 0), of(0, 1)), (1_005, 5, 0), "{model:?}");
        assert_eq!((second.events[0].sum.raw, of(1, 1)), (3_001, 3_001), "{model:?}");
        assert_eq!(count.tasks[0].turns, 6, "{model:?}");
        // Times go on, and each wait is told with the task's number.
        let all = said(&ran);
        assert!(all.windows(2).all(|pair| pair[0].tsc <= pair[1].tsc), "{model:?}");
        let waits = all.iter().filter(|one| (one.what, one.task) == (ConsoleWhat::Waits, Some(0)));
        assert_eq!(waits.count(), 6, "{model:?}");
    }
}

/// Lines of every wrong kind, and events of a whole processor that take turns by the console alone. What cannot be done is
/// answered with its reason, and the counts are as if it had not been said.
#[test]
fn m7_lines_that_are_wrong_are_answered_and_nothing_else_changes() {
    let events = vec!["instructions:u"; 12];
    let job = format!(
        "[[count]]\nname = \"turns\"\nconsole = true\ntick-ns = 0\nevents = {events:?}\n\
         [[count.task]]\nname = \"t\"\nring = 3\nasm = \"int 0x88; nop\"\nturns = 4\n"
    );
    let long = "x".repeat(400);
    let script = format!(
        "wait\nsend xyzzy\nsend start\nread nobody\nsend ä\u{9b}\nmodify turns 13 every=2\n\
         modify 1 1 event=nonsense\nsend {long}\nread 1\nnext 1\ngo\nwait\nread turns\ngo\nwait\nquit\n"
    );
    let wrong = [
        "column 1: `xyzzy` is no command",
        "column 6: `start` needs the name of a set",
        "there is no set `nobody`: there is `turns`",
        "column 1: `ä",
        "the set has no event `13`",
        "nonsense",
        "is no command",
    ];
    let script = script.replace("\u{9b}", "");
    for model in MODELS {
        let ran = ran(model, &job, &script);
        ran.ends_with(0);
        let answers = answers(&ran);
        for (answer, why) in answers.iter().zip(wrong) {
            assert_eq!(answer.what, ConsoleWhat::Refused, "{model:?}: {answer:?}");
            assert!(answer.text[0].contains(why), "{model:?}: {why}: {answer:?}");
        }
        let counts = |place: usize| -> Vec<u64> {
            let [set] = &answers[place].sets[..] else { panic!("{:?}", answers[place]) };
            set.events.iter().map(|event| event.now.expect("a count").raw).collect()
        };
        let groups = answers[7].sets[0].events.iter().map(|event| event.group);
        let groups: Vec<u32> = groups.collect();
        assert!(groups.iter().any(|&group| group > 0), "{model:?}: {groups:?}");
        // The first INT was counted by the first group; a turn, which ends with the next one, by the second.
        let of = |group: u32, count: u64| -> Vec<u64> {
            groups.iter().map(|&own| u64::from(own == group) * count).collect()
        };
        let both = |first: u64, second: u64| -> Vec<u64> {
            of(0, first).iter().zip(of(1, second)).map(|(first, second)| first + second).collect()
        };
        assert_eq!(counts(7), both(1, 0), "{model:?}");
        assert_eq!(answers[8].sets[0].group[0], 1, "{model:?}");
        assert_eq!(counts(10), both(1, 4), "{model:?}");
        // Behind `quit` the last task waits for nobody.
        let waits = said(&ran).iter().filter(|one| one.what == ConsoleWhat::Waits).count();
        assert_eq!((waits, answers.len()), (3, 13), "{model:?}");
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        let sums: Vec<u64> = counts[0].events.iter().map(|event| event.sum.raw).collect();
        // Three turns behind the first wait, and the INT at the end.
        assert_eq!(sums, both(1, 4 * 4 - 1 + 1), "{model:?}");
    }
}

/// Nobody says `go`: the task is ended at its limit, and says so.
#[test]
fn m7_m15_a_task_that_waits_for_too_long_is_ended() {
    let job = "[[count]]\nconsole = true\ntick-ns = 0\nlimit-us = 20000\nevents = [\"instructions:u\"]\n\
               [[count.task]]\nname = \"t\"\nring = 3\nasm = \"int 0x88; nop; 2: jmp 2b\"\n";
    let ran = ran(Model::Zen4, job, "wait\nlist\n");
    ran.ends_with(1);
    let late: Vec<_> = said(&ran).into_iter().filter(|one| one.what == ConsoleWhat::Late).collect();
    assert_eq!((late.len(), late[0].task), (1, Some(0)), "{late:?}");
    let counts: Vec<&CountResult> = ran.report.counts().collect();
    assert_eq!(counts[0].tasks[0].end, protocol::record::TaskEnd::Limit);
}

/// Where nothing can be counted, somebody is told why, and tasks wait for them all the same.
#[test]
fn m7_p5_a_console_opens_where_nothing_can_be_counted() {
    let job = format!("allow-uncounted = true\n{JOB}").replace("turns = 6", "turns = 2");
    let commands =
        Some("wait\nlist\nread \"first set\"\ngo\nwait\nfoo\ngo\n".replace("foo", "help"));
    let ran = Guest { pmu: Given::None, commands, ..Guest::new(Boot::Direct, &job) }.run();
    ran.ends_with(0);
    let waits = said(&ran).iter().filter(|one| one.what == ConsoleWhat::Waits).count();
    assert_eq!((said(&ran)[0].what, waits), (ConsoleWhat::Open, 2));
    let answers = answers(&ran);
    for refused in &answers[..2] {
        assert_eq!(refused.what, ConsoleWhat::Refused, "{refused:?}");
        let text = &refused.text[0];
        assert!(
            text.starts_with("nothing is counted: ") && text.contains("there is no PMU"),
            "{text}"
        );
    }
    assert!(answers[2..].iter().all(|one| one.what == ConsoleWhat::Done), "{answers:?}");
    let turns: Vec<u64> =
        ran.report.counts().next().unwrap().tasks.iter().map(|task| task.turns).collect();
    assert_eq!(turns, [2, 1_000]);
}
