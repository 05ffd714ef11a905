//! Instruction-based sampling: registers, counting, the tagged instruction, and every field of a sample.

mod common;

use common::ibs::*;
use common::{pmu, read, user, write};
use pmu_model::uarch::{Access, AccessKind};
use pmu_model::{
    Branch, BranchKind, CpuidResult, Delta, Fault, Model, MsrError, Occurrence, PageSize, Pmu,
    Ring, RingMask, Sampled, Timing,
};

const AMD: [(Model, u32); 3] = [(Model::K10, 0x1F), (Model::Zen2, 0x3FF), (Model::Zen4, 0xBFF)];

fn zen4(control: u64) -> Pmu {
    let mut pmu = pmu(Model::Zen4);
    write(&mut pmu, OP_CTL, control);
    pmu
}

#[test]
fn cpuid_announces_what_each_processor_has() {
    for model in Model::ALL {
        let features = AMD.iter().find(|(amd, _)| *amd == model).map_or(0, |(_, bits)| *bits);
        for host in [CpuidResult::default(), FULL] {
            let pmu = pmu(model);
            assert_eq!(pmu.cpuid(0x8000_001B, 0, host).eax, features, "{model:?}");
            let bits = pmu.cpuid(0x8000_0001, 0, host).ecx & (1 << 3 | 1 << 10);
            match model {
                Model::None => assert_eq!(bits & 1 << 10, 0),
                _ => assert_eq!(bits == 1 << 3 | 1 << 10, features != 0, "{model:?} {bits:#x}"),
            }
            let highest = pmu.cpuid(0x8000_0000, 0, host).eax;
            assert!(features == 0 || highest >= 0x8000_001B, "{model:?}");
        }
    }
}

#[test]
fn a_register_is_there_with_its_feature_and_no_other_is() {
    for model in Model::ALL {
        let features = AMD.iter().find(|(amd, _)| *amd == model).map_or(0, |(_, bits)| *bits);
        for msr in FETCH_CTL..=OP_DATA4 {
            let there = match msr {
                BRANCH_TARGET => features & 1 << 5 != 0,
                FETCH_EXTENDED => features & 1 << 9 != 0,
                OP_DATA4 => features & 1 << 10 != 0,
                _ => features != 0,
            };
            let read = pmu(model).read_msr(msr);
            assert_eq!(read.is_ok(), there, "{model:?} {msr:#x}");
            let absent = MsrError::GeneralProtection(Fault::Absent { msr });
            assert!(there || read == Err(absent), "{model:?} {msr:#x}: {read:?}");
        }
    }
}

#[test]
fn ibs_ctl_names_entry_0_and_cannot_be_written() {
    for (model, _) in AMD {
        let mut pmu = pmu(model);
        assert_eq!(read(&mut pmu, IBS_CTL), 1 << 8);
        assert!(pmu.write_msr(IBS_CTL, 1 << 8).is_err());
        assert_eq!(pmu.leave(IBS_CTL, 0), Ok(()), "it is as firmware leaves it");
        assert_eq!(read(&mut pmu, IBS_CTL), 1 << 8);
    }
}

#[test]
fn reserved_bits_are_dropped() {
    let kept = |model, msr| {
        let mut pmu = pmu(model);
        write(&mut pmu, msr, u64::MAX);
        read(&mut pmu, msr)
    };
    // With the valid bit set nothing counts, and the counts stay as written.
    assert_eq!(kept(Model::K10, OP_CTL), 0x000F_FFFF_000E_FFFF);
    assert_eq!(kept(Model::Zen2, OP_CTL), 0x07FF_FFFF_07FE_FFFF);
    assert_eq!(kept(Model::Zen4, OP_CTL), 0x07FF_FFFF_07FF_FFFF);
    assert_eq!(kept(Model::Zen2, FETCH_CTL), 0x0203_0000_FFFF_FFFF);
    assert_eq!(kept(Model::Zen4, FETCH_CTL), 0x0A03_0000_FFFF_FFFF);
    assert_eq!(kept(Model::Zen4, OP_RIP), u64::MAX, "data registers hold what is written");
}

#[test]
fn operations_are_counted_and_the_one_behind_the_maximum_is_tagged() {
    let mut pmu = zen4(EN | COUNTS_OPS | 2);
    assert_eq!(pmu.until_overflow(RingMask::BOTH), Some(32));
    for n in 1..=32 {
        assert!(!step(&mut pmu, n).ibs, "{n}");
        assert_eq!(count(&mut pmu), n);
        assert_eq!(pmu.until_overflow(RingMask::BOTH), Some(if n < 32 { 32 - n } else { 1 }));
        assert_eq!(pmu.awaits_record(Ring::User), n == 32);
    }
    let outcome = step(&mut pmu, 33);
    assert!(outcome.ibs && !outcome.pmi);
    let control = read(&mut pmu, OP_CTL);
    assert_eq!(control & 0xFFFF_FFFF, EN | VAL | COUNTS_OPS | 2);
    assert!(control >> 32 < 128, "seven bits stand for random ones");
    assert_eq!(read(&mut pmu, OP_RIP), 0x1000 + 33);
}

#[test]
fn a_delta_of_many_instructions_does_not_lose_the_next_one() {
    let mut pmu = zen4(EN | COUNTS_OPS | 100);
    assert_eq!(pmu.advance(&user(1_600)).due, 0);
    assert!(step(&mut pmu, 1).ibs);
}

#[test]
fn cycles_are_counted_without_bit_19() {
    let four = Timing { instruction_cycles: 4.try_into().unwrap(), ..Timing::DEFAULT };
    for (control, instructions) in [(EN | 2, 8), (EN | COUNTS_OPS | 2, 32)] {
        let mut pmu = Pmu::new(Model::Zen4, pmu_model::Host::EXAMPLE, four);
        write(&mut pmu, OP_CTL, control);
        assert_eq!(pmu.until_overflow(RingMask::BOTH), Some(instructions));
        assert_eq!(first_sample(&mut pmu), instructions + 1);
        assert_eq!(read(&mut pmu, OP_DATA) >> 16 & 0xFFFF, 4, "cycles from tag to retirement");
        assert_eq!(read(&mut pmu, OP_DATA) & 0xFFFF, 0, "from completion to retirement");
    }
}

#[test]
fn the_upper_bits_of_the_maximum_count() {
    let mut pmu = zen4(EN | COUNTS_OPS | 1 << 20 | 1);
    assert_eq!(pmu.until_overflow(RingMask::BOTH), Some((1 << 20) + 16));
    let mut longest = zen4(EN | COUNTS_OPS | 0x7F << 20 | 0xFFFF);
    assert_eq!(longest.until_overflow(RingMask::BOTH), Some(0x7FF_FFF0));
    longest.advance(&user(0x7FF_FFF0));
    assert!(step(&mut longest, 1).ibs);
    pmu.reset();
    assert_eq!(read(&mut pmu, OP_CTL), 0);
    // Family 10h has no such bits.
    let mut old = common::pmu(Model::K10);
    write(&mut old, OP_CTL, EN | COUNTS_OPS | 1 << 20 | 1);
    assert_eq!(old.until_overflow(RingMask::BOTH), Some(16));
}

#[test]
fn the_current_count_is_where_counting_begins() {
    let mut pmu = zen4(EN | COUNTS_OPS | 2 | 10 << 32);
    assert_eq!(count(&mut pmu), 10);
    assert_eq!(first_sample(&mut pmu), 23);
    // At or beyond the maximum the next operation reaches it.
    let mut beyond = zen4(EN | COUNTS_OPS | 1 | 100 << 32);
    assert_eq!(first_sample(&mut beyond), 2);
}

#[test]
fn what_is_off_full_or_without_a_maximum_counts_nothing() {
    for control in [COUNTS_OPS | 1, EN | VAL | COUNTS_OPS | 1, EN | COUNTS_OPS] {
        let mut pmu = zen4(control);
        assert_eq!((pmu.until_overflow(RingMask::BOTH), pmu.needs().bulk), (None, 0));
        pmu.advance(&user(100));
        assert_eq!(read(&mut pmu, OP_CTL), control);
    }
}

#[test]
fn nothing_is_counted_until_the_valid_bit_is_cleared() {
    let mut pmu = zen4(EN | COUNTS_OPS | 1);
    assert_eq!(first_sample(&mut pmu), 17);
    let sample = read(&mut pmu, OP_CTL);
    assert!((100..200).all(|n| !step(&mut pmu, n).ibs));
    assert_eq!((read(&mut pmu, OP_CTL), read(&mut pmu, OP_RIP)), (sample, 0x1000 + 17));
    assert!(!pmu.needs().precise);
    write(&mut pmu, OP_CTL, EN | COUNTS_OPS | 1);
    assert_eq!(first_sample(&mut pmu), 17);
}

#[test]
fn random_bits_differ_from_sample_to_sample_and_are_the_same_each_time() {
    let draw = || {
        let mut pmu = zen4(0);
        let mut all = Vec::new();
        for _ in 0..64 {
            write(&mut pmu, OP_CTL, EN | COUNTS_OPS | 1);
            first_sample(&mut pmu);
            all.push(read(&mut pmu, OP_CTL) >> 32);
        }
        all
    };
    let (first, again) = (draw(), draw());
    assert_eq!(first, again);
    let distinct: std::collections::BTreeSet<u64> = first.into_iter().collect();
    assert!(distinct.len() > 20 && *distinct.last().unwrap() < 128, "{distinct:?}");
}

#[test]
fn a_write_takes_an_awaited_sample_back() {
    let mut pmu = zen4(EN | COUNTS_OPS | 1);
    pmu.advance(&user(16));
    assert!(pmu.awaits_record(Ring::Kernel));
    write(&mut pmu, OP_CTL, 0);
    assert!(!pmu.awaits_record(Ring::Kernel));
    assert!(!step(&mut pmu, 1).ibs);
}

#[test]
fn global_control_and_freezes_do_not_matter() {
    let mut pmu = zen4(EN | COUNTS_OPS | 1);
    write(&mut pmu, 0xC000_0301, 0);
    write(&mut pmu, 0xC000_0303, 1 << 59);
    assert_eq!(first_sample(&mut pmu), 17);
    assert_eq!(read(&mut pmu, 0xC000_0300), 1 << 59, "and no status bit is set");
}

#[test]
fn fetches_are_counted_one_for_an_instruction() {
    let mut pmu = pmu(Model::Zen4);
    write(&mut pmu, FETCH_CTL, FETCH_EN | 2);
    for n in 1..=32 {
        assert!(!step(&mut pmu, n).ibs);
        assert_eq!(read(&mut pmu, FETCH_CTL) >> 16 & 0xFFFF, n / 16);
    }
    assert!(step(&mut pmu, 33).ibs);
    // Complete, with the maximum as its count; no physical address is known.
    assert_eq!(read(&mut pmu, FETCH_CTL), FETCH_EN | FETCH_VAL | 1 << 50 | 2 << 16 | 2);
    assert_eq!(read(&mut pmu, FETCH_LINEAR), 0x1000 + 33);
    assert_eq!((read(&mut pmu, FETCH_PHYSICAL), read(&mut pmu, FETCH_EXTENDED)), (0, 0));
    assert!(!step(&mut pmu, 34).ibs);
}

#[test]
fn a_fetch_has_its_physical_address_and_the_size_of_its_page() {
    for (page, bits) in [(PageSize::Small, 0), (PageSize::Large, 1), (PageSize::Giant, 2)] {
        let mut pmu = pmu(Model::Zen2);
        write(&mut pmu, FETCH_CTL, FETCH_EN | 1);
        pmu.advance(&user(16));
        let sampled = Sampled { code: Some((0x7_1234, page)), ..Sampled::default() };
        assert!(sample(&mut pmu, &Delta::step(Ring::User), sampled).ibs);
        assert_eq!(read(&mut pmu, FETCH_PHYSICAL), 0x7_1234);
        assert_eq!(read(&mut pmu, FETCH_CTL) >> 50 & 0x7F, 0b101 | bits << 3);
    }
}

#[test]
fn with_random_tagging_the_first_fetches_are_fewer() {
    let firsts: Vec<u64> = {
        let mut pmu = pmu(Model::Zen4);
        let mut one = |_| {
            write(&mut pmu, FETCH_CTL, FETCH_EN | FETCH_RANDOM | 2);
            first_sample(&mut pmu)
        };
        (0..32).map(&mut one).collect()
    };
    assert!(firsts.iter().all(|first| (18..=33).contains(first)), "{firsts:?}");
    let distinct: std::collections::BTreeSet<_> = firsts.iter().collect();
    assert!(distinct.len() > 4, "{firsts:?}");
}

#[test]
fn both_units_at_once() {
    let mut pmu = zen4(EN | COUNTS_OPS | 2);
    write(&mut pmu, FETCH_CTL, FETCH_EN | 1);
    assert_eq!(pmu.needs().bulk.count_ones(), 2);
    let samples: Vec<u64> = (1..=100).filter(|n| step(&mut pmu, *n).ibs).collect();
    assert_eq!(samples, [17, 33]);
    assert_eq!(read(&mut pmu, FETCH_LINEAR), 0x1000 + 17);
    assert_eq!(read(&mut pmu, OP_RIP), 0x1000 + 33);
    // The same instruction for both.
    write(&mut pmu, FETCH_CTL, FETCH_EN | 1);
    write(&mut pmu, OP_CTL, EN | COUNTS_OPS | 1);
    assert_eq!(first_sample(&mut pmu), 17);
    let both = [FETCH_CTL, OP_CTL].map(|msr| read(&mut pmu, msr));
    assert!(both[0] & FETCH_VAL != 0 && both[1] & VAL != 0);
}

fn branch(kind: BranchKind, taken: bool) -> Branch {
    Branch {
        from: 0x1011,
        to: 0x4000,
        kind,
        taken,
        mispredicted: false,
        ring: Ring::User,
        cycles: 0,
    }
}

/// OP_DATA and the target of a sampled branch.
fn sampled_branch(branch: Branch, delta: &Delta) -> (u64, u64) {
    let mut pmu = zen4(EN | COUNTS_OPS | 1);
    pmu.advance(&user(16));
    let sampled = Sampled { branch: Some(branch), ..Sampled::default() };
    assert!(sample(&mut pmu, delta, sampled).ibs);
    (read(&mut pmu, OP_DATA) >> 32, read(&mut pmu, BRANCH_TARGET))
}

#[test]
fn a_branch_is_described() {
    const TAKEN: u64 = 1 << 3;
    const BRANCH: u64 = 1 << 5;
    let step = Delta::step(Ring::User);
    let jump = branch(BranchKind::Conditional, true);
    assert_eq!(sampled_branch(jump, &step), (BRANCH | TAKEN, 0x4000));
    let fall = branch(BranchKind::Conditional, false);
    assert_eq!(sampled_branch(fall, &step), (BRANCH, 0));
    let back = branch(BranchKind::Return, true);
    assert_eq!(sampled_branch(back, &step), (BRANCH | TAKEN | 1 << 2, 0x4000));
    // Mispredicted, as the branch says or as the report does.
    let wrong = Branch { mispredicted: true, ..jump };
    assert_eq!(sampled_branch(wrong, &step), (BRANCH | TAKEN | 1 << 4, 0x4000));
    let missed = step.clone().with(Occurrence::MissedJccTakenForward, 1);
    assert_eq!(sampled_branch(jump, &missed), (BRANCH | TAKEN | 1 << 4, 0x4000));
}

const ACCESS: Access = Access {
    physical: 0x12_3040,
    physical_next_page: 0x12_4000,
    ..Access::identity(0x7F00_0040, 8, AccessKind::Load)
};

/// OP_DATA2, OP_DATA3, linear and physical address.
fn sampled_access(model: Model, access: Access, page: PageSize, delta: &Delta) -> [u64; 4] {
    let mut pmu = pmu(model);
    write(&mut pmu, OP_CTL, EN | COUNTS_OPS | 1);
    pmu.advance(&user(16));
    let sampled = Sampled { access: Some((access, page)), ..Sampled::default() };
    assert!(sample(&mut pmu, delta, sampled).ibs);
    [OP_DATA2, OP_DATA3, DATA_LINEAR, DATA_PHYSICAL].map(|msr| read(&mut pmu, msr))
}

#[test]
fn an_access_is_described() {
    const VALID: u64 = 3 << 17;
    let step = Delta::step(Ring::User);
    let of = |access, page| sampled_access(Model::Zen4, access, page, &step);
    let small = |access| of(access, PageSize::Small);
    let addresses = [0x7F00_0040, 0x12_3040];
    let load = [&[0, VALID | 1 | 4 << 22], &addresses[..]].concat();
    assert_eq!(small(ACCESS), *load);
    assert_eq!(small(Access { kind: AccessKind::Store, ..ACCESS })[1], VALID | 2 | 4 << 22);
    let both = Access { kind: AccessKind::LoadStore, locked: true, bytes: 4, ..ACCESS };
    assert_eq!(small(both)[1], VALID | 3 | 1 << 15 | 3 << 22);
    assert_eq!(small(Access { linear: 0x7F00_003F, ..ACCESS })[1] >> 8 & 1, 1, "misaligned");
    assert_eq!(of(ACCESS, PageSize::Large)[1], VALID | 1 | 1 << 4 | 4 << 22);
    assert_eq!(of(ACCESS, PageSize::Giant)[1], VALID | 1 | 1 << 5 | 4 << 22);
    for (bytes, width) in [(1, 1), (2, 2), (16, 5), (32, 6), (64, 7), (10, 0), (512, 0)] {
        assert_eq!(small(Access { bytes, ..ACCESS })[1] >> 22 & 0xF, width, "{bytes}");
    }
    let old = sampled_access(Model::K10, ACCESS, PageSize::Small, &step);
    assert_eq!(old[1], VALID | 1, "family 10h tells no width");
}

#[test]
fn where_the_data_was_is_known_if_caches_are_modelled() {
    let of = |model, kind, found| {
        let delta = Delta::step(Ring::User).with(found, 1);
        let access = Access { kind, ..ACCESS };
        let [data_2, data_3, ..] = sampled_access(model, access, PageSize::Small, &delta);
        let latency = data_3 >> 32 & 0xFFFF;
        (data_2, data_3 >> 7 & 1, data_3 >> 20 & 1, latency)
    };
    use AccessKind::{Load, Store};
    use Occurrence::*;
    for (model, last) in [(Model::Zen2, 0x22), (Model::Zen4, 0x21)] {
        assert_eq!(of(model, Load, LoadL1Hit), (0, 0, 0, 0));
        assert_eq!(of(model, Load, LoadLlcHit), (last, 1, 1, 14));
        assert_eq!(of(model, Load, LoadLlcMiss), (3, 1, 1, 200));
        assert_eq!(of(model, Store, StoreLlcMiss), (0, 1, 1, 0), "of loads alone");
    }
    assert_eq!(of(Model::K10, Load, LoadLlcHit), (1, 1, 0, 14));
    let translated = |found| {
        let delta = Delta::step(Ring::User).with(found, 1);
        sampled_access(Model::Zen4, ACCESS, PageSize::Large, &delta)[1] >> 2 & 7
    };
    assert_eq!(translated(LoadStlbHit), 0b001);
    assert_eq!(translated(StoreWalk), 0b011);
    assert_eq!(translated(Occurrence::Load), 0b100);
}

#[test]
fn an_instruction_without_access_or_branch_leaves_nothing_of_the_last_one() {
    let mut pmu = zen4(EN | COUNTS_OPS | 1);
    pmu.advance(&user(16));
    let sampled = Sampled {
        branch: Some(branch(BranchKind::RelativeJump, true)),
        access: Some((ACCESS, PageSize::Small)),
        code: None,
    };
    sample(&mut pmu, &Delta::step(Ring::User), sampled);
    write(&mut pmu, OP_CTL, EN | COUNTS_OPS | 1);
    first_sample(&mut pmu);
    let left = [OP_DATA2, OP_DATA3, DATA_LINEAR, DATA_PHYSICAL, BRANCH_TARGET];
    assert_eq!(left.map(|msr| read(&mut pmu, msr)), [0; 5]);
    assert_eq!(read(&mut pmu, OP_DATA), 1 << 16);
}

#[test]
fn with_the_filter_only_what_missed_the_last_cache_is_a_sample() {
    const MISSES_ONLY: u64 = 1 << 16;
    let mut pmu = zen4(EN | COUNTS_OPS | MISSES_ONLY | 0x100);
    let mut seen = 0;
    for n in 1..=20_000 {
        let miss = n > 10_000;
        let delta = Delta::step(Ring::User)
            .with(if miss { Occurrence::LoadLlcMiss } else { Occurrence::LoadL1Hit }, 1);
        let sampled = Sampled { access: Some((ACCESS, PageSize::Small)), ..Sampled::default() };
        if sample(&mut pmu, &delta, sampled).ibs {
            assert!(miss, "{n}");
            seen += 1;
        }
    }
    assert_eq!(seen, 1);
    // Nothing that is fetched misses it.
    write(&mut pmu, FETCH_CTL, FETCH_EN | 1 << 59 | 1);
    assert!((1..1000).all(|n| !step(&mut pmu, n).ibs));
    assert_eq!(read(&mut pmu, FETCH_CTL) & FETCH_VAL, 0);
}
