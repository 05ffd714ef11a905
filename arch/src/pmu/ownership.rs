//! Taking the PMU over from whoever had it, and giving it back.

use super::access::Registers;
use super::capabilities::Capabilities;
use super::driver::Layout;
use super::numbers;
use crate::msr::Msr;
use alloc::vec::Vec;
use thiserror::Error;

/// A sign that somebody else holds the PMU.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Conflict {
    /// IA32_PERF_GLOBAL_INUSE names counters.
    #[error("IA32_PERF_GLOBAL_INUSE is {0:#x}: the firmware or a hypervisor uses counters")]
    InUse(u64),
    /// A control register was not 0.
    #[error("MSR {msr:#x} was {value:#x}: the firmware left counters running")]
    LeftOn { msr: u32, value: u64 },
    /// A stopped counter moves.
    #[error("MSR {msr:#x} went from {before:#x} to {after:#x} while everything was switched off")]
    Moves { msr: u32, before: u64, after: u64 },
    /// A control register does not stay cleared.
    #[error("MSR {msr:#x} reads {value:#x} after 0 was written")]
    Returns { msr: u32, value: u64 },
}

/// The PMU as it was found, to be restored at the end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ownership {
    /// Registers in the order in which they were saved, controls first.
    saved: Vec<(Msr, u64)>,
    /// Signs of another holder.
    pub conflicts: Vec<Conflict>,
}

/// Event selects: the low half's enable.
const ENABLE: u64 = 1 << 22;

impl Ownership {
    /// Saves what is there, switches everything off, and looks for signs of somebody else.
    #[must_use]
    pub fn claim(registers: &mut dyn Registers, has: &Capabilities) -> Self {
        let mut own = Self::default();
        let layout = Layout::of(has);
        if let Some(value) = layout.global.and_then(|global| registers.rdmsr(global.in_use?).ok())
            && value != 0
        {
            own.conflicts.push(Conflict::InUse(value));
        }
        for msr in controls(has, &layout) {
            let Ok(value) = registers.rdmsr(msr) else { continue };
            own.saved.push((msr, value));
            // The global control alone runs nothing: it comes out of reset with enables set.
            let runs = Some(msr) != layout.global.map(|global| global.control);
            let select = has.generals().any(|counter| layout.select(counter.index() as u8) == msr);
            let live = if select { value & ENABLE } else { value };
            if runs && live != 0 && msr != numbers::AMD_HWCR {
                own.conflicts.push(Conflict::LeftOn { msr: msr.0, value });
            }
            if msr == numbers::AMD_HWCR {
                continue;
            }
            // Some hypervisors complain of any write to this one, even of what it has.
            if msr == numbers::DEBUGCTL && value == 0 {
                continue;
            }
            let _ = registers.wrmsr(msr, 0);
            if let Ok(found) = registers.rdmsr(msr)
                && found != 0
            {
                own.conflicts.push(Conflict::Returns { msr: msr.0, value: found });
            }
        }
        own.watch(registers, has, &layout);
        own
    }

    /// Saves the counters, and sees whether they stand still.
    fn watch(&mut self, registers: &mut dyn Registers, has: &Capabilities, layout: &Layout) {
        let first: Vec<(Msr, u64)> = has
            .counters()
            .map(|counter| layout.counter(counter))
            .filter_map(|msr| registers.rdmsr(msr).ok().map(|value| (msr, value)))
            .collect();
        for &(msr, before) in &first {
            if let Ok(after) = registers.rdmsr(msr)
                && after != before
            {
                self.conflicts.push(Conflict::Moves { msr: msr.0, before, after });
            }
        }
        self.saved.extend(first);
        // It points to somebody's memory, and by itself does nothing.
        if let (Some(_), Ok(base)) = (has.architectural_pebs, registers.rdmsr(numbers::PEBS_BASE)) {
            self.saved.push((numbers::PEBS_BASE, base));
        }
        if has.pebs
            && has.architectural_pebs.is_none()
            && let Ok(area) = registers.rdmsr(numbers::DS_AREA)
        {
            self.saved.push((numbers::DS_AREA, area));
        }
        if has.has_adaptive_records()
            && let Ok(groups) = registers.rdmsr(numbers::PEBS_DATA_CFG)
        {
            self.saved.push((numbers::PEBS_DATA_CFG, groups));
        }
    }

    /// What a register held when the PMU was taken over.
    #[must_use]
    pub fn found(&self, msr: Msr) -> Option<u64> {
        self.saved.iter().find(|(saved, _)| *saved == msr).map(|&(_, value)| value)
    }

    /// Puts everything back: the counters first, the global control last, so that nothing counts in between.
    pub fn restore(&self, registers: &mut dyn Registers) {
        for &(msr, value) in self.saved.iter().rev() {
            if msr == numbers::DEBUGCTL && registers.rdmsr(msr) == Ok(value) {
                continue;
            }
            // A counter of which only 32 bits can be written comes back as near as it can.
            let _ = registers.wrmsr(msr, value);
        }
    }
}

/// Control registers, in the order in which they are switched off.
fn controls(has: &Capabilities, layout: &Layout) -> Vec<Msr> {
    let mut list: Vec<Msr> = layout.global.iter().map(|global| global.control).collect();
    if has.fixed != 0 {
        list.push(numbers::FIXED_CTR_CTRL);
    }
    list.extend(has.generals().map(|counter| layout.select(counter.index() as u8)));
    match (has.pebs, has.architectural_pebs) {
        (true, Some(_)) => {
            let counters = u64::from(has.pebs_counters());
            let counters = u64::from(has.pebs_fixed()) << 32 | counters;
            let can = has.counters().filter(|counter| counters & counter.bit() != 0);
            list.extend(can.map(Layout::records));
            list.push(numbers::PEBS_INDEX);
        }
        (true, None) => list.push(numbers::PEBS_ENABLE),
        (false, _) => {}
    }
    list.push(numbers::DEBUGCTL);
    match has.lbr {
        super::LbrKind::Architectural { .. } => list.push(numbers::ARCH_LBR_CTL),
        super::LbrKind::AmdV2 { .. } => list.push(numbers::AMD_DEBUG_EXTN),
        _ => {}
    }
    if has.irperf {
        list.push(numbers::AMD_HWCR);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 4, IA32_PERFEVTSEL0: EN.
    #[test]
    fn the_enable_is_where_the_manual_has_it() {
        assert_eq!(ENABLE, 0x40_0000);
    }
}
