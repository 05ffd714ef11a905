//! Where the registers of a processor's counters lie.

use crate::msr::Msr;
use crate::pmu::capabilities::{Capabilities, Counter};
use crate::pmu::numbers;

/// The places of the general-purpose counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scheme {
    /// Counters at 0xC1, of which 32 bits can be written.
    Legacy,
    /// Counters at 0x4C1.
    FullWidth,
    /// Version 6: counters need not be contiguous.
    Version6,
    /// AMD's four counters.
    AmdLegacy,
    /// AMD's extended counters.
    AmdExtended,
}

/// The global registers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Global {
    /// Enables.
    pub control: Msr,
    /// Overflows.
    pub status: Msr,
    /// Clears bits of the status.
    pub clear: Msr,
    /// Sets bits of the status.
    pub set: Option<Msr>,
    /// Counters in use: Intel, version 4.
    pub in_use: Option<Msr>,
}

/// MSR numbers of one processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    scheme: Scheme,
    /// The global registers, if there are any.
    pub global: Option<Global>,
}

impl Layout {
    /// The layout of a processor.
    #[must_use]
    pub fn of(capabilities: &Capabilities) -> Self {
        let scheme = match (capabilities.is_intel(), capabilities.version) {
            (true, 6..) => Scheme::Version6,
            (true, _) if capabilities.full_width() => Scheme::FullWidth,
            (true, _) => Scheme::Legacy,
            (false, 0) => Scheme::AmdLegacy,
            (false, _) => Scheme::AmdExtended,
        };
        let version_4 = capabilities.version >= 4;
        let global = match (capabilities.is_intel(), capabilities.has_global()) {
            (_, false) => None,
            (true, _) => Some(Global {
                control: numbers::GLOBAL_CTRL,
                status: numbers::GLOBAL_STATUS,
                clear: numbers::GLOBAL_OVF_CTRL,
                set: version_4.then_some(numbers::GLOBAL_STATUS_SET),
                in_use: version_4.then_some(numbers::GLOBAL_INUSE),
            }),
            (false, _) => Some(Global {
                control: numbers::AMD_GLOBAL_CTL,
                status: numbers::AMD_GLOBAL_STATUS,
                clear: numbers::AMD_GLOBAL_STATUS_CLR,
                set: Some(numbers::AMD_GLOBAL_STATUS_SET),
                in_use: None,
            }),
        };
        Self { scheme, global }
    }

    /// Event select of general-purpose counter `n`.
    #[must_use]
    pub fn select(&self, n: u8) -> Msr {
        let n = u32::from(n);
        Msr(match self.scheme {
            Scheme::Legacy | Scheme::FullWidth => numbers::PERFEVTSEL + n,
            Scheme::Version6 => numbers::V6_GENERAL + 4 * n + 1,
            Scheme::AmdLegacy => numbers::AMD_LEGACY_CTL + n,
            Scheme::AmdExtended => numbers::AMD_PERF_CTL + 2 * n,
        })
    }

    /// The counter itself, in the form that takes the most bits.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> Msr {
        Msr(match (counter, self.scheme) {
            (Counter::Fixed(i), Scheme::Version6) => numbers::V6_FIXED + 4 * u32::from(i),
            (Counter::Fixed(i), _) => numbers::FIXED_CTR + u32::from(i),
            (Counter::General(n), Scheme::Legacy) => numbers::PMC + u32::from(n),
            (Counter::General(n), Scheme::FullWidth) => numbers::A_PMC + u32::from(n),
            (Counter::General(n), Scheme::Version6) => numbers::V6_GENERAL + 4 * u32::from(n),
            (Counter::General(n), Scheme::AmdLegacy) => numbers::AMD_LEGACY_CTR + u32::from(n),
            (Counter::General(n), Scheme::AmdExtended) => {
                numbers::AMD_PERF_CTL + 2 * u32::from(n) + 1
            }
        })
    }

    /// What architectural PEBS does with `counter`: IA32_PMC_GPn_CFG_C and IA32_PMC_FXi_CFG_C, which came with version 6.
    #[must_use]
    pub const fn records(counter: Counter) -> Msr {
        Msr(match counter {
            Counter::General(n) => numbers::V6_GENERAL + 4 * n as u32 + 3,
            Counter::Fixed(i) => numbers::V6_FIXED + 4 * i as u32 + 3,
        })
    }

    /// Whether a write takes 32 bits of the value and extends their sign to the counter's width (SDM vol. 3,
    /// 20.2.8).
    #[must_use]
    pub fn extends_sign(&self, counter: Counter) -> bool {
        self.scheme == Scheme::Legacy && matches!(counter, Counter::General(_))
    }

    /// ECX of RDPMC for a counter (SDM vol. 2, RDPMC).
    #[must_use]
    pub const fn rdpmc_index(counter: Counter) -> u32 {
        match counter {
            Counter::General(n) => n as u32,
            Counter::Fixed(i) => super::RDPMC_FIXED | i as u32,
        }
    }
}
