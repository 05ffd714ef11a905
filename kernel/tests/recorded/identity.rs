//! What the firmware reads of processors that do not say it where others do.

use crate::registers::Recorded;
use arch::cpu::Topology;
use arch::pmu::leaves;
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
