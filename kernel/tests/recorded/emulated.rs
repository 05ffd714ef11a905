//! Recorded processors as the emulated PMU presents them: the model that the hypervisor runs, with the driver on it.

use crate::registers::Recorded;
use arch::pmu::{Capabilities, find, leaves, trial};
use pmu_model::{Host, Pmu, Recording, Timing};
use recorded::{Leaves, cores};

/// A host that has whatever is asked of it: what the recording lacks must be missing all the same.
const HOST: Host = Host {
    highest_basic: 0x1f,
    highest_extended: 0x8000_0028,
    highest_subleaf_7: 2,
    misc_enable: 1,
    hwcr: 0,
};

/// The processor as it is presented. What it takes of memory is never freed.
pub fn presented(recorded: &Leaves) -> Result<&'static Recording, String> {
    let answers = Vec::leak(recorded.answers());
    let recording = Recording::of(answers).map_err(|unfit| unfit.to_string())?;
    Ok(Box::leak(Box::new(recording)))
}

/// What the firmware takes it for.
fn announced(recording: &'static Recording) -> Capabilities {
    let mut pmu = Pmu::recorded(recording, HOST, Timing::DEFAULT);
    find(&mut pmu).expect("a recorded PMU")
}

/// What the firmware sees of it, and what of that works.
fn seen(recording: &'static Recording) -> (Capabilities, Result<Capabilities, String>) {
    let mut pmu = Pmu::recorded(recording, HOST, Timing::DEFAULT);
    let announced = find(&mut pmu).expect("a recorded PMU");
    let works = trial::run(&announced, &mut pmu).map_err(|missing| missing.to_string());
    (announced, works)
}

#[test]
fn c6_each_recorded_core_is_presented_with_its_own_counters_or_a_reason() {
    let mut presented_ones = 0;
    for core in cores::all() {
        let of_core = find(&mut Recorded::new(&core.leaves));
        let recording = match presented(&core.leaves) {
            Ok(recording) => recording,
            Err(why) => {
                let no_pmu = why.contains("no performance counters");
                assert_eq!(of_core.is_err(), no_pmu, "{}: {why}", core.name);
                assert!(no_pmu || why.contains("32-bit"), "{}: {why}", core.name);
                continue;
            }
        };
        presented_ones += 1;
        let of_core = of_core.unwrap_or_else(|why| panic!("{}: {why}", core.name));
        let (announced, works) = seen(recording);
        let facts = |has: &Capabilities| {
            (
                (has.architecture, has.version, has.general, has.general_bits),
                (has.fixed, has.fixed_bits, has.events, has.any_thread),
                (has.umask2, has.equal, has.pdcm, has.irperf),
            )
        };
        assert_eq!(facts(&announced), facts(&of_core), "{}", core.name);
        let works = works.unwrap_or_else(|why| panic!("{}: {why}", core.name));
        let wrong: Vec<_> = works.faults.iter().map(ToString::to_string).collect();
        assert_eq!(wrong, [""; 0], "{}", core.name);
        let identity = |cpu: &dyn arch::pmu::Registers| {
            let seen = arch::cpu::Identity::read(&leaves(cpu));
            (seen.vendor_text, seen.brand, seen.family, seen.model, seen.stepping, seen.core_type)
        };
        let pmu = Pmu::recorded(recording, HOST, Timing::DEFAULT);
        assert_eq!(identity(&pmu), identity(&Recorded::new(&core.leaves)), "{}", core.name);
        let mut lines = 0;
        recording.inferred(|line| {
            lines += 1;
            assert!(line.to_string().len() < 120, "{line}");
        });
        assert!(lines >= 4, "{}", core.name);
    }
    println!("{presented_ones} are presented");
    assert!(presented_ones > 360);
}

#[test]
fn c6_a_presented_pmu_with_any_bit_of_its_leaves_turned_over_works_or_is_refused() {
    let (mut refused, mut works, mut useless, mut same) = (0, 0, 0, 0);
    for name in crate::bits::CORES {
        let core = cores::named(name).unwrap_or_else(|| panic!("{name}"));
        let as_it_is = announced(presented(&core.leaves).unwrap());
        for leaves in crate::bits::turned(&core.leaves) {
            match presented(&leaves) {
                Err(why) => {
                    assert!(!why.is_empty());
                    refused += 1;
                }
                // A leaf that no other one is read for.
                Ok(recording) if announced(recording) == as_it_is => same += 1,
                Ok(recording) => match seen(recording).1 {
                    Ok(has) => {
                        assert!(has.general != 0);
                        works += 1;
                    }
                    Err(why) => {
                        assert!(!why.is_empty());
                        useless += 1;
                    }
                },
            }
        }
    }
    println!(
        "{works} work, {same} change nothing, {refused} are refused, {useless} are found useless"
    );
    assert!(works > 100 && refused > 50, "{works} {same} {refused} {useless}");
}
