use super::super::file::{FileItem, parse};
use super::super::{Purpose, pack};
use protocol::job::Item;
use protocol::job::count::Bind;
use protocol::job::gate::{GateAct, GateAt, GateOn, GatePoint};
use protocol::job::workload::Ring;

const JOB: &str = r#"
[[count]]
name = "two tasks"
events = ["instructions:u", { event = "cycles", every = 1000, starts = ["r00c4"] }, { event = "r00c4", correlate = true }]
interval-ns = 2_000_000
at-overflow = "next"
passes = 3

[[count.task]]
name = "first"
asm = "inc rax"
turns = 1000

[[count.task]]
name = "second"
asm = "addpd xmm0, xmm1"
parent = "first"
ring = 3
"#;

#[test]
fn c1_m3_m6_a_count_comes_out_as_it_is_written() {
    let packed = pack(&parse(JOB, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    assert_eq!((count.name.as_ref(), count.passes, count.interval_ns), ("two tasks", 3, 2_000_000));
    assert_eq!(count.requests[1].starts, [2]);
    assert_eq!((count.requests[1].every, count.requests[2].correlate), (Some(1000), true));
    let [first, second] = &count.workload.tasks[..] else { panic!() };
    assert_eq!(
        (&first.body[..], first.turns, first.ring),
        (&[0x48, 0xff, 0xc0][..], 1000, Ring::Kernel)
    );
    assert_eq!((second.parent, second.ring, second.extended_state), (Some(0), Ring::User, true));
    assert_eq!(count.workload.tick_ns, super::super::workload::DEFAULT_TICK_NS);
}

#[test]
fn s4_energy_is_of_the_whole_item_and_takes_no_place_among_the_events() {
    let text = JOB.replace("events = [", "events = [\"energy-pkg\", \"power/energy-ram/\", ");
    let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    assert_eq!(count.energy, ["energy-pkg", "power/energy-ram/"]);
    assert_eq!((count.requests.len(), &count.requests[1].starts[..]), (3, &[2][..]));
    // What can be expected of it, and of nothing else.
    let expect = |figure: &str| {
        let text = text.replace("passes = 3", &format!("expect = {{ {figure} = {{ max = 9 }} }}"));
        let file = parse(&text, "job.toml").unwrap();
        pack(&file, Purpose::Qemu).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(expect("energy-pkg"), Ok(()));
    assert!(expect("energy-cores").unwrap_err().contains("energy-pkg"));
    // With what follows from overflows it is an event, which the target refuses.
    let text = JOB.replace("events = [", "events = [{ event = \"energy-pkg\", every = 5 }, ");
    let packed =
        pack(&parse(&text.replace("[\"r00c4\"]", "[]"), "job.toml").unwrap(), Purpose::Qemu);
    let Item::Count(count) = &packed.unwrap().job.items[0] else { panic!() };
    assert_eq!((count.energy.len(), count.requests.len()), (0, 4));
}

#[test]
fn s3_the_uncore_is_of_the_whole_item_and_takes_no_place_among_the_events() {
    let requests = "uncore_arb/event=0x81,umask=1,name=requests/";
    let group = "{uncore_arb/event=0x80,umask=1/,uncore_clock/event=0xff,name=clocks/}";
    let text = JOB
        .replace("events = [", &format!("events = [\"{requests}\", \"energy-pkg\", \"{group}\", "))
        .replace("passes = 3", "expect = { requests = { max = 9 }, clocks = { min = 1 } }");
    let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    assert_eq!(count.uncore, [requests, group]);
    assert_eq!((count.energy.len(), count.requests.len()), (1, 3));
    // Of sets it is the item's, once; one that has nothing else, or comes and goes, is refused.
    let start = JOB.find("[[count.task]]").unwrap();
    let job = |set: &str| {
        let first = format!("[[count.set]]\nevents = [\"cycles:u\", \"{requests}\"]\n");
        let text = format!("[[count]]\n{}{first}[[count.set]]\nname = \"b\"\n{set}", &JOB[start..]);
        let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu);
        packed.map(|packed| packed.job).map_err(|error| error.to_string())
    };
    let found = job(&format!("events = [\"cycles:u\", \"{requests}\"]\n")).unwrap();
    let [Item::Count(count)] = &found.items[..] else { panic!("{found:?}") };
    assert_eq!(count.uncore, [requests]);
    for (set, why) in [
        (format!("events = [\"{requests}\"]\n"), "set `b` counts nothing but the uncore"),
        (
            format!("events = [\"cycles:u\", \"{requests}\"]\nuntil-us = 5\n"),
            "set `b` comes and goes, and the uncore is read before and after the whole item; give uncore_arb/",
        ),
    ] {
        let error = job(&set).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn s4_energy_of_sets_is_of_the_item_and_read_once() {
    let job = |set: &str| {
        let start = JOB.find("[[count.task]]").unwrap();
        let sets = "[[count.set]]\nevents = [\"instructions:u\", \"energy-pkg\"]\n[[count.set]]\nname = \"b\"\n";
        let text = format!("[[count]]\nevents = [\"energy-ram\"]\n{}{sets}{set}", &JOB[start..]);
        let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu);
        packed.map(|packed| packed.job).map_err(|error| error.to_string())
    };
    let found = job("events = [\"cycles:u\", \"energy-pkg\"]\n").unwrap();
    let [Item::Count(count)] = &found.items[..] else { panic!("{found:?}") };
    assert_eq!(count.energy, ["energy-ram", "energy-pkg"]);
    let events: Vec<usize> = count.sets.iter().map(|set| set.requests.len()).collect();
    assert_eq!(events, [1, 1]);
    for (set, why) in [
        (
            "events = [\"energy-pkg\"]\n",
            "set `b` counts nothing but energy, which is of the whole item; give energy-pkg to the item's own events",
        ),
        (
            "events = [\"cycles:u\", \"energy-cores\"]\nuntil-us = 5\n",
            "set `b` comes and goes, and energy is read before and after the whole item; give energy-cores to",
        ),
    ] {
        let error = job(set).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn m14_m3_addresses_are_labels_and_offsets_of_a_task() {
    let gate =
        "start-at = [\"second:go\", \"second:+0\"]\nstop-at = [\"second:go+2\", \"second:0x5\"]";
    let text = JOB.replace("passes = 3", gate).replace(
        "asm = \"addpd xmm0, xmm1\"",
        "init = \"cld\"\nasm = \"nop; go: nop; nop; nop; nop; nop\"",
    );
    let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    let (start, stop) = (GateAct::Start, GateAct::Stop);
    let point =
        |offset, act| GatePoint { task: 1, at: GateAt::Code(offset), on: GateOn::Execute, act };
    // Behind the CLD of the init code.
    assert_eq!(count.gate, [point(2, start), point(1, start), point(4, stop), point(6, stop)]);
}

/// Of several tasks at once, of data by registers and labels, with each length, and nested.
#[test]
fn m14_addresses_of_data_and_of_several_tasks_are_packed() {
    let gate = "nested = true\nstart-at = [\"first:0\", { write = \"second:r14+8\" }]\n\
        stop-at = [{ access = \"second:here\", bytes = 2 }, { write = \"second: rsp - 0x10\", bytes = 4 }]";
    let text = JOB.replace("passes = 3", gate).replace(
        "asm = \"addpd xmm0, xmm1\"",
        "asm = \"mov ax, [rip + here]; jmp 2f; .balign 2; here: .byte 1, 2; 2: nop\"",
    );
    let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    let point = |task, at, on, act| GatePoint { task, at, on, act };
    let expected = [
        point(0, GateAt::Code(0), GateOn::Execute, GateAct::Start),
        point(1, GateAt::Register(4, 8), GateOn::Write(8), GateAct::Start),
        // MOV with its prefix is 7 bytes long, JMP 2, and one byte is left out.
        point(1, GateAt::Code(10), GateOn::Access(2), GateAct::Stop),
        point(1, GateAt::Register(0, -16), GateOn::Write(4), GateAct::Stop),
    ];
    assert!(count.nested);
    assert_eq!(count.gate, expected);
}

#[test]
fn the_example_can_be_packed() {
    let file = parse(include_str!("../../../jobs/count.toml"), "count.toml").unwrap();
    let packed = pack(&file, Purpose::Qemu).unwrap();
    let names: Vec<&str> = packed.job.items.iter().map(Item::name).collect();
    assert_eq!(
        names,
        [
            "by task",
            "in turns",
            "between addresses",
            "trigger",
            "one task",
            "who may",
            "two processors"
        ]
    );
}

const SETS: &str = r#"
[[count]]
name = "who"
[[count.set]]
name = "a"
events = ["cycles"]
bind = { task = "first" }
[[count.set]]
events = ["cycles", "r00c0"]
bind = "all-cpus"
together = true
force = true
[[count.set]]
events = ["cycles"]
bind = { cpu = 1 }
[[count.set]]
events = ["cycles"]
bind = { tasks = ["second", "first"] }
[[count.set]]
events = ["cycles"]
[[count.task]]
name = "first"
asm = "inc rax"
[[count.task]]
name = "second"
asm = "inc rax"
cpu = 1
"#;

#[test]
fn c3_i6_sets_are_bound_as_it_is_written() {
    let packed = pack(&parse(SETS, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    let sets = count.sets.iter();
    let sets: Vec<_> =
        sets.map(|set| (set.name.as_ref(), &set.bind, set.requests.len(), set.force)).collect();
    let expected = [
        ("a", &Bind::Tasks(vec![0]), 1, false),
        ("set 2", &Bind::AllProcessors, 2, true),
        ("set 3", &Bind::Processor(1), 1, false),
        ("set 4", &Bind::Tasks(vec![1, 0]), 1, false),
        ("set 5", &Bind::System, 1, false),
    ];
    assert_eq!(sets, expected);
    assert!(count.sets[1].together && !count.sets[0].together && count.requests.is_empty());
    let whole = JOB.replace("passes = 3", "passes = 3\nbind = \"system\"");
    let packed = pack(&parse(&whole, "job.toml").unwrap(), Purpose::Qemu).unwrap();
    let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
    assert_eq!((&count.bind, count.sets.len()), (&Bind::System, 0));
}

#[test]
fn c3_a_bind_to_what_is_not_there_is_said_with_line_and_column() {
    for (from, to, parts) in [
        (
            "{ task = \"first\" }",
            "{ task = \"third\" }",
            &["job.toml:7:17: count `who`", "task `third`, which does not exist", "first, second"]
                [..],
        ),
        ("\"second\", \"first\"", "\"first\", \"first\"", &["job.toml:18:28:", "`first` twice"]),
        ("[\"second\", \"first\"]", "[]", &["job.toml:18:8:", "names no task"]),
        ("{ cpu = 1 }", "{ cpu = 256 }", &["job.toml:15:8:", "processor 256", "0 to 255"]),
        ("{ cpu = 1 }", "{ cpu = -1 }", &["line 15", "-1"]),
        ("{ cpu = 1 }", "{ cores = 1 }", &["line 15", "unknown field `cores`"]),
        ("{ cpu = 1 }", "{ cpu = 1, task = \"first\" }", &["line 15", "bind must be one of"]),
        ("\"all-cpus\"", "\"everybody\"", &["line 10, column 8", "bind is `everybody`"]),
        ("\"all-cpus\"", "3", &["line 10", "expected \"system\", \"all-cpus\", { cpu = N }"]),
        ("name = \"who\"", "bind = \"system\"", &["job.toml:3:8:", "beside sets"]),
        ("name = \"who\"", "together = true", &["job.toml:2:", "together stands beside sets"]),
        ("name = \"who\"", "events = [\"cycles\"]", &["job.toml:2:", "stand beside sets"]),
        ("name = \"who\"", "console = true", &["job.toml:2:", "on several processors"]),
        ("events = [\"cycles\"]\nbind = { cpu", "bind = { cpu", &["missing field `events`"]),
        ("cpu = 1\n", "cpu = 300\n", &["task `second`: cpu is 300"]),
        ("cpu = 1\n", "cpu = 1\nparent = \"first\"\n", &["its parent `first` runs on processor 0"]),
    ] {
        let text = SETS.replace(from, to);
        assert_ne!(text, SETS, "{from}");
        let error = match parse(&text, "job.toml") {
            Ok(file) => pack(&file, Purpose::Qemu).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        for part in parts {
            assert!(error.contains(part), "{to}: {part}: {error}");
        }
    }
}

#[test]
fn c3_what_the_machine_has_too_few_processors_for_is_said_before_it_boots() {
    let file = parse(SETS, "job.toml").unwrap();
    let error = file.counts[0].check_cpus(1).unwrap_err().to_string();
    let task =
        "job.toml:24:1: task `second`: it is to run on processor 1; the machine has one processor";
    assert!(error.starts_with(task) && error.ends_with("--cpus 2 gives it enough"), "{error}");
    assert!(file.counts[0].check_cpus(2).is_ok());
    let file = parse(&SETS.replace("{ cpu = 1 }", "{ cpu = 4 }"), "job.toml").unwrap();
    let error = file.counts[0].check_cpus(2).unwrap_err().to_string();
    assert!(error.starts_with("job.toml:15:8: count `who`: bind names processor 4;"), "{error}");
    assert!(error.contains("has 2 processors") && error.contains("--cpus 5"), "{error}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (from, to, parts) in [
        (
            "starts = [\"r00c4\"]",
            "starts = [\"x\"]",
            &["job.toml:2", "two tasks", "starts `x`"][..],
        ),
        ("\"instructions:u\"", "\"{a,b}\"", &["job.toml:2", "`{a,b}` is not one event"]),
        ("\"instructions:u\"", "\"\"", &["is not an event"]),
        ("every = 1000", "every = 0", &["every is 0"]),
        ("every = 1000", "often = 1000", &["unknown field `often`"]),
        ("parent = \"first\"", "parent = \"third\"", &["second", "parent `third` does not exist"]),
        ("inc rax", "inc nonsense", &["job.toml:11", "first"]),
        ("ring = 3", "ring = 1", &["ring is 1"]),
        ("passes = 3", "start-at = [\"go\"]", &["job.toml:7:13: ", "two tasks", "which task's?"]),
        ("passes = 3", "start-at = [\"third:go\"]", &["there is no task `third`"]),
        (
            "passes = 3",
            "start-at = [\"first:go\"]",
            &["start-at `first:go`: task `first` has no label `go`; it has no labels"],
        ),
        ("passes = 3", "start-at = [\"second:3\"]", &["no instruction begins there"]),
        ("passes = 3", "start-at = [\"second:9\"]", &["is 9; it must be 0 to 3"]),
        ("passes = 3", "stop-at = [\"second:+x\"]", &["`x` is not a number of bytes"]),
        ("passes = 3", "stop-at = [\"second:0\"]", &["start-at is missing"]),
        (
            "passes = 3",
            "start-at = [\"second:0\"]\nstop-at = [\"first:0\"]",
            &["counting of task `first` stops at addresses, but starts at none"],
        ),
        // The place is the address's own.
        ("passes = 3", "start-at = [\"second:0\", \"x:0\"]", &["job.toml:7:25: ", "no task `x`"]),
        (
            "passes = 3",
            "start-at = [{ write = \"second:0\", read = \"second:0\" }]",
            &["line 7, column 35", "unknown field `read`"],
        ),
        (
            "passes = 3",
            "start-at = [{ bytes = 8 }]",
            &["line 7, column", "an address must be one of \"task:label\""],
        ),
        ("passes = 3", "start-at = [7]", &["line 7, column", "expected \"task:label\""]),
        ("passes = 3", "start-at = [{ write = \"second:r14*2\" }]", &["no label `r14*2`"]),
        (
            "passes = 3",
            "start-at = [{ write = \"second:r14+x\" }]",
            &["`r14+x` is not a register and a number of bytes"],
        ),
        (
            "passes = 3",
            "start-at = [{ write = \"second:r14+0x+5\" }]",
            &["`r14+0x+5` is not a register and a number of bytes"],
        ),
        (
            "passes = 3",
            "start-at = [{ write = \"second:r14-0x+5\" }]",
            &["`r14-0x+5` is not a register and a number of bytes"],
        ),
        (
            "passes = 3",
            "start-at = [{ write = \"second:r14++5\" }]",
            &["`r14++5` is not a register and a number of bytes"],
        ),
        ("passes = 3", "start-at = [{ write = \"second:r14+4\" }]", &["r14+4 is no multiple of 8"]),
        (
            "passes = 3",
            "start-at = [{ access = \"second:r14\", bytes = 16 }]",
            &["16 bytes of data cannot be watched"],
        ),
        ("passes = 3", "start-at = [{ write = \"second:0\" }]", &["is never written to"]),
        ("passes = 3", "start-at = [\"second:r14\"]", &["data of r14 is { write = … }"]),
        ("passes = 3", "nested = true", &["nested is for counting that starts"]),
        ("passes = 3", "tick-ns = 0", &["tick-ns is 0"]),
        ("passes = 3", "tick-ns = 5", &["job.toml:2:1: count `two tasks`: tick-ns is 5"]),
    ] {
        let text = JOB.replace(from, to);
        assert_ne!(text, JOB, "{from}");
        let error = match parse(&text, "job.toml") {
            Ok(file) => pack(&file, Purpose::Qemu).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        for part in parts {
            assert!(error.contains(part), "{to}: {part}: {error}");
        }
    }
}
