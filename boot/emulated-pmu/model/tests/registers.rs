//! Every register of every model, against the table written by hand in `common`.

mod common;

use common::table::{Reserved, table};
use common::{fault, pmu, read, write};
use pmu_model::{Fault, Model, MsrError};

#[test]
fn each_register_starts_at_its_reset_value() {
    for model in Model::ALL {
        let mut pmu = pmu(model);
        for register in table(model).plain {
            assert_eq!(read(&mut pmu, register.msr), register.reset, "{model:?} {register:x?}");
        }
    }
}

#[test]
fn each_bit_is_kept_or_refused() {
    for model in Model::ALL {
        for register in table(model).plain {
            for bit in 0..64 {
                let mut pmu = pmu(model);
                let value = 1u64 << bit;
                let result = pmu.write_msr(register.msr, value);
                let what = format!("{model:?} {:#x} bit {bit}", register.msr);
                let now = read(&mut pmu, register.msr);
                if register.writable & value != 0 {
                    assert!(result.is_ok(), "{what}");
                    assert_eq!(now, value, "{what}");
                } else if register.reserved == Reserved::Faults {
                    assert_eq!(
                        fault(result),
                        Fault::Reserved { msr: register.msr, value, reserved: value },
                        "{what}"
                    );
                    assert_eq!(now, register.reset, "{what}: a fault changes nothing");
                } else {
                    assert!(result.is_ok(), "{what}");
                    assert_eq!(now, 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn all_writable_bits_together_are_read_back() {
    for model in Model::ALL {
        for register in table(model).plain {
            let mut pmu = pmu(model);
            for value in [register.writable, 0x5A5A_A5A5_5A5A_A5A5 & register.writable, 0] {
                write(&mut pmu, register.msr, value);
                assert_eq!(read(&mut pmu, register.msr), value, "{model:?} {register:x?}");
            }
        }
    }
}

#[test]
fn what_is_in_no_table_does_not_exist() {
    let blocks = [0u32, 0xC000_0000, 0xC001_0000];
    for model in Model::ALL {
        let table = table(model);
        let known: Vec<u32> = table
            .plain
            .iter()
            .map(|register| register.msr)
            .chain(table.special.iter().copied())
            .collect();
        let mut pmu = pmu(model);
        for msr in blocks.into_iter().flat_map(|base| base..base + 0x2000) {
            let read = pmu.read_msr(msr);
            if known.contains(&msr) {
                assert!(read.is_ok(), "{model:?} {msr:#x}: {read:?}");
                assert!(pmu.owns(msr));
                continue;
            }
            let write = pmu.write_msr(msr, 0);
            if pmu.owns(msr) {
                assert_eq!(fault(read), Fault::Absent { msr }, "{model:?}");
                assert_eq!(fault(write), Fault::Absent { msr }, "{model:?}");
            } else {
                assert_eq!(read, Err(MsrError::NotMine { msr }), "{model:?}");
                assert_eq!(write, Err(MsrError::NotMine { msr }), "{model:?}");
            }
        }
    }
}

#[test]
fn the_permission_map_is_what_the_model_answers_for() {
    let blocks = [0u32, 0xC000_0000, 0xC001_0000];
    for model in Model::ALL {
        let pmu = pmu(model);
        let ranges: Vec<(u32, u32)> = pmu.msr_ranges().collect();
        for msr in blocks.into_iter().flat_map(|base| base..base + 0x2000) {
            let listed = ranges.iter().any(|(first, last)| (*first..=*last).contains(&msr));
            assert_eq!(listed, pmu.owns(msr), "{model:?} {msr:#x}");
        }
    }
}

#[test]
fn registers_of_other_generations_are_not_passed_to_the_hardware() {
    // QEMU's TCG answers unknown MSRs with 0, so these must be ours to fault.
    for (model, msr) in [
        (Model::Core2, 0x4C1),
        (Model::Nehalem, 0x4C1),
        (Model::Nehalem, 0x391),
        (Model::Haswell, 0x391),
        (Model::Haswell, 0x392),
        (Model::Skylake, 0x30C),
        (Model::Skylake, 0x329),
        (Model::Skylake, 0x3F2),
        (Model::IceLake, 0x3F4),
        (Model::ArrowLake, 0x3F5),
        (Model::SapphireRapids, 0x680),
        (Model::SapphireRapids, 0x1C8),
        (Model::SapphireRapids, 0x1900),
        (Model::ArrowLake, 0x1902),
        (Model::ArrowLake, 0x1903),
        (Model::CougarCove, 0x1902),
        (Model::CougarCove, 0x1981),
        (Model::CougarCove, 0x1982),
        (Model::CougarCove, 0x1993),
        (Model::CougarCove, 0x192B),
        (Model::CougarCove, 0x600),
        (Model::CougarCove, 0x3F1),
        (Model::CougarCove, 0x3F2),
        (Model::Zen2, 0xC000_0300),
        (Model::Zen2, 0xC1),
        (Model::Zen4, 0x38F),
        (Model::Zen4, 0xC001_0230),
        (Model::Zen4, 0xC001_103D),
        (Model::K10, 0xC001_103B),
        (Model::Skylake, 0xC001_1030),
        (Model::K10, 0xC001_0200),
        (Model::Skylake, 0xC001_0000),
        (Model::None, 0x186),
        (Model::None, 0xC001_0000),
    ] {
        assert_eq!(fault(pmu(model).read_msr(msr)), Fault::Absent { msr }, "{model:?}");
    }
}
