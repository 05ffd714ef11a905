use super::*;
use crate::events::Block;
use crate::metrics::names::find;
use crate::metrics::request::{Target, ask};
use pmu_model::Model;
use proptest::prelude::*;

/// The fewest passes, by looking at every partition of the metrics.
fn by_search(metrics: &[Events], fits: &dyn Fn(&Events) -> bool) -> usize {
    fn go(
        left: &[Events],
        blocks: &mut Vec<Events>,
        fits: &dyn Fn(&Events) -> bool,
        best: &mut usize,
    ) {
        let [first, rest @ ..] = left else {
            if blocks.iter().all(fits) {
                *best = blocks.len().min(*best);
            }
            return;
        };
        for block in 0..blocks.len() {
            let before = blocks[block].clone();
            blocks[block].extend(first);
            go(rest, blocks, fits, best);
            blocks[block] = before;
        }
        blocks.push(first.clone());
        go(rest, blocks, fits, best);
        blocks.pop();
    }
    let mut best = usize::MAX;
    go(metrics, &mut Vec::new(), fits, &mut best);
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Four counters, and some events that only one of them can count.
    #[test]
    fn s3_small_groups_of_metrics_take_the_fewest_passes(
        metrics in prop::collection::vec(prop::collection::btree_set(0_usize..10, 1..5), 1..7),
        picky in prop::collection::btree_set(0_usize..10, 0..4),
    ) {
        let fits = |events: &Events| {
            events.len() <= 4 && events.intersection(&picky).count() <= 1
        };
        let (whole, spread): (Vec<Events>, Vec<Events>) =
            metrics.iter().cloned().partition(|metric| fits(metric));
        let planned = passes(&metrics, fits);
        prop_assert_eq!(planned.spread.len(), spread.len());
        prop_assert!(planned.passes.iter().all(fits));
        // Whole metrics are whole in one pass, and of the others each event is in one.
        for metric in &whole {
            prop_assert!(planned.passes.iter().any(|pass| metric.is_subset(pass)));
        }
        for event in spread.iter().flatten() {
            prop_assert!(planned.passes.iter().any(|pass| pass.contains(event)));
        }
        if spread.is_empty() {
            prop_assert!(planned.fewest);
            prop_assert_eq!(planned.passes.len(), by_search(&metrics, &fits));
        }
    }
}

/// The first levels of the trees, on the counters that the emulated models have.
#[test]
fn s3_small_groups_of_metrics_of_the_tables_take_the_fewest_passes() {
    let block = Block::embedded();
    for (model, asked) in [
        (Model::Skylake, &["topdown", "ipc", "branch_mpki"][..]),
        (Model::Haswell, &["topdown"]),
        (Model::Zen4, &["topdown", "ipc", "branch_miss_rate"]),
    ] {
        let target = Target::of_model(model).unwrap();
        let (core, table) = target.tables(&block.tables()).unwrap();
        let asked: Vec<_> = asked.iter().map(|name| name.parse().unwrap()).collect();
        let metrics = find(&table, &asked).unwrap();
        let asks: Vec<_> =
            metrics.iter().map(|one| ask(&target, &core, &table, one).unwrap()).collect();
        let group = crate::metrics::request::group(&target, &core, &asks);
        let sets: Vec<Events> = group.sets.clone();
        let planned = passes(&sets, |events| group.fits(events));
        assert!(planned.fewest && planned.spread.is_empty(), "{model:?}: {planned:?}");
        let fewest = by_search(&sets, &|events| group.fits(events));
        assert_eq!(planned.passes.len(), fewest, "{model:?}: {planned:?}");
    }
}

/// Tables have Haswell's eight counters of a core without hyper-threading; the emulated PMU has four, as with it.
#[test]
fn s3_metrics_are_planned_on_the_counters_that_the_emulated_pmu_has() {
    for (model, counters) in [(Model::Haswell, 4), (Model::IceLake, 8), (Model::Zen4, 6)] {
        assert_eq!(Target::of_model(model).unwrap().counters, Some(counters), "{model:?}");
    }
}
