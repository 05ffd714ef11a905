//! The memory of a task.
//!
//! | offset | bytes | what | rights |
//! | --- | --- | --- | --- |
//! | 0 | 256 KiB | code | RX |
//! | 0x80000 | 4 KiB | the loop's count | RW |
//! | 0xa0000 | 32 KiB | stack: RSP points to its middle | RW |
//! | 0xc0000 | 64 KiB | memory: RBP, RDI, RSI, R14 point to the middle of its quarters | RW |
//!
//! Task n has these at [`layout::TASKS`] plus n times 2 MiB, in page tables of its own that have the kernel too, but
//! no other task, and the memory that their item requests ([`crate::memory::requested`]). Between the pieces nothing is mapped.
//! Ring 3 may use them if the task is of ring 3.

use crate::memory::space::{CODE, DATA, USER, Window};
use crate::memory::{Frames, OutOfMemory, Space, layout};
use x86_64::structures::paging::page_table::PageTableEntry;
use x86_64::structures::paging::{
    PageSize, PageTable, PageTableFlags, PageTableIndex, PhysFrame, Size2MiB, Size4KiB,
};
use x86_64::{PhysAddr, VirtAddr};

/// Bytes of code; `protocol::job::workload::MAX_TASK_CODE_BYTES` and what is put around have room in it.
pub const CODE_BYTES: u64 = 256 << 10;
/// Bytes of the stack.
pub const STACK_BYTES: u64 = 32 << 10;
/// Bytes of the memory areas.
pub const DATA_BYTES: u64 = 64 << 10;
/// How many there are.
pub const AREAS: u64 = 4;

const PAGE: u64 = Size4KiB::SIZE;
const COUNT_AT: u64 = 0x8_0000;
const STACK_AT: u64 = 0xa_0000;
const DATA_AT: u64 = 0xc_0000;
/// The pieces: offset, bytes, whether it is code. Their frames follow each other in this order.
const PIECES: [(u64, u64, bool); 4] = [
    (0, CODE_BYTES, true),
    (COUNT_AT, PAGE, false),
    (STACK_AT, STACK_BYTES, false),
    (DATA_AT, DATA_BYTES, false),
];
/// Offsets of the pieces among the frames.
const COUNT_FRAME: u64 = CODE_BYTES;
const DATA_FRAME: u64 = COUNT_FRAME + PAGE + STACK_BYTES;
const BYTES: u64 = DATA_FRAME + DATA_BYTES;
/// One page table for each level, and the directory that leads to what the item requests.
const TABLES: u64 = 5;

/// Address of task `index`'s code.
#[must_use]
pub const fn code(index: usize) -> u64 {
    layout::TASKS + index as u64 * Size2MiB::SIZE
}

/// Address of the word in which the loop of task `index` counts.
#[must_use]
pub const fn count(index: usize) -> u64 {
    code(index) + COUNT_AT
}

/// Stack pointer of task `index` at its start.
#[must_use]
pub const fn stack(index: usize) -> u64 {
    code(index) + STACK_AT + STACK_BYTES / 2
}

/// The middle of memory area `area` of task `index`.
#[must_use]
pub const fn area(index: usize, area: u64) -> u64 {
    code(index) + DATA_AT + area_offset(area)
}

const fn area_offset(area: u64) -> u64 {
    let bytes = DATA_BYTES / AREAS;
    area * bytes + bytes / 2
}

/// The memory of one task.
#[derive(Debug)]
pub struct Memory {
    index: usize,
    tables: PhysAddr,
    frames: PhysAddr,
    /// What leads to a program's tables, in the first GiB. They are kept while the task has none.
    program: PageTableEntry,
}

impl Memory {
    /// Takes memory for task `index`. It is not given back, so keep it for the next task of that index.
    ///
    /// # Errors
    /// There is not enough.
    pub fn allocate(index: usize, frames: &mut Frames) -> Result<Self, OutOfMemory> {
        let tables = frames.allocate(TABLES * PAGE, PAGE)?;
        let program = PageTableEntry::new();
        Ok(Self { index, tables, frames: frames.allocate(BYTES, PAGE)?, program })
    }

    /// Makes it zero, for use by ring 3 if `user`, next to the kernel of the address space in use. Returns the address
    /// of its top table.
    ///
    /// # Safety
    /// No task may be using it; the map of physical memory must be there.
    pub unsafe fn clear(&mut self, kernel_root: PhysAddr, user: bool) -> PhysAddr {
        // SAFETY: frames that belong to `self`, after the map of physical memory; nobody has references to them.
        let tables: &mut [PageTable; TABLES as usize] = unsafe {
            core::ptr::write_bytes(at(self.frames) as *mut u8, 0, BYTES as usize);
            &mut *(at(self.tables) as *mut _)
        };
        for table in tables.iter_mut() {
            table.zero();
        }
        // SAFETY: the table in use, only read.
        let kernel = unsafe { &*(at(kernel_root) as *const PageTable) };
        // The upper half is the kernel's.
        for (own, theirs) in tables[0].iter_mut().zip(kernel.iter()).skip(256) {
            own.clone_from(theirs);
        }
        let first = VirtAddr::new(code(self.index));
        // The rights of a page are those that all levels grant.
        let all =
            PageTableFlags::PRESENT | PageTableFlags::WRITABLE | PageTableFlags::USER_ACCESSIBLE;
        let path = [first.p4_index(), first.p3_index(), first.p2_index()];
        for (level, index) in path.into_iter().enumerate() {
            tables[level][index].set_addr(self.tables + (level as u64 + 1) * PAGE, all);
        }
        share(tables, self.tables, kernel, all);
        let mut frame = self.frames;
        for (offset, bytes, is_code) in PIECES {
            let flags = if is_code { CODE } else { DATA };
            let flags = if user { flags | USER } else { flags };
            for page in 0..bytes / PAGE {
                tables[3][(offset / PAGE + page) as usize].set_addr(frame, flags);
                frame += PAGE;
            }
        }
        self.tables
    }

    /// Lets `map` put a program into the first GiB of the address space that [`Memory::clear`] made, where the last one still
    /// is.
    ///
    /// # Errors
    /// Those of `map`.
    ///
    /// # Safety
    /// As for [`Memory::clear`].
    pub unsafe fn with_program<E>(
        &mut self,
        map: impl FnOnce(&mut Space) -> Result<(), E>,
    ) -> Result<(), E> {
        const { assert!(layout::TASKS >= 1 << 31) };
        // SAFETY: the second level's table of this task, as in `clear`; `map` gets the same tables by their root.
        unsafe {
            let entry = at(self.tables + PAGE) as *mut PageTableEntry;
            entry.write(self.program.clone());
            let root = PhysFrame::containing_address(self.tables);
            let mapped = map(&mut Space::open(root, Window::PHYSICAL, false));
            self.program = entry.read();
            mapped
        }
    }

    /// The code, writable. A serialising instruction has to stand between writing and running (SDM vol. 3, 8.1.3); the
    /// switch's IRETQ is one.
    pub fn code_mut(&mut self) -> &mut [u8] {
        self.slice(0, CODE_BYTES)
    }

    /// Where the loop counts.
    pub fn count_mut(&mut self) -> &mut [u8] {
        self.slice(COUNT_FRAME, PAGE)
    }

    /// The memory areas, one after the other.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.slice(DATA_FRAME, DATA_BYTES)
    }

    /// The eight bytes in the middle of memory area `area`.
    pub fn value(&mut self, area: u64) -> u64 {
        let from = area_offset(area) as usize;
        let bytes = self.data_mut()[from..from + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    }

    fn slice(&mut self, offset: u64, bytes: u64) -> &mut [u8] {
        // SAFETY: frames that belong to `self`, which is borrowed; tasks write to them only while `run` runs them.
        unsafe {
            core::slice::from_raw_parts_mut(at(self.frames + offset) as *mut u8, bytes as usize)
        }
    }
}

/// Lets a task's tables, which begin at `at`, lead to the memory of its item as the kernel's do.
fn share(
    tables: &mut [PageTable; TABLES as usize],
    at: PhysAddr,
    kernel: &PageTable,
    all: PageTableFlags,
) {
    let (low, high) = (VirtAddr::new(layout::REQUESTED.start), layout::HIGH_REQUESTED.start);
    let high = VirtAddr::new(high).p4_index();
    tables[0][high] = kernel[high].clone();
    let below = |table: &PageTable, index: PageTableIndex| {
        let next = table[index].frame().ok()?.start_address();
        // SAFETY: the kernel's tables are mapped with all physical memory, and only read here.
        Some(unsafe { &*(self::at(next) as *const PageTable) })
    };
    let middle = below(kernel, low.p4_index());
    let Some(directory) = middle.and_then(|table| below(table, low.p3_index())) else { return };
    tables[1][low.p3_index()].set_addr(at + (TABLES - 1) * PAGE, all);
    let own = tables[TABLES as usize - 1].iter_mut().zip(directory.iter());
    own.skip(usize::from(low.p2_index())).for_each(|(own, theirs)| own.clone_from(theirs));
}

/// Where physical memory is mapped.
fn at(address: PhysAddr) -> u64 {
    layout::PHYSICAL + address.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_apart_within_one_page_table_and_their_frames_together() {
        let mut end = 0;
        for (offset, bytes, _) in PIECES {
            assert!(offset >= end && offset % PAGE == 0);
            end = offset + bytes + PAGE;
        }
        assert!(end <= Size2MiB::SIZE);
        assert_eq!(PIECES.iter().map(|piece| piece.1).sum::<u64>(), BYTES);
        assert_eq!(code(1) - code(0), Size2MiB::SIZE);
        assert_eq!(area(2, 3) - code(2), 0xc_0000 + 56 * 1024);
    }
}
