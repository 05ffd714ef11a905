//! Call stacks in every form.

use super::*;

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
    let saved = crate::samples::saved::SavedProfile::of(&profiles[0]);
    assert_eq!(saved.profile(&report).unwrap().stacks, profiles[0].stacks);
}
