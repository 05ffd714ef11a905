//! Profiles of several processors: processor and task in every form.

use super::*;
use crate::samples::processors::TaskCount;
use crate::samples::saved::SavedProfile;
use protocol::record::{SampledProcessor, Schedule, TaskEnd, TaskResult, Ticks};

/// Processor 0 has task `one`, processor 2 task `two`.
fn spread() -> SampleResult {
    let row = |address, cpu: u16, count| AddressCount {
        address: Hex(address),
        event: 0,
        task: cpu.min(1).into(),
        ring: 3,
        count,
        bytes: String::new(),
        bits: 64,
        cpu,
    };
    let task = |name: &str, cpu| TaskResult {
        name: name.into(),
        entry: Hex(0),
        end: TaskEnd::Exit,
        turns: 5,
        switches: 2,
        time: 77,
        value: Hex(0),
        memory_crc32: Hex(0),
        fault: None,
        user_instructions: None,
        child_user_instructions: None,
        added_to: None,
        outlived: None,
        cpu,
        bits: 64,
        ended_bits: None,
        moves: None,
        shares: vec![],
    };
    let part = |cpu, samples| SampledProcessor {
        cpu,
        events: vec![count("cycles", 100, samples)],
        elsewhere: 0,
        logged: 0,
        dropped: 0,
        stopped: false,
        interrupts: samples + 2,
        spurious: 0,
        timer: None,
    };
    let tasks = vec![task("one", 0), task("two", 2)];
    SampleResult {
        name: "s".into(),
        events: vec![count("cycles", 100, 16)],
        processors: vec![part(0, 7), part(2, 9)],
        tasks: vec!["one".into(), "two".into()],
        addresses: vec![row(0x2001, 2, 9), row(0x1001, 0, 7)],
        schedule: Some(Schedule { tasks, switches: 4, ticks: Ticks::default() }),
        stacks: None,
        ..result()
    }
}

fn words(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn i5_m13_samples_are_told_by_processor_and_by_task() {
    let report = report(vec![Record::Sample(spread())]);
    let profiles = Profile::of(&report, &Resolver::default());
    let of = |task: &str, cpu, count| TaskCount { task: task.into(), cpu, count };
    assert_eq!(profiles[0].by_task(0), [of("two", 2, 9), of("one", 0, 7)]);
    assert_eq!((profiles[0].total(0), profiles[0].by_task(1)), (16, vec![]));
    let table = words(&render(&report, &Context::default(), Format::Table));
    for part in [
        "by processor event overflows sampled dropped throttled rest counted",
        "0 cycles 9 7 2 0 5 1000",
        "2 cycles 11 9 2 0 5 1000",
        "cycles by task processor samples share",
        "two 2 9 56.2 %",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = render(&report, &Context::default(), Format::Csv);
    for part in ["sampled cycles on processor 0,9,", "sampled cycles on processor 2,11,"] {
        assert!(csv.contains(part), "{part}: {csv}");
    }
    let json = render(&report, &Context::default(), Format::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json.to_string().contains("\"cpu\":2"), "{json}");
    let html = render(&report, &Context::default(), Format::Html);
    for part in ["What became of the overflows, by processor", "processor 2", "cycles by task"] {
        assert!(html.contains(part), "{part}");
    }
    // As a saved report has them.
    let saved = SavedProfile::of(&profiles[0]);
    let text = serde_json::to_string(&saved).unwrap();
    let saved: SavedProfile = serde_json::from_str(&text).unwrap();
    assert_eq!(saved.profile(&report).unwrap().rows, profiles[0].rows);
}

#[test]
fn i5_m13_profiles_have_a_frame_for_each_processor() {
    let report = report(vec![Record::Sample(spread())]);
    let profiles = Profile::of(&report, &Resolver::default());
    let lines = folded::write(&profiles);
    assert!(lines.starts_with("s;cycles;processor 2;two;"), "{lines}");
    assert!(lines.contains("\ns;cycles;processor 0;one;"), "{lines}");
    let bytes = pprof::write(&profiles).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    let profile = proto::Profile::decode(&plain[..]).unwrap();
    let text = |at: i64| &*profile.string_table[at as usize];
    let names = |sample: &proto::Sample| -> Vec<&str> {
        let function = |id: &u64| {
            let location = profile.location.iter().find(|one| one.id == *id).unwrap();
            let function = location.line[0].function_id;
            text(profile.function.iter().find(|one| one.id == function).unwrap().name)
        };
        sample.location_id.iter().map(function).collect()
    };
    let labels = |sample: &proto::Sample| -> Vec<i64> {
        let own = sample.label.iter().filter(|label| text(label.key) == "processor");
        own.map(|label| label.num).collect()
    };
    let seen: Vec<_> = profile
        .sample
        .iter()
        .map(|one| (names(one)[1..].to_vec(), labels(one), one.value[0]))
        .collect();
    let of = |task, cpu| vec![task, cpu];
    let expected = [
        (of("two (ring 3)", "processor 2"), vec![2], 9),
        (of("one (ring 3)", "processor 0"), vec![0], 7),
    ];
    assert_eq!(seen, expected);
}

/// Where the boot processor alone was sampled, nothing names it.
#[test]
fn i5_one_processor_is_not_named() {
    let report = report(vec![Record::Sample(SampleResult { processors: vec![], ..spread() })]);
    let profiles = Profile::of(&report, &Resolver::default());
    assert!(!folded::write(&profiles).contains("processor"));
    let table = words(&render(&report, &Context::default(), Format::Table));
    assert!(!table.contains("by processor") && !table.contains("by task"), "{table}");
}
