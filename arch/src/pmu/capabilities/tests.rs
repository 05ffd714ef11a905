//! Made-up processors: each bit of CPUID and each register alone, as the manuals have them.

use super::*;
use crate::msr::Absent;
use crate::pmu::LbrKind;
use raw_cpuid::CpuIdResult;

/// Leaves of CPUID, those that come later before those that come earlier, and registers with their values.
#[derive(Clone)]
struct MadeUp {
    leaves: Vec<(u32, u32, [u32; 4])>,
    registers: Vec<(u32, u64)>,
}

impl MadeUp {
    fn leaf(&self, leaf: u32, subleaf: u32, registers: [u32; 4]) -> Self {
        let mut changed = self.clone();
        changed.leaves.push((leaf, subleaf, registers));
        changed
    }

    fn has(&self, msr: u32, value: u64) -> Self {
        let mut changed = self.without(msr);
        changed.registers.push((msr, value));
        changed
    }

    fn without(&self, msr: u32) -> Self {
        let mut changed = self.clone();
        changed.registers.retain(|(one, _)| *one != msr);
        changed
    }
}

impl Registers for MadeUp {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let found = self.leaves.iter().rev().find(|one| (one.0, one.1) == (leaf, subleaf));
        let [eax, ebx, ecx, edx] = found.map_or([0; 4], |one| one.2);
        CpuIdResult { eax, ebx, ecx, edx }
    }
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        let found = self.registers.iter().find(|(one, _)| *one == msr.0);
        found.map(|(_, value)| *value).ok_or(Absent)
    }
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        assert_eq!((msr, value), (msr::IA32_BIOS_SIGN_ID, 0), "nothing else is written");
        Ok(())
    }
    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        unreachable!("no counter is read")
    }
}

/// Registers of which the faults say that they are missing.
fn missing(has: &Capabilities) -> Vec<u32> {
    let each = has.faults.iter().map(|fault| match fault {
        Fault::Register { msr, .. } => msr.0,
        other => panic!("{other:?}"),
    });
    each.collect()
}

const PDCM: u32 = 1 << 15;
const DTES64: u32 = 1 << 2;
const DS: u32 = 1 << 21;
/// PERF_CAPABILITIES: full-width writes, and PERF_METRICS.
const FULL_WIDTH: u64 = 1 << 13;
const METRICS: u64 = 1 << 15;

/// Leaf 0xA of this version: four counters and three fixed ones of 48 bits, eight events, and ECX.
fn version(version: u32, ecx: u32) -> [u32; 4] {
    [version | 4 << 8 | 48 << 16 | 8 << 24, 0, ecx, 3 | 48 << 5]
}

/// All registers that a processor of any version may have.
fn intel() -> MadeUp {
    let leaves = vec![
        (0, 0, [0x23, 0, 0, 0]),
        (1, 0, [0, 0, PDCM | DTES64, DS]),
        (7, 0, [1, 0, 0, 0]),
        (0xa, 0, version(4, 0)),
        (0x23, 0, [1 << 1 | 1 << 3, 3, 0, 0]),
        (0x23, 1, [0x3ff, 0xff_000f, 0, 0]),
        (0x23, 3, [0x1dff, 0, 0, 0]),
    ];
    let numbers = [0x38f, 0x38e, 0x38d, 0x345, 0x1d9, 0x4c1, 0x1a0, 0x3f1, 0x600, 0x329];
    MadeUp { leaves, registers: numbers.map(|msr| (msr, 0)).to_vec() }
}

fn of_intel(machine: &MadeUp) -> Capabilities {
    intel::read(&mut machine.clone()).expect("leaf 0xA")
}

#[test]
fn i11_fixed_counters_are_those_of_ecx_from_version_5_on() {
    for (number, ecx, fixed) in [
        (1, 0xf, 0),
        (2, 8, 7),
        (4, 8, 7),
        (5, 8, 0xf),
        (5, 0x10, 0x17),
        (6, 0, 7),
        (5, 0x1_0008, 0xf),
    ] {
        let has = of_intel(&intel().leaf(0xa, 0, version(number, ecx)));
        assert_eq!((has.fixed, has.general), (fixed, 0xf), "version {number}, ECX {ecx:#x}");
    }
    // Leaf 0xA that announces version 0 announces nothing.
    assert!(intel::read(&mut intel().leaf(0xa, 0, version(0, 0))).is_none());
    // Their control is missing.
    let has = of_intel(&intel().without(0x38d));
    assert_eq!((has.fixed, missing(&has)), (0, vec![0x38d]));
}

#[test]
fn i11_a_freeze_takes_pdcm_and_a_version_above_1() {
    let freeze = |number, pdcm| {
        let machine = intel().leaf(1, 0, [0, 0, pdcm, 0]).leaf(0xa, 0, version(number, 0));
        let has = of_intel(&machine.has(0x345, METRICS));
        assert_eq!((has.pdcm, has.perf.is_empty()), (pdcm == PDCM, pdcm != PDCM));
        has.freeze
    };
    use FreezeKind::{Legacy, None, Streamlined};
    let all = [1, 2, 3, 4, 5].map(|version| freeze(version, PDCM));
    assert_eq!(all, [None, Legacy, Legacy, Streamlined, Streamlined]);
    assert_eq!([1, 2, 3, 4, 5].map(|version| freeze(version, 1 << 14)), [None; 5]);
    let has = of_intel(&intel().without(0x1d9));
    assert_eq!((has.freeze, missing(&has)), (None, vec![0x1d9]));
}

/// Without a global control nothing is started at once, fixed counters are given up, and nothing freezes. Version 1 has none.
#[test]
fn i11_from_version_2_on_the_global_registers_are_needed() {
    for (number, msr) in [(2, 0x38f), (2, 0x38e), (5, 0x38f)] {
        let has = of_intel(&intel().leaf(0xa, 0, version(number, 0)).without(msr));
        assert_eq!(
            (has.global, has.has_global(), has.fixed),
            (false, false, 0),
            "{number} {msr:#x}"
        );
        assert_eq!((has.freeze, missing(&has)), (FreezeKind::None, vec![msr]), "{number} {msr:#x}");
    }
    let has = of_intel(&intel().leaf(0xa, 0, version(1, 0)).without(0x38f).without(0x38e));
    assert_eq!((has.global, has.has_global(), missing(&has)), (true, false, vec![]));
}

#[test]
fn i11_pebs_takes_the_debug_store_with_fields_of_64_bits() {
    let pebs = |ecx, edx| of_intel(&intel().leaf(1, 0, [0, 0, ecx, edx])).pebs;
    let all = [pebs(DTES64, DS), pebs(1 << 3, DS), pebs(DTES64, 1 << 20), pebs(0, 0)];
    assert_eq!(all, [true, false, false, false]);
    // Switched off by MISC_ENABLE[12].
    assert!(!of_intel(&intel().has(0x1a0, 1 << 12)).pebs);
    assert!(of_intel(&intel().has(0x1a0, !(1 << 12))).pebs);
    let has = of_intel(&intel().without(0x3f1));
    assert_eq!((has.pebs, missing(&has)), (false, vec![0x3f1]));
}

/// Leaf 0x23 counts where leaf 7.1 says that it is there, and of it what its subleaf 0 says.
#[test]
fn i11_leaf_23_wins_where_it_is_announced() {
    let seen = |machine: &MadeUp| {
        let has = of_intel(machine);
        (has.general, has.fixed, has.events, has.umask2, has.equal)
    };
    let plain = (0xf, 7, 0xff, false, false);
    let announced = intel().leaf(7, 1, [1 << 8, 0, 0, 0]);
    assert_eq!(seen(&announced), (0x3ff, 0xf, 0x1dff, true, true));
    assert_eq!(seen(&intel()), plain, "leaf 7.1 does not say so");
    assert_eq!(seen(&intel().leaf(7, 1, [!(1 << 8), 0, 0, 0])), plain, "nor do its other bits");
    assert_eq!(seen(&announced.leaf(7, 0, [0, 0, 0, 0])), plain, "leaf 7 has no subleaf 1");
    assert_eq!(seen(&announced.leaf(0, 0, [0x22, 0, 0, 0])), plain, "there is no leaf 0x23");
    let of = |eax, ebx| seen(&announced.leaf(0x23, 0, [eax, ebx, 0, 0]));
    assert_eq!(of(1 << 1, 1), (0x3ff, 0xf, 0xff, true, false));
    assert_eq!(of(1 << 3, 2), (0xf, 7, 0x1dff, false, true));
    assert_eq!(of(0, 0), plain);
    // EBX of leaf 0xA takes events away; what is beyond its length says nothing.
    let mut leaf = version(4, 0);
    leaf[1] = 0xf00f;
    assert_eq!(of_intel(&intel().leaf(0xa, 0, leaf)).events, 0xf0);
}

/// PERF_METRICS is announced by a bit or known by the kind of core, and takes slots and its register.
#[test]
fn i11_metrics_take_an_announcement_slots_and_the_register() {
    let slots = intel().leaf(0xa, 0, version(5, 8));
    let hybrid = |machine: &MadeUp| machine.leaf(7, 0, [1, 0, 0, 1 << 15]);
    let announced = |machine: &MadeUp| machine.has(0x345, METRICS);
    let metrics = |machine: &MadeUp| of_intel(machine).metrics;
    assert!(metrics(&announced(&slots)));
    assert!(metrics(&hybrid(&slots)));
    assert!(!metrics(&slots), "not announced");
    assert!(!metrics(&slots.leaf(7, 0, [1, 0, 0, 1 << 14])), "other cores of one kind");
    for machine in [announced(&intel()), hybrid(&intel())] {
        assert!(!metrics(&machine), "no slots counter");
        assert!(!metrics(&machine.leaf(0xa, 0, version(5, 0x10))), "nor another one");
    }
    assert!(!metrics(&announced(&slots).without(0x329)), "no register");
}

/// Full-width writes go to registers of their own, from the first counter there is on; version 6 has others.
#[test]
fn i11_full_width_writes_take_their_registers_up_to_version_5() {
    let seen = |machine: &MadeUp| {
        let has = of_intel(&machine.has(0x345, FULL_WIDTH));
        (has.full_width(), missing(&has))
    };
    let of = |number| intel().leaf(0xa, 0, version(number, 0));
    for number in [3, 5] {
        assert_eq!(seen(&of(number)), (true, vec![]), "version {number}");
        assert_eq!(seen(&of(number).without(0x4c1)), (false, vec![0x4c1]), "version {number}");
    }
    assert_eq!(seen(&of(6).without(0x4c1)), (true, vec![]));
    // Leaf 0x23 has no counter 0.
    let later = of(5).leaf(7, 1, [1 << 8, 0, 0, 0]).leaf(0x23, 1, [0x3fe, 0xf, 0, 0]);
    assert_eq!(seen(&later.without(0x4c1).has(0x4c2, 0)), (true, vec![]));
    assert_eq!(seen(&later), (false, vec![0x4c2]));
    // Not announced, not looked for.
    assert_eq!(missing(&of_intel(&of(3).without(0x4c1))), [0; 0]);
}

fn amd() -> MadeUp {
    let leaves = vec![
        (0x8000_0000, 0, [0x8000_0022, 0, 0, 0]),
        (0x8000_0001, 0, [0, 0, 1 << 23 | 1 << 10, 0]),
        (0x8000_0008, 0, [0, 1 << 1, 0, 0]),
        (0x8000_001b, 0, [0x3ff, 0, 0, 0]),
        (0x8000_0022, 0, [1 << 0 | 1 << 1 | 1 << 2, 6 | 16 << 4, 0, 0]),
    ];
    let numbers = [0xc000_0300, 0xc000_0301, 0x1d9, 0x1db];
    MadeUp { leaves, registers: numbers.map(|msr| (msr, 0)).to_vec() }
}

#[test]
fn i11_amds_counters_by_family_and_leaf() {
    let read = |machine: &MadeUp, family| {
        amd::read(&mut machine.clone(), family).map(|has| (has.version, has.general))
    };
    assert_eq!(read(&amd(), 0x19), Some((2, 0x3f)));
    // Family 0xF is the first with long mode; a smaller one is an emulator's.
    assert_eq!(read(&amd(), 0xf), Some((2, 0x3f)));
    assert_eq!([read(&amd(), 0xe), read(&amd(), 6)], [None, None]);
    assert_eq!(read(&amd().leaf(0x8000_0000, 0, [0x8000_0000, 0, 0, 0]), 0x19), None);
    let older = amd().leaf(0x8000_0022, 0, [0; 4]);
    assert_eq!(read(&older, 0x17), Some((1, 0x3f)));
    assert_eq!(read(&older.leaf(0x8000_0001, 0, [0, 0, 1 << 22, 0]), 0x10), Some((0, 0xf)));
    // A leaf above the highest is none.
    assert_eq!(read(&amd().leaf(0x8000_0000, 0, [0x8000_0021, 0, 0, 0]), 0x17), Some((1, 0x3f)));
}

#[test]
fn i11_amds_freeze_is_announced_and_takes_perfmon_v2_and_its_register() {
    let freeze = |machine: &MadeUp| {
        let has = amd::read(&mut machine.clone(), 0x19).unwrap();
        (has.freeze, missing(&has))
    };
    let with = |eax| amd().leaf(0x8000_0022, 0, [eax, 6, 0, 0]);
    assert_eq!(freeze(&with(0b101)), (FreezeKind::Streamlined, vec![]));
    assert_eq!(freeze(&with(0b001)), (FreezeKind::None, vec![]), "not announced");
    assert_eq!(freeze(&with(0b100)), (FreezeKind::None, vec![]), "without PerfMonV2");
    assert_eq!(freeze(&with(0b101).without(0x1d9)), (FreezeKind::None, vec![0x1d9]));
    assert_eq!(freeze(&with(0b001).without(0x1d9)), (FreezeKind::None, vec![]), "not needed");
    let has = amd::read(&mut with(0b101).without(0xc000_0301), 0x19).unwrap();
    assert_eq!((has.has_global(), has.freeze), (false, FreezeKind::None));
}

#[test]
fn i11_amds_other_units_are_announced_each_by_its_bit() {
    let read = |machine: MadeUp| {
        let has = amd::read(&mut machine.clone(), 0x19).unwrap();
        (has.irperf, has.ibs)
    };
    assert_eq!(read(amd()), (true, Some(0x3ff)));
    assert_eq!(read(amd().leaf(0x8000_0008, 0, [0, 1 << 2, 0, 0])), (false, Some(0x3ff)));
    assert_eq!(read(amd().leaf(0x8000_0001, 0, [0, 0, 1 << 23, 0])), (true, None));
    let last = |highest| amd().leaf(0x8000_0000, 0, [highest, 0, 0, 0]);
    // Without the leaf, as family 10h was before revision C, there are both units.
    assert_eq!(read(last(0x8000_001a)), (true, Some(0)));
    assert_eq!(read(last(0x8000_0007)), (false, Some(0)));
}

#[test]
fn branch_records_by_leaf_and_by_register() {
    let of_amd = |machine: MadeUp| {
        let has = amd::read(&mut machine.clone(), 0x19).unwrap();
        branches::read(&mut machine.clone(), &has)
    };
    assert_eq!(of_amd(amd()), LbrKind::AmdV2 { entries: 16 });
    let without = amd().leaf(0x8000_0022, 0, [1 << 0 | 1 << 2, 6 | 16 << 4, 0, 0]);
    assert_eq!(of_amd(without.clone()), LbrKind::Single, "not announced");
    assert_eq!(of_amd(without.without(0x1db)), LbrKind::None);
    let of_intel = |machine: &MadeUp| {
        let has = super::intel::read(&mut machine.clone()).unwrap();
        branches::read(&mut machine.clone(), &has)
    };
    // Leaf 0x1C: the depths, what can be filtered (EBX), what is recorded (ECX) (SDM vol. 2, CPUID).
    let architectural = |ebx, ecx| {
        let machine =
            intel().leaf(7, 0, [1, 0, 0, 1 << 19]).leaf(0x1c, 0, [0xff_000f, ebx, ecx, 0]);
        of_intel(&machine)
    };
    let kind = |mispredict, filter| LbrKind::Architectural { depth: 32, mispredict, filter };
    assert_eq!(architectural(2, 1), kind(true, true));
    assert_eq!(architectural(5, 6), kind(false, false));
    // A ring: announced with PERF_CAPABILITIES, and its registers are there.
    let ring =
        intel().has(0x345, 5).has(0x1c9, 0).has(0x680 + 31, 0).has(0x680 + 15, 0).has(0x1c8, 0);
    let legacy = LbrKind::Legacy { entries: 32, format: 5, old_place: false, filter: true };
    assert_eq!(of_intel(&ring), legacy);
    assert_eq!(of_intel(&ring.without(0x1c9)), LbrKind::None, "no top of stack");
    assert_eq!(of_intel(&ring.leaf(1, 0, [0; 4])), LbrKind::None, "no PERF_CAPABILITIES");
    assert_eq!(of_intel(&intel()), LbrKind::None);
}

#[test]
fn a_counter_is_there_if_its_bit_is_and_its_number_exists() {
    let mut has = of_intel(&intel());
    (has.general, has.fixed) = (1 << 31 | 1, 1 << 16 | 1 << 15 | 1);
    let general: Vec<u8> = (0..=40).filter(|&n| has.has(Counter::General(n))).collect();
    let fixed: Vec<u8> = (0..=40).filter(|&n| has.has(Counter::Fixed(n))).collect();
    assert_eq!((general, fixed), (vec![0, 31], vec![0, 15]));
    assert_eq!(has.counters().count(), 4);
}

#[test]
fn a_status_that_sticks_is_told_by_the_fault_alone() {
    let mut has = of_intel(&intel());
    assert!(!has.has_stuck_status());
    let counter = Counter::General(1);
    has.faults.push(Fault::Overflow { counter, why: "it raises no interrupt" });
    assert!(!has.has_stuck_status());
    has.faults.push(Fault::Overflow { counter, why: STUCK });
    assert!(has.has_stuck_status());
}

/// Skymont's fixed counters 4 and 5 count what code need not raise (SDM vol. 3, fixed-function counters): nothing is expected
/// of them. Counter 6, retired slots, continues with any code.
#[test]
fn all_fixed_counters_but_4_and_5_count_with_any_code() {
    let mut has = of_intel(&intel());
    has.fixed = 0x7f;
    let certain: Vec<Counter> = has.certain_fixeds().collect();
    assert_eq!(certain, [0, 1, 2, 3, 6].map(Counter::Fixed));
    assert!(!Counter::General(4).may_stand_still());
}

#[test]
fn i11_erratum_420_of_ibs_is_of_family_10h_alone() {
    let erratum = |family| amd::read(&mut amd(), family).unwrap().ibs_erratum_420;
    assert_eq!([0xf, 0x10, 0x11, 0x19].map(erratum), [false, true, false, false]);
}

/// Leaf 0x1C EBX[2] (SDM vol. 2, CPUID).
#[test]
fn s2_architectural_records_are_stacks_of_calls_where_leaf_1c_says_so() {
    let kind = LbrKind::Architectural { depth: 32, mispredict: true, filter: true };
    let stacks = |ebx| branches::have_call_stacks(&intel().leaf(0x1c, 0, [0xff, ebx, 0, 0]), kind);
    assert_eq!([0, 2, 4, 6].map(stacks), [false, false, true, true]);
}

/// Linux, `intel_pmu_lbr_init_knl`: Knights Landing and Knights Mill say 1 and have 3. Other processors mean what they say.
#[test]
fn s2_records_of_knights_landing_have_the_flag_of_format_3() {
    let format = |signature, said| {
        let machine = intel().leaf(1, 0, [signature, 0, PDCM, 0]).has(0x345, said);
        let mut machine = machine.has(0x1c9, 0).has(0x680 + 7, 0);
        let has = super::intel::read(&mut machine).unwrap();
        match branches::read(&mut machine, &has) {
            LbrKind::Legacy { format, .. } => format,
            other => panic!("{other:?}"),
        }
    };
    // Family 6: models 0x57 and 0x85, and Skylake. Family 15 with model 7 and an extended one of 5 is not of these.
    let of = |said| [0x5_0670, 0x8_0650, 0x5_06e0, 0x5_0f70].map(|one| format(one, said));
    assert_eq!(of(1), [3, 3, 1, 1]);
    assert_eq!(of(5), [5; 4]);
}

/// Linux, `intel_pmu_init`: Alder Lake's performance cores have two counters and slots in addition to what both kinds share.
#[test]
fn i11_a_performance_core_without_leaf_23_has_what_answers_beside_the_shared_counters() {
    const HYBRID: u32 = 1 << 15;
    let leaf_a = |general: u32| [5 | general << 8 | 48 << 16 | 8 << 24, 0, 7, 3 | 48 << 5];
    let core = intel()
        .leaf(0, 0, [0x20, 0, 0, 0])
        .leaf(1, 0, [0x9_0672, 0, PDCM, 0])
        .leaf(7, 0, [0, 0, 0, HYBRID])
        .leaf(0xa, 0, leaf_a(6))
        .leaf(0x1a, 0, [0x40 << 24, 0, 0, 0]);
    let answers = core.has(0xc1 + 6, 0).has(0xc1 + 7, 0).has(0x309 + 3, 0);
    let seen = |machine: &MadeUp| {
        let has = of_intel(machine);
        (has.general, has.fixed)
    };
    let shared = (0x3f, 7);
    assert_eq!(seen(&answers), (0xff, 0xf));
    assert_eq!(seen(&core), shared, "none answers");
    assert_eq!(seen(&answers.without(0xc1 + 7)), (0x3f, 0xf), "one is missing");
    assert_eq!(seen(&answers.leaf(1, 0, [0x5_06e3, 0, PDCM, 0])), shared, "another model");
    assert_eq!(seen(&answers.leaf(1, 0, [0x9_0f72, 0, PDCM, 0])), shared, "another family");
    assert_eq!(seen(&answers.leaf(0, 0, [0x19, 0, 0, 0])), shared, "no leaf 0x1A");
    assert_eq!(seen(&answers.leaf(7, 0, [0, 0, 0, 0])), shared, "all cores of one kind");
    assert_eq!(seen(&answers.leaf(0x1a, 0, [0x20 << 24, 0, 0, 0])), shared, "a small core");
    assert_eq!(seen(&answers.leaf(0xa, 0, leaf_a(4))), (0xf, 7), "a hypervisor's choice");
}

/// Sub-leaves 4 and 5 of leaf 0x23 are there together, or there is no architectural PEBS.
#[test]
fn s1_architectural_pebs_takes_both_of_its_sub_leaves() {
    let offers = |bits| {
        let machine = intel().leaf(7, 1, [1 << 8, 0, 0, 0]).leaf(0x23, 0, [bits, 0, 0, 0]);
        let machine = machine.has(0x345, 0xf00).has(0x3f4, 0).has(0x3f5, 0);
        of_intel(&machine).architectural_pebs.is_some()
    };
    assert_eq!([0, 1 << 4, 1 << 5, 3 << 4].map(offers), [false, false, false, true]);
}

/// SDM vol. 3, 10.11.7.1: the revision is in bits 63:32. Linux, `pebs_ucodes`: model 0x2A, stepping 7, from 0x28 on.
#[test]
fn s1_the_microcodes_revision_is_asked_where_no_hypervisor_makes_it_up() {
    let sandy_bridge = intel().leaf(0, 0, [0xd, 0x756e_6547, 0x6c65_746e, 0x4965_6e69]).leaf(
        1,
        0,
        [0x2_06a7, 0, 0, 0],
    );
    let broken = |machine: &MadeUp| {
        let mut machine = machine.clone();
        let identity = Identity::read(&leaves(&machine));
        of_microcode(&mut machine, &identity).is_some()
    };
    let old = sandy_bridge.has(0x8b, 0x27 << 32);
    assert!(broken(&old));
    assert!(!broken(&sandy_bridge.has(0x8b, 0x28 << 32)));
    assert!(broken(&sandy_bridge.has(0x8b, 0x28)), "the lower half says nothing");
    assert!(!broken(&sandy_bridge), "no register");
    let other_bits = 0x7fff_ffff;
    assert!(broken(&old.leaf(1, 0, [0x2_06a7, 0, other_bits, 0])));
    assert!(!broken(&old.leaf(1, 0, [0x2_06a7, 0, 1 << 31, 0])));
}
