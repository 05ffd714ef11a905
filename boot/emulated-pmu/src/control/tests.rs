use super::*;

#[test]
fn a_write_of_cr0_that_changes_the_mode_is_told_apart() {
    let old = CR0_PE | CR0_PG | 1 << 4;
    for flag in [1, 2, 3, 5, 16, 18, 29, 30] {
        assert!(only_flags(old, old | 1 << flag), "{flag}");
    }
    for other in [0, 4, 31] {
        assert!(!only_flags(old, old ^ 1 << other), "{other}");
    }
    assert!(!only_flags(old, old | 1 << 6) && only_flags(old, old));
}
use proptest::prelude::*;

/// QEMU's `max`: PCIDE is missing.
const FEATURES: Features = Features { cr4: CR4_ALWAYS | 0x0175_1800, physical_bits: 40 };
const LONG: Control = Control {
    cr0: CR0_PE | CR0_PG,
    cr3: 0x1000,
    cr4: CR4_PAE,
    efer: EFER_LME | EFER_LMA,
    cs: CS_LONG,
};

#[test]
fn features_are_those_that_cpuid_tells_of() {
    let all = Features::new(u32::MAX, (u32::MAX, u32::MAX), 46);
    assert_eq!(all, Features { cr4: 0x0177_1fff & !(1 << 13 | 1 << 14), physical_bits: 46 });
    let none = Features::new(0, (0, 0), 0);
    assert_eq!(none, Features { cr4: CR4_ALWAYS, physical_bits: 32 });
    assert_eq!(Features::new(1 << 26, (1 << 7, 0), 40).cr4, CR4_ALWAYS | 1 << 18 | 1 << 20);
}

#[test]
fn a_processor_refuses_what_its_manual_says() {
    use Register::{Cr0, Cr3, Cr4};
    for (register, value, why) in [
        (Cr0, LONG.cr0 | CR0_NW, "NW without CD"),
        (Cr0, LONG.cr0 & !CR0_PE, "paging without protection"),
        (Cr0, LONG.cr0 & !CR0_PG, "64-bit mode without paging"),
        (Cr0, LONG.cr0 | 1 << 32, "the upper half of CR0"),
        (Cr3, 1 << 51 | 0x1000, "an address bit that there is not"),
        (Cr3, KEEP_TRANSLATIONS | 0x1000, "no PCIDs"),
        (Cr4, LONG.cr4 | 1 << 13, "VMXE, hidden"),
        (Cr4, LONG.cr4 | 1 << 15, "reserved"),
        (Cr4, LONG.cr4 | 1 << 63, "reserved"),
        (Cr4, LONG.cr4 & !CR4_PAE, "long mode without PAE"),
        (Cr4, LONG.cr4 | CR4_LA57, "another depth of the tables in long mode"),
        (Cr4, LONG.cr4 | CR4_PCIDE, "PCIDE, which this processor lacks"),
    ] {
        assert_eq!(LONG.write(register, value, &FEATURES), Err(GeneralProtection), "{why}");
    }
    for (register, value) in [
        (Cr0, LONG.cr0 | CR0_NW | CR0_CD),
        (Cr0, LONG.cr0 | CR0_CD),
        (Cr3, 0x2018),
        (Cr4, LONG.cr4 | 1 << 7),
    ] {
        assert!(LONG.write(register, value, &FEATURES).is_ok(), "{register:?} {value:#x}");
    }
    assert!(LONG.refuses_efer(LONG.efer & !EFER_LME), "long mode while paging");
}

#[test]
fn with_pcids_the_upper_bit_of_cr3_is_an_order_and_not_kept() {
    let features = Features { cr4: FEATURES.cr4 | CR4_PCIDE, ..FEATURES };
    let with = LONG.write(Register::Cr4, LONG.cr4 | CR4_PCIDE, &features).unwrap();
    let next = with.write(Register::Cr3, KEEP_TRANSLATIONS | 0x3005, &features).unwrap();
    assert_eq!(next.cr3, 0x3005);
    let off = Control { cr3: 0x1001, ..LONG };
    assert!(off.write(Register::Cr4, LONG.cr4 | CR4_PCIDE, &features).is_err(), "CR3 has a PCID");
}

#[test]
fn a_code_segment_with_a_reserved_bit_is_entered_without_it() {
    assert_eq!(enterable_code_segment(CS_LONG | CS_DEFAULT | 0x9b), CS_LONG | 0x9b);
    assert_eq!(enterable_code_segment(CS_DEFAULT | 0x9b), CS_DEFAULT | 0x9b);
}

/// Single bits and their neighbours are what a test of reserved bits writes; wild values are what a crash writes.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u32..64).prop_map(|bit| LONG.cr0 ^ 1 << bit),
        (0u32..64).prop_map(|bit| LONG.cr4 ^ 1 << bit),
        (0u32..64).prop_map(|bit| LONG.cr3 ^ 1 << bit),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Write(Register, u64),
    Efer(u64),
    /// A far transfer to a segment with these of L and D.
    Code(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let register = prop::sample::select(&[Register::Cr0, Register::Cr3, Register::Cr4][..]);
    prop_oneof![
        (register, value()).prop_map(|(register, value)| Step::Write(register, value)),
        (0u64..1 << 12).prop_map(Step::Efer),
        (0u16..4).prop_map(|bits| Step::Code(bits << 9)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// The guest writes what it likes; what is let through never makes VMRUN refuse it.
    #[test]
    fn what_is_let_through_can_be_entered(steps in prop::collection::vec(step(), 1..40)) {
        let mut state = LONG;
        for step in steps {
            match step {
                Step::Write(register, value) => {
                    if let Ok(next) = state.write(register, value, &FEATURES) {
                        state = next;
                    }
                }
                Step::Efer(value) if !state.refuses_efer(value) => {
                    state.efer = value & EFER_LME | state.efer & EFER_LMA;
                }
                Step::Efer(_) => {}
                // Long mode's L bit means nothing outside it.
                Step::Code(attributes) => state.cs = enterable_code_segment(attributes),
            }
            prop_assert!(state.may_enter(&FEATURES), "{step:?} {state:x?}");
        }
    }
}
