//! Energy, by names as events have them. No counter counts it: the processor's RAPL registers are read before and after what is measured.

use crate::request::{Attributes, Base, Request};
use crate::tables::fold;

/// A part of the machine whose energy has a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Domain {
    /// The package.
    Package,
    /// Its cores; on AMD's processors the core that measures.
    Cores,
    /// Its graphics.
    Graphics,
    /// The memory.
    Memory,
    /// The whole platform.
    Platform,
}

/// Each with its name, which is that of perf's events of the PMU `power`, and LIKWID's.
pub const NAMES: [(Domain, &str, &str); 5] = [
    (Domain::Package, "energy-pkg", "PWR_PKG_ENERGY"),
    (Domain::Cores, "energy-cores", "PWR_PP0_ENERGY"),
    (Domain::Graphics, "energy-gpu", "PWR_PP1_ENERGY"),
    (Domain::Memory, "energy-ram", "PWR_DRAM_ENERGY"),
    (Domain::Platform, "energy-psys", "PWR_PLATFORM_ENERGY"),
];

/// The domain with this name; spelling is forgiving. perf calls AMD's cores `energy-core`.
#[must_use]
pub fn by_name(name: &str) -> Option<Domain> {
    let is = |(_, perf, likwid): &&(Domain, &str, &str)| {
        fold::same(perf, name) || fold::same(likwid, name)
    };
    let found = NAMES.iter().find(is).map(|(domain, ..)| *domain);
    found.or_else(|| fold::same("energy-core", name).then_some(Domain::Cores))
}

/// The domain's name.
#[must_use]
pub fn name(domain: Domain) -> &'static str {
    NAMES[domain as usize].1
}

/// The domain that a request is for. Modifiers and attributes mean nothing to it: with one it is not an energy, and refused where
/// events are looked up.
#[must_use]
pub fn of(request: &Request) -> Option<Domain> {
    let label = request.attributes.label.clone();
    let plain = request.attributes == Attributes { label, ..Attributes::default() };
    let own = request.pmu.as_ref().is_none_or(|pmu| matches!(&*pmu.name, "power" | "power_core"));
    match &request.base {
        Base::Name(pieces) if plain && own => match &pieces[..] {
            [only] => by_name(&only.text),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_list;

    #[test]
    fn s4_names_are_those_of_perf_and_of_likwid() {
        for (index, (domain, perf, likwid)) in NAMES.into_iter().enumerate() {
            assert_eq!(domain as usize, index);
            assert_eq!((by_name(perf), by_name(likwid)), (Some(domain), Some(domain)));
            assert_eq!(name(domain), perf);
        }
        assert_eq!(by_name("ENERGY_PKG"), Some(Domain::Package));
        assert_eq!(by_name("energy-core"), Some(Domain::Cores));
        assert_eq!(by_name("energy"), None);
    }

    #[test]
    fn s4_requests_are_for_energy_without_modifiers() {
        let of_text = |text: &str| of(&parse_list(text).unwrap()[0].requests[0]);
        assert_eq!(of_text("energy-ram"), Some(Domain::Memory));
        assert_eq!(of_text("power/energy-ram/"), Some(Domain::Memory));
        assert_eq!(of_text("energy-ram:u"), None);
        assert_eq!(of_text("power_core/energy-core/"), Some(Domain::Cores));
        assert_eq!(of_text("cpu/energy-ram/"), None);
        assert_eq!(of_text("cycles"), None);
        // A name of one's own is not a modifier.
        assert_eq!(of_text("power/energy-ram,name=heat/"), Some(Domain::Memory));
    }
}
