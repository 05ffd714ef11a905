//! What several processors sampled, put together.

use super::*;
use crate::sampling::whole::together;
use protocol::hex::Hex;
use protocol::record::{
    AddressCount, Qualified, RecordedBranches, SampledCount, SampledStacks, TimerResult,
};

/// Of one processor: its figures are multiples of `n`.
fn part(n: u64) -> SampleResult {
    let (result, _) = run(&mut Host::new(Model::Skylake), &item(&[event(RETIRED, 100)], 1));
    let bytes = String::new();
    let row = AddressCount {
        address: Hex(n),
        event: 0,
        task: 0,
        ring: 0,
        count: n,
        bytes,
        bits: 64,
        cpu: n as u16,
    };
    let measured_ns = Some([10 * n, 100 * n, 1000 * n]);
    SampleResult {
        events: vec![SampledCount {
            filtered: n,
            ended: Some(2 * n),
            qualified: Qualified::new(["only=x", "PEBS"], 100 * n, 10 * n, n),
            ..SampledCount::default()
        }],
        addresses: vec![row],
        elsewhere: n,
        logged: 2 * n,
        dropped: 3 * n,
        stopped: n == 3,
        interrupts: 4 * n,
        spurious: 5 * n,
        back_to_back: 6 * n,
        throttled: 7 * n as u32,
        eased: 8 * n as u32,
        data_elsewhere: 9 * n,
        sources_elsewhere: 10 * n,
        outcomes_elsewhere: 11 * n,
        branches: Some(RecordedBranches { entries: 8, edges: vec![], elsewhere: 12 * n }),
        stacks: Some(SampledStacks { entries: 8, stacks: vec![], elsewhere: 13 * n }),
        timer: Some(TimerResult { asked_ns: 5, set_ns: 6, doubled: n as u32, measured_ns }),
        ..result
    }
}

#[test]
fn i5_m13_what_processors_sampled_adds_up() {
    let parts = [2, 7, 3, 5].map(|n| (n as u16, part(n)));
    let all = together(parts.into()).unwrap();
    let [long, short] = [
        vec![
            all.elsewhere,
            all.logged,
            all.dropped,
            all.interrupts,
            all.spurious,
            all.back_to_back,
            all.throttled.into(),
            all.eased.into(),
            all.data_elsewhere,
            all.sources_elsewhere,
            all.outcomes_elsewhere,
            all.branches.as_ref().unwrap().elsewhere,
            all.stacks.as_ref().unwrap().elsewhere,
        ],
        vec![all.events[0].filtered, all.events[0].ended.unwrap()],
    ];
    assert_eq!(long, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13].map(|times| 17 * times));
    assert_eq!(short, [17, 34]);
    assert!(all.stopped, "one has");
    let qualified = all.events[0].qualified.as_ref().unwrap();
    assert_eq!((qualified.counted, qualified.samples, qualified.passed), (1700, 170, 17));
    let counts: Vec<u64> = all.addresses.iter().map(|row| row.count).collect();
    assert_eq!(counts, [7, 5, 3, 2], "what came most often first");
    let timer = all.timer.unwrap();
    assert_eq!((timer.asked_ns, timer.set_ns, timer.doubled), (5, 6, 7));
    assert_eq!(
        timer.measured_ns,
        Some([20, 500, 7000]),
        "the median of the medians, the upper one"
    );
}
