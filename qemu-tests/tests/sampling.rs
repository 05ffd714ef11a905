//! Sampling on the emulated models: every overflow is accounted for, to the instruction.

use pmu_model::Model;
use protocol::record::{SampleResult, SampledCount, Samples};
use qemu_tests::{Guest, Ran, xtask};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Legacy freeze, streamlined freeze, no global registers, PerfMonV2.
const MODELS: [Model; 4] = [Model::Core2, Model::Skylake, Model::Zen2, Model::Zen4];

/// `instructions` retired, on any model.
const RETIRED: &str = "r00c0";

/// Five instructions a turn: three of the body and two of the loop.
const BODY: &str = "asm = \"nop; imul rax, rax; nop\"\n";

fn on(model: Model, samples: &[&str]) -> Ran {
    let toml: String = samples.iter().map(|rest| format!("[[sample]]\n{BODY}{rest}\n")).collect();
    let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, &toml) }.run();
    ran.ends_with(0);
    ran
}

fn sampled(ran: &Ran) -> Vec<&SampleResult> {
    ran.report.sampled().collect()
}

/// What a counter sees between the opening and the closing write besides the code: three MOVs to restore registers, an
/// LFENCE, and three MOVs and the WRMSR at the end.
const GATE: u64 = 8;

/// Whether every overflow is somewhere, and every event in a period or in the rest.
fn is_whole(one: &SampledCount) {
    assert_eq!(one.samples + one.dropped, one.overflows, "{one:?}");
    let counted = (one.overflows + one.throttled) * one.period + one.rest;
    if let Some(witness) = one.witness {
        assert!(counted <= witness, "{one:?}");
    }
}

#[test]
fn i3_i4_t7_overflows_are_exact_and_the_handler_is_not_counted() {
    for model in MODELS {
        for (delivery, freeze) in
            [("fixed", "auto"), ("nmi", "auto"), ("fixed", "software"), ("nmi", "software")]
        {
            let options = format!(
                "events = [\"{RETIRED}\"]\nperiod = 500\nturns = 4000\ndelivery = \"{delivery}\"\n\
                 freeze = \"{freeze}\"\n"
            );
            let single = format!("{options}keep = \"samples\"");
            let ran = on(model, &[&options, &single]);
            for result in sampled(&ran) {
                let one = &result.events[0];
                is_whole(one);
                let seen = result.handler_instructions.expect("frozen or stopped");
                // The witness counts the work, the gate, and of each interrupt what is stated. Without a global control each of
                // the two counters has a write of its own.
                let gate = if model == Model::Zen2 { GATE + 4 } else { GATE };
                let expected = 20_000 + gate + seen * result.interrupts;
                assert_eq!(
                    one.witness,
                    Some(expected),
                    "{model:?} {delivery} {freeze}: {result:?}"
                );
                assert_eq!((result.interrupts, result.spurious), (one.overflows, 0), "{model:?}");
                // No more than the handler's end shortens a period.
                assert!((40..=44).contains(&one.overflows), "{model:?}: {one:?}");
            }
        }
    }
}

#[test]
fn m9_i5_samples_lie_where_the_counter_overflowed() {
    for model in MODELS {
        let options = format!("events = [\"{RETIRED}\"]\nperiod = 999\nturns = 3000\n");
        let ran = on(model, &[&options, &format!("{options}keep = \"samples\"\n")]);
        let results = sampled(&ran);
        let [histogram, single] = results[..] else { panic!("{results:?}") };
        let body = histogram.code[0].body.map(|at| at.0);
        let rows: u64 = histogram.addresses.iter().map(|row| row.count).sum();
        assert_eq!(rows, histogram.events[0].samples, "{model:?}");
        for row in &histogram.addresses {
            // Within the body, or at the loop's DEC and JNZ, whose bytes come along.
            assert!((body[0]..body[1] + 9).contains(&row.address.0), "{model:?}: {row:?}");
            assert!(!row.bytes.is_empty() && row.ring == 0 && row.task == 0, "{model:?}: {row:?}");
        }
        let all: Vec<_> = ran.report.samples(single.item).flat_map(Samples::iter).collect();
        assert_eq!(all.len() as u64, single.logged, "{model:?}");
        assert!(all.windows(2).all(|pair| pair[0].1 < pair[1].1), "the TSC rises: {model:?}");
        // From one sample to the next 999 instructions pass, less what is seen of the handler's end.
        let at = |address: u64| match address - body[0] {
            0 => 0,
            1 => 1,
            5 => 2,
            6 => 3,
            9 => 4,
            other => panic!("{model:?}: no instruction begins at {other}"),
        };
        let steps: Vec<u64> =
            all.windows(2).map(|pair| (5 + at(pair[1].0) - at(pair[0].0)) % 5).collect();
        assert!(steps.windows(2).all(|pair| pair[0] == pair[1]), "{model:?}: {steps:?}");
    }
}

#[test]
fn m11_a_full_log_drops_and_counts_or_stops() {
    for model in MODELS {
        let options = format!(
            "events = [\"{RETIRED}\"]\nperiod = 500\nturns = 3000\nkeep = \"samples\"\ncapacity = 10\n\
             registers = [\"rax\", \"r15\"]\n"
        );
        let ran = on(model, &[&options, &format!("{options}on-full = \"stop\"\n")]);
        let results = sampled(&ran);
        let [drops, stops] = results[..] else { panic!("{results:?}") };
        let one = &drops.events[0];
        is_whole(one);
        assert_eq!((one.samples, drops.dropped), (10, one.overflows - 10), "{model:?}");
        assert!(one.overflows >= 30 && !drops.stopped, "{model:?}: {one:?}");
        let one = &stops.events[0];
        assert_eq!((one.overflows, one.samples, one.dropped), (10, 10, 0), "{model:?}");
        assert!(stops.stopped && one.rest < 100, "{model:?}: {stops:?}");
        let registers: Vec<u64> =
            ran.report.samples(0).flat_map(|c| &c.registers).map(|r| r.0).collect();
        // R15 counts the loop down.
        let loops: Vec<u64> = registers.chunks(2).map(|pair| pair[1]).collect();
        assert_eq!(loops.len(), 10, "{model:?}");
        assert!(
            loops.windows(2).all(|pair| (90..=101).contains(&(pair[0] - pair[1]))),
            "{loops:?}"
        );
    }
}

#[test]
fn i4_two_events_at_once_have_each_their_period() {
    for model in MODELS {
        // Branches: one of the five instructions.
        let branches =
            if matches!(model, Model::Core2 | Model::Skylake) { "r00c4" } else { "r00c2" };
        let events = format!(
            "events = [{{ event = \"{RETIRED}\", period = 700 }}, {{ event = \"{branches}\", period = 90 }}]\nturns = 3000"
        );
        let ran = on(model, &[&events]);
        let result = sampled(&ran)[0];
        let [retired, taken] = &result.events[..] else { panic!("{result:?}") };
        is_whole(retired);
        is_whole(taken);
        // Each sees the ends of the handler, of which there is one for each overflow of either. An overflow in such an
        // end freezes it there.
        // An AMD interrupt that came during another one's handler finds nothing left to do.
        let interrupts = result.interrupts + result.spurious;
        let seen = result.handler_instructions.expect("frozen or stopped") * interrupts;
        let gate = if model == Model::Zen2 { GATE + 3 * 4 } else { GATE };
        let least = 15_000 + gate + seen / 2;
        let witness = retired.witness.expect("a counter is free");
        assert!((least..=15_000 + gate + seen).contains(&witness), "{model:?}: {result:?}");
        let most = (15_000 + gate + seen) / 700;
        assert!((21..=most).contains(&retired.overflows), "{model:?}: {retired:?}");
        // The loops that stop and start counters one by one are branches as well.
        let most = if model == Model::Zen2 { 3000 / 80 } else { 34 };
        assert!((33..=most).contains(&taken.overflows), "{model:?}: {taken:?}");
        let rows = |event| result.addresses.iter().filter(move |row| row.event == event);
        assert_eq!(rows(1).map(|row| row.count).sum::<u64>(), taken.samples, "{model:?}");
        // A branch retires, and the next instruction is the body's first.
        assert!(rows(1).all(|row| row.address == result.code[0].body[0]), "{model:?}: {result:?}");
    }
}

#[test]
fn m8_the_timer_samples_and_its_real_interval_is_told() {
    for model in [Model::Skylake, Model::Zen2] {
        let options = format!(
            "interval-ns = 20000\nturns = 100000\nevents = [{{ event = \"{RETIRED}\", period = 100000 }}]"
        );
        let ran = on(model, &[&options]);
        let result = sampled(&ran)[0];
        let [retired, timer] = &result.events[..] else { panic!("{result:?}") };
        is_whole(retired);
        // It counts on after each tick: 500,000 instructions at a period of 100,000.
        assert!(retired.overflows >= 4, "{retired:?}");
        is_whole(timer);
        assert!(timer.event == "timer" && timer.overflows >= 10, "{model:?}: {timer:?}");
        let told = result.timer.as_ref().expect("a timer sampled");
        let [least, median, most] = told.measured_ns.expect("many ticks");
        assert!(told.set_ns.abs_diff(20_000) <= 16, "{model:?}: {told:?}");
        assert!(least <= median && median <= most && median >= 10_000, "{model:?}: {told:?}");
        // Each write of an emulated PMU takes long: where the handler makes many, ticks come late, and the interval grows.
        assert!(told.doubled <= 8, "{model:?}: {told:?}");
    }
}

#[test]
fn m8_throttling_raises_the_period_and_says_so() {
    for model in [Model::Skylake, Model::Zen2] {
        let options = format!(
            "limit-per-ms = 5\nturns = 20000\nevents = [{{ event = \"{RETIRED}\", period = 200 }}]"
        );
        let ran = on(model, &[&options]);
        let result = sampled(&ran)[0];
        let one = &result.events[0];
        is_whole(one);
        assert!(result.throttled >= 2 && one.throttled > one.overflows, "{model:?}: {one:?}");
        assert_eq!(one.last_period, Some(200 << (result.throttled - result.eased)), "{model:?}");
        assert!(one.overflows < 200, "{model:?}: {one:?}");
    }
}

#[test]
fn c7_m15_a_task_that_faults_ends_its_item_and_the_next_is_sampled() {
    let events = format!("events = [\"{RETIRED}\"]\nperiod = 100\n");
    let toml = format!(
        "[[sample]]\nname = \"faults\"\nasm = \"nop; nop; ud2\"\n{events}[[sample]]\nname = \"unknown\"\n\
         asm = \"nop\"\nevents = [\"no_such_event\"]\nperiod = 5\n[[sample]]\nname = \"good\"\nturns = 1000\n{BODY}{events}"
    );
    let ran =
        Guest { pmu: Given::Emulated(Model::Skylake), ..Guest::new(Boot::Direct, &toml) }.run();
    ran.ends_with(1);
    let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
    assert!(texts[0].contains("#UD") && texts[1].contains("no_such_event"), "{texts:?}");
    let good = sampled(&ran)[0];
    assert!(good.events[0].overflows >= 50, "{good:?}");
    is_whole(&good.events[0]);
}

#[test]
fn i5_the_command_line_writes_profiles_that_viewers_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let job = format!(
        "[[sample]]\nname = \"s\"\nasm = \"nop; inner: imul rax, rax; nop\"\nturns = 2000\nevents = [\"{RETIRED}\"]\nperiod = 500"
    );
    std::fs::write(path("job.toml"), job).unwrap();
    let (folded, pprof) = (path("folded"), path("pprof"));
    let files = ["--samples-folded", &folded, "--samples-pprof", &pprof];
    let job = path("job.toml");
    let called = xtask(folder.path(), &[&["run", &job, "--pmu", "zen4"][..], &files].concat());
    assert_eq!(called.code, 0, "{called:?}");
    assert!(
        called.out.contains("s:inner+0x") && called.out.contains("imul rax, rax"),
        "{called:?}"
    );
    let folded = std::fs::read_to_string(folded).unwrap();
    let sum: u64 =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert!((19..=24).contains(&sum) && folded.contains("s;r00c0;s;s:inner;0x"), "{folded}");
    // The magic number of gzip.
    assert_eq!(std::fs::read(pprof).unwrap()[..2], [0x1f, 0x8b]);
}

/// `turns` of the body at the highest rate there is: between two interrupts no more is run than the rest of the shortest
/// period. Returns how often the counter overflowed.
fn at_the_highest_rate(model: Model, turns: u64, seconds: u64) -> u64 {
    let toml =
        format!("[[sample]]\n{BODY}events = [\"{RETIRED}\"]\nperiod = 64\nturns = {turns}\n");
    let timeout = std::time::Duration::from_secs(seconds);
    let guest = Guest::new(Boot::Direct, &toml);
    let ran = Guest { pmu: Given::Emulated(model), timeout, ..guest }.run();
    ran.ends_with(0);
    let result = sampled(&ran)[0];
    let one = &result.events[0];
    is_whole(one);
    let handler = result.handler_instructions.expect("a known number");
    // Without a global control each of the two counters has its own write that starts it, and one that stops it: the handler
    // stops the witness last, which counts twice as much of it.
    let (gate, own) = if model == Model::K10 { (GATE + 4, handler / 2) } else { (GATE, handler) };
    let counted = |of_handler| 5 * turns + gate + of_handler * result.interrupts;
    assert_eq!(one.witness, Some(counted(handler)), "{model:?}: {result:?}");
    // What the one counter has counted in whole periods, the other has counted as well: no overflow is missing.
    assert_eq!(one.overflows * 64 + one.rest, counted(own), "{model:?}: {result:?}");
    assert_eq!((one.overflows, one.dropped), (result.interrupts, 0), "{model:?}: {result:?}");
    one.overflows
}

/// Those that are made on three Intel and two AMD models, each model in a test of its own: 10^5 together, 10^6 by the soak tests.
fn overflows_are_accounted_for(model: Model, least: u64) {
    let overflows = at_the_highest_rate(model, 9 * least, 900);
    assert!(overflows >= least, "{overflows}");
}

#[test]
fn i3_m12_20_000_overflows_at_the_highest_rate_are_all_accounted_for_on_nehalem() {
    overflows_are_accounted_for(Model::Nehalem, 20_000);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn i3_m12_200_000_overflows_at_the_highest_rate_are_all_accounted_for_on_nehalem_soak() {
    overflows_are_accounted_for(Model::Nehalem, 200_000);
}

#[test]
fn i3_m12_20_000_overflows_at_the_highest_rate_are_all_accounted_for_on_skylake() {
    overflows_are_accounted_for(Model::Skylake, 20_000);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn i3_m12_200_000_overflows_at_the_highest_rate_are_all_accounted_for_on_skylake_soak() {
    overflows_are_accounted_for(Model::Skylake, 200_000);
}

#[test]
fn i3_m12_20_000_overflows_at_the_highest_rate_are_all_accounted_for_on_sapphire_rapids() {
    overflows_are_accounted_for(Model::SapphireRapids, 20_000);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn i3_m12_200_000_overflows_at_the_highest_rate_are_all_accounted_for_on_sapphire_rapids_soak() {
    overflows_are_accounted_for(Model::SapphireRapids, 200_000);
}

#[test]
fn i3_m12_20_000_overflows_at_the_highest_rate_are_all_accounted_for_on_k10() {
    overflows_are_accounted_for(Model::K10, 20_000);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn i3_m12_200_000_overflows_at_the_highest_rate_are_all_accounted_for_on_k10_soak() {
    overflows_are_accounted_for(Model::K10, 200_000);
}

#[test]
fn i3_m12_20_000_overflows_at_the_highest_rate_are_all_accounted_for_on_zen4() {
    overflows_are_accounted_for(Model::Zen4, 20_000);
}

#[test]
#[ignore = "cargo xtask test --soak"]
fn i3_m12_200_000_overflows_at_the_highest_rate_are_all_accounted_for_on_zen4_soak() {
    overflows_are_accounted_for(Model::Zen4, 200_000);
}

/// A load from memory takes longer than a few periods: the cycles after an overflow belong to the periods after it, in the handlers in
/// assembly and in the one in Rust, and whole periods of them are told. Nothing of the task's is lost.
#[test]
fn i4_m12_periods_that_end_within_one_instruction_are_accounted_for() {
    let item = |freeze: &str, keep: &str| {
        format!(
            "[[sample]]\nevents = [\"cycles:u\"]\nperiod = 64\nfreeze = \"{freeze}\"\nkeep = \"{keep}\"\ntick-ns = 0\n\
             [[sample.task]]\nname = \"t\"\nring = 3\nturns = 500\nasm = \"clflush [r14]; mov rax, [r14]; nop\"\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let job = ["auto", "software"]
        .map(|freeze| ["histogram", "samples"].map(|keep| item(freeze, keep)).concat());
    std::fs::write(folder.path().join("job.toml"), job.concat()).unwrap();
    for model in MODELS {
        let pmu = format!("{},memory=300", model.spec().name);
        let called = xtask(folder.path(), &["run", "job.toml", "--pmu", &pmu, "--format", "json"]);
        assert_eq!(called.code, 0, "{called:#?}");
        let json: serde_json::Value = serde_json::from_str(&called.out).unwrap();
        let records = json["records"].as_array().unwrap();
        let results: Vec<SampleResult> =
            records.iter().filter_map(|one| serde_json::from_value(one.clone()).ok()).collect();
        assert_eq!(results.len(), 4, "{json:#}");
        for result in results {
            let one = &result.events[0];
            let sum = (one.overflows + one.throttled) * one.period + one.rest;
            assert_eq!(
                (one.samples + one.dropped, one.witness),
                (one.overflows, Some(sum)),
                "{model:?}: {one:?}"
            );
            // Each turn has a load of more than four periods, and one overflow.
            assert!(one.overflows >= 500 && one.throttled > 1_500, "{model:?}: {one:?}");
            let said = format!("came to {} periods", one.throttled);
            assert!(one.remarks.iter().any(|remark| remark.contains(&said)), "{model:?}: {one:?}");
        }
    }
}
