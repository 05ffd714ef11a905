//! The way in for RDMSR and WRMSR.

use super::{Needs, Pmu};
use crate::error::{Fault, MsrError};
use crate::msr;
use crate::mutation::Mutation;
use crate::registers::{Place, Register, place};

/// What a write changes for whoever runs the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// What is needed, or when a counter overflows, may have changed: look at [`Effects::needs`]
    /// and at [`Pmu::until_overflow`] again.
    pub replan: bool,
    /// What is needed from now on.
    pub needs: Needs,
    /// For a register that the PMU shares with the rest of the processor (MISC_ENABLE, HWCR): the
    /// value to write to the hardware, with the bits of the PMU as the hardware had them.
    pub forward: Option<u64>,
}

impl Pmu {
    /// Whether an access to this MSR is for the model. It is for every register in [`msr::RANGES`],
    /// also for those that the model lacks (they raise #GP), but for a few that belong to more than
    /// the PMU: HWCR where the model has no bit in it, and on [`crate::Model::None`] also
    /// MISC_ENABLE, DEBUGCTL and the last-branch registers 0x1DB to 0x1DE.
    #[must_use]
    pub fn owns(&self, msr: u32) -> bool {
        place(self.spec(), msr) != Place::Elsewhere
    }

    /// The runs of MSR numbers, first and last, in which [`Pmu::owns`] is true: for a permission
    /// map.
    pub fn msr_ranges(&self) -> impl Iterator<Item = (u32, u32)> {
        // A run is the model's as a whole or not at all.
        msr::RANGES.iter().copied().filter(|(first, _)| self.owns(*first))
    }

    /// RDMSR.
    ///
    /// # Errors
    /// [`MsrError::NotMine`] if the MSR is none of the PMU's, [`MsrError::GeneralProtection`] if
    /// the guest gets #GP(0).
    pub fn read_msr(&mut self, msr: u32) -> Result<u64, MsrError> {
        let register = self.find(msr)?;
        Ok(self.read(register))
    }

    /// WRMSR. Report the instructions up to and including this WRMSR with [`Pmu::advance`] first:
    /// it is counted with what was enabled before it.
    ///
    /// # Errors
    /// As [`Pmu::read_msr`]; nothing has changed then.
    pub fn write_msr(&mut self, msr: u32, value: u64) -> Result<Effects, MsrError> {
        let register = self.find(msr)?;
        let forward = self.write(register, msr, value)?;
        let storage = matches!(
            register,
            Register::Extra(_) | Register::LbrFrom(_) | Register::LbrTo(_) | Register::LbrInfo(_)
        );
        Ok(Effects { replan: !storage, needs: self.needs(), forward })
    }

    /// Whether the guest gets #GP(0) for such a WRMSR.
    #[must_use]
    pub fn refuses(&self, msr: u32, value: u64) -> bool {
        // Some registers are refused for what others hold, so the write is tried, on a copy. What it would need is not asked for.
        let mut copy = self.clone();
        let written = copy.find(msr).and_then(|register| Ok(copy.write(register, msr, value)?));
        matches!(written, Err(MsrError::GeneralProtection(_)))
    }

    /// Puts into a register what software before the guest has left there, a counter's value with all of its bits, and a status
    /// that software cannot write. What the register does not hold of it is dropped.
    ///
    /// # Errors
    /// As [`Pmu::write_msr`].
    pub fn leave(&mut self, msr: u32, value: u64) -> Result<(), MsrError> {
        match self.find(msr)? {
            Register::Counter(n) | Register::FullCounter(n) => {
                self.counters[n].set(value & ((1 << self.counter_bits()) - 1));
            }
            Register::GlobalStatus => self.status = value,
            // Shared with the processor beneath, or made of the other registers.
            Register::MiscEnable | Register::HardwareConfiguration | Register::Capabilities => {}
            Register::GlobalInUse | Register::InstructionsRetired => {}
            Register::Ibs(n) if n == crate::model::ibs::CTL => {}
            Register::Energy(_) => {}
            register => drop(self.write(register, msr, value)?),
        }
        Ok(())
    }

    /// A planted fault.
    fn is_taken_away(&self, register: Register) -> bool {
        match register {
            Register::PebsEnable => self.is(Mutation::PebsEnableAbsent),
            Register::PebsBase => self.is(Mutation::ApebsBaseAbsent),
            Register::DebugControl => self.is(Mutation::DebugControlAbsent),
            Register::GlobalStatus => self.is(Mutation::GlobalStatusAbsent),
            Register::Ibs(_) => self.is(Mutation::IbsRegistersAbsent),
            Register::Energy(_) => self.is(Mutation::EnergyRegistersAbsent),
            Register::Qualifier(_) => !self.has_qualifiers,
            _ => false,
        }
    }

    fn find(&self, msr: u32) -> Result<Register, MsrError> {
        match place(self.spec(), msr) {
            Place::InModel(register) if self.is_taken_away(register) => {
                Err(Fault::Absent { msr }.into())
            }
            Place::InModel(register) => Ok(register),
            Place::Absent => Err(Fault::Absent { msr }.into()),
            Place::Elsewhere => Err(MsrError::NotMine { msr }),
        }
    }
}
