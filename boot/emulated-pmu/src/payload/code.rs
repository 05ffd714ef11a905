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
//!   by a tree of its own. If that takes more than four breakpoints as well, it is stepped through.
//! - While nothing is counted by the clock, everything may be executed, and writes are still seen.
//!
//! At a breakpoint the instruction is stepped over, and so counts once.
//!
//! Not noticed is a page that is executed under two linear addresses of one address space. With `strings=decoded` a page
//! that has both 64-bit and 32-bit code is decoded as that of the two as which it was first executed.

use super::maps::{Maps, PAGE, Right, Tree};
use emulated_pmu::debug_registers::{COUNT, DebugRegisters};
use emulated_pmu::rep;

/// Most candidates that breakpoints can watch.
pub const MAX_CANDIDATES: usize = COUNT;

/// The candidates that are being watched, oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    linear: [u64; MAX_CANDIDATES],
    /// Physical addresses of their pages.
    pages: [u64; MAX_CANDIDATES],
    count: usize,
}

impl Watched {
    /// Their linear addresses.
    pub fn addresses(&self) -> &[u64] {
        &self.linear[..self.count]
    }

    /// The pages in which they lie, with an address in each; a page may come more than once.
    pub fn pages(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.pages.into_iter().zip(self.linear);
        all.take(self.count)
    }

    fn keep(&mut self, mut wanted: impl FnMut(u64) -> bool) {
        let all = *self;
        self.count = 0;
        for (page, linear) in all.pages().filter(|(page, _)| wanted(*page)) {
            self.push(page, linear);
        }
    }

    fn push(&mut self, page: u64, linear: u64) {
        (self.pages[self.count], self.linear[self.count]) = (page, linear);
        self.count += 1;
    }
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
    let all = &raw mut KNOWN;
    // SAFETY: one processor, and each reference is used for one access.
    unsafe { &mut (*all)[(page / PAGE) as usize % KNOWN_PAGES] }
}

/// Forgets what was found in a page that will be written to.
fn forget(page: u64) {
    if known(page).page == page {
        *known(page) = NOTHING;
    }
}

/// What is in the page at `page`, which from now on is not writable. With `decode`, an offset at which the guest executes
/// it, and the width of its code, only what decoding finds.
fn searched(page: u64, decode: Option<(u64, u32)>) -> Findings {
    if known(page).page != page {
        // SAFETY: a page of the guest's memory, identity mapped, which the guest does not change meanwhile.
        let bytes = unsafe { &*(page as *const [u8; PAGE as usize]) };
        let mut findings = Findings { page, ..NOTHING };
        let mut note = |offset: usize| {
            if let Some(slot) = findings.offsets.get_mut(usize::from(findings.count)) {
                *slot = offset as u16;
            }
            findings.count += 1;
        };
        let most = MAX_CANDIDATES + 1;
        match decode {
            None => rep::candidates(bytes).take(most).for_each(&mut note),
            Some((entry, bits)) => {
                let entry = Some(entry as usize);
                rep::decoded_candidates(bytes, entry, bits).take(most).for_each(&mut note);
            }
        }
        // What is displaced stays write-protected, and is searched again when it is executed again.
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

/// What is known of each page, and so what may be executed.
pub struct CodeMap {
    maps: Maps,
    watched: Watched,
    /// Candidates are only what decoding finds.
    decoded: bool,
    /// Linear page, its number, that has too many candidates.
    crowded: Option<u64>,
    /// Set while instructions are counted, and for a while afterwards.
    active: bool,
    /// It cannot do its work on this machine.
    given_up: bool,
}

impl CodeMap {
    /// A map that is not in use.
    pub const fn new(decoded: bool) -> Self {
        Self {
            maps: Maps::new(),
            watched: Watched { linear: [0; MAX_CANDIDATES], pages: [0; MAX_CANDIDATES], count: 0 },
            decoded,
            crowded: None,
            active: false,
            given_up: false,
        }
    }

    /// Whether it is in use: then the guest has to run with it.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether the code at `linear` is in a page with too many candidates.
    pub fn is_crowded(&self, linear: u64) -> bool {
        self.active && self.crowded == Some(linear / PAGE)
    }

    /// Lets the crowded page at `physical` be executed alone. False if it may have been written to since it was found to
    /// be crowded.
    pub fn allow_alone(&mut self, physical: u64) -> bool {
        let page = physical & !(PAGE - 1);
        let is_known = known(page).page == page;
        if is_known {
            self.maps.allow_single(page);
        } else {
            self.crowded = None;
        }
        is_known
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
        self.watched = Watched::default();
        self.crowded = None;
    }

    /// Ends for good.
    pub fn give_up(&mut self) {
        self.end();
        self.given_up = true;
    }

    fn clear(&mut self) {
        self.watched = Watched::default();
        self.crowded = None;
        // SAFETY: as in `known`.
        unsafe { KNOWN = [NOTHING; KNOWN_PAGES] };
        self.maps.clear();
    }

    /// The guest, counted by the clock, tried to execute the page of `physical`, at `linear`, in code of so many `bits`.
    /// `debug`: its own breakpoints.
    pub fn on_execute(
        &mut self,
        physical: u64,
        linear: u64,
        bits: u32,
        debug: &DebugRegisters,
    ) -> Verdict {
        if self.maps.is_full() {
            self.clear();
        }
        let page = physical & !(PAGE - 1);
        let decode = self.decoded.then_some((linear % PAGE, bits));
        let Findings { count, offsets, .. } = searched(page, decode);
        let count = usize::from(count);
        self.crowded = None;
        // One that the guest's handler lets continue would also continue without a breakpoint of the hypervisor's.
        let meets = offsets
            .iter()
            .take(count)
            .any(|&offset| debug.on_instruction((linear & !(PAGE - 1)) + u64::from(offset)) != 0);
        if count > 0 && (count > debug.room() || meets) {
            self.crowded = Some(linear / PAGE);
            self.maps.set(page, Right::Read);
            return Verdict::Step;
        }
        self.make_room(page, count, debug.room());
        self.maps.set(page, Right::Execute);
        for offset in offsets.iter().take(count) {
            self.watched.push(page, (linear & !(PAGE - 1)) + u64::from(*offset));
        }
        Verdict::Run
    }

    /// Drops watched pages, the oldest first, until `count` more candidates can be watched with `room` breakpoints; and
    /// `page` itself.
    fn make_room(&mut self, page: u64, count: usize, room: usize) {
        self.watched.keep(|watched| watched != page);
        while self.watched.count + count > room {
            self.unwatch(self.watched.pages[0]);
        }
    }

    /// The guest tried to write to the page of `physical`, which has been searched. `executing`: the instruction that
    /// writes is in it.
    pub fn on_write(&mut self, physical: u64, executing: bool) -> Verdict {
        let page = physical & !(PAGE - 1);
        self.watched.keep(|watched| watched != page);
        forget(page);
        self.maps.set(page, Right::Write);
        if executing { Verdict::Step } else { Verdict::Run }
    }

    /// Watches a page no longer, which then must not be executed. It stays as it is known.
    pub fn unwatch(&mut self, page: u64) {
        self.watched.keep(|watched| watched != page);
        self.maps.set(page, Right::Read);
    }

    /// Watches nothing any longer.
    pub fn unwatch_all(&mut self) {
        while self.watched.count > 0 {
            self.unwatch(self.watched.pages[0]);
        }
    }

    /// The candidates that breakpoints must be on.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// The top table of a tree.
    pub fn root(&self, tree: Tree) -> u64 {
        Maps::root(tree)
    }
}
