//! What passes the qualifiers is counted by itself, and taken back with the rest.

use super::*;
use crate::tally::{QUALIFIED, QUALIFIED_INSTRUCTIONS};
use pmu_model::uarch::AccessKind;

/// Instructions, loads and stores of what passes, by the instructions themselves.
fn passing(block: &[Facts]) -> [u64; 3] {
    let mut sums = [0; 3];
    for facts in block.iter().filter(|facts| facts.passes == Passes::Always) {
        sums[0] += u64::from(facts.repeated.is_none());
        for touch in &facts.touches {
            sums[1] += u64::from(touch.kind == AccessKind::Load);
            sums[2] += u64::from(touch.kind == AccessKind::Store);
        }
    }
    sums
}

fn counted(sums: &Sums) -> [u64; 3] {
    let [load, store] = [Occurrence::Load, Occurrence::Store].map(|one| QUALIFIED + one as usize);
    [QUALIFIED_INSTRUCTIONS, load, store].map(|entry| sums.0[entry])
}

proptest! {
    #[test]
    fn t1_t2_what_passes_is_counted_by_itself_wherever_the_block_is_left(
        plain in prop::collection::vec((prop::sample::select(PLAIN), any::<bool>()), 0..12),
        last in (prop::sample::select(LAST), any::<bool>()),
        stop: prop::sample::Index,
    ) {
        let all: Vec<_> = plain.into_iter().chain([last]).collect();
        let code: Vec<&[u8]> = all.iter().map(|(code, _)| *code).collect();
        let mut block = facts(0x40_1f80, &code);
        for (facts, _) in block.iter_mut().zip(&all).filter(|(_, (_, takes))| *takes) {
            facts.pass(false);
        }
        let plan = plan(&block, MODE);
        let whole = carry_out(&plan, block.len(), usize::MAX, true);
        prop_assert_eq!(counted(&whole.0), passing(&block));
        let stop = stop.index(block.len());
        prop_assume!(block[stop].end != End::Always);
        let fault = carry_out(&plan, block.len(), stop, false);
        prop_assert_eq!(counted(&taken_back(fault, &block[stop])), passing(&block[..stop]));
    }
}

/// Its access decides, which a callback sees: nothing is counted beside it, and a branch waits for it.
#[test]
fn t3_what_data_decides_is_not_counted_with_its_block() {
    let mut block = facts(0x1000, &[&[0x48, 0x8b, 0x07], &[0x90], &[0xc3]]);
    block.iter_mut().for_each(|facts| facts.pass(true));
    let passes: Vec<_> = block.iter().map(|facts| facts.passes).collect();
    assert_eq!(passes, [Passes::ByData, Passes::No, Passes::ByData], "NOP accesses nothing");
    let plan = plan(&block, complete(Mode::MEMORY | Mode::BRANCHES | Mode::QUALIFIED));
    let (sums, open) = carry_out(&plan, block.len(), usize::MAX, true);
    assert!(sums.0[QUALIFIED..].iter().all(|count| *count == 0));
    assert!(
        matches!(open, Some(Opened::Branch { branch, counted: true, .. }) if branch.passes == Passes::ByData)
    );
}
