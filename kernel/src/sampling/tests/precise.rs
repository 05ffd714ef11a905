//! PEBS: each record is a sample of the instruction itself.

use super::*;
use pmu_model::Mutation;
use protocol::job::sampling::VectorRegisters;
use protocol::record::SampledCount;

/// Models with an event of theirs that every instruction is and that is precise.
const MODELS: [(Model, &str); 10] = [
    (Model::Core2, "r00c0"),
    (Model::Nehalem, "r01c0"),
    (Model::Haswell, "r01c0:c=0"),
    (Model::Skylake, "r01c0:u:k"),
    // Fixed counter 0; any other one.
    (Model::IceLake, "r00c0"),
    (Model::IceLake, "r00c0:counter=6"),
    (Model::SapphireRapids, "r00c0"),
    (Model::ArrowLake, "r00c0:counter=9"),
    (Model::CougarCove, "r00c0"),
    (Model::CougarCove, "r00c0:counter=7"),
];

fn precise(text: &'static str, period: u64, turns: u64) -> Sampling<'static> {
    // PREC_DIST is on counter 1 alone.
    Sampling { precise: true, ..item(&[event(text, period)], turns) }
}

fn host(model: Model) -> Host {
    let mut host = Host::new(model);
    if matches!(model, Model::Haswell | Model::Skylake) {
        // Without the table nothing says that this event is counter 1's.
        host.known.processor.pebs.as_mut().unwrap().gp_counters = 2;
    }
    host
}

/// Whether everything that was counted is in a record or in the rest.
fn is_whole(one: &SampledCount) {
    assert_eq!(one.samples + one.dropped + one.lost, one.overflows, "{one:?}");
    assert_eq!(Some(one.overflows * one.period + one.rest), one.witness, "{one:?}");
}

/// A word says all that is programmed; without PEBS its samples would be others than those that were wanted.
#[test]
fn m9_a_function_word_is_not_sampled_precisely() {
    let text = refused(&precise("0x4301c0", 77, 9000));
    assert!(text.contains("0x4301c0: precise counting of a function word"), "{text}");
}

#[test]
fn m9_s1_every_nth_instruction_is_a_sample_of_itself() {
    for (model, text) in MODELS {
        let (result, _) = run(&mut host(model), &precise(text, 77, 9000));
        let one = &result.events[0];
        is_whole(one);
        // 90,000 instructions; two thirds of 256 records each time.
        assert_eq!((one.overflows, one.rest, result.interrupts), (1168, 64, 6), "{model:?}");
        let skid = one.skid.as_deref().unwrap();
        let exact = !matches!(model, Model::Core2 | Model::Nehalem);
        assert_eq!(skid.starts_with("0:"), exact, "{model:?}: {skid}");
        let mut item = precise(text, 77, 9000);
        (item.keep, item.capacity, item.registers) = (Keep::Samples, 2000, 1 << 3);
        let (result, chunks) = run(&mut host(model), &item);
        is_whole(&result.events[0]);
        let all: Vec<_> = chunks.iter().flat_map(Samples::iter).collect();
        assert_eq!(all.len(), 1168, "{model:?}");
        for (n, &(address, _, events, _)) in (1..).zip(&all) {
            // The 77th instruction lies at 76; a record that is not exact names the one after.
            let at = (77 * n - u64::from(exact)) % 10;
            assert_eq!((address, events), (AT + at, 1), "{model:?} {n}");
        }
        let behind: Vec<_> = chunks.iter().flat_map(|chunk| &chunk.registers).collect();
        let expected = |n: u64| AT + 77 * n % 10;
        assert!((1..).zip(&behind).all(|(n, rbx)| rbx.0 == expected(n)), "{model:?}");
    }
}

#[test]
fn m9_s1_loads_have_their_addresses_counted() {
    for model in [Model::Skylake, Model::IceLake, Model::SapphireRapids, Model::ArrowLake] {
        let mut item = precise("r81d0", 64, 2000);
        item.workload.tasks[0].body = Cow::Borrowed(&[0x90, LOAD, 0x90]);
        let (result, _) = run(&mut Host::new(model), &item);
        let one = &result.events[0];
        is_whole(one);
        assert_eq!((one.overflows, result.addresses.len()), (31, 1), "{model:?} {result:?}");
        assert_eq!(result.addresses[0].address.0, AT + 1);
        let counted: u64 = result.data.iter().map(|row| row.count).sum();
        assert_eq!((counted, result.data_elsewhere), (31, 0), "{model:?} {result:?}");
        assert!(result.data.iter().all(|row| (DATA..DATA + 32).contains(&row.address.0)));
        (item.keep, item.capacity) = (Keep::Samples, 40);
        let (_, chunks) = run(&mut Host::new(model), &item);
        assert_eq!(chunks[0].data.len(), 31);
        assert!(chunks[0].data.iter().all(|address| (DATA..DATA + 32).contains(&address.0)));
    }
}

#[test]
fn m11_s1_records_that_find_no_room_are_counted_by_the_witness() {
    for (model, text) in MODELS {
        let mut host = host(model);
        host.deaf = true;
        // A freeze would stop the counters at the threshold, and nothing be lost.
        let item = Sampling { freeze: sampling::Freeze::Off, ..precise(text, 64, 9000) };
        let (result, _) = run(&mut host, &item);
        let one = &result.events[0];
        is_whole(one);
        // Of 288 bytes each as many as go into 128 KiB, the next size of an architectural buffer.
        let fit = if model == Model::CougarCove { 131_072 / 288 } else { 256 };
        assert_eq!((one.samples, one.lost), (fit, 90_000 / 64 - fit), "{model:?}");
    }
}

#[test]
fn i5_m9_records_belong_to_the_task_that_ran() {
    let mut item = precise("r00c0", 64, 200);
    let mut other = item.workload.tasks[0].clone();
    (other.name, other.ring) = (Cow::Borrowed("other"), TaskRing::User);
    item.workload.tasks.push(other);
    (item.keep, item.capacity) = (Keep::Samples, 100);
    let (result, chunks) = run(&mut Host::new(Model::Core2), &item);
    is_whole(&result.events[0]);
    let all: Vec<_> = chunks.iter().flat_map(Samples::iter).collect();
    assert_eq!(all.len(), 4000 / 64);
    for (address, _, _, task) in all {
        let index = u32::from(address >= AT + 0x100);
        assert_eq!(task, 4 * index + 3 * index, "{address:#x}");
    }
}

#[test]
fn c7_what_pebs_cannot_do_is_refused_with_the_reason() {
    let refused = |model, item: &Sampling| match measure(
        &mut Host::new(model),
        0,
        item,
        &mut (),
        &mut |_| (),
    ) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(Model::Zen4, &precise("r00c0", 64, 1)).contains("IBS samples by"));
    let mut without = Host::with(Model::IceLake, Mutation::PebsEnableAbsent).unwrap();
    match measure(&mut without, 0, &precise("r00c0", 64, 1), &mut (), &mut |_| ()) {
        Err(Unmeasured::Refused(text)) => assert!(text.contains("no PEBS"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert!(refused(Model::Core2, &precise("r00c4", 64, 1)).contains("not precise"));
    assert!(refused(Model::Core2, &item(&[event("r00c0:pp", 64)], 1)).contains("format 2"));
    let limited = Sampling { limit_per_ms: 5, ..precise("r00c0", 64, 1) };
    assert!(refused(Model::Core2, &limited).contains("limit-per-ms"));
    let two = Sampling { precise: true, ..item(&[event("r01c0", 64), event("r01c4", 64)], 1) };
    let (result, _) = run(&mut Host::new(Model::Nehalem), &two);
    assert!(result.uncounted[0].reason.contains("one precise event at a time"), "{result:?}");
}

#[test]
fn m9_two_precise_events_have_each_their_records_where_those_name_their_counter() {
    let both = [event("r01c0:counter=1", 64), event("r81d0", 70)];
    let mut item = Sampling { precise: true, ..item(&both, 1000) };
    item.workload.tasks[0].body = Cow::Borrowed(&[LOAD, 0x90]);
    let (result, _) = run(&mut Host::new(Model::Skylake), &item);
    let [all, loads] = &result.events[..] else { panic!("{result:?}") };
    is_whole(all);
    is_whole(loads);
    assert_eq!((all.overflows, loads.overflows), (2000 / 64, 1000 / 70));
    let at = |event| result.addresses.iter().filter(move |row| row.event == event);
    assert!(at(1).all(|row| row.address.0 == AT), "{result:?}");
    assert_eq!(at(0).map(|row| row.count).sum::<u64>(), 31);
}

/// Vector registers are those after the instruction; a counter beside counts every one of them.
#[test]
fn s1_samples_have_the_vector_registers_and_counters_of_their_records() {
    for (model, text) in [
        (Model::IceLake, "r00c0"),
        (Model::ArrowLake, "r00c0:counter=9"),
        (Model::CougarCove, "r00c0:counter=9"),
    ] {
        let mut item = precise(text, 77, 9000);
        (item.keep, item.capacity, item.registers) = (Keep::Samples, 2000, 8);
        item.vectors = vec![VectorRegisters::Xmm];
        let counts = model != Model::IceLake;
        if counts {
            item.counters = ["r00c0", "r00c4"].map(Cow::Borrowed).to_vec();
        }
        let (result, chunks) = run(&mut host(model), &item);
        is_whole(&result.events[0]);
        let names: &[&str] = if counts { &["r00c0", "r00c4"] } else { &[] };
        assert_eq!(result.values, names);
        let all: Vec<_> = chunks.iter().flat_map(Samples::iter).collect();
        let vectors: Vec<u64> = chunks.iter().flat_map(|one| &one.vectors).map(|w| w.0).collect();
        let next: Vec<u64> = chunks.iter().flat_map(|one| &one.registers).map(|w| w.0).collect();
        assert_eq!((all.len(), vectors.len(), next.len()), (1168, 32 * 1168, 1168), "{model:?}");
        for (sample, next) in vectors.chunks(32).zip(&next) {
            assert!(sample.iter().eq((0..32).map(|half| next + half).collect::<Vec<_>>().iter()));
        }
        let values: Vec<u64> = chunks.iter().flat_map(|one| &one.values).copied().collect();
        let expected: Vec<u64> = (1..=1168).flat_map(|n| [77 * n, 0]).collect();
        assert_eq!(values, if counts { expected } else { vec![] }, "{model:?}");
    }
}

/// A YMM register is its lower half, XMM, and the upper one, whatever else is asked for.
#[test]
fn s1_samples_have_whole_ymm_registers() {
    use VectorRegisters::{Xmm, Ymm};
    for asked in [vec![Ymm], vec![Ymm, Xmm]] {
        let mut item = precise("r00c0:counter=9", 77, 900);
        (item.keep, item.capacity, item.registers) = (Keep::Samples, 2000, 8);
        item.vectors = asked.clone();
        item.counters = vec![Cow::Borrowed("r00c0")];
        let (result, chunks) = run(&mut host(Model::CougarCove), &item);
        is_whole(&result.events[0]);
        let next: Vec<u64> = chunks.iter().flat_map(|one| &one.registers).map(|w| w.0).collect();
        let list = |kind| -> Vec<u64> {
            chunks.iter().flat_map(|one| one.vectors_of(kind)).map(|w| w.0).collect()
        };
        let (ymm, xmm) = (list(Ymm), list(Xmm));
        assert_eq!(ymm.len(), 64 * next.len());
        assert_eq!(xmm.len(), if asked.len() == 2 { 32 * next.len() } else { 0 });
        for (sample, next) in ymm.chunks(64).zip(&next) {
            for (n, register) in (0..).zip(sample.chunks(4)) {
                let [low, high] = [next + 2 * n, 7 * next + 2 * n];
                assert_eq!(register, [low, low + 1, high, high + 1]);
            }
        }
        for (sample, next) in xmm.chunks(32).zip(&next) {
            assert!(sample.iter().eq((0..32).map(|half| next + half).collect::<Vec<_>>().iter()));
        }
        let values: Vec<u64> = chunks.iter().flat_map(|one| &one.values).copied().collect();
        assert_eq!(values, (1..=next.len() as u64).map(|n| 77 * n).collect::<Vec<_>>());
    }
}

#[test]
fn s1_vectors_and_counters_are_refused_by_name_where_records_have_none() {
    let said = |model: Model, change: fn(&mut Sampling<'static>)| {
        let text = MODELS.iter().find(|(one, _)| *one == model).map_or("r00c0", |one| one.1);
        let mut item = precise(text, 77, 10);
        item.keep = Keep::Samples;
        change(&mut item);
        match measure(&mut host(model), 0, &item, &mut (), &mut |_| ()) {
            Err(Unmeasured::Refused(reason)) => reason,
            other => panic!("{model:?}: {other:?}"),
        }
    };
    use VectorRegisters::{Hi16Zmm, Opmask, Xmm, Ymm, Zmm};
    let vectors: fn(&mut Sampling<'static>) = |item| item.vectors = vec![Xmm];
    let counters: fn(&mut Sampling<'static>) = |item| item.counters = vec!["r00c4".into()];
    for (model, change, parts) in [
        (
            Model::Skylake,
            vectors,
            [
                "vectors: PEBS records of format 3 have none, they came with format 4",
                "registers has",
            ],
        ),
        (Model::IceLake, counters, ["counters: PEBS records of format 4", "[[count]]"]),
        (
            Model::Zen4,
            |item| (item.vectors, item.events) = (vec![Xmm], vec![event("r0076", 4096)]),
            ["vectors: samples of IBS have none", "registers"],
        ),
        (
            Model::ArrowLake,
            |item| (item.vectors, item.precise) = (vec![Xmm], false),
            ["vectors: they stand in PEBS records", "precise = true"],
        ),
        (
            Model::IceLake,
            |item| item.vectors = vec![Ymm, Xmm],
            [
                "vectors: ymm: PEBS records of format 4 have no upper halves of YMM registers, they came with architectural PEBS",
                "the nearest: \"xmm\" in vectors",
            ],
        ),
        (
            Model::CougarCove,
            |item| item.vectors = vec![Xmm, Zmm],
            [
                "vectors: zmm: this processor's PEBS records have no upper halves of ZMM registers (CPUID leaf 0x23.4 EBX[22])",
                "the nearest: \"ymm\" in vectors",
            ],
        ),
        (
            Model::CougarCove,
            |item| item.vectors = vec![Hi16Zmm],
            ["vectors: hi16-zmm: this processor's PEBS records have no ZMM16 to ZMM31", "EBX[23]"],
        ),
        (
            Model::CougarCove,
            |item| item.vectors = vec![Opmask],
            ["vectors: opmask: this processor's PEBS records have no opmask registers", "EBX[21]"],
        ),
        (
            Model::ArrowLake,
            |item| item.counters = vec!["no-such".into()],
            ["counters: no-such", "no-such"],
        ),
        (
            Model::ArrowLake,
            |item| item.counters = vec!["r00c4".into(); 16],
            ["counters: no counter that goes into records is free for r00c4", "name fewer"],
        ),
    ] {
        let reason = said(model, change);
        assert!(parts.iter().all(|part| reason.contains(part)), "{model:?}: {reason}");
    }
}

/// What a counter goes on from has 32 bits.
#[test]
fn s1_a_period_that_architectural_pebs_cannot_reload_is_refused() {
    let of = |period| {
        measure(
            &mut Host::new(Model::CougarCove),
            0,
            &precise("r00c0", period, 10),
            &mut (),
            &mut |_| (),
        )
    };
    let longest = of((1 << 31) + 1).expect("the longest");
    assert_eq!(
        (longest.events[0].overflows, longest.events[0].rest),
        (0, longest.events[0].witness.unwrap())
    );
    match of((1 << 31) + 2) {
        Err(Unmeasured::Refused(reason)) => {
            assert!(reason.contains("2147483650 is too long"), "{reason}");
            assert!(reason.contains("2147483649 is the longest"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    // Adaptive records have a reset value of the counter's width.
    let item = precise("r00c0", (1 << 31) + 2, 10);
    assert!(measure(&mut Host::new(Model::IceLake), 0, &item, &mut (), &mut |_| ()).is_ok());
}
