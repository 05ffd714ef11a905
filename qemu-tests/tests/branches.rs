//! Branch records in samples: the branches that a workload takes, as often as it takes them.

use pmu_model::Model;
use protocol::record::{EdgeCount, SampleResult};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Turns of the inner loop; its jump is taken one time less, and the outer loop's once.
const INNER: u64 = 10;

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn job(ring: u8, more: &str) -> String {
    format!(
        "[[sample]]\nbranches = true\nevents = [\"branches\"]\nperiod = 1009\n{more}\n[[sample.task]]\nname = \"t\"\n\
         asm = \"xor ecx, ecx; inner: inc ecx; cmp ecx, {INNER}; jb inner\"\nturns = 4000\nring = {ring}\n"
    )
}

/// Edges that lead back: the inner loop's and the outer one's.
fn loops(result: &SampleResult) -> [EdgeCount; 2] {
    let branches = result.branches.as_ref().expect("branches were asked for");
    assert_eq!(branches.elsewhere, 0);
    let back = branches.edges.iter().filter(|edge| edge.to.0 < edge.from.0);
    let mut back: Vec<EdgeCount> = back.cloned().collect();
    back.truncate(2);
    back.try_into().expect("two loops")
}

#[test]
fn s2_edges_come_as_often_as_loops_take_them() {
    for (model, cycles, misses) in [
        (Model::Haswell, false, true),
        (Model::Skylake, true, true),
        (Model::SapphireRapids, true, true),
        (Model::Zen4, false, true),
    ] {
        for ring in [0, 3] {
            let ran = on(model, &job(ring, ""));
            ran.ends_with(0);
            let result = ran.report.sampled().next().expect("one item");
            let [inner, outer] = loops(result);
            let what = format!("{model:?} in ring {ring}: {inner:?} {outer:?}");
            // `inc ecx; cmp ecx, 10; jb`: the jump goes back over itself and five bytes.
            assert_eq!(inner.from.0 - inner.to.0, 5, "{what}");
            // Each record of a sample is one or the other; where samples begin in a turn varies with the period.
            let turns = inner.count as f64 / outer.count as f64;
            assert!((turns - (INNER - 1) as f64).abs() < 1.0, "{turns}: {what}");
            let entries = u64::from(result.branches.as_ref().unwrap().entries);
            let samples = result.events[0].samples;
            let all = inner.count + outer.count;
            // The handler's way in and out takes some of the places, in ring 0.
            let least = if ring == 3 { entries - 1 } else { entries - 8 };
            assert!(all <= entries * samples && all >= least * (samples - 1), "{samples}: {what}");
            assert_eq!(
                (inner.cycles.is_some(), inner.mispredicted.is_some()),
                (cycles, misses),
                "{what}"
            );
            if let Some(cycles) = inner.cycles {
                // Three instructions from one jump to the next, and what a misprediction costs.
                assert!(cycles >= 3 * (inner.count - samples), "{what}");
            }
        }
    }
}

#[test]
fn s2_branches_are_refused_with_the_reason() {
    for (model, more, reason) in [
        (Model::Zen2, "", "keeps no stack of branch records, but a single one"),
        (Model::Skylake, "precise = true", "precise samples have none of their own"),
    ] {
        let toml = job(3, more).replace("\"branches\"", "\"inst_retired.prec_dist\"");
        let toml = if model == Model::Zen2 { job(3, more) } else { toml };
        let ran = on(model, &toml);
        ran.ends_with(1);
        let text = format!("{:?}", ran.report.records);
        assert!(text.contains(reason), "{model:?}: {text}");
    }
    let toml = "[[sample]]\nbranches = true\ninterval-ns = 100000\nasm = \"nop\"\nturns = 1000\n";
    let ran = on(Model::Skylake, toml);
    ran.ends_with(1);
    let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
    assert!(texts[0].contains("not at a timer's tick"), "{texts:?}");
}

#[test]
fn s2_precise_records_have_branches_of_their_own_instant() {
    for model in [Model::IceLake, Model::SapphireRapids] {
        let ran = on(model, &job(3, "precise = true"));
        ran.ends_with(0);
        let result = ran.report.sampled().next().expect("one item");
        let [inner, outer] = loops(result);
        let turns = inner.count as f64 / outer.count as f64;
        assert!((turns - (INNER - 1) as f64).abs() < 1.0, "{turns}: {model:?}: {result:?}");
        let entries = u64::from(result.branches.as_ref().unwrap().entries);
        let samples = result.events[0].samples;
        // Nothing of the way into an interrupt takes a place: each record but the first is full.
        let all = inner.count + outer.count;
        assert!(
            all <= entries * samples && all >= entries * (samples - 1),
            "{all} of {samples}: {model:?}"
        );
    }
}

/// The calls that are open in front of each byte of the code below, the newest first: `call outer; jmp 9f`, `outer` from 7 on,
/// `inner` from 14 on.
fn open(place: u64) -> &'static [u64] {
    match place {
        7..14 => &[0],
        14..23 => &[7, 0],
        _ => &[],
    }
}

#[test]
fn s2_call_stacks_are_those_of_the_code() {
    const CODE: &str = "call outer; jmp 9f; outer: call inner; nop; ret; inner: imul rax, rax; imul rax, rax; ret; 9:";
    for (model, ring, precise) in
        [(Model::Haswell, 3, false), (Model::SapphireRapids, 3, true), (Model::Skylake, 0, false)]
    {
        let task = match ring {
            // Alone.
            0 => String::new(),
            // Without ticks: all of it is stepped.
            _ => format!("tick-ns = 0\n[[sample.task]]\nname = \"t\"\nring = {ring}\n"),
        };
        let toml = format!(
            "[[sample]]\ncall-graph = \"lbr\"\nprecise = {precise}\nevents = [\"instructions\"]\nperiod = 101\n\
             {task}asm = \"{CODE}\"\nturns = 300\n"
        );
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = ran.report.sampled().next().expect("one item");
        let stacks = result.stacks.as_ref().expect("stacks were asked for");
        let samples: u64 = stacks.stacks.iter().map(|one| one.count).sum();
        assert_eq!((samples, stacks.elsewhere), (result.events[0].samples, 0), "{model:?}");
        let body = result.code[0].body[0].0;
        let mut deep = 0;
        for one in &stacks.stacks {
            let frames: Vec<u64> =
                one.frames.iter().map(|frame| frame.0.wrapping_sub(body)).collect();
            if frames[0] >= 23 {
                continue;
            }
            // A record is behind its instruction; only inside of `inner` that makes no difference.
            if !precise || frames[0] < 22 && frames[0] >= 14 {
                assert_eq!(frames[1..], *open(frames[0]), "{model:?} in ring {ring}: {frames:?}");
            }
            deep += if frames.len() == 3 { one.count } else { 0 };
        }
        assert!(deep * 5 > samples, "{model:?} in ring {ring}: {deep} of {samples}: {stacks:?}");
    }
    let ran = on(
        Model::Zen4,
        "[[sample]]\ncall-graph = \"lbr\"\nevents = [\"instructions\"]\nperiod = 101\nasm = \"nop\"\nturns = 500\n",
    );
    ran.ends_with(1);
    let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
    assert!(texts[0].contains("AMD's branch records have no call-stack mode"), "{texts:?}");
}

/// Two tasks that yield within their calls, so that at each switch a stack is not empty.
fn yielding(how: &str, tick_ns: u64, [first, second]: [&str; 2]) -> String {
    let task = |name: &str, asm: &str| {
        format!("[[sample.task]]\nname = \"{name}\"\nasm = \"{asm}\"\nturns = 150\nring = 3\n")
    };
    format!("[[sample]]\n{how}\nevents = [\"instructions:u\"]\nperiod = 101\ntick-ns = {tick_ns}\n")
        + &task("first", first)
        + &task("second", second)
}

const TWO_CALLS: &str =
    "call 2f; jmp 9f; 2: call 3f; nop; ret; 3: imul rax, rax; int 0x83; imul rax, rax; ret; 9:";
const ONE_CALL: &str =
    "nop; nop; call 2f; jmp 9f; 2: imul rax, rax; int 0x83; imul rax, rax; imul rax, rax; ret; 9:";

/// How many samples of each task were within calls. Even tasks are of [`TWO_CALLS`], odd ones of [`ONE_CALL`]; each stack is that of its
/// task's code.
fn deep(result: &SampleResult, model: &Model) -> Vec<u64> {
    let mut deep = vec![0; result.code.len()];
    for one in &result.stacks.as_ref().expect("stacks were asked for").stacks {
        let code = &result.code[one.task as usize];
        let [start, end] = code.function.map(|at| at.0);
        let inside = one.frames.iter().all(|frame| (start..end).contains(&frame.0));
        assert!(inside, "{model:?}: a frame of another task: {one:?}, {:?}", result.code);
        let at = |frame: u64| frame.wrapping_sub(code.body[0].0);
        let frames: Vec<u64> = one.frames.iter().map(|frame| at(frame.0)).collect();
        let open: &[u64] = match (one.task % 2, frames[0]) {
            (0, 7..14) => &[0],
            (0, 14..25) => &[7, 0],
            (1, 9..24) => &[2],
            _ => continue,
        };
        assert_eq!(frames[1..], *open, "{model:?}, task {}", one.task);
        deep[one.task as usize] += one.count;
    }
    deep
}

#[test]
fn s2_each_task_has_a_stack_of_its_own() {
    for model in [Model::Haswell, Model::IceLake, Model::SapphireRapids] {
        let toml = yielding("call-graph = \"lbr\"", 0, [TWO_CALLS, ONE_CALL]);
        let ran = on(model, &toml);
        ran.ends_with(0);
        let result = ran.report.sampled().next().expect("one item");
        let switches = result.schedule.as_ref().expect("a scheduler ran them").switches;
        assert!(switches >= 300, "{model:?}: {switches}");
        let stacks = result.stacks.as_ref().expect("stacks were asked for");
        let samples: u64 = stacks.stacks.iter().map(|one| one.count).sum();
        assert_eq!((samples, stacks.elsewhere), (result.events[0].samples, 0), "{model:?}");
        let deep = deep(result, &model);
        assert!(deep.iter().all(|&count| count >= 5), "{model:?}: {deep:?} of {samples}");
    }
}

#[test]
fn s2_no_task_has_a_branch_of_another() {
    for model in [Model::Skylake, Model::Zen4] {
        let ran = on(model, &yielding("branches = true", 0, [TWO_CALLS, ONE_CALL]));
        ran.ends_with(0);
        let result = ran.report.sampled().next().expect("one item");
        let mut of = [0; 2];
        for edge in &result.branches.as_ref().expect("they were asked for").edges {
            let [start, end] = result.code[edge.task as usize].function.map(|at| at.0);
            assert!((start..end).contains(&edge.from.0), "{model:?}: {edge:?}, {:?}", result.code);
            of[edge.task as usize] += edge.count;
        }
        assert!(of.iter().all(|&count| count > 10), "{model:?}: {of:?}");
    }
}

/// With ticks, though all of ring 3 is stepped: the tasks get on.
#[test]
fn s2_stacks_of_tasks_that_ticks_switch_are_their_own() {
    let code = [TWO_CALLS, ONE_CALL].map(|asm| asm.replace("int 0x83; ", ""));
    let toml = yielding("call-graph = \"lbr\"", 4_000_000, [&code[0], &code[1]]);
    let ran = on(Model::Skylake, &toml);
    ran.ends_with(0);
    let result = ran.report.sampled().next().expect("one item");
    let schedule = result.schedule.as_ref().expect("a scheduler ran them");
    assert!(schedule.switches >= 4, "{schedule:?}");
    let stacks = result.stacks.as_ref().expect("stacks were asked for");
    let mut deep = [0; 2];
    for one in &stacks.stacks {
        let [start, end] = result.code[one.task as usize].function.map(|at| at.0);
        let inside = one.frames.iter().all(|frame| (start..end).contains(&frame.0));
        assert!(inside, "a frame of another task: {one:?}, {:?}", result.code);
        deep[one.task as usize] += if one.frames.len() > 1 { one.count } else { 0 };
    }
    assert!(deep.iter().all(|&count| count >= 3), "{deep:?}: {stacks:?}");
}

/// Two tasks of ring 3 on the boot processor and two on the next one, which yield within their calls.
fn on_two_processors(model: Model, how: &str) -> Ran {
    let mut toml =
        format!("[[sample]]\n{how}\nevents = [\"instructions:u\"]\nperiod = 101\ntick-ns = 0\n");
    for (index, asm) in [TWO_CALLS, ONE_CALL, TWO_CALLS, ONE_CALL].iter().enumerate() {
        toml += &format!(
            "[[sample.task]]\nname = \"t{index}\"\nasm = \"{asm}\"\nturns = 150\nring = 3\ncpu = {}\n",
            index / 2
        );
    }
    let (pmu, cpus) = (Given::Emulated(model), Cpus::Many(2));
    let ran = Guest { pmu, cpus, ..Guest::new(Boot::Direct, &toml) }.run();
    ran.ends_with(0);
    ran
}

/// Each processor has branch records of its own: each branch lies in the code of its task, and each sample has no more of them than
/// there are records.
#[test]
fn s2_m13_branches_are_sampled_on_each_processor() {
    for model in [Model::Skylake, Model::SapphireRapids, Model::Zen4] {
        let ran = on_two_processors(model, "branches = true");
        let result = ran.report.sampled().next().expect("one item");
        let branches = result.branches.as_ref().expect("they were asked for");
        let mut of = [0; 4];
        for edge in &branches.edges {
            let [start, end] = result.code[edge.task as usize].function.map(|at| at.0);
            let inside = [edge.from, edge.to].iter().all(|at| (start..end).contains(&at.0));
            assert!(inside, "{model:?}: {edge:?}, {:?}", result.code);
            of[edge.task as usize] += edge.count;
        }
        assert_eq!(branches.elsewhere, 0, "{model:?}");
        // Tasks of the same code take the same branches, whichever processor they are on.
        assert!(of.iter().all(|&count| count > 10), "{model:?}: {of:?}");
        for [one, other] in [[of[0], of[2]], [of[1], of[3]]] {
            assert!(one.abs_diff(other) * 4 <= one.max(other), "{model:?}: {of:?}");
        }
        let most = u64::from(branches.entries) * result.events[0].samples;
        assert!(of.iter().sum::<u64>() <= most, "{model:?}: {of:?} of {most}");
    }
}

/// Each task's stack is its own, on each processor.
#[test]
fn s2_m13_call_stacks_are_sampled_on_each_processor() {
    for model in [Model::Haswell, Model::SapphireRapids] {
        let ran = on_two_processors(model, "call-graph = \"lbr\"");
        let result = ran.report.sampled().next().expect("one item");
        let stacks = result.stacks.as_ref().expect("stacks were asked for");
        let samples: u64 = stacks.stacks.iter().map(|one| one.count).sum();
        assert_eq!((samples, stacks.elsewhere), (result.events[0].samples, 0), "{model:?}");
        let deep = deep(result, &model);
        assert!(deep.iter().all(|&count| count >= 5), "{model:?}: {deep:?} of {samples}");
    }
}
