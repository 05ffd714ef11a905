//! Names that are the same on every processor: what each model makes of them. A name that is offered counts something, or
//! the model says that it counts nothing; it never reads 0 in silence.

mod common;

use common::{EN, OS, USR, counter, read, write};
use events::cpu::Vendor;
use events::encode::{Counters, encode};
use events::generic::Generic;
use events::pack::Sources;
use events::parse::parse_event;
use events::processor::Processor;
use events::tables::{Core, Tables};
use pmu_model::{Delta, Host, Model, Occurrence, Pmu, Ring, Timing};

/// The tables of the models. Core 2 and family 10h have none.
fn table(model: Model) -> Option<&'static str> {
    match model {
        Model::Nehalem => Some("nehalemep"),
        Model::ArrowLake => Some("lioncove_arl"),
        Model::None | Model::Core2 | Model::K10 => None,
        model => Some(model.spec().name),
    }
}

fn processor(model: Model, core: Option<&Core<'_>>) -> Processor {
    match (model, core) {
        (_, Some(core)) => Processor::described_by(core),
        (Model::K10, None) => Processor::amd(false, false),
        (_, None) => Processor::intel(2, 2, 3),
    }
}

/// A program that does everything a bit: each occurrence, in both rings, with all their stalls.
fn program(pmu: &mut Pmu) {
    for ring in [Ring::User, Ring::Kernel] {
        for occurrence in Occurrence::ALL {
            pmu.advance(&Delta::step(ring).with(occurrence, 1));
        }
        pmu.advance(&Delta::bulk(ring, 1000));
    }
}

/// What the program counts on general-purpose counter `n`, or `None` if the model names the event as one that counts
/// nothing.
fn general(model: Model, n: u32, select: u64) -> Option<u64> {
    let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT);
    let registers = counter(model, n);
    write(&mut pmu, registers.selector, select | EN | USR | OS);
    program(&mut pmu);
    let count = read(&mut pmu, registers.counter);
    (pmu.unknown_events().count() == 0).then_some(count)
}

fn fixed(model: Model, n: u32) -> u64 {
    let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT);
    write(&mut pmu, 0x38D, 3 << (4 * n));
    write(&mut pmu, 0x38F, 1 << (32 + n));
    program(&mut pmu);
    read(&mut pmu, 0x309 + n)
}

#[test]
fn no_generic_name_of_any_model_reads_0_in_silence() {
    let packed = Sources::embedded().unwrap().pack().unwrap();
    let tables = Tables::open(&packed).unwrap();
    let (mut counted, mut named) = (0, Vec::new());
    for model in common::with_counters() {
        let core = table(model).map(|name| tables.named(name).unwrap());
        let processor = processor(model, core.as_ref());
        let amd = model.spec().amd().is_some();
        let vendor = if amd { Vendor::Amd } else { Vendor::Intel };
        for generic in Generic::all() {
            let request = parse_event(generic.name()).unwrap();
            // What the tables refuse is refused by name.
            let Ok(encoded) = encode(&request, &processor, core.as_ref()) else { continue };
            for choice in encoded.choices {
                let counts = match choice.counters {
                    Counters::General { counters, select, .. } => {
                        let fitting =
                            (0..common::counters(model)).filter(|n| counters >> n & 1 != 0);
                        fitting.map(|n| general(model, n, select.to_bits(vendor))).collect()
                    }
                    Counters::Fixed { index, .. } => vec![Some(fixed(model, index.into()))],
                    Counters::Metric { .. } => vec![],
                };
                for count in counts {
                    assert_ne!(count, Some(0), "{model:?}: {generic} is {}", encoded.name);
                    match count {
                        Some(_) => counted += 1,
                        None => named.push((model, generic.name())),
                    }
                }
            }
        }
    }
    named.dedup();
    // Not everything is merely named.
    assert!(counted > 8 * named.len(), "{counted} counted, and these are not: {named:?}");
    // Nehalem's CPUID marks mispredicted branches as unavailable (erratum AAJ80), and its table has none.
    named.retain(|entry| entry.0 != Model::Nehalem);
    for name in ["cycles", "instructions", "branches", "branch-misses", "cache-misses", "loads"] {
        assert!(named.iter().all(|entry| entry.1 != name), "{name}: {named:?}");
    }
}

/// perf's own names on AMD: `amd_zen2_perfmon_event_map`, `amd_zen4_perfmon_event_map` and `amd_hw_cache_event_ids_f17h` in
/// Linux, `arch/x86/events/amd/core.c`.
#[test]
fn what_perf_asks_of_amd_counts() {
    for (name, select) in [
        ("cpu-cycles", 0x76),
        ("instructions", 0xC0),
        ("cache-references", 0xFF60),
        ("cache-misses", 0x0964),
        ("branch-instructions", 0xC2),
        ("branch-misses", 0xC3),
        ("L1-dcache-loads", 0x40),
        ("L1-dcache-load-misses", 0xC860),
        ("dTLB-loads", 0xFF45),
        ("dTLB-load-misses", 0xF045),
    ] {
        for model in [Model::Zen2, Model::Zen4] {
            let count = general(model, 0, select);
            assert!(count.is_some_and(|count| count > 0), "{model:?}: {name} is {count:?}");
        }
    }
    // Instruction fetches are not modelled, and the model says so.
    for select in [0x80, 0x81, 0x1060, 0xFF84] {
        assert_eq!(general(Model::Zen4, 0, select), None, "{select:#x}");
    }
}
