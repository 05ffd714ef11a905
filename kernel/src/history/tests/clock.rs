//! The clock of a history.

use super::*;

#[test]
fn m16_any_event_that_overflows_can_be_the_clock() {
    for model in models() {
        let mut by_instructions = history(&BODY, &[branches(model)], 8);
        by_instructions.clock = Cow::Borrowed("instructions");
        assert_eq!(measured(model, &by_instructions).series[0].each, JUMPS, "{model:?}");
        // A branch of the code in front lets the handler's own share be distinguished.
        let mut by_branches = history(&BODY, &["instructions"], 3);
        by_branches.clock = Cow::Borrowed(branches(model));
        by_branches.snippet.setup.late_init = Cow::Borrowed(&[BRANCH]);
        let result = measured(model, &by_branches);
        assert_eq!(result.series[0].each, [2.0, 3.0, 2.0], "{model:?}");
        assert_eq!(result.passes[0].front, 1);
    }
}

#[test]
fn m16_a_clock_that_does_not_tick_at_the_beginning_says_so() {
    for model in models() {
        let mut item = history(&BODY, &["instructions"], 3);
        item.clock = Cow::Borrowed(branches(model));
        if !Host::new(model).freezes() {
            let text = refusal(&mut Host::new(model), &item);
            assert!(text.contains("cannot be told apart"), "{text}");
            continue;
        }
        let result = measured(model, &item);
        // Branches are the instructions 2, 5 and 7.
        assert_eq!(result.series[0].median, [2.0, 5.0, 7.0], "{model:?}");
        assert_eq!((result.passes[0].front, result.remarks.len()), (0, 1));
        assert!(result.remarks[0].contains("very beginning"), "{:?}", result.remarks);
    }
}

/// The clock and the witness are in every pass: one counter is not enough. Nor is a clock any event that takes two.
#[test]
fn m16_the_clock_has_a_counter_beside_the_witness() {
    let host = Host::new(Model::Zen4);
    let plan = |clock: &'static str, events: &[&'static str], counters: u64| {
        let mut known = host.known.clone();
        known.processor.gp_counters = counters;
        let item = History { clock: Cow::Borrowed(clock), ..history(&BODY, events, 8) };
        crate::history::plan::plan(&item, &known).map(|planned| planned.passes.len())
    };
    assert_eq!(plan("cycles", &[], 0b11), Ok(1));
    let alone = plan("cycles", &[], 0b01).unwrap_err();
    assert!(alone.contains("the clock `cycles` and instructions") && alone.contains("together"));
    // SSE and AVX operations, which take a pair (PPR for family 17h, PMCx003): as an event, and as the clock.
    assert_eq!(plan("cycles", &["rff03"], 0b11_1111), Ok(1));
    let pair = plan("rff03", &[], 0b11_1111).unwrap_err();
    assert!(pair.contains("the clock `rff03` takes two counters"), "{pair}");
}

/// An event that the clock leaves no counter for is left out by name; the clock's own rows are there.
#[test]
fn m16_an_event_that_has_to_be_where_the_clock_is_is_left_out() {
    let mut item = history(&BODY, &["r00c4:counter=0"], 8);
    item.clock = Cow::Borrowed("r003c:counter=0");
    let result = measured(Model::Skylake, &item);
    assert_eq!((result.series.len(), result.passes.len()), (0, 1), "{result:?}");
    assert_eq!(result.uncounted.len(), 1, "{result:?}");
    // Together with one that fits, it is left out as well.
    item.snippet.events.push(Cow::Borrowed("r00c4"));
    let result = measured(Model::Skylake, &item);
    assert_eq!((result.series.len(), result.uncounted.len()), (1, 1), "{result:?}");
    assert_eq!(result.series[0].each, JUMPS);
}
