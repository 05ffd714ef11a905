//! Branch records: start, stop, read.
//!
//! | kind | switched on by | newest entry | filter |
//! | --- | --- | --- | --- |
//! | legacy | DEBUGCTL\[0\] | at LBR_TOS | LBR_SELECT, a set bit keeps out |
//! | architectural | IA32_LBR_CTL\[0\] | 0 | IA32_LBR_CTL, a set bit records |
//! | LBRv2 | DebugExtnCtl\[6\] | 0 | LbrSelect, a set bit keeps out |
//! | single | DEBUGCTL\[0\] | the only one | none |
//!
//! Sources: SDM vol. 3, 18.4 to 18.12 and chapter 19; Linux, `arch/x86/events/{intel,amd}/lbr.c`.

mod format;
mod saved;

use super::access::Registers;
use super::capabilities::{Capabilities, LbrKind};
use super::driver::{PmuError, read, write};
use super::numbers;
use super::registers::{ArchLbrControl, DebugCtl, LbrSelect};
use crate::msr::Msr;
use alloc::vec::Vec;
pub use saved::{Saved, empty, restore, save};

/// A recorded branch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Branch {
    /// Address of the branch.
    pub from: u64,
    /// Where it went.
    pub to: u64,
    /// Whether it was mispredicted, where that is recorded.
    pub mispredicted: Option<bool>,
    /// Core cycles since the branch before, where they are recorded.
    pub cycles: Option<u16>,
}

/// DebugExtnCtl: LBRv2 is on.
const AMD_ENABLE: u64 = 1 << 6;

/// Clears the records and begins to record what `filter` lets through.
///
/// # Errors
/// There are no records, no filter, or a register refuses.
pub fn start(
    registers: &mut dyn Registers,
    has: &Capabilities,
    filter: LbrSelect,
) -> Result<(), PmuError> {
    let filterable = match has.lbr {
        LbrKind::None => return Err(PmuError::Unsupported("branch records")),
        LbrKind::Legacy { filter, .. } | LbrKind::Architectural { filter, .. } => filter,
        LbrKind::AmdV2 { .. } => !filter.contains(LbrSelect::CALL_STACK),
        LbrKind::Single => false,
    };
    let rings = LbrSelect::NOT_KERNEL | LbrSelect::NOT_USER;
    let by_ring = matches!(has.lbr, LbrKind::Architectural { .. }) && rings.contains(filter);
    if filter.contains(LbrSelect::CALL_STACK) && !has.call_stacks {
        return Err(PmuError::Unsupported("branch records in call-stack mode"));
    }
    if !filter.is_empty() && !filterable && !by_ring {
        return Err(PmuError::Unsupported("filter of branch records with these bits"));
    }
    stop(registers, has)?;
    clear(registers, has)?;
    if matches!(has.lbr, LbrKind::Legacy { filter: true, .. }) {
        write(registers, numbers::LBR_SELECT, filter.bits())?;
    }
    if matches!(has.lbr, LbrKind::AmdV2 { .. }) {
        write(registers, numbers::AMD_LBR_SELECT, filter.bits())?;
    }
    let (msr, on, _) = switch(registers, has, filter)?;
    write(registers, msr, on)
}

/// The one register that switches recording, and its values for on and off: for a [`super::Gate`]. What `start` sets up
/// in addition to it must be in place.
///
/// # Errors
/// There are no records, or a register cannot be read.
pub fn switch(
    registers: &mut dyn Registers,
    has: &Capabilities,
    filter: LbrSelect,
) -> Result<(Msr, u64, u64), PmuError> {
    match has.lbr {
        LbrKind::None => Err(PmuError::Unsupported("branch records")),
        LbrKind::Architectural { .. } => {
            let control = ArchLbrControl::from(filter) | ArchLbrControl::ENABLE;
            Ok((numbers::ARCH_LBR_CTL, control.bits(), 0))
        }
        LbrKind::AmdV2 { .. } => {
            let off = read(registers, numbers::AMD_DEBUG_EXTN)? & !AMD_ENABLE;
            Ok((numbers::AMD_DEBUG_EXTN, off | AMD_ENABLE, off))
        }
        LbrKind::Legacy { .. } | LbrKind::Single => {
            let control = DebugCtl::from_bits_retain(read(registers, numbers::DEBUGCTL)?);
            let (on, off) = (control | DebugCtl::LBR, control - DebugCtl::LBR);
            Ok((numbers::DEBUGCTL, on.bits(), off.bits()))
        }
    }
}

/// Stops recording. Reading the records of a running ring would overwrite them.
///
/// # Errors
/// There are no records, or a register refuses.
pub fn stop(registers: &mut dyn Registers, has: &Capabilities) -> Result<(), PmuError> {
    let (msr, _, off) = switch(registers, has, LbrSelect::empty())?;
    write(registers, msr, off)
}

fn clear(registers: &mut dyn Registers, has: &Capabilities) -> Result<(), PmuError> {
    empty(has.lbr, &mut |msr, value| write(registers, msr, value))
}

/// The records, newest first, without empty ones. Stop first.
///
/// # Errors
/// There are none, or a register cannot be read.
pub fn records(registers: &mut dyn Registers, has: &Capabilities) -> Result<Vec<Branch>, PmuError> {
    if matches!(has.lbr, LbrKind::None) {
        return Err(PmuError::Unsupported("branch records"));
    }
    let mut found = Vec::with_capacity(usize::from(has.lbr.entries()));
    each(has.lbr, &mut |msr| read(registers, msr), &mut |branch| found.push(branch))?;
    Ok(found)
}

/// Hands each of the records to `take`, newest first, without empty ones; `read` reads a register. Allocates nothing, so it can be
/// used in an interrupt's handler. Stop first.
///
/// # Errors
/// Those of `read`.
pub fn each<E>(
    kind: LbrKind,
    read: &mut dyn FnMut(Msr) -> Result<u64, E>,
    take: &mut dyn FnMut(Branch),
) -> Result<(), E> {
    let entries = kind.entries();
    let newest = kind.newest(read)?;
    for age in 0..entries {
        let place = kind.place(kind.index(newest, age));
        let (from, to) = (read(place.from)?, read(place.to)?);
        let info = place.info.map(&mut *read).transpose()?;
        if let Some(branch) = format::branch(kind, from, to, info) {
            take(branch);
        }
    }
    Ok(())
}

/// The branch of a record that is in memory, as an adaptive PEBS record has it: in the form of the registers.
#[must_use]
pub fn recorded(kind: LbrKind, from: u64, to: u64, info: u64) -> Option<Branch> {
    format::branch(kind, from, to, Some(info))
}

/// The registers of one entry.
struct Place {
    from: Msr,
    to: Msr,
    info: Option<Msr>,
}

impl LbrKind {
    /// How many branches are kept.
    #[must_use]
    pub const fn entries(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Legacy { entries, .. } | Self::AmdV2 { entries } => entries,
            Self::Architectural { depth, .. } => depth,
            Self::Single => 1,
        }
    }

    /// Where the newest record stands.
    fn newest<E>(self, read: &mut dyn FnMut(Msr) -> Result<u64, E>) -> Result<u8, E> {
        match self {
            Self::Legacy { entries, .. } => Ok(read(numbers::LBR_TOS)? as u8 % entries.max(1)),
            _ => Ok(0),
        }
    }

    /// Where the record stands that is by `age` older, below the number of entries.
    const fn index(self, newest: u8, age: u8) -> u8 {
        match self {
            Self::Legacy { entries, .. } => (newest + entries - age) % entries,
            _ => age,
        }
    }

    fn place(self, index: u8) -> Place {
        let n = u32::from(index);
        let pair = |from: u32, to: u32, info: Option<u32>| Place {
            from: Msr(from + n),
            to: Msr(to + n),
            info: info.map(|info| Msr(info + n)),
        };
        match self {
            Self::Legacy { old_place: true, .. } => {
                pair(numbers::LBR_CORE_FROM, numbers::LBR_CORE_TO, None)
            }
            Self::Legacy { format, .. } => {
                let info = format::has_info(format).then_some(numbers::LBR_INFO);
                pair(numbers::LBR_FROM, numbers::LBR_TO, info)
            }
            Self::Architectural { .. } => {
                pair(numbers::ARCH_LBR_FROM, numbers::ARCH_LBR_TO, Some(numbers::ARCH_LBR_INFO))
            }
            Self::AmdV2 { .. } => pair(numbers::AMD_LBR + n, numbers::AMD_LBR + n + 1, None),
            Self::None | Self::Single => {
                pair(numbers::LAST_BRANCH_FROM.0, numbers::LAST_BRANCH_TO.0, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux, `DBG_EXTN_CFG_LBRV2EN`: bit 6.
    #[test]
    fn the_enable_is_where_the_manual_has_it() {
        assert_eq!(AMD_ENABLE, 0x40);
    }
}
