//! What the firmware reads of processors that do not say it where others do.

use crate::outcome::Outcome;
use crate::registers::Recorded;
use arch::cpu::Topology;
use arch::memory::mtrr::has_top_of_memory;
use arch::msr::Msr;
use arch::pmu::{Registers as _, find, leaves};
use recorded::cores;

/// AMD's family 15h: firmware gives ids from 0x10 on, on socket G34 from 0x20 on, and leaf 1 keeps the initial ones.
#[test]
fn i7_a_processor_of_family_15h_has_the_apic_id_that_firmware_gave_it() {
    let bulldozers = cores::all().iter().filter(|core| core.name.starts_with("amd-bulldozer"));
    let mut seen = 0;
    for core in bulldozers {
        let topology = Topology::read(&leaves(&Recorded::new(&core.leaves)));
        let given = core.leaves.answer(0x8000_001e, 0)[0];
        assert_eq!(topology.apic_id, given, "{}", core.name);
        assert_ne!(core.leaves.answer(1, 0)[1] >> 24, given, "{}", core.name);
        let [_, package] = topology.place();
        let opteron = core.name.contains("opteron-processor-6");
        assert_eq!((given & !3, package), if opteron { (0x20, 1) } else { (0x10, 1) });
        seen += 1;
    }
    assert_eq!(seen, 26);
}

/// Everywhere else the leaves agree, or leaf 0xB has the id.
#[test]
fn i7_other_recorded_processors_keep_the_apic_id_of_leaf_1() {
    for core in cores::all().iter().filter(|core| !core.name.starts_with("amd-bulldozer")) {
        let topology = Topology::read(&leaves(&Recorded::new(&core.leaves)));
        let initial = core.leaves.answer(1, 0)[1] >> 24;
        let has_levels = core.leaves.answer(0xb, 0)[1] != 0;
        assert!(topology.apic_id == initial || has_levels, "{}: {topology:?}", core.name);
    }
}

/// SYSCFG may force memory above 4 GiB to be cached; a processor whose bit is not looked at loses it.
#[test]
fn memory_above_4_gib_is_asked_for_on_each_amd_with_syscfg_and_on_hygon() {
    let makers = ["amd-k8", "amd-k10", "amd-bulldozer", "amd-jaguar", "amd-zen", "hygon"];
    let makers = [&makers[..], &["amd-bobcat"]].concat();
    for core in cores::all() {
        let has = has_top_of_memory(&leaves(&Recorded::new(&core.leaves)));
        let expected = makers.iter().any(|maker| core.name.starts_with(maker));
        let is_guest = core.leaves.answer(1, 0)[2] >> 31 != 0;
        assert_eq!(has, expected && !is_guest, "{}", core.name);
    }
}

/// IA32_PERF_CAPABILITIES is not recorded: each core gets the format that its microarchitecture has.
#[test]
fn s1_precise_samples_of_silvermont_and_goldmont_take_counter_0_alone() {
    const PERF_CAPABILITIES: Msr = Msr(0x345);
    let counters = |name: &str, format: u64| {
        let of_name = cores::all().iter().filter(|core| core.name.contains(name));
        let each = of_name.map(|core| {
            let mut registers = Recorded::new(&core.leaves);
            registers.wrmsr(PERF_CAPABILITIES, format << 8 | 0xc1).unwrap();
            find(&mut registers).unwrap().pebs_counters()
        });
        // One of them has no debug store.
        let mut all: Vec<u32> = each.filter(|counters| *counters != 0).collect();
        all.dedup();
        all
    };
    assert_eq!(counters("atom-silvermont", 2), [1]);
    assert_eq!(counters("atom-airmont", 2), [1]);
    assert_eq!(counters("atom-goldmont-intel", 3), [1]);
    assert_eq!(counters("atom-goldmont-plus", 3), [0xf]);
    assert_eq!(counters("skylake", 3), [0xf]);
}

/// Their leaf 0xA is as Intel's, and their codes are others (Linux, `arch/x86/events/zhaoxin/core.c`).
#[test]
fn i11_zhaoxin_and_via_count_cycles_on_fixed_counters_and_no_event_by_a_code_of_intels() {
    let made = |core: &&cores::Core| {
        ["zhaoxin", "via-isaiah"].iter().any(|maker| core.name.starts_with(maker))
    };
    let mut seen = 0;
    for core in cores::all().iter().filter(made) {
        let has = find(&mut Recorded::new(&core.leaves)).unwrap();
        assert_eq!((has.events, has.coded(), has.cycles), (7, 2, 0), "{}", core.name);
        let counted = |names: &[&str]| Outcome::with(&core.leaves, names).pmu.unwrap().generic;
        assert_eq!(counted(&["instructions", "cycles", "ref-cycles-fixed"]), 3, "{}", core.name);
        assert_eq!(counted(&["branches", "branch-misses", "cache-misses"]), 0, "{}", core.name);
        seen += 1;
    }
    assert_eq!(seen, 10);
    let intel = find(&mut Recorded::new(&cores::named(SKYLAKE).unwrap().leaves)).unwrap();
    assert_eq!((intel.coded(), intel.cycles), (u32::MAX, u32::MAX));
}

const SKYLAKE: &str = "intel-x86-64-skylake-intel-core-i7-6700k-cpu";
