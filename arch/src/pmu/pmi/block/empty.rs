//! A control block for no counter.

use super::slot::Slot;
use super::{ControlBlock, SLOTS};
use crate::pmu::driver::{Gate, Write};
use crate::pmu::pmi::carry::Stands;
use crate::pmu::pmi::groups::GroupLog;
use crate::pmu::pmi::handling::AroundAll;
use crate::pmu::pmi::throttle::Throttle;
use crate::pmu::pmi::timer::Times;

const NO_WRITE: Write = Write::new(crate::msr::Msr(0), 0);

pub(super) const NO_SLOT: Slot = Slot {
    reload: 0,
    look_at: 0,
    preset: 0,
    overflows: 0,
    dropped: 0,
    throttled: 0,
    level: 0,
    running: 0,
    ring_0: false,
    extends_sign: false,
    carry: 0,
    width: 0,
    owed: 0,
};

impl ControlBlock {
    /// A block that finds every interrupt spurious.
    pub const EMPTY: Self = Self {
        status: 0,
        clear: 0,
        mask: 0,
        found: 0,
        resume: NO_WRITE,
        stop: NO_WRITE,
        gate: Gate::EMPTY,
        stops: 0,
        shut: 0,
        closed: [0; 2],
        task: 0,
        apic: 0,
        lvt: 0,
        stays_unmasked: false,
        nmi: 0,
        pmis: 0,
        spurious: 0,
        back_to_back: 0,
        dropped: 0,
        retired: core::ptr::null_mut(),
        stopped: false,
        stops_when_full: false,
        registers: core::ptr::null_mut(),
        groups: GroupLog::NONE,
        start: 0,
        histogram: None,
        records: None,
        ibs: None,
        edges: None,
        by_task: None,
        data: None,
        accesses: None,
        outcomes: None,
        chains: None,
        data_log: core::ptr::null_mut(),
        throttle: Throttle::NONE,
        notify: None,
        times: Times::EMPTY,
        cursor: 0,
        end: 0,
        top: 0,
        stands: Stands::Never,
        keeps_periods: false,
        slots: [NO_SLOT; SLOTS],
        around: AroundAll::NOTHING,
    };
}
