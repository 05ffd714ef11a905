use super::super::file::parse;
use super::super::{Purpose, pack as pack_job};
use super::*;
use crate::job::workload::DEFAULT_LIMIT_US;
use protocol::job::Item;
use protocol::job::sampling::{OnFull, Rate};
use protocol::job::workload::Ring;

fn sampling(rest: &str) -> Result<(Sampling<'static>, TaskCode), String> {
    let text = format!("[[sample]]\nasm = 'nop; here: nop; 2: nop; .Lx: nop'\n{rest}");
    let file = parse(&text, "x.toml").map_err(|error| error.to_string())?;
    let packed = pack_job(&file, Purpose::Qemu).map_err(|error| error.to_string())?;
    let [Item::Sample(sampling)] = &packed.job.items[..] else { panic!("{packed:?}") };
    Ok((sampling.clone(), packed.sampled[0].1[0].clone()))
}

#[test]
fn i4_events_have_their_own_rate_or_the_common_one() {
    let (seen, code) = sampling(
        "events = ['cycles', { event = 'instructions', frequency = 50 }, { event = 'r00c4', period = 7 }]\n\
         period = 1000\nturns = 5\nregisters = ['rax', 'r15']\nkeep = 'samples'\non-full = 'stop'\n\
         precise = true",
    )
    .unwrap();
    let rates: Vec<_> = seen.events.iter().map(|event| (&*event.event, event.rate)).collect();
    let expected = [
        ("cycles", Rate::Period(1000)),
        ("instructions", Rate::PerSecond(50)),
        ("r00c4", Rate::Period(7)),
    ];
    assert_eq!(rates, expected);
    assert_eq!((seen.registers, seen.on_full, seen.capacity), (0x8001, OnFull::Stop, 4096));
    assert!(seen.precise && !sampling("interval-ns = 10000").unwrap().0.precise);
    let task = &seen.workload.tasks[0];
    assert_eq!((task.turns, &*task.body), (5, &[0x90; 4][..]));
    assert_eq!(code, TaskCode { body: vec![0x90; 4], labels: vec![(1, "here".into())] });
}

#[test]
fn c7_what_is_wrong_is_named_with_its_place() {
    for (rest, part) in [
        ("events = ['cycles']", "`cycles` has neither"),
        ("events = ['cycles']\nperiod = 1\nfrequency = 1", "not both"),
        ("events = [{ event = 'cycles', times = 1 }]", "unknown field `times`"),
        (
            "events = [{ evnt = 'cycles', period = 1 }]",
            "unknown field `evnt`, expected one of `event`",
        ),
        ("events = [{ period = 1 }]", "missing field `event`"),
        ("events = [3]", "expected an event, or a table with event, period"),
        ("events = ['cycles:']\nperiod = 1", "is not an event"),
        ("", "nothing to sample by"),
        (
            "events = ['energy-pkg', 'energy-cores']",
            "energy-pkg is energy, read before the code and after it: there is nothing to sample by",
        ),
        (
            "events = ['cycles']\nperiod = 0",
            "x.toml:1:1: sample `nop; here: nop; 2: nop; .Lx: nop`: period is 0",
        ),
        ("interval-ns = 10", "interval-ns is 10"),
        ("interval-ns = 10000\ndelivery = 'nmi'", "delivery"),
        ("interval-ns = 10000\nregisters = ['eax']", "`eax` is no general register"),
        ("interval-ns = 10000\nregisters = ['rax']", "keep = \"samples\""),
        ("interval-ns = 10000\ncapacity = 1000000", "capacity is 1000000"),
        ("interval-ns = 10000\ninit = 'bad code'", "init code"),
        ("interval-ns = 10000\ntick-ns = 5000", "tick-ns is for [[sample.task]]"),
        ("interval-ns = 10000\n[[sample.task]]\nname = 'a'\nasm = 'nop'", "not both"),
    ] {
        let error = sampling(rest).unwrap_err();
        assert!(error.contains(part), "{rest}: {error}");
    }
}

#[test]
fn errors_of_tasks_name_file_line_and_sample() {
    for (from, to, part) in [
        ("period = 100", "period = 100\ntick-ns = 1", "x.toml:1:1: sample `a, b`: tick-ns is 1;"),
        ("period = 100", "period = 0", "x.toml:1:1: sample `a, b`: period is 0"),
    ] {
        let error = tasks(&TASKS.replace(from, to)).unwrap_err();
        assert!(error.starts_with(part), "{error}");
    }
}

const TASKS: &str = "[[sample]]\nevents = ['instructions:u']\nperiod = 100\n\
    [[sample.task]]\nname = 'a'\nasm = 'nop; here: nop'\ninit = 'first: nop; nop'\n\
    [[sample.task]]\nname = 'b'\nasm = 'inc rax; there: inc rax'\nring = 3\nparent = 'a'\nturns = 7\n";

fn tasks(text: &str) -> Result<(Sampling<'static>, Vec<TaskCode>, u32), String> {
    let file = parse(text, "x.toml").map_err(|error| error.to_string())?;
    let packed = pack_job(&file, Purpose::Qemu).map_err(|error| error.to_string())?;
    let Some(Item::Sample(sampling)) = packed.job.items.last() else { panic!("{packed:?}") };
    let (item, codes) = packed.sampled[0].clone();
    Ok((sampling.clone(), codes, item))
}

#[test]
fn i8_tasks_are_written_as_for_a_run_and_keep_their_own_labels() {
    // Items of other kinds come before it.
    let before = "[[run]]\n[[run.task]]\nname = 'r'\nasm = 'nop'\n";
    let (sampling, codes, item) = tasks(&format!("{before}{TASKS}")).unwrap();
    assert_eq!((&*sampling.name, item), ("a, b", 1));
    assert_eq!((sampling.limit_us, sampling.workload.tick_ns), (DEFAULT_LIMIT_US, 1_000_000));
    let [a, b] = &sampling.workload.tasks[..] else { panic!() };
    assert_eq!((a.ring, b.ring, b.parent, b.turns), (Ring::Kernel, Ring::User, Some(0), 7));
    assert_eq!(codes[0], TaskCode { body: vec![0x90; 2], labels: vec![(1, "here".into())] });
    assert_eq!(codes[1].labels, [(3, "there".to_string())]);
}

#[test]
fn c7_what_is_wrong_with_tasks_is_named_with_its_place() {
    for (from, to, part) in [
        ("period = 100", "period = 100\ninterval-ns = 10", "interval-ns is 10"),
        ("ring = 3", "cpu = 256", "cpu is 256"),
        ("ring = 3", "cpu = -1", "line 11, column"),
        ("ring = 3\nparent = 'a'", "cpu = 1\ncapacity = 1", "x.toml:"),
        ("period = 100", "period = 100\nlimit-us = 0", "limit-us is 0"),
        ("period = 100", "period = 100\nturns = 5", "turns stands in each"),
        ("ring = 3", "ring = 2", "ring is 2"),
        ("parent = 'a'", "parent = 'c'", "parent `c` does not exist"),
        ("inc rax;", "inc nonsense;", "x.toml:10"),
    ] {
        let text = TASKS.replace(from, to);
        assert_ne!(text, TASKS, "{from}");
        let error = tasks(&text).unwrap_err();
        assert!(error.contains(part), "{to}: {error}");
    }
    let bare = "[[sample]]\nevents = ['cycles']\nperiod = 100";
    assert!(tasks(bare).unwrap_err().contains("there is no code"));
}

/// One timer serves the scheduler's ticks and the samples.
#[test]
fn m8_an_interval_goes_with_ticks() {
    for ticks in ["", "\ntick-ns = 0", "\ntick-ns = 50000"] {
        let both =
            TASKS.replace("period = 100", &format!("period = 100\ninterval-ns = 10000{ticks}"));
        let (sampling, ..) = tasks(&both).unwrap();
        let expected = match ticks {
            "" => super::super::workload::DEFAULT_TICK_NS,
            ticks => ticks.rsplit_once(' ').unwrap().1.parse().unwrap(),
        };
        assert_eq!((sampling.interval_ns, sampling.workload.tick_ns), (10_000, expected));
    }
}

/// Each processor has a log, all of which share what there is.
#[test]
fn m11_logs_of_several_processors_share_the_room() {
    let on = |capacity: &str, cpus: [&str; 2]| {
        let text = TASKS.replace("period = 100", &format!("period = 100\n{capacity}"));
        let text = text.replace("name = 'a'", &format!("name = 'a'\n{}", cpus[0]));
        tasks(&text.replace("parent = 'a'", cpus[1])).map(|(sampling, ..)| sampling.capacity)
    };
    for (cpus, default) in [
        (["", "parent = 'a'"], 4096),
        (["cpu = 3", "parent = 'a'"], 4096),
        (["cpu = 3", "cpu = 3"], 4096),
        (["", "cpu = 1"], 2048),
        (["cpu = 1", "cpu = 2"], 2048),
    ] {
        assert_eq!(on("", cpus), Ok(default), "{cpus:?}");
    }
    assert_eq!(on("capacity = 2048", ["cpu = 1", "cpu = 2"]), Ok(2048));
    let error = on("capacity = 2049", ["cpu = 1", "cpu = 2"]).unwrap_err();
    assert!(error.contains("capacity, of all processors together, is 4098"), "{error}");
    assert!(error.contains("x.toml:1") || error.contains("line 1"), "{error}");
}

#[test]
fn s1_a_latency_is_part_of_mem_loads_in_either_form() {
    let text = |events: &str| {
        let (sampling, ..) = sampling(&format!("period = 100\nevents = [{events}]"))?;
        Ok::<_, String>(sampling.events[0].event.to_string())
    };
    for (events, expected) in [
        ("{ event = 'mem-loads', latency = 30 }", "mem-loads:ldlat=30"),
        ("{ event = 'mem-loads:u', latency = 30 }", "mem-loads:u:ldlat=30"),
        ("'mem-loads,ldlat=50'", "mem-loads:ldlat=50"),
        ("'mem-loads'", "mem-loads"),
        ("'mem-stores'", "mem-stores"),
    ] {
        assert_eq!(text(events).as_deref(), Ok(expected), "{events}");
    }
    for events in [
        "{ event = 'mem-stores', latency = 30 }",
        "{ event = 'cycles', latency = 30 }",
        "{ event = 'mem-loads:ldlat=3', latency = 30 }",
    ] {
        let error = text(events).unwrap_err();
        assert!(error.contains("a latency is for mem-loads, once"), "{events}: {error}");
    }
}

#[test]
fn s2_a_call_graph_is_by_branch_records() {
    use protocol::job::sampling::CallGraph;
    let stacks = |rest: &str| sampling(rest).map(|(sampling, ..)| sampling.call_graph);
    let events = "period = 100\nevents = ['cycles']\n";
    assert_eq!(stacks(&format!("{events}call-graph = 'lbr'")), Ok(Some(CallGraph::Lbr)));
    assert_eq!(stacks(events), Ok(None));
    assert!(stacks(&format!("{events}call-graph = 'fp'")).unwrap_err().contains("lbr"));
}

#[test]
fn s1_vector_registers_are_named_by_their_kinds() {
    use protocol::job::sampling::VectorRegisters::{self, Hi16Zmm, Opmask, Xmm, Ymm, Zmm};
    let vectors = |value: &str| {
        let rest = format!("events = ['cycles']\nperiod = 9\nkeep = 'samples'\nvectors = {value}");
        sampling(&rest).map(|(seen, _)| seen.vectors)
    };
    let of = |kinds: &[VectorRegisters]| Ok(kinds.to_vec());
    assert_eq!(vectors("true"), of(&[Xmm]));
    assert_eq!(vectors("false"), of(&[]));
    assert_eq!(vectors("[]"), of(&[]));
    assert_eq!(vectors("['ymm']"), of(&[Ymm]));
    let all = "['xmm', 'ymm', 'zmm', 'hi16-zmm', 'opmask']";
    assert_eq!(vectors(all), of(&[Xmm, Ymm, Zmm, Hi16Zmm, Opmask]));
    for (value, part) in [
        ("['ymm', 'xmm', 'ymm']", "vectors names ymm twice"),
        ("['mmx']", "true, false, or a list of xmm, ymm, zmm, hi16-zmm and opmask"),
        ("'ymm'", "true, false, or a list of xmm, ymm, zmm, hi16-zmm and opmask"),
    ] {
        let said = vectors(value).unwrap_err();
        assert!(said.contains(part) && said.contains("line "), "{value}: {said}");
    }
}

#[test]
fn s3_s4_energy_and_the_uncore_are_of_the_whole_sample_and_take_no_period() {
    let requests = "uncore_arb/event=0x81,umask=1,name=requests/";
    let with = |events: &str, rest: &str| {
        sampling(&format!("events = [{events}]\n{rest}")).map(|(sampling, _)| sampling)
    };
    let group = "{uncore_arb/event=0x80,umask=1/,uncore_clock/event=0xff/}";
    let events = format!(
        "'energy-pkg', 'cycles', '{requests}', 'power/energy-ram/', '{group}', 'energy-pkg'"
    );
    let expect = "period = 100\nexpect = { requests = { max = 9 }, energy-pkg = { min = 1 } }";
    let seen = with(&events, expect).unwrap();
    assert_eq!(seen.events.len(), 1, "{seen:?}");
    assert_eq!(seen.energy, ["energy-pkg", "power/energy-ram/"]);
    assert_eq!(seen.uncore, [requests, group]);
    for (events, rest, part) in [
        ("'energy-pkg'", "period = 100", "nothing to sample by"),
        (
            "{ event = 'energy-pkg', period = 5 }",
            "",
            "energy-pkg: energy is read before the code and after it, and no sample is taken by it",
        ),
        (
            "'cycles', { event = 'uncore_clock/event=0xff/', frequency = 5 }",
            "period = 9",
            "the uncore is read before the code",
        ),
        ("'cycles'", "period = 9\nexpect = { energy-pkg = { min = 1 } }", "energy-pkg"),
    ] {
        let error = with(events, rest).unwrap_err();
        assert!(error.contains(part), "{events}: {error}");
    }
    // A timer needs no event beside them.
    assert_eq!(with("'energy-pkg'", "interval-ns = 10000").unwrap().energy, ["energy-pkg"]);
}
