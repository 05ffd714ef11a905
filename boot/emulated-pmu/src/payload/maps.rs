//! Nested page tables that map all memory as it is, three times over: the trees differ only in what may be executed.

use super::processors::guard;

const TABLES: usize = 192;
const ENTRIES: usize = 512;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
const LARGE_PAGE: u64 = 2 << 20;
const GIANT_PAGE: u64 = 1 << 30;
/// Present, writable, user: nested walks count as user accesses.
const OPEN: u64 = 0b111;
const WRITABLE: u64 = 0b10;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Which tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tree {
    /// What has been searched, and is watched where that is needed, may be executed.
    Searched = 0,
    /// Everything may be.
    Everything = 1,
    /// One page, at most.
    Single = 2,
}
const TREES: [Tree; 3] = [Tree::Searched, Tree::Everything, Tree::Single];

/// What may be done with a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Right {
    /// Written to, and not executed.
    Write,
    /// Executed, and not written to.
    Execute,
    /// Neither.
    Read,
    /// Not even read.
    Nothing,
}

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Table([u64; ENTRIES]);
/// A table of each tree.
type Triple = [Table; TREES.len()];

static mut POOL: [Triple; TABLES] = [[Table([0; ENTRIES]); TREES.len()]; TABLES];

fn table(index: usize, tree: Tree) -> &'static mut Table {
    let pool = &raw mut POOL;
    // SAFETY: one processor, and no two references at a time: each is used for one access.
    unsafe { &mut (*pool)[index][tree as usize] }
}

fn address(index: usize, tree: Tree) -> u64 {
    core::ptr::from_ref(table(index, tree)) as u64
}

/// The trees.
pub struct Maps {
    used: usize,
    /// The page that [`Tree::Single`] lets be executed.
    single: Option<u64>,
}

impl Maps {
    /// Trees that still must be cleared.
    pub const fn new() -> Self {
        Self { used: 0, single: None }
    }

    /// The physical address of a tree's top table.
    pub fn root(tree: Tree) -> u64 {
        address(0, tree)
    }

    /// Whether `physical` is within reach.
    pub fn covers(physical: u64) -> bool {
        physical < ENTRIES as u64 * GIANT_PAGE
    }

    /// Whether there may not be room for another page.
    pub fn is_full(&self) -> bool {
        self.used + 2 > TABLES
    }

    /// Everything may be written to, and nothing executed.
    pub fn clear(&mut self) {
        for tree in TREES {
            *table(0, tree) = Table([0; ENTRIES]);
            table(0, tree).0[0] = address(1, tree) | OPEN;
        }
        fill(1, 0, GIANT_PAGE);
        self.used = 2;
        self.single = None;
        if let Some(page) = guard::page() {
            self.set(page, if guard::hides() { Right::Nothing } else { Right::Read });
        }
    }

    /// Sets what may be done with the page at `page`.
    pub fn set(&mut self, page: u64, right: Right) {
        let Some((index, slot)) = self.place(page) else { return };
        let bits = page
            | match right {
                Right::Write => OPEN,
                Right::Execute | Right::Read => OPEN & !WRITABLE,
                Right::Nothing => 0,
            };
        let closed = if right == Right::Execute { 0 } else { NO_EXECUTE };
        table(index, Tree::Searched).0[slot] = bits | closed;
        table(index, Tree::Everything).0[slot] = bits;
        table(index, Tree::Single).0[slot] = bits | NO_EXECUTE;
        if self.single == Some(page) {
            self.single = None;
        }
    }

    /// Lets `page`, whose right is not to be written to, be executed in [`Tree::Single`], and no other one.
    pub fn allow_single(&mut self, page: u64) {
        if self.single == Some(page) {
            return;
        }
        if let Some((index, slot)) = self.single.and_then(|old| self.place(old)) {
            table(index, Tree::Single).0[slot] |= NO_EXECUTE;
        }
        self.single = self.place(page).map(|(index, slot)| {
            table(index, Tree::Single).0[slot] &= !NO_EXECUTE;
            page
        });
    }

    /// The lowest table and the entry in it of the page at `physical`, with larger pages above it broken up. `None` out
    /// of reach, or without a table left.
    fn place(&mut self, physical: u64) -> Option<(usize, usize)> {
        if !Self::covers(physical) {
            return None;
        }
        let (mut index, mut slot) = (1, (physical / GIANT_PAGE) as usize);
        for span in [LARGE_PAGE, PAGE] {
            let entry = table(index, Tree::Searched).0[slot];
            let below = if entry & LARGE == 0 {
                index_of(entry & ADDRESS)
            } else {
                if self.used == TABLES {
                    return None;
                }
                let fresh = self.used;
                self.used += 1;
                fill(fresh, physical & !(span * ENTRIES as u64 - 1), span);
                for tree in TREES {
                    table(index, tree).0[slot] = address(fresh, tree) | OPEN;
                }
                fresh
            };
            (index, slot) = (below, (physical / span) as usize % ENTRIES);
        }
        Some((index, slot))
    }
}

/// The number of the table at an address.
fn index_of(table: u64) -> usize {
    (table - (&raw const POOL) as u64) as usize / size_of::<Triple>()
}

/// Fills a table with pages of `span` bytes from `start` on.
fn fill(index: usize, start: u64, span: u64) {
    let large = if span == PAGE { 0 } else { LARGE };
    for tree in TREES {
        let closed = if tree == Tree::Everything { 0 } else { NO_EXECUTE };
        for (slot, entry) in table(index, tree).0.iter_mut().enumerate() {
            *entry = (start + slot as u64 * span) | OPEN | large | closed;
        }
    }
}
