//! Freezes: those that are needed, those that are refused, and those that come late.

use super::*;

#[test]
fn m16_a_freeze_that_does_not_freeze_gives_way_to_the_handler() {
    let mut host = Host::new(Model::Skylake);
    host.pmu.set_mutation(Some(Mutation::FreezeIgnored));
    let result = measure(&mut host, 0, &history(&BODY, &["r00c4"], 8)).unwrap();
    assert_eq!((result.stopped_by, &result.series[0].each[..]), (StoppedBy::Handler, &JUMPS[..]));
    assert!(result.remarks[0].contains("announces"), "{:?}", result.remarks);
    // And where no interrupt comes, there is no history.
    host.deaf = true;
    let text = refusal(&mut host, &history(&BODY, &[], 8));
    assert!(text.contains("announces") && text.contains("handler"), "{text}");
}

/// As short as can be, on each of its ways.
#[test]
fn m16_a_snippet_of_one_instruction_needs_a_freeze_and_three_do_not() {
    for model in models() {
        let freezes = Host::new(model).freezes();
        let one = history(&[BRANCH], &[branches(model)], 1);
        if freezes {
            assert_eq!(measured(model, &one).series[0].each, [1.0], "{model:?}");
        } else {
            let text = refusal(&mut Host::new(model), &one);
            assert!(text.contains("cannot tell 1 instructions"), "{text}");
        }
        let three = history(&[NOP, BRANCH, NOP], &[branches(model)], 3);
        let result = measured(model, &three);
        assert_eq!(result.series[0].each, [0.0, 1.0, 0.0], "{model:?}");
        assert_eq!((result.passes[0].front, result.passes[0].end), (4, Some(3)));
    }
}

#[test]
fn m16_where_the_freeze_is_refused_the_handler_stops_the_counters() {
    for model in [Model::Haswell, Model::Skylake, Model::Zen4] {
        let mut host = Host::with(model, Mutation::FreezeRefused).unwrap();
        let result = measure(&mut host, 0, &history(&BODY, &["instructions"], 8)).unwrap();
        assert_eq!(result.stopped_by, StoppedBy::Handler, "{model:?}");
        assert_eq!(result.series[0].each, [1.0; 8], "{model:?}");
    }
}

/// A Skylake whose counters freeze 400 instructions after the overflow; branches are the clock.
pub(super) fn late(
    front: &[u8],
    body: &[u8],
    end_to_end: bool,
) -> Result<HistoryResult, Unmeasured> {
    let mut host = Host::new(Model::Skylake);
    host.pmu.set_mutation(Some(Mutation::FreezeLate));
    let mut item = history(body, &[], 8);
    (item.clock, item.end_to_end) = (Cow::Borrowed("r00c4"), end_to_end);
    item.snippet.setup.late_init = Cow::Owned(front.to_vec());
    measure(&mut host, 0, &item)
}

#[test]
fn m16_a_freeze_that_skips_the_beginning_is_told_and_no_other_is() {
    // The branch in front overflows, and 400 of the snippet's are counted before the freeze.
    match late(&[BRANCH], &[BRANCH; 600], false) {
        Err(Unmeasured::Refused(text)) => {
            assert!(text.contains("counters stop 400 events of the clock `r00c4` late"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    // From end to end, all is shown as it is.
    let shown = late(&[BRANCH], &[BRANCH; 600], true).unwrap();
    assert_eq!((shown.passes[0].front, shown.end_to_end), (0, true));
    // No branch comes in the 400: there is nothing to tell the lateness by.
    let sparse = [[NOP; 500].as_slice(), &[BRANCH; 100]].concat();
    assert_eq!(late(&[BRANCH], &sparse, false).unwrap().passes[0].front, 0);
    // The beginning is found, if not exactly: a branch every second instruction, and 400 of them in front.
    let pairs = [&[NOP, BRANCH].repeat(250), &[NOP][..]].concat();
    let found = late(&pairs, &[BRANCH; 600], false).unwrap();
    assert_eq!((found.passes[0].front, found.remarks.len()), (50, 1), "{:?}", found.remarks);
}
