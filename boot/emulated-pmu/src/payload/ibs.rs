//! Instruction-based sampling: the extended registers of the local APIC, which QEMU's has not, and the interrupt that comes
//! through them (AMD APM vol. 2, 16.7).
//!
//! Accesses to the APIC's page are seen from the time on at which the guest asks where the interrupt comes: it reads IBS_CTL,
//! or, on family 10h, whose systems choose the entry themselves, the leaf of the features. Others pay nothing.

use super::guest::Guest;
use super::lapic::{self, Delivery};
use super::processors::guard;
use emulated_pmu::extended_apic::ExtendedApic;
use pmu_model::{Model, msr};

/// The features' leaf.
const LEAF: u32 = 0x8000_001b;

/// The guest reads the register with this number.
pub fn on_read_msr(guest: &mut Guest, number: u32) {
    if number == msr::AMD_IBS_CTL {
        watch(guest);
    }
}

/// The guest requests this leaf of CPUID.
pub fn on_cpuid(guest: &mut Guest, leaf: u32) {
    if leaf == LEAF && guest.counting.model() == Model::K10 {
        watch(guest);
    }
}

fn watch(guest: &mut Guest) {
    if guard::hides() || guest.counting.pmu().read_msr(msr::AMD_IBS_CTL).is_err() {
        return;
    }
    guard::hide();
    // It maps the page again when it begins again.
    guest.code.end();
}

/// Delivers a sample's interrupt by the entry that IBS_CTL names.
pub fn deliver(guest: &mut Guest) -> Delivery {
    const OFFSET: u64 = 0xf;
    let control = guest.counting.pmu().read_msr(msr::AMD_IBS_CTL).unwrap_or(0);
    let entry = guest.extended_apic.entry((control & OFFSET) as usize);
    entry.map_or(Delivery::None, lapic::deliver_by)
}

/// The registers as they are after RESET or INIT.
pub fn reset(guest: &mut Guest) {
    guest.extended_apic = ExtendedApic::RESET;
}
