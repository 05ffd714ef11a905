//! Memory that the MTRRs leave uncached although the memory map calls it usable: some machines' firmware runs out of them (Linux,
//! `mtrr_trim_uncached_memory`). Whatever lies there is slower by a factor of a hundred. SDM vol. 3, 11.11; AMD APM vol. 2, 7.7 and 7.9.

use super::Region;
use crate::cpu::{Cpuid, native};
use crate::msr::{self, Msr};
use raw_cpuid::CpuIdReader as _;

/// IA32_MTRRCAP: bits 7:0 are the number of variable ranges; processors have 8 to 10.
const CAPABILITIES: Msr = Msr(0xfe);
const MOST: usize = 16;
/// IA32_MTRR_PHYSBASE0 and, behind it, IA32_MTRR_PHYSMASK0.
const FIRST: u32 = 0x200;
/// IA32_MTRR_DEF_TYPE: bits 7:0 the type of what no range has, bit 11 that the MTRRs are on.
const DEFAULT: Msr = Msr(0x2ff);
const ENABLED: u64 = 1 << 11;
/// In a mask: the range counts.
const VALID: u64 = 1 << 11;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// The type of memory that is cached as usual.
const WRITE_BACK: u8 = 6;
/// AMD and Hygon: SYSCFG, of which both bits make memory from 4 GiB to TOM2 write-back by default; and TOM2.
const SYSCFG: Msr = Msr(0xc001_0010);
const TOM2_WRITE_BACK: u64 = 1 << 21 | 1 << 22;
const TOM2: Msr = Msr(0xc001_001d);
const TOM2_ADDRESS: u64 = 0x000f_ffff_ff80_0000;
const FOUR_GIB: u64 = 4 << 30;
/// What is below is told by the fixed ranges, and not used.
const LOWEST: u64 = 1 << 20;

/// Whether the processor has SYSCFG: AMD's and Hygon's from family 0FH on, whose first revisions have the bits as zeros (Linux,
/// `amd_special_default_mtrr`). A hypervisor may not have the register, and nothing takes an exception yet.
#[must_use]
pub fn has_top_of_memory(cpuid: &impl Cpuid) -> bool {
    const HYPERVISOR: u32 = 1 << 31;
    const FAMILY_15_AND_LATER: u32 = 0xf;
    let makers = [*b"Auth", *b"Hygo"].map(u32::from_le_bytes);
    let leaf = cpuid.cpuid1(1);
    makers.contains(&cpuid.cpuid1(0).ebx)
        && leaf.eax >> 8 & 0xf == FAMILY_15_AND_LATER
        && leaf.ecx & HYPERVISOR == 0
}

/// What the registers say of the memory from 1 MiB on.
#[derive(Clone, Copy, Debug)]
pub struct Mtrrs {
    default: u8,
    /// Base and mask of each range that counts.
    variable: [(u64, u64); MOST],
    /// Memory from 4 GiB to here is write-back where no range has it.
    top: u64,
}

impl Mtrrs {
    /// Reads them. `None`: there are none, they are off, or there are more than processors have.
    ///
    /// # Safety
    /// Ring 0.
    #[must_use]
    pub unsafe fn read() -> Option<Self> {
        let cpuid = native();
        let leaf = cpuid.cpuid1(1);
        let has = leaf.edx & 1 << 12 != 0;
        let has_top = has_top_of_memory(&cpuid);
        // SAFETY: CPUID says that the processor has the registers; reading has no effect.
        has.then(|| Self::from(|number| unsafe { msr::read(number) }, has_top)).flatten()
    }

    fn from(read: impl Fn(Msr) -> u64, has_top: bool) -> Option<Self> {
        let (default, count) = (read(DEFAULT), read(CAPABILITIES) as usize & 0xff);
        if default & ENABLED == 0 || count > MOST {
            return None;
        }
        let mut variable = [(0, 0); MOST];
        for (number, range) in (0..count as u32).zip(&mut variable) {
            let base = read(Msr(FIRST + 2 * number));
            *range = (base, read(Msr(FIRST + 2 * number + 1)));
        }
        let forced = has_top && read(SYSCFG) & TOM2_WRITE_BACK == TOM2_WRITE_BACK;
        let top = if forced { read(TOM2) & TOM2_ADDRESS } else { 0 };
        Some(Self { default: default as u8, variable, top })
    }

    /// Whether memory at `at` is cached as usual, and up to where that is so at least.
    fn at(&self, at: u64) -> (bool, u64) {
        let mut end = u64::MAX;
        let mut bound = |edge: u64| {
            if edge > at {
                end = end.min(edge);
            }
        };
        let (mut covered, mut cached) = (false, true);
        for (base, mask) in self.variable.iter().filter(|(_, mask)| mask & VALID != 0) {
            // Masks are ones and then zeros, so that a range is one piece.
            let (start, bytes) =
                (base & mask & ADDRESS, 1 << (mask & ADDRESS).trailing_zeros().min(52));
            bound(start);
            bound(start + bytes);
            if (start..start + bytes).contains(&at) {
                covered = true;
                // Of two types uncached wins, and write-through; others must not overlap (11.11.4.1).
                cached &= *base as u8 == WRITE_BACK;
            }
        }
        bound(FOUR_GIB);
        bound(self.top);
        let forced = (FOUR_GIB..self.top).contains(&at);
        (if covered { cached } else { self.default == WRITE_BACK || forced }, end)
    }

    /// Gives the pieces of `region` that are cached to `each`, in their order, as large as they are.
    pub fn each_cached(&self, region: Region, mut each: impl FnMut(Region)) {
        let (mut at, mut piece) = (region.start.max(LOWEST), None::<Region>);
        while at < region.end {
            let (cached, end) = self.at(at);
            let end = end.min(region.end);
            match &mut piece {
                Some(piece) if cached => piece.end = end,
                None if cached => piece = Some(Region { start: at, end }),
                _ => piece.take().into_iter().for_each(&mut each),
            }
            at = end;
        }
        piece.into_iter().for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;
    const BITS: u64 = (1 << 36) - 1;

    /// As a set of registers: the default's type, and base, bytes and type of the ranges.
    fn mtrrs(default: u64, ranges: &[(u64, u64, u64)], more: &[(Msr, u64)]) -> Option<Mtrrs> {
        let mut held = BTreeMap::from([(DEFAULT.0, default), (CAPABILITIES.0, 0x500 | 8)]);
        for (number, (base, bytes, kind)) in (0..).zip(ranges) {
            held.insert(FIRST + 2 * number, base | kind);
            held.insert(FIRST + 2 * number + 1, BITS & !(bytes - 1) | VALID);
        }
        held.extend(more.iter().map(|(msr, value)| (msr.0, *value)));
        Mtrrs::from(|msr| held.get(&msr.0).copied().unwrap_or(0), !more.is_empty())
    }

    fn cached(mtrrs: &Mtrrs, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        mtrrs.each_cached(Region { start, end }, |piece| pieces.push((piece.start, piece.end)));
        pieces
    }

    #[test]
    fn memory_that_no_range_has_is_left_out() {
        // 16 GiB, of which the ranges have 4.5; a hole below 4 GiB by an uncached range in a cached one, and twice cached.
        let ranges = [(3 * GIB, GIB, 0), (0, 4 * GIB, 6), (4 * GIB, 512 * MIB, 6), (0, GIB, 6)];
        let found = mtrrs(0xc00, &ranges, &[]).unwrap();
        assert_eq!(cached(&found, MIB, 3 * GIB), [(MIB, 3 * GIB)]);
        assert_eq!(
            cached(&found, 2 * GIB, 4 * GIB + MIB),
            [(2 * GIB, 3 * GIB), (4 * GIB, 4 * GIB + MIB)]
        );
        assert_eq!(cached(&found, 4 * GIB, 17 * GIB), [(4 * GIB, 4 * GIB + 512 * MIB)]);
        assert_eq!(cached(&found, 5 * GIB, 17 * GIB), []);
    }

    #[test]
    fn a_default_of_write_back_has_all_but_the_ranges() {
        // As SeaBIOS and OVMF set them up. Write-combining and write-through are not as usual either.
        let ranges = [(0xc000_0000, GIB, 0), (4 * GIB, GIB, 1), (5 * GIB, GIB, 4)];
        let found = mtrrs(0xc06, &ranges, &[]).unwrap();
        let pieces = [(MIB, 0xc000_0000), (6 * GIB, 17 * GIB)];
        assert_eq!(cached(&found, 0, 17 * GIB), pieces);
    }

    #[test]
    fn amds_top_of_memory_is_the_default_above_four_gib() {
        let ranges = [(0, 2 * GIB, 6), (2 * GIB, GIB, 6), (8 * GIB, GIB, 0)];
        let top = (TOM2, 17 * GIB + 0xfff);
        let with = mtrrs(0xc00, &ranges, &[(SYSCFG, TOM2_WRITE_BACK), top]).unwrap();
        let pieces = [(MIB, 3 * GIB), (4 * GIB, 8 * GIB), (9 * GIB, 17 * GIB)];
        assert_eq!(cached(&with, MIB, 20 * GIB), pieces);
        let without = mtrrs(0xc00, &ranges, &[(SYSCFG, 1 << 21), top]).unwrap();
        assert_eq!(cached(&without, MIB, 20 * GIB), [(MIB, 3 * GIB)]);
    }

    #[test]
    fn mtrrs_that_are_off_say_nothing() {
        assert!(mtrrs(6, &[(0, GIB, 6)], &[]).is_none());
        assert!(mtrrs(0xc06, &[], &[(CAPABILITIES, 17)]).is_none());
    }
}
