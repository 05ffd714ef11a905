//! The PMU's capabilities in the terms of the crate `events`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::cpu::{Identity, has_leaf};
use arch::msr::Msr;
use arch::pmu::pebs::Format;
use arch::pmu::{Capabilities, Counter, Fault, LbrKind, Registers, leaves};
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
    /// Counters and events that are announced and were given up, with the reason.
    given_up: Vec<GivenUp>,
}

/// What is announced and cannot be relied on.
#[derive(Clone, Debug)]
struct GivenUp {
    what: What,
    reason: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    Counter(Counter),
    /// Event and unit mask, on general-purpose counters.
    Event(u16, u16),
}

impl GivenUp {
    fn of(fault: &Fault) -> Option<Self> {
        let what = match *fault {
            Fault::Counter { counter, .. } => What::Counter(counter),
            Fault::Event { event, umask, .. } => What::Event(event, umask),
            _ => return None,
        };
        Some(Self { what, reason: fault.to_string() })
    }
}

/// Leaf 7 EDX: MSR_TSX_FORCE_ABORT is there (SDM vol. 2, CPUID).
const TSX_FORCE_ABORT: u32 = 1 << 13;
/// The register: while its bit 0 is clear, microcode uses counter 3 for transactions (SDM vol. 4; Linux,
/// `intel_set_tfa`).
const MSR_TSX_FORCE_ABORT: Msr = Msr(0x10f);

/// AMD's first family whose event 003H takes a pair of counters (PPR for family 17h, "Large Increment per Cycle Events").
const LARGE_INCREMENTS: u32 = 0x17;

impl<'a> Known<'a> {
    /// What is known of the processor that `registers` belong to.
    #[must_use]
    pub fn new(has: &Capabilities, core: Option<Core<'a>>, registers: &mut dyn Registers) -> Self {
        let vendor = if has.is_intel() { Vendor::Intel } else { Vendor::Amd };
        let mut processor = match vendor {
            Vendor::Intel => Processor::intel(has.version as u8, 0, 0),
            Vendor::Amd => Processor::amd(has.version >= 1, has.version >= 2),
        };
        // With those that were given up, so that a request learns why it cannot have them.
        let given_up: Vec<GivenUp> = has.faults.iter().filter_map(GivenUp::of).collect();
        let (mut general, mut fixed) = (u64::from(has.general), has.fixed);
        for one in &given_up {
            match one.what {
                What::Counter(Counter::General(n)) => general |= 1 << n,
                What::Counter(Counter::Fixed(n)) => fixed |= 1 << n,
                What::Event(..) => {}
            }
        }
        processor.gp_counters = general;
        processor.gp_width = has.general_bits as u8;
        processor.fixed_counters = fixed;
        processor.fixed_width = has.fixed_bits as u8;
        processor.architectural_events = has.events;
        processor.coded_events = has.coded();
        processor.any_thread = has.any_thread;
        processor.umask2 = has.umask2;
        processor.equal = has.equal;
        processor.metric_fields =
            if has.metrics { events::perf_metrics::fields(core.as_ref()) } else { 0 };
        processor.taken_counters = taken(registers);
        processor.large_increments =
            vendor == Vendor::Amd && Identity::read(&leaves(registers)).family >= LARGE_INCREMENTS;
        processor.pebs = has.pebs_format().map(|format| Pebs {
            gp_counters: has.pebs_counters().into(),
            fixed_counters: has.pebs_fixed(),
            format: format.number(),
            distribution_gp: distribution(has, format),
            distribution_fixed: match has.architectural_pebs {
                Some(offered) => offered.distribution[1] & has.pebs_fixed(),
                None => has.pebs_fixed() & 1,
            },
            states_retirement: has.states_retirement(),
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
        Self { processor, core, given_up }
    }

    /// Which of the general-purpose counters `wanted` can be relied on.
    ///
    /// # Errors
    /// None of them, for this reason.
    pub(crate) fn usable(&self, wanted: u64) -> Result<u64, &str> {
        let mut left = wanted;
        let mut reason = "";
        for one in &self.given_up {
            if let What::Counter(counter @ Counter::General(_)) = one.what
                && wanted & counter.bit() != 0
            {
                left &= !counter.bit();
                reason = &one.reason;
            }
        }
        if left == 0 && wanted != 0 { Err(reason) } else { Ok(left) }
    }

    /// Why a fixed counter cannot be relied on, if it cannot.
    pub(crate) fn fixed_given_up(&self, index: u8) -> Option<&str> {
        self.why(What::Counter(Counter::Fixed(index)))
    }

    /// Why an event on general-purpose counters cannot be relied on, if it cannot.
    pub(crate) fn event_given_up(&self, event: u16, umask: u16) -> Option<&str> {
        self.why(What::Event(event, umask))
    }

    fn why(&self, what: What) -> Option<&str> {
        self.given_up.iter().find(|one| one.what == what).map(|one| one.reason.as_str())
    }
}

/// General-purpose counters with the least skid (ppp). Before Ice Lake it is a matter of the event, INST_RETIRED.PREC_DIST;
/// there fixed counter 0 has it alone, and from Golden Cove and Gracemont on counter 0 as well (Linux,
/// `intel_icl_pebs_event_constraints` and `spr_get_event_constraints`). Architectural branch records came with the same cores.
fn distribution(has: &Capabilities, format: Format) -> u64 {
    if let Some(offered) = has.architectural_pebs {
        return (offered.distribution[0] & has.pebs_counters()).into();
    }
    match (format.is_adaptive(), has.lbr) {
        (false, _) => has.pebs_counters().into(),
        (true, LbrKind::Architectural { .. }) => u64::from(has.pebs_counters()) & 1,
        (true, _) => 0,
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
                Model::IceLake | Model::SapphireRapids | Model::GoldenCove => Some((4, 0xff)),
                Model::Gracemont => Some((4, 0x3f)),
                Model::ArrowLake => Some((6, 0x3ff)),
                Model::CougarCove => Some((15, 0x3ff)),
                _ => None,
            };
            assert_eq!(pebs, expected, "{model:?}");
            let fixed = seen.pebs.map_or(0, |pebs| pebs.fixed_counters);
            let adaptive = expected.is_some_and(|(format, _)| format >= 4);
            assert_eq!(fixed, if adaptive { has.fixed } else { 0 }, "{model:?}");
            let least = seen.pebs.map(|pebs| (pebs.distribution_gp, pebs.distribution_fixed));
            match model {
                Model::IceLake => assert_eq!(least, Some((0, 1))),
                Model::SapphireRapids
                | Model::ArrowLake
                | Model::CougarCove
                | Model::GoldenCove
                | Model::Gracemont => {
                    assert_eq!(least, Some((1, 1)));
                }
                _ => assert_eq!(least.map(|(gp, _)| gp), expected.map(|(_, gp)| gp)),
            }
        }
        for (model, pairs) in [(Model::K10, false), (Model::Zen2, true), (Model::Zen4, true)] {
            let mut pmu = Pmu::new(model, Host::EXAMPLE, Timing::FLAT);
            let has = find(&mut pmu).unwrap();
            let seen = Known::new(&has, None, &mut pmu).processor;
            assert_eq!(seen.large_increments, pairs, "{model:?}");
        }
        let mut arrow_lake = Pmu::new(Model::ArrowLake, Host::EXAMPLE, Timing::FLAT);
        let has = find(&mut arrow_lake).unwrap();
        let seen = Known::new(&has, None, &mut arrow_lake).processor;
        assert!(seen.umask2 && !seen.any_thread && seen.version == 6);
    }
}
