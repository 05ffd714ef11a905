//! Records of a task that does not run, so that another one's do not stand among them (Linux, `__intel_pmu_lbr_save` and
//! `__intel_pmu_lbr_restore`).

use super::format;
use crate::msr::Msr;
use crate::pmu::capabilities::LbrKind;
use crate::pmu::numbers;

/// Records that there are at most.
const MOST: usize = 32;

/// What the registers of all records held: source, target and information, the newest first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Saved([[u64; 3]; MOST]);

impl Saved {
    /// No branch.
    pub const EMPTY: Self = Self([[0; 3]; MOST]);
}

/// Empties the records; `write` writes a register.
///
/// # Errors
/// Those of `write`.
pub fn empty<E>(kind: LbrKind, write: &mut dyn FnMut(Msr, u64) -> Result<(), E>) -> Result<(), E> {
    match kind {
        // Any write of the depth clears all records (SDM vol. 3, 19.1.2).
        LbrKind::Architectural { depth, .. } => write(numbers::ARCH_LBR_DEPTH, u64::from(depth)),
        LbrKind::None | LbrKind::Single => Ok(()),
        LbrKind::Legacy { .. } | LbrKind::AmdV2 { .. } => {
            for index in 0..kind.entries() {
                put(kind, index, [0; 3], write)?;
            }
            Ok(())
        }
    }
}

fn put<E>(
    kind: LbrKind,
    index: u8,
    [from, to, information]: [u64; 3],
    write: &mut dyn FnMut(Msr, u64) -> Result<(), E>,
) -> Result<(), E> {
    let place = kind.place(index);
    write(place.from, format::from_to_write(kind, from))?;
    write(place.to, to)?;
    match place.info {
        Some(info) => write(info, information),
        None => Ok(()),
    }
}

/// What the records hold; `read` reads a register. Stop first.
///
/// # Errors
/// Those of `read`.
pub fn save<E>(kind: LbrKind, read: &mut dyn FnMut(Msr) -> Result<u64, E>) -> Result<Saved, E> {
    let newest = kind.newest(read)?;
    let mut saved = Saved::EMPTY;
    for (age, record) in (0..kind.entries()).zip(&mut saved.0) {
        let place = kind.place(kind.index(newest, age));
        let information = place.info.map(&mut *read).transpose()?;
        *record = [read(place.from)?, read(place.to)?, information.unwrap_or(0)];
    }
    Ok(saved)
}

/// Puts them back, the newest where the newest stands now. Stop first.
///
/// # Errors
/// Those of `read` and `write`.
pub fn restore<E>(
    kind: LbrKind,
    saved: &Saved,
    read: &mut dyn FnMut(Msr) -> Result<u64, E>,
    write: &mut dyn FnMut(Msr, u64) -> Result<(), E>,
) -> Result<(), E> {
    let newest = kind.newest(read)?;
    for (age, &record) in (0..kind.entries()).zip(&saved.0) {
        put(kind, kind.index(newest, age), record, write)?;
    }
    Ok(())
}
