//! Finding repeated string instructions in code that runs at full speed.
//!
//! QEMU's translator counts each iteration of such an instruction; silicon counts one. Nothing in the machine tells when
//! one is executed, so while instructions are counted the guest runs with nested paging, whose tables map all memory as
//! it is but let nothing be executed at first:
//!
//! - A page that is executed for the first time is searched. If no byte sequence in it could be such an instruction, it
//!   may be executed, and no longer written to; a write takes the permission back.
//! - A page with candidates may be executed one at a time, with a breakpoint on each candidate.
//! - In a page with more than four the code is followed ([`emulated_pmu::region`]), and this page alone may be executed,
//!   by tables of its own. If that takes more than four breakpoints as well, it is stepped through.
//! - While nothing runs at full speed, pages with candidates, and pages that write to themselves, are open for
//!   everything; they are closed again before the next stay that counts by the clock.
//!
//! At a breakpoint the instruction is stepped over, and so counts once.
//!
//! Not noticed is a page that is executed under two linear addresses of one address space.

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

/// Tables that let one page be executed.
static mut ALONE: [Table; 4] = [Table([0; ENTRIES]); 4];
static mut POOL: [Table; TABLES] = [Table([0; ENTRIES]); TABLES];

/// Most pages that are open for everything at a time.
const OPEN_PAGES: usize = 8;

/// Most candidates that breakpoints can watch.
pub const MAX_CANDIDATES: usize = 4;

/// The page whose candidates are being watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Its physical address.
    pub physical: u64,
    /// Linear addresses of the candidates.
    pub candidates: [u64; MAX_CANDIDATES],
    /// How many there are.
    pub count: usize,
}

/// How the guest ran when it met a closed page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Running {
    /// Counted by the clock. Breakpoints are free for our use, or the guest has some of its own.
    Bulk { may_watch: bool },
    /// Stepped, or not counted.
    Otherwise,
}

/// What was found in a page that has not been written to since.
#[derive(Clone, Copy)]
struct Findings {
    /// Its address; 0 if nothing is known.
    page: u64,
    /// Candidates in it, at most one more than can be watched.
    count: u8,
    offsets: [u16; MAX_CANDIDATES],
}

/// By page number, the last one that was searched.
static mut KNOWN: [Findings; KNOWN_PAGES] = [NOTHING; KNOWN_PAGES];
const KNOWN_PAGES: usize = 8192;
const NOTHING: Findings = Findings { page: 0, count: 0, offsets: [0; MAX_CANDIDATES] };

fn known(page: u64) -> &'static mut Findings {
    // SAFETY: one processor, and each reference is used for one access.
    unsafe { &mut (*(&raw mut KNOWN))[(page / PAGE) as usize % KNOWN_PAGES] }
}

/// Forgets what was found in a page that will be written to.
fn forget(page: u64) {
    if known(page).page == page {
        *known(page) = NOTHING;
    }
}

/// What is in the page at `page`, which from now on is not writable.
fn searched(page: u64) -> Findings {
    if known(page).page != page {
        // SAFETY: a page of the guest's memory, identity mapped, which the guest does not change meanwhile.
        let bytes = unsafe { &*(page as *const [u8; PAGE as usize]) };
        let mut findings = Findings { page, ..NOTHING };
        for offset in rep::candidates(bytes) {
            if let Some(slot) = findings.offsets.get_mut(usize::from(findings.count)) {
                *slot = offset as u16;
            }
            findings.count += 1;
            if usize::from(findings.count) > MAX_CANDIDATES {
                break;
            }
        }
        *known(page) = findings;
    }
    *known(page)
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
    /// Pages open for everything, for a while; 0 is none.
    open: [u64; OPEN_PAGES],
    /// Linear page, its number, that has too many candidates.
    crowded: Option<u64>,
    /// The page that [`ALONE`] lets be executed.
    alone: Option<u64>,
    /// Set while instructions are counted, and for a while afterwards.
    active: bool,
    /// It cannot do its work on this machine.
    given_up: bool,
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
        Self {
            used: 0,
            watched: None,
            open: [0; OPEN_PAGES],
            crowded: None,
            alone: None,
            active: false,
            given_up: false,
        }
    }

    /// The physical address of the top table.
    pub fn root(&self) -> u64 {
        address(0)
    }

    /// Whether it is in use: then the guest has to run with it.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether the code at `linear` lies in a page with too many candidates.
    pub fn is_crowded(&self, linear: u64) -> bool {
        self.active && self.crowded == Some(linear / PAGE)
    }

    /// Tables that let the page of `physical` be executed, and no other. `None` out of their reach.
    pub fn alone(&mut self, physical: u64) -> Option<u64> {
        if !self.covers(physical) {
            return None;
        }
        let page = physical & !(PAGE - 1);
        // SAFETY: one processor, and this is the only use.
        let tables = unsafe { &mut *(&raw mut ALONE) };
        let root = core::ptr::from_ref(&tables[0]) as u64;
        if self.alone != Some(page) {
            let mut span = GIANT_PAGE;
            let mut start = 0;
            tables[0].0[0] = core::ptr::from_ref(&tables[1]) as u64 | OPEN;
            for level in 1..=3 {
                let below =
                    tables.get(level + 1).map(|below| core::ptr::from_ref(below) as u64 | OPEN);
                let large = if span == PAGE { 0 } else { LARGE };
                for (index, entry) in tables[level].0.iter_mut().enumerate() {
                    *entry = (start + index as u64 * span) | OPEN | large | NO_EXECUTE;
                }
                let index = ((page - start) / span) as usize;
                tables[level].0[index] = below.unwrap_or(page | OPEN & !WRITABLE);
                start += index as u64 * span;
                span /= ENTRIES as u64;
            }
            self.alone = Some(page);
        }
        Some(root)
    }

    /// Begins, with nothing executable, if it has not begun.
    pub fn begin(&mut self) {
        if !self.active && !self.given_up {
            self.clear();
            self.active = true;
        }
    }

    /// Ends: what is known of the pages is forgotten, because writes are no longer seen.
    pub fn end(&mut self) {
        self.active = false;
        self.watched = None;
        self.crowded = None;
    }

    /// Ends for good.
    pub fn give_up(&mut self) {
        self.end();
        self.given_up = true;
    }

    fn clear(&mut self) {
        self.watched = None;
        self.crowded = None;
        self.open = [0; OPEN_PAGES];
        // SAFETY: as in `known`.
        unsafe { KNOWN = [NOTHING; KNOWN_PAGES] };
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

    /// Whether `physical` is within reach of the tables.
    pub fn covers(&self, physical: u64) -> bool {
        physical < ENTRIES as u64 * GIANT_PAGE
    }

    /// The guest tried to execute the page of `physical`, at `linear`.
    pub fn on_execute(&mut self, physical: u64, linear: u64, running: Running) -> Verdict {
        let page = physical & !(PAGE - 1);
        let Findings { count, offsets, .. } = searched(page);
        let count = usize::from(count);
        let found = offsets.map(|offset| (linear & !(PAGE - 1)) + u64::from(offset));
        match running {
            _ if count == 0 => self.set(page, page | OPEN & !WRITABLE),
            Running::Bulk { may_watch: true } if count <= MAX_CANDIDATES => {
                self.unwatch();
                self.set(page, page | OPEN & !WRITABLE);
                self.watched = Some(Watched { physical: page, candidates: found, count });
            }
            Running::Bulk { .. } => {
                self.crowded = Some(linear / PAGE);
                self.open_fully(page);
                return Verdict::Step;
            }
            Running::Otherwise => self.open_fully(page),
        }
        Verdict::Run
    }

    /// The guest tried to write to the page of `physical`, which it has executed. `executing`: the instruction that
    /// writes lies in it.
    pub fn on_write(&mut self, physical: u64, executing: bool) -> Verdict {
        let page = physical & !(PAGE - 1);
        if self.watched.is_some_and(|watched| watched.physical == page) {
            self.watched = None;
        }
        if executing {
            self.open_fully(page);
            return Verdict::Step;
        }
        self.set(page, page | OPEN | NO_EXECUTE);
        Verdict::Run
    }

    /// Sets the entry of a page. What was found in it holds only as long as it cannot be written to.
    fn set(&mut self, page: u64, value: u64) {
        if value & WRITABLE != 0 {
            forget(page);
        }
        if let Some(entry) = self.entry_or_restart(page) {
            *entry = value;
        }
    }

    /// Opens a page until [`CodeMap::close`]; the one that has been open longest is closed for it.
    fn open_fully(&mut self, page: u64) {
        self.set(page, page | OPEN);
        self.open.rotate_right(1);
        let oldest = core::mem::replace(&mut self.open[0], page);
        if oldest != 0 && oldest != page {
            self.set(oldest, oldest | OPEN | NO_EXECUTE);
        }
    }

    /// Closes what is open, before a stay that counts by the clock.
    pub fn close(&mut self) {
        self.crowded = None;
        for page in core::mem::replace(&mut self.open, [0; OPEN_PAGES]) {
            if page != 0 {
                self.set(page, page | OPEN | NO_EXECUTE);
            }
        }
    }

    /// The watched page may be executed at another linear address from now on. It stays as it is known.
    pub fn unwatch(&mut self) {
        if let Some(watched) = self.watched.take() {
            self.set(watched.physical, watched.physical | OPEN & !WRITABLE | NO_EXECUTE);
        }
    }

    /// The candidates that breakpoints have to be on.
    pub fn watched(&self) -> Option<Watched> {
        self.watched
    }
}
