//! The registers of the records.

use super::format::{AMD_ADDRESS, AMD_SPECULATIVE, AMD_VALID, MISPREDICTED};
use super::{AMD_LBR_ENABLE, Lbr, Record};
use crate::error::Fault;
use crate::model::{LbrKind, Spec};
use crate::pmu::checked;
use crate::registers::Register;

/// INFO of Skylake: misprediction, the two TSX flags, cycles.
const INFO: u64 = 7 << 61 | 0xFFFF;
/// INFO of an architectural record: also the valid bit of the cycles and the type.
const ARCH_INFO: u64 = INFO | 0x1F << 56;
/// AMD's LbrSelect.
const AMD_SELECT: u64 = 0x1FF;

/// A canonical 48-bit address, or the fault.
fn canonical(msr: u32, value: u64) -> Result<u64, Fault> {
    let extended = ((value << 16) as i64 >> 16) as u64;
    if extended == value { Ok(value) } else { Err(Fault::NotCanonical { msr, value }) }
}

/// A FROM register with the misprediction in bit 63: what is below must be sign-extended. On
/// Haswell without TSX that includes bits 62:61, although the processor itself writes 0 there.
fn flagged(msr: u32, value: u64) -> Result<u64, Fault> {
    let extended = ((value << 16) as i64 >> 16) as u64;
    if (extended ^ value) & !MISPREDICTED == 0 {
        Ok(value)
    } else {
        Err(Fault::NotCanonical { msr, value })
    }
}

impl Lbr {
    fn entry(&self, n: usize) -> Record {
        // Beyond the depth there is nothing.
        if n < usize::from(self.depth) { self.records[n] } else { Record::default() }
    }

    pub(crate) fn read(&self, spec: &Spec, register: Register) -> u64 {
        match register {
            Register::LbrSelect => self.select,
            Register::LbrTos => u64::from(self.top),
            Register::LbrFrom(n) => self.entry(n).from,
            Register::LbrTo(n) => self.entry(n).to,
            Register::LbrInfo(n) => self.entry(n).info,
            Register::ArchLbrControl | Register::DebugExtension => self.control,
            Register::ArchLbrDepth => u64::from(self.depth),
            Register::LastBranchFrom => plain(spec, self.newest(spec).from),
            Register::LastBranchTo => plain(spec, self.newest(spec).to),
            Register::LerFrom => plain(spec, self.before_event.from),
            Register::LerTo => plain(spec, self.before_event.to),
            Register::LerInfo => self.before_event.info,
            _ => 0,
        }
    }

    pub(crate) fn write(
        &mut self,
        spec: &Spec,
        register: Register,
        msr: u32,
        value: u64,
    ) -> Result<(), Fault> {
        match register {
            Register::LbrSelect => {
                self.select = match &spec.lbr {
                    LbrKind::Legacy(legacy) => checked(msr, value, legacy.select.unwrap_or(0))?,
                    _ => value & AMD_SELECT,
                }
            }
            Register::LbrTos => {
                let valid = u64::from(self.depth) - 1;
                let faults = matches!(&spec.lbr, LbrKind::Legacy(legacy) if legacy.tos_faults);
                let top = if faults { checked(msr, value, valid)? } else { value & valid };
                self.top = top as u8;
            }
            Register::LbrFrom(n) => {
                let from = address(spec, msr, value)?;
                self.set(n, |record| record.from = from);
            }
            Register::LbrTo(n) => {
                let to = match spec.lbr {
                    LbrKind::AmdV2 { .. } => value & (AMD_ADDRESS | AMD_VALID | AMD_SPECULATIVE),
                    _ => canonical(msr, value)?,
                };
                self.set(n, |record| record.to = to);
            }
            Register::LbrInfo(n) => {
                let info = checked(msr, value, info_mask(spec))?;
                self.set(n, |record| record.info = info);
            }
            Register::ArchLbrControl => {
                let LbrKind::Arch(arch) = &spec.lbr else {
                    return Ok(());
                };
                self.control = checked(msr, value, arch.control)?;
            }
            Register::ArchLbrDepth => self.write_depth(spec, msr, value)?,
            Register::DebugExtension => self.control = value & AMD_LBR_ENABLE,
            Register::LastBranchFrom | Register::LastBranchTo => {
                return Err(Fault::ReadOnly { msr, value });
            }
            Register::LerFrom | Register::LerTo if spec.amd().is_some() => {
                return Err(Fault::ReadOnly { msr, value });
            }
            Register::LerFrom => self.before_event.from = address(spec, msr, value)?,
            Register::LerTo => self.before_event.to = canonical(msr, value)?,
            Register::LerInfo => {
                self.before_event.info = checked(msr, value, info_mask(spec))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A depth that leaf 0x1C lists; any such write clears the records.
    fn write_depth(&mut self, spec: &Spec, msr: u32, value: u64) -> Result<(), Fault> {
        let LbrKind::Arch(arch) = &spec.lbr else {
            return Ok(());
        };
        let listed = (0..8).any(|bit| arch.leaf[0] & 1 << bit != 0 && value == 8 * (bit + 1));
        if !listed {
            return Err(Fault::Depth { msr, value });
        }
        self.depth = value as u8;
        self.records = Self::RESET.records;
        Ok(())
    }

    fn set(&mut self, n: usize, change: impl FnOnce(&mut Record)) {
        if n < usize::from(self.depth) {
            change(&mut self.records[n]);
        }
    }
}

/// AMD's single registers show a record of the stack without the flags that lie in addition to its address.
fn plain(spec: &Spec, value: u64) -> u64 {
    match spec.lbr {
        LbrKind::AmdV2 { .. } => ((value << 6) as i64 >> 6) as u64,
        _ => value,
    }
}

fn address(spec: &Spec, msr: u32, value: u64) -> Result<u64, Fault> {
    match &spec.lbr {
        LbrKind::AmdV2 { .. } => Ok(value & (AMD_ADDRESS | MISPREDICTED)),
        LbrKind::Legacy(legacy) if legacy.flags_in_from => flagged(msr, value),
        _ => canonical(msr, value),
    }
}

const fn info_mask(spec: &Spec) -> u64 {
    match spec.lbr {
        LbrKind::Arch(_) => ARCH_INFO,
        _ => INFO,
    }
}
