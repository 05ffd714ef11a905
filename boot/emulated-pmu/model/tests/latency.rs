//! Load latency: which loads have records, and where those say that the data came from.

mod common;

use common::pebs::{AREA, Area, instruction};
use common::{EN, USR, pmu, read, write};
use pmu_model::{Delta, Model, Occurrence, Pmu, Ring};

/// Adaptive records: the adaptive bit.
const ADAPTIVE: u64 = 1 << 34;
const MODELS: [Model; 8] = [
    Model::Nehalem,
    Model::Haswell,
    Model::Skylake,
    Model::IceLake,
    Model::SapphireRapids,
    Model::GoldenCove,
    Model::ArrowLake,
    Model::Gracemont,
];

fn is_adaptive(model: Model) -> bool {
    !matches!(model, Model::Nehalem | Model::Haswell | Model::Skylake)
}

/// The event of slow loads, that of stores, and the counters that they can be on.
fn events(model: Model) -> (u64, u64, u32) {
    match model {
        Model::Nehalem => (0x100B, 0, 3),
        Model::Gracemont => (0x05D0, 0x06D0, 0),
        Model::Haswell | Model::Skylake | Model::IceLake => (0x01CD, 0x82D0, 3),
        Model::ArrowLake => (0x01CD, 0x02CD, 2),
        _ => (0x01CD, 0x02CD, 1),
    }
}

/// Counter `n` has a record of each event.
fn arm(pmu: &mut Pmu, n: u32, event: u64, threshold: u64) -> Area {
    let model = pmu.model();
    let mut area = Area::new(1000, 1000);
    area.set_reset(n as usize, (1 << 48) - 1);
    write(pmu, 0x600, AREA);
    write(pmu, 0x3F1, 1 << n);
    let adaptive = if is_adaptive(model) { ADAPTIVE } else { 0 };
    if is_adaptive(model) {
        write(pmu, 0x3F2, 1);
    }
    write(pmu, 0x3F6, threshold);
    write(pmu, 0x186 + n, event | EN | USR | adaptive);
    let counter = if model == Model::Nehalem { 0xC1 } else { 0x4C1 };
    let last = if model == Model::Nehalem { 0xFFFF_FFFF } else { (1 << 48) - 1 };
    write(pmu, counter + n, last);
    if matches!(model, Model::SapphireRapids | Model::GoldenCove) && event == 0x01CD {
        write(pmu, 0x186, 0x8203 | EN | USR);
    }
    area
}

fn access(list: &[Occurrence]) -> Delta {
    list.iter().fold(Delta::step(Ring::User), |delta, one| delta.with(*one, 1))
}

/// Address, source and latency of the records of these instructions, which come after one that arms the counter.
fn records(model: Model, stores: bool, threshold: u64, deltas: &[Delta]) -> Vec<[u64; 3]> {
    use Occurrence::*;
    let mut pmu = pmu(model);
    let (loads, of_stores, n) = events(model);
    let (event, n) = match (stores, model) {
        (true, Model::SapphireRapids | Model::GoldenCove | Model::ArrowLake) => (of_stores, 0),
        (true, _) => (of_stores, n),
        (false, _) => (loads, n),
    };
    let mut area = arm(&mut pmu, n, event, threshold);
    let first = if stores { access(&[Store, StoreLlcMiss]) } else { access(&[Load, LoadLlcMiss]) };
    instruction(&mut pmu, &mut area, 1, first);
    for (n, delta) in (2..).zip(deltas) {
        // The reset value lets each of them arm the counter, and the next one have the record.
        instruction(&mut pmu, &mut area, n, delta.clone());
        let again =
            if stores { access(&[Store, StoreLlcMiss]) } else { access(&[Load, LoadLlcMiss]) };
        instruction(&mut pmu, &mut area, 100 + n, again);
    }
    let (words, at) = match model {
        Model::Nehalem => (22, 19),
        Model::Haswell => (24, 19),
        Model::Skylake => (25, 19),
        _ => (8, 4),
    };
    let count = area.records(words);
    (0..count).map(|n| area.buffer()[n * words + at..][..3].try_into().unwrap()).collect()
}

/// What a record states of this latency.
fn stated(model: Model, whole: u64) -> u64 {
    match model {
        Model::SapphireRapids | Model::GoldenCove | Model::ArrowLake | Model::Gracemont => {
            whole << 32 | (whole + 1)
        }
        _ => whole,
    }
}

#[test]
fn s1_records_of_loads_state_level_translation_and_latency() {
    use Occurrence::*;
    for model in MODELS {
        let [near, last, memory] = match model {
            Model::ArrowLake => [1, 8, 0x11],
            _ => [1, 4, 0xA],
        };
        let [walk, locked] = match model {
            Model::Nehalem => [0, 0],
            Model::ArrowLake => [1 << 10, 1 << 11],
            Model::Gracemont => [1 << 5, 1 << 4],
            _ => [1 << 4, 1 << 5],
        };
        let deltas = [
            access(&[Load, LoadL1Hit]),
            access(&[Load, LoadLlcHit]),
            access(&[Load, LoadLlcMiss]),
            access(&[Load, LoadL1Hit, LoadStlbHit]),
            access(&[LoadStore, LoadLlcMiss, LoadWalk, Locked]),
            access(&[Load, LoadLlcMiss, LoadWalk]),
        ];
        let seen = records(model, false, 3, &deltas);
        let expected = [
            [near, 4],
            [last, 18],
            [memory, 204],
            [near, 11],
            [memory | walk | locked, 234],
            [memory | walk, 234],
        ];
        let expected = expected.map(|[source, whole]| [0x10_0000, source, stated(model, whole)]);
        assert_eq!(seen, expected, "{model:?}");
    }
}

#[test]
fn m5_s1_a_threshold_keeps_faster_loads_away() {
    use Occurrence::*;
    for model in MODELS {
        let fast = access(&[Load, LoadLlcHit]);
        for (threshold, records_of_it) in [(17, true), (18, false), (203, false)] {
            let seen = records(model, false, threshold, std::slice::from_ref(&fast));
            // Without its own the next one, from memory, has it.
            let whole = if records_of_it { 18 } else { 204 };
            assert_eq!(seen[0][2], stated(model, whole), "{model:?}, {threshold}");
        }
        assert_eq!(records(model, false, 204, &[fast]).len(), 0, "{model:?}");
    }
}

#[test]
fn s1_records_of_stores_state_what_their_processor_has() {
    use Occurrence::*;
    for model in MODELS.into_iter().filter(|model| *model != Model::Nehalem) {
        let deltas = [access(&[Store, StoreL1Hit]), access(&[Store, StoreLlcMiss, StoreWalk])];
        let seen = records(model, true, 3, &deltas);
        let expected = match model {
            Model::Haswell | Model::Skylake | Model::IceLake => [[1, 0], [0, 0]],
            Model::ArrowLake => {
                [[1, 4], [0x11 | 1 << 10, 234]].map(|[at, whole]| [at, stated(model, whole)])
            }
            Model::Gracemont => {
                [[1, 4], [0xA | 1 << 5, 234]].map(|[at, whole]| [at, stated(model, whole)])
            }
            _ => [[1, 4], [0x1A, 234]].map(|[at, whole]| [at, stated(model, whole)]),
        };
        let expected = expected.map(|[source, latency]| [0x20_0000, source, latency]);
        assert_eq!(seen, expected, "{model:?}");
    }
}

#[test]
fn m5_s1_golden_cove_has_no_record_of_loads_without_the_auxiliary_event() {
    use Occurrence::*;
    for (model, with) in [(Model::SapphireRapids, 0), (Model::IceLake, 1), (Model::ArrowLake, 1)] {
        let mut pmu = pmu(model);
        let mut area = arm(&mut pmu, 3, 0x01CD, 3);
        write(&mut pmu, 0x186, 0);
        for n in 0..2 {
            instruction(&mut pmu, &mut area, n, access(&[Load, LoadLlcMiss]));
        }
        assert_eq!(area.records(8), with, "{model:?}");
        assert_eq!(read(&mut pmu, 0x3F6), 3);
    }
}

#[test]
fn s1_caches_are_modelled_where_a_record_states_a_source() {
    for model in MODELS {
        let mut pmu = pmu(model);
        let (loads, _, n) = events(model);
        arm(&mut pmu, n, loads, 30);
        let needs = pmu.needs();
        assert!(needs.memory() && needs.unspread & 1 << n != 0, "{model:?}: {needs:?}");
        // Records of format 6 state the retire latency of any instruction.
        write(&mut pmu, 0x186 + n, 0xC0 | EN | USR);
        assert_eq!(pmu.needs().memory(), model == Model::ArrowLake, "{model:?}");
    }
}
