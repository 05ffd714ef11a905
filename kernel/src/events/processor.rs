//! The PMU's capabilities in the terms of the crate `events`.

use arch::cpu::has_leaf;
use arch::msr::Msr;
use arch::pmu::{Capabilities, Registers, leaves};
use events::cpu::Vendor;
use events::msr::ExtraMsr;
use events::processor::{Pebs, Processor};
use events::tables::Core;

/// What names are resolved with: the PMU, and the processor's table if there is one.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    /// The PMU.
    pub processor: Processor,
    /// The table; borrows the ramdisk.
    pub core: Option<Core<'a>>,
}

/// Leaf 7 EDX: MSR_TSX_FORCE_ABORT is there (SDM vol. 2, CPUID).
const TSX_FORCE_ABORT: u32 = 1 << 13;
/// The register: while its bit 0 is clear, microcode uses counter 3 for transactions (SDM vol. 4; Linux,
/// `intel_set_tfa`).
const MSR_TSX_FORCE_ABORT: Msr = Msr(0x10f);

impl<'a> Known<'a> {
    /// What is known of the processor that `registers` belong to.
    #[must_use]
    pub fn new(has: &Capabilities, core: Option<Core<'a>>, registers: &mut dyn Registers) -> Self {
        let vendor = if has.is_intel() { Vendor::Intel } else { Vendor::Amd };
        let mut processor = match vendor {
            Vendor::Intel => Processor::intel(has.version as u8, 0, 0),
            Vendor::Amd => Processor::amd(has.version >= 1, has.version >= 2),
        };
        processor.gp_counters = has.general.into();
        processor.gp_width = has.general_bits as u8;
        processor.fixed_counters = has.fixed;
        processor.fixed_width = has.fixed_bits as u8;
        processor.architectural_events = has.events;
        processor.any_thread = has.any_thread;
        processor.umask2 = has.umask2;
        processor.equal = has.equal;
        processor.taken_counters = taken(registers);
        // The least skid (ppp) is a matter of the event, INST_RETIRED.PREC_DIST, before Ice Lake.
        processor.pebs = has.pebs_format().map(|format| Pebs {
            gp_counters: has.pebs_counters().into(),
            fixed_counters: 0,
            format: format.number(),
            distribution_gp: has.pebs_counters().into(),
            distribution_fixed: 0,
        });
        let valid = core.as_ref().map(Core::extra_msrs).unwrap_or_default();
        let bits = |address| valid.iter().find(|msr| msr.address == address);
        processor.extra_msrs = has
            .extra
            .iter()
            .map(|&Msr(address)| ExtraMsr {
                address,
                valid_bits: bits(address).map_or(u64::MAX, |msr| msr.valid_bits),
            })
            .collect();
        Self { processor, core }
    }
}

/// Counters that microcode uses.
fn taken(registers: &mut dyn Registers) -> u64 {
    let offered =
        has_leaf(&leaves(registers), 7) && registers.cpuid(7, 0).edx & TSX_FORCE_ABORT != 0;
    match registers.rdmsr(MSR_TSX_FORCE_ABORT) {
        Ok(value) if offered && value & 1 == 0 => 1 << 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arch::pmu::find;
    use pmu_model::{Host, Model, Pmu, Timing};

    #[test]
    fn c6_what_the_pmu_announces_is_what_names_are_resolved_with() {
        for model in Model::ALL {
            let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::FLAT);
            let Ok(has) = find(&mut pmu) else { continue };
            let seen = Known::new(&has, None, &mut pmu).processor;
            assert_eq!(seen.vendor == Vendor::Intel, has.is_intel(), "{model:?}");
            assert_eq!(seen.usable_counters(), u64::from(has.general), "{model:?}");
            assert_eq!(seen.fixed_counters, has.fixed, "{model:?}");
            assert_eq!(seen.architectural_events, has.events, "{model:?}");
            assert_eq!(seen.extra_msrs.len(), has.extra.len(), "{model:?}");
            let pebs = seen.pebs.map(|pebs| (pebs.format, pebs.gp_counters));
            let expected = match model {
                Model::Core2 => Some((0, 1)),
                Model::Nehalem => Some((1, 0xf)),
                Model::Haswell => Some((2, 0xf)),
                Model::Skylake => Some((3, 0xf)),
                _ => None,
            };
            assert_eq!(pebs, expected, "{model:?}");
        }
        let mut arrow_lake = Pmu::new(Model::ArrowLake, Host::EXAMPLE, Timing::FLAT);
        let has = find(&mut arrow_lake).unwrap();
        let seen = Known::new(&has, None, &mut arrow_lake).processor;
        assert!(seen.umask2 && !seen.any_thread && seen.version == 6 && seen.pebs.is_none());
    }
}
