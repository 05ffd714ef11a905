//! Energy and events of the uncore of a whole item: they are read before its tasks run, and after them.

use super::Machine;
use crate::energy::{self, Had, Wanted};
use crate::uncore;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use arch::pmu::energy::{Interval, Still};
use protocol::record::{CountedEnergy, CountedUncore, Uncounted};

/// What an item asks for.
pub(super) struct Asked<'a> {
    pub(super) energy: &'a [Cow<'a, str>],
    pub(super) uncore: &'a [Cow<'a, str>],
    /// Its processors, whose packages are read.
    pub(super) processors: Vec<u32>,
}

/// What is being read.
pub(super) struct Begun {
    had: Vec<Had>,
    used: Option<Result<Interval, Still>>,
    counted: Option<uncore::Whole>,
    uncounted: Vec<Uncounted>,
}

/// What it came to, and what could not be read.
#[derive(Default)]
pub(super) struct Used {
    pub(super) energy: Vec<CountedEnergy>,
    pub(super) uncore: Vec<CountedUncore>,
    pub(super) uncounted: Vec<Uncounted>,
}

impl Begun {
    /// Begins to read what can be read.
    pub(super) fn begin(asked: &Asked, machine: &mut impl Machine) -> Self {
        let wanted: Vec<Wanted> =
            asked.energy.iter().filter_map(|one| Wanted::of_text(one)).collect();
        // The boot processor alone is what is read without being named.
        let nothing = wanted.is_empty() && asked.uncore.is_empty();
        let named = if nothing || asked.processors == [0] { &[] } else { &asked.processors[..] };
        machine.measure_packages_of(named);
        let mut uncounted = Vec::new();
        let had = energy::had(&wanted, machine.meters(), &mut uncounted);
        let used = energy::begin(&had, machine.meters());
        let counted = uncore::begin(asked.uncore, machine, &mut uncounted);
        Self { had, used, counted, uncounted }
    }

    /// What was used and counted in `ticks` of the TSC. All registers are as before.
    pub(super) fn end(self, machine: &mut impl Machine, ticks: u64) -> Used {
        let Self { had, mut used, counted, mut uncounted } = self;
        let uncore = counted.map(|counted| counted.end(machine, ticks)).unwrap_or_default();
        if let Some(Ok(used)) = &mut used
            && let Ok(source) = machine.meters()
        {
            used.end(source);
        }
        let energy = energy::totals(&had, machine.meters(), used, &mut uncounted);
        machine.measure_packages_of(&[]);
        Used { energy, uncore, uncounted }
    }
}
