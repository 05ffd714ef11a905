mod processors;

use super::pprof::proto;
use super::*;
use crate::cli::Format;
use crate::collect::Numbered;
use crate::job::sample::TaskCode;
use crate::render::{Context, render};
use flate2::read::GzDecoder;
use prost::Message;
use protocol::record::Samples;
use protocol::record::{
    AddressCount, CodePlace, DataCount, Record, SampledCount, SamplingCapability, Schedule,
    TaskEnd, TaskResult, Ticks, Uncounted,
};
use protocol::sampling::{Delivery, OnFull};
use std::io::Read;

fn count(event: &str, period: u64, samples: u64) -> SampledCount {
    SampledCount {
        event: event.into(),
        counter: Some("counter 1".into()),
        period,
        overflows: samples + 2,
        samples,
        dropped: 2,
        throttled: 0,
        last_period: None,
        rest: 5,
        witness: Some(1000),
        remarks: vec!["erratum X1".into()],
        skid: None,
        lost: 0,
        filtered: 0,
        ended: None,
        qualified: None,
        retire_latency: None,
    }
}

/// `nop; inner: imul rax, rax; nop` at 0x1000, in a function from 0xf00 to 0x1100.
const BODY: [u8; 6] = [0x90, 0x48, 0x0f, 0xaf, 0xc0, 0x90];

fn result() -> SampleResult {
    let range = |start, end| [Hex(start), Hex(end)];
    let row = |address, event, count, bytes: &str| AddressCount {
        address: Hex(address),
        event,
        task: 0,
        ring: 0,
        count,
        bytes: bytes.into(),
        bits: 64,
        cpu: 0,
    };
    SampleResult {
        item: 4,
        name: "s;t".into(),
        verdict: protocol::record::Verdict::None,
        misses: vec![],
        restored: Vec::new(),
        events: vec![count("cycles", 100, 9), count("timer", 5000, 3)],
        processors: Vec::new(),
        tasks: vec!["work".into()],
        schedule: None,
        code: vec![CodePlace {
            body: range(0x1000, 0x1006),
            init: range(0xff0, 0xff0),
            function: range(0xf00, 0x1100),
            program: None,
        }],
        addresses: vec![
            row(0x1001, 0, 6, "480fafc090"),
            row(0x1000, 0, 2, "90"),
            row(0x1010, 0, 1, ""),
            row(0x1005, 1, 3, "90"),
        ],
        elsewhere: 4,
        logged: 0,
        dropped: 0,
        on_full: OnFull::Drop,
        stopped: false,
        delivery: Delivery::Nmi,
        handling: "frozen by the processor".into(),
        handler_instructions: Some(6),
        interrupts: 11,
        spurious: 1,
        back_to_back: 2,
        throttled: 3,
        eased: 2,
        timer: None,
        capability: SamplingCapability {
            skid: "none at all".into(),
            data_address: "not available: test".into(),
            ..SamplingCapability::default()
        },
        emulated: true,
        data: vec![],
        data_elsewhere: 0,
        branches: None,
        sources: vec![],
        sources_elsewhere: 0,
        latencies: None,
        outcomes: vec![],
        outcomes_elsewhere: 0,
        stacks: None,
        values: Vec::new(),
        uncounted: vec![],
        ticks: 7,
        tsc: [0; 2],
    }
}

fn report(records: Vec<Record>) -> Report {
    let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record });
    Report { records: records.collect(), ..Report::default() }
}

fn resolver() -> Resolver {
    let code = TaskCode { body: BODY.to_vec(), labels: vec![(1, "inner".into())] };
    Resolver::new(&[(4, vec![code])], None)
}

#[test]
fn i5_addresses_become_labels_instructions_and_shares() {
    let report = report(vec![Record::Sample(result())]);
    let profiles = Profile::of(&report, &resolver());
    let [profile] = &profiles[..] else { panic!("{profiles:?}") };
    let seen: Vec<_> = profile
        .rows
        .iter()
        .map(|row| (row.place.symbol.as_str(), row.place.offset, row.place.instruction.as_str()))
        .collect();
    let expected = [
        ("work:inner", Some(0), "imul rax, rax"),
        ("work", Some(0), "nop"),
        ("work (loop, measuring code)", Some(0x110), ""),
        ("work:inner", Some(4), "nop"),
    ];
    assert_eq!(seen, expected);
    assert_eq!(profile.total(0), 9);
    let first = &profile.symbols(0)[0];
    assert_eq!((first.symbol.as_str(), first.count), ("work:inner", 6));
    // Without the job its labels are not known, but the instructions are.
    let bare = Profile::of(&report, &Resolver::default());
    assert_eq!(
        (bare[0].rows[0].place.symbol.as_str(), bare[0].rows[0].place.offset),
        ("work", Some(1))
    );
    assert_eq!(bare[0].rows[0].place.instruction, "imul rax, rax");
}

#[test]
fn i8_tasks_have_their_own_labels_rows_and_table() {
    let range = |start, end| [Hex(start), Hex(end)];
    let place = |at| CodePlace {
        body: range(at, at + 6),
        init: range(at, at),
        function: range(at, at + 13),
        program: None,
    };
    let row = |address, task, count| AddressCount {
        address: Hex(address),
        event: 0,
        task,
        ring: 3,
        count,
        bytes: String::new(),
        bits: 64,
        cpu: 0,
    };
    let task = |name: &str, end| TaskResult {
        name: name.into(),
        entry: Hex(0),
        end,
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
        moves: None,
        shares: Vec::new(),
        cpu: 0,
        bits: 64,
        ended_bits: None,
    };
    let tasks = vec![task("one", TaskEnd::Exit), task("two", TaskEnd::Limit)];
    let result = SampleResult {
        tasks: vec!["one".into(), "two".into()],
        code: vec![place(0x1000), place(0x2000)],
        // The last one names a task whose code does not lie there.
        addresses: vec![row(0x1001, 0, 5), row(0x2001, 1, 3), row(0x2001, 0, 1)],
        schedule: Some(Schedule { tasks, switches: 4, ticks: Ticks::default() }),
        ..result()
    };
    let codes = ["first", "second"]
        .map(|label| TaskCode { body: BODY.to_vec(), labels: vec![(1, label.into())] });
    let resolver = Resolver::new(&[(4, codes.to_vec())], None);
    let report = report(vec![Record::Sample(result)]);
    let profiles = Profile::of(&report, &resolver);
    let symbols = profiles[0].symbols(0);
    let seen: Vec<_> =
        symbols.iter().map(|one| (&*one.task, one.ring, &*one.symbol, one.count)).collect();
    assert_eq!(
        seen,
        [("one", 3, "one:first", 5), ("two", 3, "two:second", 3), ("one", 3, "0x2001", 1)]
    );
    assert!(folded::write(&profiles).contains(";cycles;two;two:second;0x2001 imul rax, rax 3\n"));
    let context = Context { sampled: vec![(4, codes.to_vec())], ..Context::default() };
    let text = render(&report, &context, Format::Table);
    let text = anstream::adapter::strip_str(&text).to_string();
    // Columns are as wide as they must be.
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for part in ["two ended at its limit 5 2 77", "one:first one 3 5 55.6 %", "two:second two 3 3"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn m11_single_samples_make_the_same_rows_as_a_histogram() {
    let mut chunks = Vec::new();
    let all = [(0x1001, 6, 1), (0x1000, 2, 1), (0x1010, 1, 1), (0x1005, 3, 2)];
    let mut last = [0; 2];
    let mut chunk = Samples { item: 4, ..Samples::default() };
    for (n, (address, times, events)) in all.into_iter().enumerate() {
        for _ in 0..times {
            chunk.push(&mut last, address, 7, events, 0);
        }
        if n == 1 {
            chunks.push(Record::Samples(std::mem::take(&mut chunk)));
            (chunk.item, last) = (4, [0; 2]);
        }
    }
    chunks.push(Record::Samples(chunk));
    let whole = report(vec![Record::Sample(result())]);
    chunks.push(Record::Sample(SampleResult { addresses: vec![], ..result() }));
    let single = report(chunks);
    let (whole, single) = (Profile::of(&whole, &resolver()), Profile::of(&single, &resolver()));
    assert_eq!(whole[0].rows, single[0].rows);
}

#[test]
fn i5_folded_stacks_have_a_line_for_each_address() {
    let report = report(vec![Record::Sample(result())]);
    let text = folded::write(&Profile::of(&report, &resolver()));
    let first = "s,t;cycles;work;work:inner;0x1001 imul rax, rax 6";
    assert_eq!(text.lines().next(), Some(first));
    assert_eq!(text.lines().count(), 4);
    for line in text.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        assert!(count.parse::<u64>().is_ok() && stack.split(';').count() == 5, "{line}");
    }
}

#[test]
fn i5_a_pprof_file_reads_back_with_every_sample() {
    let report = report(vec![Record::Sample(result())]);
    let bytes = pprof::write(&Profile::of(&report, &resolver())).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    let profile = proto::Profile::decode(&plain[..]).unwrap();
    let text = |index: i64| profile.string_table[index as usize].as_str();
    assert_eq!(text(0), "", "the format wants the empty text first");
    let kinds: Vec<_> =
        profile.sample_type.iter().map(|kind| (text(kind.r#type), text(kind.unit))).collect();
    assert_eq!(kinds, [("samples", "count"), ("cycles", "count"), ("timer", "nanoseconds")]);
    let stack = |sample: &proto::Sample| -> Vec<&str> {
        let location = |id: &u64| profile.location.iter().find(|one| one.id == *id).unwrap();
        let function = |id| profile.function.iter().find(|one| one.id == id).unwrap();
        let ids = sample.location_id.iter().map(|id| location(id).line[0].function_id);
        ids.map(|id| text(function(id).name)).collect()
    };
    let seen: Vec<_> = profile.sample.iter().map(|one| (stack(one), &one.value[..])).collect();
    assert_eq!(seen[0], (vec!["work:inner", "work (ring 0)"], &[6, 600, 0][..]));
    assert_eq!(seen[3], (vec!["work:inner", "work (ring 0)"], &[3, 0, 15_000][..]));
    let sums: i64 = profile.sample.iter().map(|sample| sample.value[0]).sum();
    assert_eq!(sums, 12);
}

/// The bytes themselves: a reader that knows nothing of our types finds the fields where `profile.proto` has them.
#[test]
fn i5_the_pprof_fields_have_the_formats_numbers() {
    let location = proto::Location {
        id: 1,
        mapping_id: 0,
        address: 2,
        line: vec![proto::Line { function_id: 3, line: 4 }],
    };
    assert_eq!(location.encode_to_vec(), [0x08, 1, 0x18, 2, 0x22, 4, 0x08, 3, 0x10, 4]);
    let sample = proto::Sample {
        location_id: vec![1, 2],
        value: vec![3],
        label: vec![proto::Label { key: 1, str: 2, num: 0 }],
    };
    assert_eq!(sample.encode_to_vec(), [0x0a, 2, 1, 2, 0x12, 1, 3, 0x1a, 4, 0x08, 1, 0x10, 2]);
    let function = proto::Function { id: 1, name: 2, system_name: 3, filename: 4 };
    assert_eq!(function.encode_to_vec(), [0x08, 1, 0x10, 2, 0x18, 3, 0x20, 4]);
    let profile = proto::Profile {
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        string_table: vec!["".into(), "a".into()],
        default_sample_type: 1,
        ..proto::Profile::default()
    };
    assert_eq!(
        profile.encode_to_vec(),
        [0x0a, 4, 0x08, 1, 0x10, 2, 0x32, 0, 0x32, 1, b'a', 0x70, 1]
    );
}

#[test]
fn m8_m9_the_table_says_what_was_sampled_what_was_not_and_how_exact_it_is() {
    let uncounted = vec![Uncounted { event: "loads".into(), reason: "no counter".into() }];
    let report = report(vec![Record::Sample(SampleResult { uncounted, ..result() })]);
    let context = Context {
        sampled: vec![(
            4,
            vec![TaskCode { body: BODY.to_vec(), labels: vec![(1, "inner".into())] }],
        )],
        ..Context::default()
    };
    let table = render(&report, &context, Format::Table);
    let mut own = report.clone();
    for one in &mut own.records {
        if let Record::Sample(result) = &mut one.record {
            result.emulated = !result.emulated;
        }
    }
    let other = render(&own, &context, Format::Table);
    let labelled = [&table, &other].map(|text| text.contains("emulated PMU"));
    assert!(labelled == [true, false] || labelled == [false, true], "{table}{other}");
    for part in [
        "s;t",
        "cycles",
        "100",
        "work:inner",
        "imul rax, rax",
        "66.7 %",
        "none at all",
        "not available: test",
        "periods doubled 3 times, and halved 2 times when the rate fell again",
        "4 overflows",
        "erratum X1",
        "frozen",
        "emulated",
        "NMI",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = render(&report, &context, Format::Csv);
    assert!(csv.contains("4,s;t,sampled cycles,11,"), "{csv}");
    assert!(csv.contains("4,s;t,loads,,,,,,,,,,uncounted\n"), "{csv}");
    assert!(render(&report, &context, Format::Tap).contains("ok 1 - s;t"));
    assert_eq!(report.items(), 1);
}

#[test]
fn m9_data_addresses_are_shown_by_line_and_each_in_csv() {
    let row = |address, event, count| DataCount {
        address: Hex(address),
        event,
        count,
        ..DataCount::default()
    };
    let data = vec![row(0x5008, 0, 3), row(0x5000, 0, 2), row(0x5040, 0, 1), row(0x6000, 1, 3)];
    let mut result = SampleResult { data, data_elsewhere: 2, ..result() };
    result.events[0].skid = Some("0: for a test".into());
    result.events[0].lost = 7;
    let context = Context::default();
    let whole = report(vec![Record::Sample(result.clone())]);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let lines: Vec<_> =
        profile.lines(0).iter().map(|line| (line.line, line.addresses, line.count)).collect();
    assert_eq!(lines, [(0x5000, 2, 5), (0x5040, 1, 1)]);
    let table = render(&whole, &context, Format::Table);
    for part in [
        "skid of cycles: 0: for a test",
        "0x5000",
        "83.3 %",
        "2 data addresses did not fit",
        "cycles: 7 records were lost",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = render(&whole, &context, Format::Csv);
    assert!(csv.contains("4,s;t,sampled cycles of data at 0x5008,3,3,3,3,1,1,,,,\n"), "{csv}");
    // Single samples: 0 is none.
    let mut chunk = Samples { item: 4, ..Samples::default() };
    let mut last = [0; 2];
    for (address, events) in [(0x1000, 1), (0x1001, 3), (0x1005, 2)] {
        chunk.push(&mut last, address, 0, events, 0);
    }
    chunk.data = vec![Hex(0x7000), Hex(0x7001), Hex(0)];
    let single = SampleResult { data: vec![], ..result };
    let whole = report(vec![Record::Samples(chunk), Record::Sample(single)]);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let count = |event| profile.lines(event).iter().map(|line| line.count).collect::<Vec<_>>();
    assert_eq!((count(0), count(1)), (vec![2], vec![1]));
}

#[test]
fn s1_values_of_counters_and_vector_registers_have_tables() {
    let mut chunks = Vec::new();
    for (first, values) in [(0u64, vec![100u64, 7, 177, 7]), (2, vec![260, 9])] {
        let mut chunk = Samples { item: 4, first, ..Samples::default() };
        let mut last = [0; 2];
        for n in 0..values.len() as u64 / 2 {
            chunk.push(&mut last, 0x1000, n, 1, 0);
            // XMM3 alone is not 0, and twice the same.
            let vectors = (0..32).map(|half| if half == 7 { (first + n) / 2 + 1 } else { 0 });
            chunk.vectors.extend(vectors.map(Hex));
        }
        chunk.values = values;
        chunks.push(Record::Samples(chunk));
    }
    let values = vec!["cycles".to_string(), "r00c4".to_string()];
    chunks.push(Record::Sample(SampleResult { addresses: vec![], values, ..result() }));
    let whole = report(chunks);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let [cycles, branches] = &profile.values[..] else { panic!("{:?}", profile.values) };
    assert_eq!((cycles.samples, cycles.ends, cycles.steps), (3, [100, 260], Some((77, 80.0, 83))));
    assert_eq!((branches.ends, branches.steps), ([7, 9], Some((0, 1.0, 2))));
    let [row] = &profile.vectors[..] else { panic!("{:?}", profile.vectors) };
    assert_eq!((&*row.name, row.different, row.ends), ("xmm3", 2, [1 << 64, 2 << 64]));
    let context = Context::default();
    let text = render(&whole, &context, Format::Table);
    let text = anstream::adapter::strip_str(&text).to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["cycles 3 100 260 77 80.0 83", "xmm3 2 0x00000000000000010000000000000000"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let csv = render(&whole, &context, Format::Csv);
    for part in [
        "value of cycles from sample to sample, least",
        "value of r00c4 at the last sample,9,9",
        "different values of xmm3,2,2",
    ] {
        assert!(csv.contains(part), "{part}: {csv}");
    }
    let json = render(&whole, &context, Format::Json);
    assert!(json.contains("\"values\":[100,7,177,7]") || json.contains("\"values\": ["), "{json}");
}

/// A function that no other symbol of this program resembles.
#[inline(never)]
fn landmark(value: u32) -> u32 {
    std::hint::black_box(value).rotate_left(3)
}

#[test]
fn i5_addresses_of_the_firmware_become_functions_and_lines() {
    // This very program is an ELF file with symbols and lines.
    let file = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let parsed = object::File::parse(&*bytes).unwrap();
    use object::{Object, ObjectSymbol};
    std::hint::black_box(landmark as fn(u32) -> u32);
    let symbol = parsed.symbols().find(|symbol| {
        symbol.name().is_ok_and(|name| name.contains("samples") && name.contains("landmark"))
            && symbol.is_definition()
    });
    let symbol = symbol.expect("the landmark of these tests");
    let base = 0x4000_0000;
    let resolver = Resolver::new(&[], Some((&file, base)));
    let place = resolver.place(&result(), 0, base + symbol.address(), "", 64);
    assert!(place.symbol.contains("landmark"), "{place:?}");
    assert!(
        place.line.as_deref().is_some_and(|line| line.starts_with("xtask/src/samples/tests.rs:")),
        "{place:?}"
    );
    assert!(!place.instruction.is_empty() && place.instruction != "(bad)", "{place:?}");
    let nowhere = resolver.place(&result(), 0, 0x10, "", 64);
    assert_eq!((nowhere.symbol.as_str(), nowhere.line), ("0x10", None));
    // The linker's `_end`, a symbol without an end, is the last below this address.
    let behind = resolver.place(&result(), 0, base + 0x7000_0000, "", 64);
    assert_eq!((behind.symbol.as_str(), behind.line), ("0xb0000000", None));
}

/// Stacks of two calls, and of none; call sites in the loop's code.
fn with_stacks() -> SampleResult {
    use protocol::record::{SampledStacks, StackCount};
    let stack = |frames: &[u64], count| StackCount {
        event: 0,
        task: 0,
        ring: 0,
        frames: frames.iter().copied().map(Hex).collect(),
        count,
    };
    let stacks = vec![stack(&[0x1001, 0x1005, 0x1000], 6), stack(&[0x1000], 3)];
    SampleResult { stacks: Some(SampledStacks { entries: 32, stacks, elsewhere: 1 }), ..result() }
}

#[test]
fn s2_stacks_become_call_chains_in_folded_and_pprof() {
    let report = report(vec![Record::Sample(with_stacks())]);
    let profiles = Profile::of(&report, &resolver());
    let text = folded::write(&profiles);
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "s,t;cycles;work;work;work:inner;work:inner;0x1001 imul rax, rax 6",
        "s,t;cycles;work;work;0x1000 nop 3",
    ];
    assert_eq!(lines, expected);
    let bytes = pprof::write(&profiles).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    let profile = proto::Profile::decode(&plain[..]).unwrap();
    let addresses = |sample: &proto::Sample| -> Vec<u64> {
        let location = |id: &u64| profile.location.iter().find(|one| one.id == *id).unwrap();
        sample.location_id.iter().map(|id| location(id).address).collect()
    };
    let seen: Vec<_> =
        profile.sample.iter().map(|one| (addresses(one), one.value.clone())).collect();
    // The innermost frame first, the task last.
    assert_eq!(
        seen,
        [(vec![0x1001, 0x1005, 0x1000, 0], vec![6, 600, 0]), (vec![0x1000, 0], vec![3, 300, 0])]
    );
    let table = render(&report, &Context::default(), Format::Table);
    for part in ["work > work > work", "66.7 %", "1 call stacks did not fit"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = render(&report, &Context::default(), Format::Csv);
    assert!(csv.contains("4,s;t,calls 0x1000 0x1005 0x1001,6,"), "{csv}");
    // A report that was saved has them as well.
    let saved = super::saved::SavedProfile::of(&profiles[0]);
    assert_eq!(saved.profile(&report).unwrap().stacks, profiles[0].stacks);
}

#[test]
fn s1_sources_and_latencies_are_shown_by_level_class_line_and_page() {
    use protocol::record::{OutcomeCount, SourceCount};
    let source = |source: &str, least, count, latency, longest| SourceCount {
        source: source.into(),
        tlb_miss: Some(least > 100),
        least,
        count,
        latency,
        longest,
        ..SourceCount::default()
    };
    let data = |address, count, latency| DataCount {
        address: Hex(address),
        count,
        latency: Some(latency),
        longest: Some((latency / count) as u32),
        ..DataCount::default()
    };
    let result = SampleResult {
        sources: vec![
            source("L1", 4, 6, 24, 4),
            source("L1", 8, 1, 9, 9),
            source("memory", 128, 3, 702, 234),
        ],
        latencies: Some(["from dispatch to the data".into(), String::new()]),
        data: vec![data(0x5008, 6, 24), data(0x5000, 1, 9), data(0x6040, 3, 702)],
        outcomes: vec![OutcomeCount {
            address: Hex(0x1005),
            task: 0,
            count: 8,
            taken: 6,
            mispredicted: 2,
            returns: 0,
        }],
        ..result()
    };
    let whole = report(vec![Record::Sample(result)]);
    let profile = &Profile::of(&whole, &resolver())[0];
    let levels: Vec<_> = profile
        .levels(0)
        .into_iter()
        .map(|level| {
            (level.source.clone(), level.count, level.tlb_misses, level.mean(), level.longest)
        })
        .collect();
    let expected = [
        ("L1".to_string(), 7, Some(0), Some(33.0 / 7.0), 9),
        ("memory".to_string(), 3, Some(3), Some(234.0), 234),
    ];
    assert_eq!(levels, expected);
    assert_eq!(profile.latencies(0), [(4, 6), (8, 1), (128, 3)]);
    let pages: Vec<_> =
        profile.pages(0).iter().map(|page| (page.line, page.addresses, page.latency)).collect();
    assert_eq!(pages, [(0x5000, 2, Some(33)), (0x6000, 1, Some(702))]);
    let context = Context::default();
    let table = render(&whole, &context, Format::Table);
    for part in [
        "data page",
        "data from",
        "128 to 255",
        "70.0 %",
        "234.0",
        "sampled branch",
        "75.0 %",
        "25.0 %",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = render(&whole, &context, Format::Csv);
    for part in [
        "sampled cycles from memory,3,",
        "sampled cycles latency 128 to 255,3,",
        "sampled cycles of data line 0x5000,7,",
        "sampled cycles of data page 0x6000,3,",
        "sampled branch at 0x1005 taken,6,",
    ] {
        assert!(csv.contains(part), "{part}: {csv}");
    }
}
