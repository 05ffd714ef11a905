//! RDPMC: which indices exist, what they return, who may execute it.

mod common;

use common::{counter, counters, fixed_counters, pmu, write};
use pmu_model::{Fault, Model, rdpmc_allowed};

#[test]
fn each_index_is_a_counter_or_a_fault() {
    for model in Model::ALL {
        let pmu = pmu(model);
        let metrics = fixed_counters(model) == 4;
        for kind in [0u32, 0x2000, 0x4000, 0x6000, 0x8000, 0xC000, 0x0001, 0xFFFF] {
            for low in [0u32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 31, 32, 63, 64, 0x100, 0xFFFF] {
                let ecx = kind << 16 | low;
                let exists = match kind {
                    0 => low < counters(model),
                    0x4000 => low < fixed_counters(model),
                    0x2000 => metrics && low == 0,
                    _ => false,
                };
                match pmu.rdpmc(ecx) {
                    Ok(_) => assert!(exists, "{model:?} {ecx:#x}"),
                    Err(fault) => {
                        assert!(!exists, "{model:?} {ecx:#x}");
                        assert_eq!(fault, Fault::Rdpmc { ecx });
                    }
                }
            }
        }
    }
}

#[test]
fn it_returns_the_whole_counter_zero_extended() {
    for model in common::with_counters() {
        let mut pmu = pmu(model);
        for n in 0..counters(model) {
            let value = 0xFF_FFFF_FF00 + u64::from(n);
            write(&mut pmu, counter(model, n).counter, value);
            let expected = match model {
                // Only the legacy form: 32 bits, sign-extended.
                Model::Nehalem => value | 0xFF << 40,
                _ => value,
            };
            assert_eq!(pmu.rdpmc(n), Ok(expected), "{model:?} {n}");
        }
        for n in 0..fixed_counters(model) {
            write(&mut pmu, 0x309 + n, 0x12_3456_7890 + u64::from(n));
            let expected = 0x12_3456_7890 + u64::from(n);
            assert_eq!(pmu.rdpmc(0x4000_0000 | n), Ok(expected), "{model:?} {n}");
        }
    }
}

#[test]
fn perf_metrics_have_an_index_of_their_own() {
    let mut pmu = pmu(Model::SapphireRapids);
    write(&mut pmu, 0x329, 0x1122_3344_5566_7788);
    assert_eq!(pmu.rdpmc(0x2000_0000), Ok(0x1122_3344_5566_7788));
}

#[test]
fn privilege() {
    assert!(rdpmc_allowed(0, false) && rdpmc_allowed(0, true));
    assert!(rdpmc_allowed(3, true) && rdpmc_allowed(1, true));
    assert!(!rdpmc_allowed(3, false) && !rdpmc_allowed(1, false));
    let pmu = pmu(Model::Skylake);
    assert_eq!(pmu.rdpmc_at(0, 0, false), Ok(0));
    assert_eq!(pmu.rdpmc_at(0, 3, true), Ok(0));
    assert_eq!(pmu.rdpmc_at(0, 3, false), Err(Fault::Privilege { cpl: 3 }));
}
