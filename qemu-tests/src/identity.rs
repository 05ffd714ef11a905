//! Whether a machine's record is that of the model whose PMU it has.

use pmu_model::Model;
use pmu_model::model::{Identity, Spec, Vendor};
use protocol::record::{Machine, PmuArchitecture};

/// Asserts that `machine` is what `model` claims to be: identity, and the counters that CPUID announces.
///
/// # Panics
/// If it is not.
#[track_caller]
pub fn is_model(machine: &Machine, model: Model) {
    let spec = model.spec();
    is_identity(machine, spec.identity.as_ref().expect("every model with a PMU has an identity"));
    has_counters(machine, spec);
}

/// Family, model and stepping as CPUID's leaf 1 puts them together: SDM vol. 2, CPUID; AMD APM vol. 3, appendix E.
#[track_caller]
fn is_identity(machine: &Machine, identity: &Identity) {
    let (vendor, signature) = (identity.vendor, identity.signature);
    let field = |from: u32, bits: u32| signature >> from & ((1 << bits) - 1);
    let (base, extended) = (field(8, 4), field(20, 8));
    let family = if base == 0xf { base + extended } else { base };
    let upper = if base == 0xf || base == 6 { field(16, 4) } else { 0 };
    let vendor = match vendor {
        Vendor::Intel => "GenuineIntel",
        Vendor::Amd => "AuthenticAMD",
    };
    assert_eq!(machine.vendor, vendor);
    assert_eq!(machine.brand, identity.brand.trim());
    let seen = (machine.family, machine.model, machine.stepping);
    assert_eq!(seen, (family, upper << 4 | field(4, 4), field(0, 4)), "{}", identity.brand);
}

#[track_caller]
fn has_counters(machine: &Machine, spec: &Spec) {
    let pmu = machine.pmu.as_ref().unwrap_or_else(|| panic!("{}: {machine:?}", spec.name));
    let (architecture, version) = match (spec.intel(), spec.amd()) {
        (Some(intel), _) => (PmuArchitecture::Intel, u32::from(intel.version)),
        (_, Some(amd)) => (PmuArchitecture::Amd, u32::from(amd.extended) + u32::from(amd.v2)),
        _ => panic!("a model without a PMU"),
    };
    assert_eq!((pmu.architecture, pmu.version), (architecture, version), "{}", spec.name);
    let fixed_bits = spec.intel().map_or(0, |intel| u32::from(intel.fixed_width));
    let widths = (pmu.counter_bits, pmu.fixed_counter_bits);
    assert_eq!(widths, (u32::from(spec.width_bits()), fixed_bits), "{}", spec.name);
    let mut possible = vec![(spec.counters().count_ones(), spec.fixed().count_ones())];
    if let Some(intel) = spec.intel().filter(|intel| intel.leaf_23.is_some()) {
        // Leaf 0x23 says more than leaf 0xA does, and a firmware that reads only the latter is right about that.
        let [eax, _, ecx, edx] = intel.leaf_a;
        possible.push((eax >> 8 & 0xff, (ecx | ((1 << (edx & 0x1f)) - 1)).count_ones()));
    }
    let seen = (pmu.counters, pmu.fixed_counters);
    assert!(possible.contains(&seen), "{}: {seen:?}, not {possible:?}", spec.name);
}
