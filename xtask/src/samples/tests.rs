mod call_stacks;
mod data_addresses;
mod firmware_addresses;
mod pprof_file;
mod processors;
mod registers;
mod table;
mod tasks;

use super::pprof::proto;
use super::*;
use crate::cli::Format;
use crate::collect::Numbered;
use crate::context::Context;
use crate::job::sample::TaskCode;
use crate::render::render;
use flate2::read::GzDecoder;
use prost::Message;
use protocol::job::sampling::{Delivery, OnFull};
use protocol::record::{
    AddressCount, CodePlace, Record, SampledCount, Samples, SamplingCapability,
};
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
        capability: Box::new(SamplingCapability {
            skid: "none at all".into(),
            data_address: "not available: test".into(),
            ..SamplingCapability::default()
        }),
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
        energy: Vec::new(),
        uncore: Vec::new(),
        unread: Vec::new(),
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
