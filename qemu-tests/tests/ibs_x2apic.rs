//! Instruction-based sampling where the local APIC is in x2APIC mode: its interrupt comes by entries that are model-specific registers
//! there, from 0x850 on. The emulated PMU has the mode on request, on one processor.

use pmu_model::Model;
use protocol::record::{ApicMode, CheckVerdict, SampleResult};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

fn on(model: Model, x2apic: bool, toml: &str) -> Ran {
    let switch = if x2apic { "on" } else { "off" };
    let options = format!("pmu={} clock=machine x2apic={switch}", model.spec().name);
    let pmu_options = Some(options);
    Guest { pmu: Given::Emulated(model), pmu_options, ..Guest::new(Boot::Direct, toml) }.run()
}

fn mode(ran: &Ran) -> ApicMode {
    ran.report.machine().expect("a machine record").apic.mode
}

/// By fixed vector and by NMI, beside samples of a counter, whose interrupt comes by LVTPC.
#[test]
fn s1_ibs_interrupts_come_by_the_extended_registers_of_the_x2apic() {
    let item = |event: &str, precise: bool, delivery: &str| {
        format!(
            "[[sample]]\nprecise = {precise}\ndelivery = \"{delivery}\"\nevents = [\"{event}\"]\nperiod = 272\n\
             asm = \"mov rdx, [r14+rcx]; add rcx, 8; and rcx, 0x1f8\"\nturns = 4000\n"
        )
    };
    let all = [("r00c1", true), ("ibs_fetch", true), ("instructions", false)];
    let toml: String = ["fixed", "nmi"]
        .map(|delivery| all.map(|(event, precise)| item(event, precise, delivery)).concat())
        .concat();
    for model in [Model::K10, Model::Zen2, Model::Zen4] {
        let [paged, ours] = [false, true].map(|x2apic| {
            let ran = on(model, x2apic, &toml);
            ran.ends_with(0);
            let expected = if x2apic { ApicMode::X2Apic } else { ApicMode::XApic };
            assert_eq!(mode(&ran), expected, "{model:?}");
            ran
        });
        let results = |ran: &Ran| ran.report.sampled().cloned().collect::<Vec<SampleResult>>();
        assert_eq!([&paged, &ours].map(|ran| results(ran).len()), [6, 6], "{model:?}");
        for (paged, ours) in results(&paged).iter().zip(&results(&ours)) {
            let (before, one) = (&paged.events[0], &ours.events[0]);
            assert_eq!((one.samples + one.dropped, one.lost), (one.overflows, 0), "{one:?}");
            // 20,000 instructions, and what is counted of the handlers.
            assert!((73..=140).contains(&one.samples), "{model:?}: {one:?}");
            assert_eq!(one.counter, before.counter, "{model:?}");
        }
    }
}

#[test]
fn k1_the_checks_of_ibs_pass_in_x2apic_mode() {
    let ran = on(Model::Zen4, true, "kind = \"conformance\"\nchecks = [\"ibs.*\"]");
    assert_eq!(mode(&ran), ApicMode::X2Apic);
    let checks: Vec<_> = ran.report.checks().collect();
    let failed: Vec<_> =
        checks.iter().filter(|check| check.verdict == CheckVerdict::Fail).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let passed = checks.iter().filter(|check| check.verdict == CheckVerdict::Pass);
    assert_eq!(passed.count(), 10, "{checks:#?}");
}
