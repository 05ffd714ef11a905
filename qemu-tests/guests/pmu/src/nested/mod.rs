//! A guest that is a hypervisor itself: it runs a small nested guest by SVM. AMD APM vol. 2, chapter 15.

mod block;
mod counts;
mod devices;
mod events;
mod intercepts;
mod paging;
mod permissions;
mod refusals;
mod storm;

use crate::pmu::{INSTRUCTIONS, KERNEL, USER, Unit, write};
use crate::{case, line};
use x86_64::registers::model_specific::Msr;

pub const EFER: u32 = 0xc000_0080;
pub const SVME: u64 = 1 << 12;
pub const SAVE_AREA: u32 = 0xc001_0117;
/// PERF_CTL: GuestOnly, HostOnly.
pub const GUEST_ONLY: u64 = 1 << 40;
pub const HOST_ONLY: u64 = 1 << 41;
const ENABLE: u64 = 1 << 22;
const EDGE: u64 = 1 << 18;

/// What is counted meanwhile.
#[derive(Clone, Copy)]
pub struct Way {
    pub name: &'static str,
    /// The nested guest's instructions are counted.
    counts: bool,
    /// And an event that takes each to be stepped: a threshold with EDGE.
    steps: bool,
}

pub const WAYS: [Way; 3] = [
    Way { name: "idle", counts: false, steps: false },
    Way { name: "counted", counts: true, steps: false },
    Way { name: "stepped", counts: true, steps: true },
];

impl Way {
    /// Runs the nested guest. Returns its instructions; `expected` if none are counted.
    pub fn run(self, unit: &Unit, expected: u64) -> u64 {
        self.over(unit, expected, block::enter)
    }

    /// The same by another way in.
    pub fn over(self, unit: &Unit, expected: u64, enter: extern "C" fn()) -> u64 {
        if !self.counts {
            enter();
            return expected;
        }
        let (select, counter, event) = unit.branches();
        if self.steps {
            write(counter, 0);
            write(select, event | USER | KERNEL | EDGE | GUEST_ONLY | ENABLE);
        }
        unit.program(INSTRUCTIONS | USER | KERNEL | GUEST_ONLY, 0);
        write(unit.select, INSTRUCTIONS | USER | KERNEL | GUEST_ONLY | ENABLE);
        enter();
        write(unit.select, 0);
        write(select, 0);
        unit.read()
    }
}

pub fn run(unit: &Unit) {
    let cpuid = core::arch::x86_64::__cpuid;
    let offered = cpuid(0x8000_0001).ecx >> 2 & 1;
    case("nested.offered", offered.into(), 1);
    if offered == 0 {
        return;
    }
    let leaf = cpuid(0x8000_000a);
    case("nested.revision", leaf.eax.into(), 1);
    case("nested.paging_and_next_rip", u64::from(leaf.edx & 0b1001), 0b1001);
    refusals::before(unit);
    // SAFETY: both registers exist with SVM; the page is this module's.
    unsafe {
        let mut efer = Msr::new(EFER);
        let value = efer.read() | SVME;
        efer.write(value);
        Msr::new(SAVE_AREA).write(block::save_area());
    }
    block::set_up();
    refusals::run(unit);
    counts::run(unit);
    intercepts::run(unit);
    permissions::run(unit);
    events::run(unit);
    devices::run(unit);
    storm::run(unit);
    paging::run(unit);
    line!("nested done");
}
