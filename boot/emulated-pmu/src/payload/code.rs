//! Finding repeated string instructions in code that runs at full speed.
//!
//! QEMU's translator counts each iteration of such an instruction; silicon counts one. Nothing in the machine tells when
//! one is executed, so while instructions are counted the guest runs with nested paging, whose tables map all memory as
//! it is but let nothing be executed at first:
//!
//! - A page that is executed for the first time is searched. If no byte sequence in it could be such an instruction, it
//!   may be executed, and no longer written to; a write takes the permission back.
//! - A page with candidates may be executed one at a time, with a breakpoint on each candidate. A page with more than
//!   four is stepped through.
//!
//! At a breakpoint the instruction is run by itself to its end, and what the translator counted too many is taken off.

use emulated_pmu::rep;

const TABLES: usize = 256;
const ENTRIES: usize = 512;
const PAGE: u64 = 4096;
const LARGE_PAGE: u64 = 2 << 20;
const GIANT_PAGE: u64 = 1 << 30;
/// Present, writable, user: nested walks count as user accesses.
const OPEN: u64 = 0b111;
const WRITABLE: u64 = 0b10;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Table([u64; ENTRIES]);

static mut POOL: [Table; TABLES] = [Table([0; ENTRIES]); TABLES];

/// Most candidates that breakpoints can watch.
pub const MAX_CANDIDATES: usize = 4;

/// The page whose candidates are being watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    physical: u64,
    /// Linear addresses of the candidates.
    pub candidates: [u64; MAX_CANDIDATES],
    /// How many there are.
    pub count: usize,
}

/// What is to be done about an attempt to execute a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It can be executed now.
    Run,
    /// It has too many candidates: step through it.
    Step,
}

/// The nested tables, and what is known of each page.
pub struct CodeMap {
    used: usize,
    watched: Option<Watched>,
    /// Set while instructions are counted.
    active: bool,
}

fn table(index: usize) -> &'static mut Table {
    // SAFETY: one processor, one map, and no two references at a time: each is used for one entry.
    unsafe { &mut (*(&raw mut POOL))[index] }
}

fn address(index: usize) -> u64 {
    core::ptr::from_ref(table(index)) as u64
}

fn at(address: u64) -> &'static mut Table {
    // SAFETY: the address of a table of the pool, as found in another one.
    unsafe { &mut *(address as *mut Table) }
}

impl CodeMap {
    /// A map that is not in use.
    pub const fn new() -> Self {
        Self { used: 0, watched: None, active: false }
    }

    /// The physical address of the top table.
    pub fn root(&self) -> u64 {
        address(0)
    }

    /// Begins, with nothing executable, if it has not begun.
    pub fn begin(&mut self) {
        if !self.active {
            self.clear();
            self.active = true;
        }
    }

    /// Ends: what is known of the pages is forgotten, because writes are no longer seen.
    pub fn end(&mut self) {
        self.active = false;
        self.watched = None;
    }

    fn clear(&mut self) {
        self.watched = None;
        *table(0) = Table([0; ENTRIES]);
        *table(1) = Table([0; ENTRIES]);
        table(0).0[0] = address(1) | OPEN;
        for (gib, entry) in table(1).0.iter_mut().enumerate() {
            *entry = gib as u64 * GIANT_PAGE | OPEN | LARGE | NO_EXECUTE;
        }
        self.used = 2;
    }

    /// The entry of the 4 KiB page at `physical`, with larger pages above it broken up. `None` beyond 512 GiB.
    fn entry(&mut self, physical: u64) -> Option<&'static mut u64> {
        if physical >= ENTRIES as u64 * GIANT_PAGE {
            return None;
        }
        let mut parent = &mut table(1).0[(physical / GIANT_PAGE) as usize];
        for step in [LARGE_PAGE, PAGE] {
            if *parent & LARGE != 0 {
                if self.used == TABLES {
                    return None;
                }
                let fresh = self.used;
                self.used += 1;
                let start = *parent & ADDRESS & !(step * ENTRIES as u64 - 1);
                let large = if step == PAGE { 0 } else { LARGE };
                for (index, entry) in table(fresh).0.iter_mut().enumerate() {
                    *entry = (start + index as u64 * step) | OPEN | large | NO_EXECUTE;
                }
                *parent = address(fresh) | OPEN;
            }
            let below = at(*parent & ADDRESS);
            parent = &mut below.0[(physical / step) as usize % ENTRIES];
        }
        Some(parent)
    }

    fn entry_or_restart(&mut self, physical: u64) -> Option<&'static mut u64> {
        if self.used >= TABLES - 2 {
            self.clear();
        }
        self.entry(physical)
    }

    /// The guest tried to execute the page of `physical`, at `linear`.
    pub fn on_execute(&mut self, physical: u64, linear: u64) -> Verdict {
        let page = physical & !(PAGE - 1);
        // SAFETY: a page of the guest's memory, identity mapped, which the guest does not change meanwhile.
        let bytes = unsafe { &*(page as *const [u8; PAGE as usize]) };
        let mut found = [0; MAX_CANDIDATES];
        let mut count = 0;
        for offset in rep::candidates(bytes) {
            if count == MAX_CANDIDATES {
                return Verdict::Step;
            }
            found[count] = (linear & !(PAGE - 1)) + offset as u64;
            count += 1;
        }
        if count > 0 {
            self.unwatch();
        }
        let Some(entry) = self.entry_or_restart(page) else { return Verdict::Step };
        *entry = page | OPEN & !WRITABLE;
        if count > 0 {
            self.watched = Some(Watched { physical: page, candidates: found, count });
        }
        Verdict::Run
    }

    /// The guest tried to write to the page of `physical`, which it has executed.
    pub fn on_write(&mut self, physical: u64) {
        let page = physical & !(PAGE - 1);
        if self.watched.is_some_and(|watched| watched.physical == page) {
            self.watched = None;
        }
        if let Some(entry) = self.entry_or_restart(page) {
            *entry = page | OPEN | NO_EXECUTE;
        }
    }

    /// Another address space: the watched page may be executed at another linear address there.
    pub fn unwatch(&mut self) {
        if let Some(watched) = self.watched.take()
            && let Some(entry) = self.entry(watched.physical)
        {
            *entry = watched.physical | OPEN | NO_EXECUTE;
        }
    }

    /// The candidates that breakpoints have to be on.
    pub fn watched(&self) -> Option<Watched> {
        self.watched
    }
}
