//! Stopping at a PMI.

use super::{Driver, PmuError, read, write};
use crate::pmu::FreezeKind;
use crate::pmu::access::Registers;
use crate::pmu::capabilities::LbrKind;
use crate::pmu::numbers::DEBUGCTL;
use crate::pmu::registers::{DebugCtl, PerfCapabilities};
use bitflags::bitflags;

bitflags! {
    /// What stops by itself.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Freeze: u8 {
        /// The counters, at a PMI.
        const COUNTERS = 1;
        /// The branch records, at a PMI.
        const LBR = 2;
        /// The counters, in system management mode.
        const SMM = 4;
    }
}

/// The bits that freeze at a PMI.
const FREEZES: DebugCtl = DebugCtl::FREEZE_PERFMON_ON_PMI.union(DebugCtl::FREEZE_LBRS_ON_PMI);

impl Driver {
    /// Chooses what freezes. What is not offered is refused; the handler can then stop the counters itself (see
    /// [`crate::pmu::pmi::ControlBlock::stop_in_handler`]).
    ///
    /// # Errors
    /// The processor does not offer it, or the register refuses or does not hold it.
    pub fn set_freeze(
        &self,
        registers: &mut dyn Registers,
        freeze: Freeze,
    ) -> Result<(), PmuError> {
        let has = &self.capabilities;
        if freeze.contains(Freeze::COUNTERS) && has.freeze == FreezeKind::None {
            return Err(PmuError::Unsupported("freezing of counters on a PMI"));
        }
        let records = !matches!(has.lbr, LbrKind::None | LbrKind::Single);
        if freeze.contains(Freeze::LBR) && (has.freeze == FreezeKind::None || !records) {
            return Err(PmuError::Unsupported("freezing of branch records on a PMI"));
        }
        if freeze.contains(Freeze::SMM) && !has.perf.contains(PerfCapabilities::FREEZE_WHILE_SMM) {
            return Err(PmuError::Unsupported("freezing in system management mode"));
        }
        let mut control = DebugCtl::from_bits_retain(read(registers, DEBUGCTL)?);
        control.set(DebugCtl::FREEZE_PERFMON_ON_PMI, freeze.contains(Freeze::COUNTERS));
        control.set(DebugCtl::FREEZE_LBRS_ON_PMI, freeze.contains(Freeze::LBR));
        if has.perf.contains(PerfCapabilities::FREEZE_WHILE_SMM) {
            control.set(DebugCtl::FREEZE_WHILE_SMM, freeze.contains(Freeze::SMM));
        }
        write(registers, DEBUGCTL, control.bits())?;
        // It held at the start, but system management code may have changed its mind, or the setting.
        let found = read(registers, DEBUGCTL)?;
        let asked = control.bits() & FREEZES.bits();
        match found & asked == asked {
            true => Ok(()),
            false => Err(PmuError::Freeze { value: control.bits(), found }),
        }
    }

    /// Nothing freezes from now on. A register that is not there, or has nothing set, is left alone: KVM refuses the freeze
    /// bits, and other hypervisors have no such register.
    ///
    /// # Errors
    /// The register has freeze bits set and refuses to lose them.
    pub fn no_freeze(&self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        let Ok(found) = registers.rdmsr(DEBUGCTL) else { return Ok(()) };
        let freezes = DebugCtl::FREEZE_PERFMON_ON_PMI | DebugCtl::FREEZE_LBRS_ON_PMI;
        let smm = match self.capabilities.perf.contains(PerfCapabilities::FREEZE_WHILE_SMM) {
            true => DebugCtl::FREEZE_WHILE_SMM,
            false => DebugCtl::empty(),
        };
        let found = DebugCtl::from_bits_retain(found);
        match found.intersects(freezes | smm) {
            true => write(registers, DEBUGCTL, (found - freezes - smm).bits()),
            false => Ok(()),
        }
    }
}
