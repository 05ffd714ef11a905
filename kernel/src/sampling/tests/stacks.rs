//! Branches and calls of samples, out of registers and out of records.

use super::*;
use protocol::job::sampling::CallGraph;

/// Two calls, one in the other, and their returns.
const NESTED: &[u8] = &[0x90, CALL, 0x90, CALL, 0x90, 0x90, RETURN, 0x90, RETURN, 0x90];
/// What is in front of each of those instructions: the calls that are open then, the newest first.
const OPEN: [&[u64]; 10] = [&[], &[], &[1], &[1], &[3, 1], &[3, 1], &[3, 1], &[1], &[1], &[]];

fn sampled(text: &'static str, body: &'static [u8]) -> Sampling<'static> {
    let mut item = item(&[event(text, 77)], 700);
    item.workload.tasks[0].body = Cow::Borrowed(body);
    item
}

/// Instructions of the loop as numbers.
fn number(address: u64) -> u64 {
    address - AT
}

#[test]
fn s2_a_sample_has_the_calls_that_led_to_it() {
    for model in
        [Model::Haswell, Model::Skylake, Model::IceLake, Model::SapphireRapids, Model::ArrowLake]
    {
        for precise in [false, true] {
            let mut item = sampled(RETIRED, NESTED);
            (item.call_graph, item.precise) = (Some(CallGraph::Lbr), precise);
            let mut host = Host::new(model);
            let adaptive = host.driver.capabilities().has_adaptive_records();
            if precise && !adaptive {
                continue;
            }
            let (result, _) = run(&mut host, &item);
            let stacks = result.stacks.as_ref().unwrap();
            assert_eq!((stacks.elsewhere, &result.branches), (0, &None), "{model:?}");
            let all: u64 = stacks.stacks.iter().map(|one| one.count).sum();
            assert_eq!(all, result.events[0].samples, "{model:?}");
            assert!(stacks.stacks.len() >= 8, "{model:?}: {stacks:?}");
            for one in &stacks.stacks {
                assert_eq!(one.ring, 0, "{model:?}: {one:?}");
                let frames: Vec<u64> = one.frames.iter().map(|frame| number(frame.0)).collect();
                // An interrupt comes in front of the instruction; a record is behind its own.
                let place = if precise { (frames[0] + 1) % 10 } else { frames[0] };
                assert_eq!(frames[1..], *OPEN[place as usize], "{model:?}, {precise}: {frames:?}");
            }
        }
    }
}

#[test]
fn s2_records_have_the_branches_of_their_own_instant() {
    const LOOP: &[u8] = &[0x90, JUMP, 0x90, 0x90];
    for model in [Model::IceLake, Model::SapphireRapids, Model::ArrowLake] {
        let mut item = sampled(RETIRED, LOOP);
        (item.branches, item.precise) = (true, true);
        let (result, _) = run(&mut Host::new(model), &item);
        let branches = result.branches.as_ref().unwrap();
        let samples = result.events[0].samples;
        let [jump] = &branches.edges[..] else { panic!("{model:?}: {branches:?}") };
        assert_eq!((jump.from.0, jump.to.0), (AT + 1, AT + 2), "{model:?}");
        // All records are full but those of the first samples: 77 instructions have 19 jumps, of 32 entries.
        let entries = u64::from(branches.entries);
        assert!(
            jump.count <= samples * entries && jump.count >= (samples - 2) * entries,
            "{jump:?}"
        );
        assert_eq!(jump.cycles, Some(7 * jump.count), "{model:?}");
    }
}

#[test]
fn c7_s2_call_graphs_are_refused_with_the_nearest() {
    let said = |model, item: &Sampling| match measure(
        &mut Host::new(model),
        0,
        item,
        &mut (),
        &mut |_| (),
    ) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{model:?}: {other:?}"),
    };
    let mut item = sampled(RETIRED, NESTED);
    item.call_graph = Some(CallGraph::Lbr);
    for (model, part) in [
        (Model::Nehalem, "came with Haswell); the nearest is branches = true"),
        (Model::Core2, "came with Haswell"),
        (
            Model::Zen4,
            "AMD's branch records have no call-stack mode; the nearest is branches = true",
        ),
        (Model::Zen2, "a single branch record"),
    ] {
        assert!(said(model, &item).contains(part), "{model:?}: {}", said(model, &item));
    }
    let both = Sampling { branches: true, ..item.clone() };
    assert!(said(Model::Skylake, &both).contains("one of branches and call-graph"));
    let precise = Sampling { precise: true, ..item.clone() };
    assert!(
        said(Model::Skylake, &Sampling { events: vec![event("r01c0:counter=1", 64)], ..precise })
            .contains("from format 4 on")
    );
    let timer = Sampling { interval_ns: 100_000, events: vec![], ..item.clone() };
    assert!(said(Model::Skylake, &timer).contains("not at a timer's tick"));
    let mut two = item;
    two.workload.tasks.push(two.workload.tasks[0].clone());
    two.workload.tasks[0].ring = TaskRing::User;
    assert!(said(Model::Skylake, &two).contains("stacks of calls in ring 3"));
}

/// The second task calls once, and from another place. The scheduler switches every seven instructions, within the calls.
const OTHER: &[u8] = &[0x90, 0x90, CALL, 0x90, 0x90, 0x90, 0x90, 0x90, RETURN, 0x90, 0x90];
const OPEN_OTHER: [&[u64]; 11] = [&[], &[], &[], &[2], &[2], &[2], &[2], &[2], &[2], &[], &[]];

fn two_tasks(item: &mut Sampling) {
    let mut other = item.workload.tasks[0].clone();
    other.body = Cow::Borrowed(OTHER);
    item.workload.tasks.push(other);
    item.workload.tasks.iter_mut().for_each(|task| task.ring = TaskRing::User);
}

#[test]
fn s2_each_task_has_a_stack_of_its_own() {
    for model in
        [Model::Haswell, Model::Skylake, Model::IceLake, Model::SapphireRapids, Model::ArrowLake]
    {
        let mut item = sampled("r00c0:u", NESTED);
        // No length of a task divides it.
        item.events = vec![event("r00c0:u", 71)];
        item.call_graph = Some(CallGraph::Lbr);
        two_tasks(&mut item);
        let (result, _) = run(&mut Host::new(model), &item);
        let stacks = result.stacks.as_ref().unwrap();
        let all: u64 = stacks.stacks.iter().map(|one| one.count).sum();
        assert_eq!((all, stacks.elsewhere), (result.events[0].samples, 0), "{model:?}");
        assert!(stacks.stacks.len() >= 15, "{model:?}: {stacks:?}");
        let mut depths = [0; 3];
        for one in &stacks.stacks {
            let base = AT + 0x100 * u64::from(one.task);
            let frames: Vec<u64> = one.frames.iter().map(|frame| frame.0 - base).collect();
            let open = [&OPEN[..], &OPEN_OTHER[..]][one.task as usize];
            let place = frames[0] as usize % open.len();
            assert_eq!(frames[1..], *open[place], "{model:?}, task {}: {frames:?}", one.task);
            depths[frames.len() - 1] += one.count;
        }
        assert!(depths.iter().all(|&count| count > 20), "{model:?}: {depths:?}");
    }
}

/// Where records are no stack they are emptied at a switch.
#[test]
fn s2_no_task_has_a_branch_of_another() {
    for model in [
        Model::Core2,
        Model::Nehalem,
        Model::Haswell,
        Model::Skylake,
        Model::IceLake,
        Model::ArrowLake,
        Model::Zen4,
    ] {
        let mut item = sampled("r00c0:u", NESTED);
        item.branches = true;
        two_tasks(&mut item);
        let (result, _) = run(&mut Host::new(model), &item);
        let edges = &result.branches.as_ref().unwrap().edges;
        let mut of = [0; 2];
        for edge in edges {
            let code = AT + 0x100 * u64::from(edge.task);
            assert!((code..code + 0x20).contains(&edge.from.0), "{model:?}: {edge:?}");
            of[edge.task as usize] += edge.count;
        }
        assert!(of.iter().all(|&count| count > 20), "{model:?}: {of:?}");
    }
}
