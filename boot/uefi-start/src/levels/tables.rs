//! Tables of the other number of levels.

use super::LevelsError;

/// Entries of a table.
const ENTRIES: usize = 512;
/// Of those of a fourth-level table, the ones of the lower half of the address space.
const LOWER_HALF: usize = ENTRIES / 2;
/// Where four levels map one to one: below.
const TOP: u64 = 1 << 47;
/// Present, writable, for user mode.
const TABLE: u64 = 0b111;
const PRESENT: u64 = 1;
/// Of an entry, or of CR3: the table's address.
pub(super) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// A table.
pub(super) type Table = [u64; ENTRIES];

/// A fourth-level table that maps the lower half of the address space as the fifth-level table at `cr3` does. `read` reads a table
/// of memory that ends at `end`.
pub(super) fn four_of_five(
    read: impl Fn(u64) -> Table,
    cr3: u64,
    end: u64,
) -> Result<Table, LevelsError> {
    if end > TOP {
        return Err(LevelsError::OutOfReach(end));
    }
    let first = read(cr3 & ADDRESS)[0];
    if first & PRESENT == 0 {
        return Err(LevelsError::NoTable(first));
    }
    let mut table = read(first & ADDRESS);
    // What lies above is the upper half of four levels, where nobody expects anything.
    table[LOWER_HALF..].fill(0);
    Ok(table)
}

/// A fifth-level table that maps what the fourth-level table at `cr3` does.
pub(super) fn five_of_four(cr3: u64) -> Table {
    let mut table = [0; ENTRIES];
    table[0] = cr3 & ADDRESS | TABLE;
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Memory with tables in it.
    struct Memory(HashMap<u64, Table>);

    impl Memory {
        /// The address that a linear one is mapped to, by so many levels of tables without large pages.
        fn translate(&self, cr3: u64, levels: u32, linear: u64) -> Option<u64> {
            let mut table = cr3 & ADDRESS;
            for level in (1..=levels).rev() {
                let index = linear >> (3 + 9 * level) & 511;
                let entry = self.0.get(&table)?[index as usize];
                if entry & PRESENT == 0 {
                    return None;
                }
                table = entry & ADDRESS;
            }
            Some(table | linear & 0xfff)
        }
    }

    /// Five levels: the first page, one at 2^46, one at 2^47, one at 2^48.
    fn machine() -> Memory {
        let (mut tables, mut next) = (HashMap::from([(0x1000, [0; ENTRIES])]), 0x2000);
        for page in [0u64, 1 << 46, 1 << 47, 1 << 48] {
            let mut at = 0x1000;
            for level in (2..=5).rev() {
                let index = (page >> (3 + 9 * level) & 511) as usize;
                let entry = tables[&at][index];
                if entry == 0 {
                    tables.insert(next, [0; ENTRIES]);
                    tables.get_mut(&at).unwrap()[index] = next | TABLE;
                    next += 0x1000;
                }
                at = tables[&at][index] & ADDRESS;
            }
            tables.get_mut(&at).unwrap()[(page >> 12 & 511) as usize] = page | TABLE;
        }
        Memory(tables)
    }

    #[test]
    fn x3_four_levels_map_the_lower_half_as_five_did() {
        let mut memory = machine();
        for page in [0, 1 << 46, 1 << 47, 1 << 48] {
            assert_eq!(memory.translate(0x1000, 5, page), Some(page));
        }
        // Bits of CR3 that are no address do not count.
        let four = four_of_five(|at| memory.0[&at], 0x1018, TOP).unwrap();
        memory.0.insert(0xf_f000, four);
        assert_eq!(memory.translate(0xf_f000, 4, 0x123), Some(0x123));
        assert_eq!(memory.translate(0xf_f000, 4, 1 << 46), Some(1 << 46));
        assert_eq!(memory.translate(0xf_f000, 4, 0xffff_8000_0000_0000), None, "the upper half");
        // And back.
        memory.0.insert(0xf_e000, five_of_four(0xf_f000));
        assert_eq!(memory.translate(0xf_e000, 5, 1 << 46), Some(1 << 46));
        assert_eq!(memory.translate(0xf_e000, 5, 1 << 47), None);
    }

    #[test]
    fn x3_what_four_levels_cannot_map_is_refused_with_the_reason() {
        let memory = machine();
        let refused = |end| four_of_five(|at| memory.0[&at], 0x1000, end).unwrap_err().to_string();
        assert_eq!(
            refused(TOP + 4096),
            "five-level paging is on (CR4.LA57), and the machine has memory up to 0x800000001000, which four levels do not reach"
        );
        let none = four_of_five(|_| [0; ENTRIES], 0x1000, TOP).unwrap_err();
        assert_eq!(none, LevelsError::NoTable(0));
    }
}
