//! The microarchitecture, with sequences worked out by hand.

use pmu_model::Occurrence::{self, *};
use pmu_model::uarch::{Access, AccessKind, Core, Llc, Parts, Prefetch, Resolved, Retired, Sink};
use pmu_model::{Branch, BranchKind, Delta, Ring};

/// One processor and its caches.
struct Machine {
    core: Core,
    llc: Box<Llc>,
}

impl Machine {
    fn new(prefetch: Prefetch) -> Self {
        Self { core: Core::new(prefetch), llc: Box::new(Llc::new()) }
    }

    fn access(&mut self, access: Access) -> Delta {
        let retired = Retired { ring: Ring::User, branch: None, next: 0, accesses: &[access] };
        self.core.retire(&retired, &mut self.llc, Parts::ALL).0
    }

    fn load(&mut self, address: u64) -> Delta {
        self.access(Access::identity(address, 8, AccessKind::Load))
    }

    fn branch(&mut self, from: u64, to: u64, kind: BranchKind, taken: bool) -> Branch {
        let branch =
            Branch { from, to, kind, taken, mispredicted: false, ring: Ring::User, cycles: 0 };
        let retired =
            Retired { ring: Ring::User, branch: Some(branch), next: from + 2, accesses: &[] };
        let (_, branch) = self.core.retire(&retired, &mut self.llc, Parts::ALL);
        branch.unwrap()
    }
}

/// The occurrences of a delta that are not 0.
fn seen(delta: &Delta) -> Vec<(Occurrence, u64)> {
    Occurrence::ALL
        .into_iter()
        .map(|occurrence| (occurrence, delta.count(occurrence)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[test]
fn the_first_load_misses_everything_and_the_second_nothing() {
    let mut machine = Machine::new(Prefetch::None);
    let first = machine.load(0x1_0000);
    let expected =
        [(Load, 1), (LoadLlcMiss, 1), (L1Fill, 1), (LlcReference, 1), (LlcMiss, 1), (LoadWalk, 1)];
    assert_eq!(seen(&first), expected);
    assert_eq!(seen(&machine.load(0x1_0000)), [(Load, 1), (LoadL1Hit, 1)]);
    assert_eq!(seen(&machine.load(0x1_0038)), [(Load, 1), (LoadL1Hit, 1)], "the same line");
}

#[test]
fn a_flushed_line_misses_again() {
    let mut machine = Machine::new(Prefetch::None);
    machine.load(0x1_0000);
    let mut delta = Delta::step(Ring::User);
    let Machine { core, llc } = &mut machine;
    core.clflush(0x1_0020, llc, Some(&mut delta));
    assert_eq!(seen(&delta), [(ClFlush, 1)]);
    let again = machine.load(0x1_0000);
    assert_eq!(again.count(LoadLlcMiss), 1);
    assert_eq!(again.count(LoadWalk), 0, "the translation is still there");
}

#[test]
fn a_fresh_page_walks_and_misses_each_of_its_lines() {
    let mut machine = Machine::new(Prefetch::None);
    let (mut walks, mut misses) = (0, 0);
    for line in 0..64 {
        let delta = machine.load(0x20_0000 + 64 * line);
        walks += delta.count(LoadWalk);
        misses += delta.count(LlcMiss);
    }
    assert_eq!((walks, misses), (1, 64));
}

#[test]
fn the_adjacent_line_comes_along_if_wanted() {
    let mut machine = Machine::new(Prefetch::AdjacentLine);
    let misses: u64 = (0..64).map(|line| machine.load(0x20_0000 + 64 * line).count(LlcMiss)).sum();
    assert_eq!(misses, 32);
}

#[test]
fn the_ninth_line_of_a_set_pushes_the_oldest_into_the_last_level() {
    // 64 sets of 64-byte lines: addresses 4096 apart share a set of the first level.
    let mut machine = Machine::new(Prefetch::None);
    for way in 0..9 {
        machine.load(0x10_0000 + 4096 * way);
    }
    let first = machine.load(0x10_0000);
    assert_eq!((first.count(LoadLlcHit), first.count(LlcMiss)), (1, 0));
    // Coming back, it pushed the second one out, not the third.
    assert_eq!(machine.load(0x10_0000 + 4096 * 2).count(LoadL1Hit), 1);
    assert_eq!(machine.load(0x10_0000 + 4096).count(LoadLlcHit), 1);
}

#[test]
fn the_last_level_holds_two_mebibytes() {
    let mut machine = Machine::new(Prefetch::None);
    let lines = (2 << 20) / 64;
    for line in 0..lines {
        machine.load(line * 64);
    }
    let misses: u64 = (0..lines).map(|line| machine.load(line * 64).count(LlcMiss)).sum();
    assert_eq!(misses, 0, "exactly full");
    machine.load(lines * 64);
    assert_eq!(machine.load(0).count(LlcMiss), 1, "one more and the oldest is gone");
}

#[test]
fn a_warm_loop_misses_nothing() {
    let mut machine = Machine::new(Prefetch::None);
    for pass in 0..4 {
        let mut events = Vec::new();
        for line in 0..100 {
            events.extend(seen(&machine.load(0x5000 + 64 * line)));
        }
        if pass > 0 {
            assert!(events.iter().all(|(event, _)| [Load, LoadL1Hit].contains(event)));
        }
    }
}

#[test]
fn tlb_levels() {
    let mut machine = Machine::new(Prefetch::None);
    // 16 sets of 4 ways: pages 16 apart share a set of the first level.
    for page in 0..5 {
        machine.load(4096 * 16 * page);
    }
    let first = machine.load(0);
    assert_eq!((first.count(LoadStlbHit), first.count(LoadWalk)), (1, 0));
    machine.core.invlpg(0x123);
    assert_eq!(machine.load(0).count(LoadWalk), 1);
    assert_eq!(machine.load(0).count(LoadWalk), 0);
    machine.core.flush_tlb();
    assert_eq!(machine.load(0).count(LoadWalk), 1);
    // 1536 entries: that many pages in a row fit, and their translations are found.
    machine.core.flush_tlb();
    for page in 0..1536 {
        machine.load(4096 * page);
    }
    let walks: u64 = (0..1536).map(|page| machine.load(4096 * page).count(LoadWalk)).sum();
    assert_eq!(walks, 0);
}

#[test]
fn an_access_across_a_line_is_split_and_across_a_page_translated_twice() {
    let mut machine = Machine::new(Prefetch::None);
    let delta = machine.load(0x103C);
    assert_eq!((delta.count(SplitLoad), delta.count(L1Fill), delta.count(LoadWalk)), (1, 2, 1));
    let delta = machine.load(0x4FFC);
    assert_eq!((delta.count(SplitLoad), delta.count(L1Fill), delta.count(LoadWalk)), (1, 2, 2));
    assert_eq!(delta.count(LoadLlcMiss), 1, "one load, however many lines");
}

#[test]
fn the_second_page_has_a_physical_address_of_its_own() {
    let mut machine = Machine::new(Prefetch::None);
    let across = Access {
        linear: 0x4FFC,
        physical: 0x9_0FFC,
        physical_next_page: 0x7_0000,
        bytes: 8,
        kind: AccessKind::Load,
        locked: false,
        non_temporal: false,
        page_bits: 12,
    };
    machine.access(across);
    let within = |physical| Access {
        linear: physical,
        physical,
        physical_next_page: 0,
        bytes: 1,
        kind: AccessKind::Load,
        locked: false,
        non_temporal: false,
        page_bits: 12,
    };
    assert_eq!(machine.access(within(0x9_0FC0)).count(LoadL1Hit), 1);
    assert_eq!(machine.access(within(0x7_0000)).count(LoadL1Hit), 1);
    assert_eq!(machine.access(within(0x9_1000)).count(LoadL1Hit), 0);
}

#[test]
fn stores_and_read_modify_writes() {
    let mut machine = Machine::new(Prefetch::None);
    let store = machine.access(Access::identity(0x8000, 4, AccessKind::Store));
    assert_eq!(store.count(StoreLlcMiss), 1);
    assert_eq!(store.count(StoreWalk), 1);
    assert_eq!(machine.load(0x8000).count(LoadL1Hit), 1, "write-allocate");
    let locked = Access { locked: true, ..Access::identity(0x8000, 4, AccessKind::LoadStore) };
    let expected = [(LoadStore, 1), (Locked, 1), (LoadL1Hit, 1), (StoreL1Hit, 1)];
    assert_eq!(seen(&machine.access(locked)), expected);
}

#[test]
fn odd_sizes_are_harmless() {
    let mut machine = Machine::new(Prefetch::None);
    for (address, bytes) in [(0, 0), (u64::MAX, 8), (u64::MAX - 4095, u32::MAX), (7, 4096)] {
        machine.access(Access::identity(address, bytes, AccessKind::Store));
    }
}

#[test]
fn mispredictions_reach_the_delta() {
    let mut machine = Machine::new(Prefetch::None);
    let jump = Branch {
        from: 0x1000,
        to: 0x1010,
        kind: BranchKind::Conditional,
        taken: true,
        mispredicted: false,
        ring: Ring::User,
        cycles: 0,
    };
    let retired = Retired { ring: Ring::User, branch: Some(jump), next: 0x1002, accesses: &[] };
    let Machine { core, llc } = &mut machine;
    let (delta, branch) = core.retire(&retired, llc, Parts::ALL);
    assert!(branch.unwrap().mispredicted, "an untrained forward jump that is taken");
    assert_eq!(seen(&delta), [(MissedJccTakenForward, 1)]);
    let (delta, _) = core.retire(&retired, llc, Parts::ALL);
    assert_eq!(delta.count(MissedJccTakenForward), 1, "another history, another counter");
}

#[test]
fn the_same_program_gives_the_same_counts() {
    let run = || {
        let mut machine = Machine::new(Prefetch::None);
        let mut state = 1u64;
        let mut all = Vec::new();
        for _ in 0..5000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            all.extend(seen(&machine.load(state >> 40)));
            let taken = state >> 63 == 1;
            all.push((
                L1Fill,
                u64::from(
                    machine.branch(state >> 50, 0, BranchKind::Conditional, taken).mispredicted,
                ),
            ));
        }
        all
    };
    assert_eq!(run(), run());
}

#[test]
fn parts_that_are_off_keep_their_state_and_report_nothing_of_theirs() {
    let mut machine = Machine::new(Prefetch::None);
    let none = Parts::default();
    let locked = Access { locked: true, ..Access::identity(0x103C, 8, AccessKind::LoadStore) };
    let jump = Branch {
        from: 0x1000,
        to: 0x1010,
        kind: BranchKind::Conditional,
        taken: true,
        mispredicted: false,
        ring: Ring::User,
        cycles: 0,
    };
    let retired =
        Retired { ring: Ring::User, branch: Some(jump), next: 0x1002, accesses: &[locked] };
    let Machine { core, llc } = &mut machine;
    for _ in 0..3 {
        let (delta, branch) = core.retire(&retired, llc, none);
        assert!(!branch.unwrap().mispredicted);
        let expected =
            [(JccTakenForward, 1), (LoadStore, 1), (Locked, 1), (SplitLoad, 1), (SplitStore, 1)];
        assert_eq!(seen(&delta), expected);
    }
    // Nothing was learned.
    let (delta, _) = core.retire(&retired, llc, Parts::ALL);
    assert_eq!((delta.count(MissedJccTakenForward), delta.count(LoadWalk)), (1, 1));
}

#[test]
fn one_by_one_gives_what_whole_instructions_give() {
    let (mut whole, mut single) = (Machine::new(Prefetch::None), Machine::new(Prefetch::None));
    let mut state = 3u64;
    let mut recent = 0;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Many accesses to few lines, some anywhere.
        let linear = if state >> 62 == 0 { state >> 40 } else { state >> 54 & 0xff };
        let kind = [AccessKind::Load, AccessKind::Store, AccessKind::LoadStore];
        let access = Access::identity(linear, 8, kind[(state >> 33) as usize % 3]);
        let (from, to, taken) = (state >> 47, state >> 46, state >> 60 & 1 == 1);
        let kinds = [BranchKind::Conditional, BranchKind::IndirectJump, BranchKind::Return];
        let kind = kinds[(state >> 57) as usize % 3];
        let branch =
            Branch { from, to, kind, taken, mispredicted: false, ring: Ring::User, cycles: 0 };
        let retired =
            Retired { ring: Ring::User, branch: Some(branch), next: from + 2, accesses: &[access] };
        let (delta, _) = whole.core.retire(&retired, &mut whole.llc, Parts::ALL);
        let mut counts = [0u64; pmu_model::OCCURRENCES];
        recent += u32::from(single.core.is_recent(linear, linear));
        single.core.access(&access, &mut single.llc, Parts::ALL, &mut counts);
        let resolved = Resolved::new((from, to, from + 2), kind, taken, to <= from);
        single.core.branch(&resolved, Parts::ALL, &mut counts);
        assert_eq!(Delta::counted(Ring::User, 1, &counts), delta);
    }
    assert!(recent > 1000, "the short way is taken: {recent}");
}

#[test]
fn an_access_that_is_recent_changes_nothing() {
    let mut machine = Machine::new(Prefetch::None);
    assert!(!machine.core.is_recent(0x1_0000, 0x1_0000));
    machine.load(0x1_0000);
    assert!(machine.core.is_recent(0x1_003F, 0x1_003F));
    // Another line of the same set, then a page of the same set of the TLB.
    machine.load(0x1_1000);
    assert!(!machine.core.is_recent(0x1_0000, 0x1_0000));
    machine.load(0x1_0000);
    machine.load(0x2_0040);
    assert!(!machine.core.is_recent(0x1_0000, 0x1_0000), "0x10 and 0x20 share a set of the TLB");
}

#[test]
fn sums_are_a_sink() {
    let mut sums = [0u64; 64];
    sums.add(Load, 2);
    sums.as_mut_slice().add(Load, 3);
    assert_eq!(sums[Load as usize], 5);
    assert_eq!(Delta::counted(Ring::Kernel, 9, &sums).count(Load), 5);
}
