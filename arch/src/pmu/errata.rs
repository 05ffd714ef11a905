//! What is known to be wrong with some processors' counting, in one table. The report lists the rows that apply;
//! the conformance suite takes a miss that a row explains as a known erratum.

use super::access::{Registers, leaves};
use crate::cpu::{Identity, Vendor, has_leaf};
use crate::msr::Msr;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// What an erratum does to counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Retired instructions come out too high at interrupts, exceptions and far transfers.
    Instructions,
    /// The same for retired branches.
    Branches,
    /// The architectural event of mispredicted branches counts something else.
    Mispredictions,
    /// Both instructions and branches come out too high.
    InstructionsAndBranches,
    /// General-purpose counter 3 is taken by microcode.
    CounterThree,
    /// The instructions-retired counter is not exact.
    InstructionsRetiredCounter,
    /// A counter may count wrongly at first unless four certain events were programmed before, which the driver does
    /// (`driver/renew.rs`).
    Enabling,
    /// Overflow interrupts may be lost while two or more counters are enabled.
    LostInterrupts,
    /// PEBS cannot be used.
    Precise,
    /// Some periods do not work.
    Period(Limit),
}

/// The periods that work: of how many events a counter is set to be away from its overflow. With PEBS that is one less than the
/// period of records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// Event and unit mask that they are of; `None`: of any event.
    pub event: Option<(u16, u16)>,
    /// The least one.
    pub least: u64,
    /// What a period must be a multiple of.
    pub step: u64,
}

impl Limit {
    /// The period that works and is nearest to `period` from below, or the least one.
    #[must_use]
    pub const fn nearest(&self, period: u64) -> u64 {
        let period = period - period % self.step;
        if period < self.least { self.least } else { period }
    }
}

/// INST_RETIRED.PREC_DIST.
const RETIRED: Option<(u16, u16)> = Some((0xc0, 1));

/// A row.
#[derive(Debug, PartialEq)]
pub struct Erratum {
    /// The maker's id where it has one, else the source.
    pub id: &'static str,
    /// What happens, in words.
    pub text: &'static str,
    /// What it spoils.
    pub effect: Effect,
    vendor: Vendor,
    family: u32,
    models: &'static [RangeInclusive<u32>],
}

const fn intel(
    id: &'static str,
    text: &'static str,
    effect: Effect,
    models: &'static [RangeInclusive<u32>],
) -> Erratum {
    Erratum { id, text, effect, vendor: Vendor::Intel, family: 6, models }
}

/// Sources: the over-counting Atoms are those that kvm-unit-tests knows (`lib/x86/pmu.h`); the others are the
/// workarounds of Linux, `arch/x86/events/intel/core.c` and `arch/x86/kernel/cpu/amd.c`.
static TABLE: &[Erratum] = &[
    intel(
        "SRF7",
        "instructions and branches are over-counted at far transfers and VM exits",
        Effect::InstructionsAndBranches,
        &[0xaf..=0xaf],
    ),
    intel(
        "Clearwater Forest over-count",
        "instructions are over-counted at far transfers and VM exits",
        Effect::Instructions,
        &[0xdd..=0xdd],
    ),
    intel(
        "Atom server over-count",
        "instructions and branches are over-counted at far transfers and VM exits",
        Effect::InstructionsAndBranches,
        // Avoton, Denverton, Jacobsville.
        &[0x4d..=0x4d, 0x5f..=0x5f, 0x86..=0x86],
    ),
    intel(
        "AAJ80",
        "mispredicted branches (C5/00) are counted wrongly",
        Effect::Mispredictions,
        &[0x1a..=0x1a, 0x1e..=0x1f, 0x2e..=0x2e],
    ),
    intel(
        "AAK100, AAP53, BD53",
        "the first counts after a counter is programmed would be wrong: where all four counters are there, four other events are programmed before",
        Effect::Enabling,
        &[0x1a..=0x1a, 0x1e..=0x1f, 0x2e..=0x2e, 0x25..=0x25, 0x2c..=0x2c, 0x2f..=0x2f],
    ),
    intel(
        "nhm_limit_period",
        "periods below 32 do not work",
        Effect::Period(Limit { event: None, least: 32, step: 1 }),
        &[0x1a..=0x1a, 0x1e..=0x1f, 0x2e..=0x2e],
    ),
    intel(
        "AJ67, AJ68",
        "PEBS records may be wrong or lost, so PEBS is not used",
        Effect::Precise,
        &[0x0f..=0x0f],
    ),
    intel(
        "HSW11",
        "periods of retired instructions (C0/01) below 128 do not work",
        Effect::Period(Limit { event: RETIRED, least: 128, step: 1 }),
        &[0x3c..=0x3c, 0x3f..=0x3f, 0x45..=0x46],
    ),
    intel(
        "BDM11, BDM55",
        "periods of retired instructions (C0/01) below 128, or not a multiple of 64, do not work",
        Effect::Period(Limit { event: RETIRED, least: 128, step: 64 }),
        &[0x3d..=0x3d, 0x47..=0x47, 0x4f..=0x4f, 0x56..=0x56],
    ),
    intel(
        "TSX force abort",
        "counter 3 belongs to microcode unless MSR 0x10F bit 0 is set",
        Effect::CounterThree,
        &[0x4e..=0x4e, 0x55..=0x55, 0x5e..=0x5e, 0x8e..=0x8e, 0x9e..=0x9e],
    ),
    amd(
        "1054",
        "the instructions-retired counter is not exact",
        Effect::InstructionsRetiredCounter,
        0x17,
        &[0x00..=0x2f],
    ),
    amd("990", OVERCOUNT, Effect::InstructionsAndBranches, 0x17, &[0x00..=0x0f]),
    amd("1291", OVERCOUNT, Effect::InstructionsAndBranches, 0x17, &[0x30..=0x3f]),
    amd("1292", OVERCOUNT, Effect::InstructionsAndBranches, 0x19, &[0x00..=0x0f]),
    amd(
        "1023",
        "overflow interrupts may be lost while two or more counters are enabled, so sampled events have no reference count",
        Effect::LostInterrupts,
        0x17,
        &[0x00..=0x0f],
    ),
];

/// AMD's: the revision guides' numbers, as rr and PAPI list them.
const fn amd(
    id: &'static str,
    text: &'static str,
    effect: Effect,
    family: u32,
    models: &'static [RangeInclusive<u32>],
) -> Erratum {
    Erratum { id, text, effect, vendor: Vendor::Amd, family, models }
}

/// Of those of Zen 1 to Zen 3.
const OVERCOUNT: &str =
    "retired instructions, branches and other retired events may be over-counted";

/// The rows that apply to a processor.
pub fn of(identity: &Identity) -> Vec<&'static Erratum> {
    let applies = |row: &&Erratum| {
        row.vendor == identity.vendor
            && row.family == identity.family
            && row.models.iter().any(|models| models.contains(&identity.model))
    };
    TABLE.iter().filter(applies).collect()
}

/// PEBS of a Sandy Bridge whose microcode is older than the one that mends it.
static SANDY_BRIDGE_PEBS: Erratum = intel(
    "Sandy Bridge PEBS",
    "PEBS records may be wrong before microcode 0x28 (client), 0x618 or 0x70c (server), so PEBS is not used",
    Effect::Precise,
    &[0x2a..=0x2a, 0x2d..=0x2d],
);

/// What is wrong until a revision of the microcode mends it (Linux, `pebs_ucodes`): a machine without an operating system has
/// the one of its firmware.
pub fn of_microcode(identity: &Identity, revision: u64) -> Option<&'static Erratum> {
    let least = match (identity.vendor, identity.family, identity.model, identity.stepping) {
        (Vendor::Intel, 6, 0x2a, 7) => 0x28,
        (Vendor::Intel, 6, 0x2d, 6) => 0x618,
        (Vendor::Intel, 6, 0x2d, 7) => 0x70c,
        _ => return None,
    };
    (revision < least).then_some(&SANDY_BRIDGE_PEBS)
}

/// LS_CFG, of which bit 54 switches SpecLockMap off (rr, wiki/Zen).
const LS_CFG: Msr = Msr(0xc001_1020);
const NO_SPEC_LOCK_MAP: u64 = 1 << 54;
/// rr asks for the bit on all of Zen; a Zen 4 (family 19h model A0h) was seen to count two to four branches too many.
static SPEC_LOCK_MAP: Erratum = amd(
    "SpecLockMap",
    "retired branches may be over-counted around locked instructions (LS_CFG, MSR 0xC0011020, bit 54 is clear)",
    Effect::Branches,
    0x17,
    &[],
);

/// What is wrong as long as the machine's firmware leaves it switched on. A hypervisor's registers do not say.
pub fn of_settings(registers: &mut dyn Registers, identity: &Identity) -> Option<&'static Erratum> {
    const HYPERVISOR: u32 = 1 << 31;
    let is_zen = identity.vendor == Vendor::Amd && matches!(identity.family, 0x17 | 0x19 | 0x1a);
    if !is_zen || registers.cpuid(1, 0).ecx & HYPERVISOR != 0 {
        return None;
    }
    let setting = registers.rdmsr(LS_CFG).ok()?;
    (setting & NO_SPEC_LOCK_MAP == 0).then_some(&SPEC_LOCK_MAP)
}

/// Whether microcode may use a counter for transactions: since the update that brought MSR_TSX_FORCE_ABORT (leaf 7 EDX bit 13), until
/// the one that has all of them aborted (bit 11, RTM_ALWAYS_ABORT; SDM vol. 2, CPUID). Processors with IA32_TSX_CTRL have not
/// the first.
pub fn has_transactions(registers: &dyn Registers) -> bool {
    const ALWAYS_ABORT: u32 = 1 << 11;
    const REGISTER: u32 = 1 << 13;
    let there = has_leaf(&leaves(registers), 7);
    there && registers.cpuid(7, 0).edx & (ALWAYS_ABORT | REGISTER) == REGISTER
}

impl Erratum {
    /// Whether it is about counters that transactions use.
    #[must_use]
    pub fn is_of_transactions(&self) -> bool {
        self.effect == Effect::CounterThree
    }

    /// Whether it can explain a wrong count of instructions.
    #[must_use]
    pub fn spoils_instructions(&self) -> bool {
        matches!(self.effect, Effect::Instructions | Effect::InstructionsAndBranches)
    }

    /// The periods that work, if it is about those of this event and `period` is none of them.
    #[must_use]
    pub fn spoils_period(&self, event: (u16, u16), period: u64) -> Option<Limit> {
        let Effect::Period(limit) = self.effect else { return None };
        let is_about = limit.event.is_none_or(|one| one == event);
        let works = period >= limit.least && period.is_multiple_of(limit.step);
        (is_about && !works).then_some(limit)
    }

    /// Whether it can explain a wrong count of branches.
    #[must_use]
    pub fn spoils_branches(&self) -> bool {
        matches!(self.effect, Effect::Branches | Effect::InstructionsAndBranches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::tests::{INTEL, table};

    /// Intel's processor with this signature.
    fn identity(signature: u32) -> Identity {
        Identity::read(&move |leaf: u32, sub: u32| {
            let mut seen = table(&[(0, 0, [4, INTEL[0], INTEL[1], INTEL[2]])])(leaf, sub);
            if leaf == 1 {
                seen.eax = signature;
            }
            seen
        })
    }

    #[test]
    fn a_row_applies_to_its_models_alone() {
        let ids = |signature| of(&identity(signature)).iter().map(|row| row.id).collect::<Vec<_>>();
        assert_eq!(ids(0x000a_06f3), ["SRF7"]);
        assert_eq!(ids(0x0005_06e3), ["TSX force abort"]);
        assert_eq!(ids(0x0001_06a5), ["AAJ80", "AAK100, AAP53, BD53", "nhm_limit_period"]);
        assert_eq!(ids(0x0008_06f8), Vec::<&str>::new());
    }

    /// Linux, `pebs_ucodes` of arch/x86/events/intel/core.c.
    #[test]
    fn s1_pebs_of_a_sandy_bridge_needs_its_microcode() {
        let broken = |signature, revision| of_microcode(&identity(signature), revision).is_some();
        for (signature, least) in [(0x2_06a7, 0x28), (0x2_06d6, 0x618), (0x2_06d7, 0x70c)] {
            assert!(broken(signature, least - 1) && !broken(signature, least), "{signature:#x}");
        }
        assert!(!broken(0x3_06a9, 0), "Ivy Bridge");
    }

    /// Linux, `nhm_limit_period`, `hsw_limit_period` and `bdw_limit_period`.
    #[test]
    fn s1_periods_that_do_not_work_are_those_of_the_model_and_the_event() {
        let (retired, cycles) = ((0xc0, 1), (0x3c, 0));
        let works = |signature, event, period| {
            of(&identity(signature)).iter().all(|row| row.spoils_period(event, period).is_none())
        };
        let (nehalem, haswell, broadwell) = (0x1_06a5, 0x3_06c3, 0x3_06d4);
        for event in [retired, cycles] {
            assert!(!works(nehalem, event, 31) && works(nehalem, event, 33));
        }
        assert!(!works(haswell, retired, 127) && works(haswell, retired, 129));
        assert!(works(haswell, cycles, 20));
        assert!(works(broadwell, retired, 128) && works(broadwell, cycles, 20));
        assert!(!works(broadwell, retired, 160) && !works(broadwell, retired, 64));
        assert!(works(0x5_06e3, retired, 20), "Skylake");
        let limit = Limit { event: RETIRED, least: 128, step: 64 };
        let periods = [1, 64, 127, 128, 191, 192, 1000];
        assert_eq!(
            periods.map(|period| limit.nearest(period)),
            [128, 128, 128, 128, 128, 192, 960]
        );
    }

    /// Registers with one value in LS_CFG, if it is there, and CPUID leaves 1 and 7.
    struct Machine {
        setting: Option<u64>,
        hypervisor: bool,
        leaf_7: u32,
    }

    impl Registers for Machine {
        fn cpuid(&self, leaf: u32, sub: u32) -> raw_cpuid::CpuIdResult {
            let mut seen = table(&[(0, 0, [7, INTEL[0], INTEL[1], INTEL[2]])])(leaf, sub);
            match leaf {
                1 => seen.ecx = u32::from(self.hypervisor) << 31,
                7 => seen.edx = self.leaf_7,
                _ => {}
            }
            seen
        }
        fn rdmsr(&mut self, msr: Msr) -> Result<u64, crate::msr::Absent> {
            self.setting.filter(|_| msr == Msr(0xc001_1020)).ok_or(crate::msr::Absent)
        }
        fn wrmsr(&mut self, _: Msr, _: u64) -> Result<(), crate::msr::Absent> {
            Err(crate::msr::Absent)
        }
        fn rdpmc(&mut self, _: u32) -> Result<u64, crate::msr::Absent> {
            Err(crate::msr::Absent)
        }
    }

    #[test]
    fn i11_speclockmap_is_named_where_the_firmware_has_left_it_on() {
        let named = |family, setting, hypervisor| {
            let mut machine = Machine { setting, hypervisor, leaf_7: 0 };
            let one = Identity { vendor: Vendor::Amd, family, ..identity(0) };
            of_settings(&mut machine, &one).map(|row| (row.id, row.spoils_branches()))
        };
        let row = Some(("SpecLockMap", true));
        assert_eq!([0x17, 0x19, 0x1a].map(|family| named(family, Some(1 << 53), false)), [row; 3]);
        assert_eq!(named(0x17, Some(1 << 54 | 1 << 10), false), None, "switched off");
        assert_eq!(named(0x17, Some(0), true), None, "a hypervisor's register");
        assert_eq!(named(0x17, None, false), None, "no register");
        assert_eq!(named(0x15, Some(0), false), None, "not Zen");
    }

    #[test]
    fn i11_microcode_uses_a_counter_only_between_two_updates() {
        let uses = |leaf_7| has_transactions(&Machine { setting: None, hypervisor: false, leaf_7 });
        assert!(uses(1 << 13));
        assert!(!uses(0), "before the update");
        assert!(!uses(1 << 13 | 1 << 11), "all transactions abort");
        assert!(!uses(1 << 11));
    }

    #[test]
    fn amds_rows_are_those_of_family_and_model() {
        let ids = |family, model| {
            let one = Identity { vendor: Vendor::Amd, family, model, ..identity(0) };
            of(&one).iter().map(|row| row.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(0x17, 0x01), ["1054", "990", "1023"]);
        assert_eq!(ids(0x17, 0x18), ["1054"]);
        assert_eq!((ids(0x17, 0x31), ids(0x19, 0x01)), (vec!["1291"], vec!["1292"]));
        assert_eq!((ids(0x17, 0x71), ids(0x19, 0x11)), (vec![], vec![]));
    }

    /// A wrong count may be laid to an erratum that is about it, and to no other.
    #[test]
    fn a_row_excuses_what_it_spoils() {
        let excuses = |id: &str| {
            let row = TABLE.iter().find(|row| row.id == id).expect("a row");
            (row.spoils_instructions(), row.spoils_branches())
        };
        assert_eq!(excuses("SRF7"), (true, true));
        assert_eq!(excuses("Clearwater Forest over-count"), (true, false));
        for id in [
            "AAJ80",
            "AAK100, AAP53, BD53",
            "nhm_limit_period",
            "HSW11",
            "BDM11, BDM55",
            "TSX force abort",
            "1054",
        ] {
            assert_eq!(excuses(id), (false, false), "{id}");
        }
        let branches = Erratum { effect: Effect::Branches, ..intel("", "", Effect::Enabling, &[]) };
        assert_eq!((branches.spoils_instructions(), branches.spoils_branches()), (false, true));
    }
}
