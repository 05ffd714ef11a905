//! Data addresses, and where the data came from.

use super::*;
use protocol::record::DataCount;

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

/// IBS has no latency of a load that hit the first level: 90 of them do not make the ten others faster.
#[test]
fn s1_a_mean_latency_is_of_the_samples_that_have_one() {
    use protocol::record::SourceCount;
    let data = |address, count, timed, latency| DataCount {
        address: Hex(address),
        count,
        timed,
        latency,
        longest: latency.map(|_| 100),
        ..DataCount::default()
    };
    let source = |least, count, latency| SourceCount {
        source: "L2".into(),
        least,
        count,
        latency,
        ..SourceCount::default()
    };
    let result = SampleResult {
        data: vec![
            data(0x5000, 60, Some(4), Some(400)),
            // All of them, and none.
            data(0x5008, 6, None, Some(600)),
            data(0x5010, 34, None, None),
            data(0x6000, 5, None, None),
        ],
        // Of a prefetch by software the latency is not valid.
        sources: vec![source(0, 90, 0), source(64, 10, 1000)],
        ..result()
    };
    let whole = report(vec![Record::Sample(result.clone())]);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let expected = [(100, 10, Some(100.0)), (5, 0, None)];
    for blocks in [profile.lines(0), profile.pages(0)] {
        let seen: Vec<_> = blocks.iter().map(|one| (one.count, one.timed, one.mean())).collect();
        assert_eq!(seen, expected);
    }
    assert_eq!(profile.levels(0)[0].mean(), Some(100.0));
    // Single samples: 0 is none.
    let mut chunk = Samples { item: 4, ..Samples::default() };
    let mut last = [0; 2];
    (0..4).for_each(|_| chunk.push(&mut last, 0x1000, 0, 1, 0));
    chunk.data = vec![Hex(0x7000); 4];
    chunk.latencies = vec![0, 100, 0, 50];
    let single = SampleResult { data: vec![], ..result };
    let whole = report(vec![Record::Samples(chunk), Record::Sample(single)]);
    let profile = &Profile::of(&whole, &Resolver::default())[0];
    let [line] = &profile.lines(0)[..] else { panic!("one line") };
    assert_eq!((line.count, line.timed, line.mean()), (4, 2, Some(75.0)));
}
