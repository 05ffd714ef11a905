//! Registers whose bits do not simply stay or fault.

mod common;

use common::table::table;
use common::{fault, pmu, read, write};
use pmu_model::{Fault, Model};

#[test]
fn special_registers_start_at_0_unless_they_tell_of_the_part() {
    for model in Model::ALL {
        let mut pmu = pmu(model);
        for msr in table(model).special {
            let value = read(&mut pmu, msr);
            match msr {
                // BTS is unavailable everywhere, PEBS where there is none.
                0x1A0 => {
                    let there = [0x3F1, 0x3F4].into_iter().any(|msr| pmu.read_msr(msr).is_ok());
                    let none = u64::from(!there);
                    assert_eq!(value, 1 | 1 << 7 | 1 << 11 | none << 12, "{model:?}");
                }
                0x14CF => assert_eq!(value, 32, "{model:?}"),
                // IBS_CTL: the first entry of the extended local vector table.
                0xC001_103A => assert_eq!(value, 1 << 8, "{model:?}"),
                // Energy: the unit, and what will go through 0 later on.
                0x606 | 0x611 | 0x619 | 0x639 | 0x641 | 0x64D => assert_ne!(value, 0, "{model:?}"),
                0xC001_0299..=0xC001_029B => assert_ne!(value, 0, "{model:?}"),
                0x345 => assert_ne!(value, 0, "{model:?}"),
                _ => assert_eq!(value, 0, "{model:?} {msr:#x}"),
            }
        }
    }
}

#[test]
fn read_only_registers_fault_on_write() {
    let intel = [0x38E, 0x345];
    for model in [
        Model::Core2,
        Model::Nehalem,
        Model::Haswell,
        Model::Skylake,
        Model::IceLake,
        Model::SapphireRapids,
        Model::ArrowLake,
        Model::CougarCove,
    ] {
        for msr in intel {
            let result = pmu(model).write_msr(msr, 0);
            assert_eq!(fault(result), Fault::ReadOnly { msr, value: 0 }, "{model:?}");
        }
    }
    for (model, msr) in [
        (Model::Skylake, 0x392),
        (Model::Skylake, 0x1DB),
        (Model::Zen2, 0xC000_00E9),
        (Model::K10, 0x1DB),
        (Model::K10, 0x1DD),
        (Model::Haswell, 0x606),
        (Model::Skylake, 0x64D),
        (Model::Zen2, 0xC001_029A),
    ] {
        let result = pmu(model).write_msr(msr, 0);
        assert_eq!(fault(result), Fault::ReadOnly { msr, value: 0 }, "{model:?}");
    }
}

#[test]
fn amd_ignores_a_write_of_the_global_status() {
    let mut pmu = pmu(Model::Zen4);
    write(&mut pmu, 0xC000_0303, 0b101);
    for value in [0, !0b101] {
        write(&mut pmu, 0xC000_0300, value);
        assert_eq!(read(&mut pmu, 0xC000_0300), 0b101);
    }
}

#[test]
fn perf_capabilities_are_those_of_the_part() {
    for (model, value) in [
        (Model::Core2, 0x10C2),
        (Model::Nehalem, 0x11C3),
        (Model::Haswell, 0x32C4),
        (Model::Skylake, 0x33C5),
        (Model::IceLake, 0xF4C5),
        (Model::SapphireRapids, 0xF4FF),
        (Model::ArrowLake, 0x2_F6FF),
        (Model::CougarCove, 0xBF3F),
    ] {
        assert_eq!(read(&mut pmu(model), 0x345), value, "{model:?}");
    }
}

#[test]
fn legacy_counters_ignore_the_upper_half_and_extend_the_lower() {
    for (model, high) in [(Model::Core2, 0xFF_8000_0000), (Model::Skylake, 0xFFFF_8000_0000)] {
        let mut pmu = pmu(model);
        write(&mut pmu, 0xC1, 0xDEAD_BEEF_8000_0000);
        assert_eq!(read(&mut pmu, 0xC1), high, "{model:?}");
        write(&mut pmu, 0xC1, 0xDEAD_BEEF_7FFF_FFFF);
        assert_eq!(read(&mut pmu, 0xC1), 0x7FFF_FFFF, "{model:?}");
    }
}

#[test]
fn aliases_are_one_counter() {
    let mut intel = pmu(Model::ArrowLake);
    write(&mut intel, 0x4C3, 0x1234_5678_9ABC);
    assert_eq!(read(&mut intel, 0xC3), 0x1234_5678_9ABC);
    assert_eq!(read(&mut intel, 0x1908), 0x1234_5678_9ABC);
    write(&mut intel, 0x1909, 0x43_00C0);
    assert_eq!(read(&mut intel, 0x188), 0x43_00C0);
    write(&mut intel, 0x1984, 77);
    assert_eq!(read(&mut intel, 0x30A), 77);

    let mut amd = pmu(Model::Zen2);
    write(&mut amd, 0xC001_0003, 0x43_00C0);
    write(&mut amd, 0xC001_0007, 99);
    assert_eq!(read(&mut amd, 0xC001_0206), 0x43_00C0);
    assert_eq!(read(&mut amd, 0xC001_0207), 99);
}

#[test]
fn misc_enable_keeps_the_hosts_bits_and_shows_the_pmus() {
    let mut pmu = pmu(Model::Skylake);
    let start = read(&mut pmu, 0x1A0);
    assert_eq!(start, 1 | 1 << 7 | 1 << 11);
    // Bit 7 cannot be cleared; the rest goes to the hardware without the bits of the PMU.
    let effects = pmu.write_msr(0x1A0, (start | 1 << 34) & !(1 << 7)).unwrap();
    assert_eq!(read(&mut pmu, 0x1A0), start | 1 << 34);
    assert_eq!(effects.forward, Some(1 | 1 << 34));
    // Bits 11 and 12 fault if they would change.
    let value = start | 1 << 12;
    assert_eq!(
        fault(pmu.write_msr(0x1A0, value)),
        Fault::ReadOnlyBits { msr: 0x1A0, value, bits: 1 << 12 }
    );
}

#[test]
fn hwcr_shares_one_bit_with_the_pmu() {
    let mut pmu = pmu(Model::Zen4);
    let effects = pmu.write_msr(0xC001_0015, 1 << 30 | 1 << 4).unwrap();
    assert_eq!(effects.forward, Some(1 << 4));
    assert_eq!(read(&mut pmu, 0xC001_0015), 1 << 30 | 1 << 4);
    pmu.advance(&common::user(7));
    assert_eq!(read(&mut pmu, 0xC000_00E9), 7);
    write(&mut pmu, 0xC001_0015, 0);
    pmu.advance(&common::user(7));
    assert_eq!(read(&mut pmu, 0xC000_00E9), 7);
}

#[test]
fn debugctl_bit_0_is_gone_with_architectural_lbrs() {
    let mut pmu = pmu(Model::SapphireRapids);
    write(&mut pmu, 0x1D9, 0x5803);
    assert_eq!(read(&mut pmu, 0x1D9), 0x5802);
    assert!(pmu.write_msr(0x1D9, 1 << 2).is_err());
}

#[test]
fn amd_debugctl_drops_all_but_bit_6_which_faults() {
    for (model, kept) in [(Model::K10, 0x3F), (Model::Zen2, 0x3F), (Model::Zen4, 0x183F)] {
        let mut pmu = pmu(model);
        write(&mut pmu, 0x1D9, !(1 << 6));
        assert_eq!(read(&mut pmu, 0x1D9), kept, "{model:?}");
        assert!(pmu.write_msr(0x1D9, 1 << 6).is_err(), "{model:?}");
    }
}

#[test]
fn global_inuse_tells_what_is_programmed() {
    let mut pmu = pmu(Model::Skylake);
    assert_eq!(read(&mut pmu, 0x392), 0);
    write(&mut pmu, 0x188, 0x43_00C0);
    assert_eq!(read(&mut pmu, 0x392), 1 << 2);
    write(&mut pmu, 0x38D, 0x20);
    assert_eq!(read(&mut pmu, 0x392), 1 << 2 | 1 << 33);
    write(&mut pmu, 0x188, 0x53_00C0);
    assert_eq!(read(&mut pmu, 0x392), 1 << 2 | 1 << 33 | 1 << 63);
    // It looks at no enable.
    write(&mut pmu, 0x38F, 0);
    assert_eq!(read(&mut pmu, 0x392), 1 << 2 | 1 << 33 | 1 << 63);
}

#[test]
fn init_changes_nothing_and_reset_everything() {
    for model in common::with_counters() {
        let mut pmu = pmu(model);
        let counter = common::counter(model, 1);
        write(&mut pmu, counter.selector, 0x43_00C0);
        write(&mut pmu, counter.counter, 55);
        pmu.init();
        assert_eq!(read(&mut pmu, counter.selector), 0x43_00C0, "{model:?}");
        assert_eq!(read(&mut pmu, counter.counter), 55, "{model:?}");
        pmu.reset();
        assert_eq!(read(&mut pmu, counter.selector), 0, "{model:?}");
        assert_eq!(read(&mut pmu, counter.counter), 0, "{model:?}");
    }
}
