//! What belongs to one processor.
//!
//! Two ways lead to it, and neither uses a register that foreign code could have changed:
//!
//! - from an interrupt: the word at the top of every interrupt stack points to it, and the processor switches to that
//!   stack whatever the interrupted code did ([`Processor::of_frame`]);
//! - from ordinary code: the limit of a segment in the processor's own descriptor table is its number ([`this`]). SGDT
//!   states where the table is. (LSL would read the limit at once, but KVM's emulator, which some hosts run ring 0 with,
//!   does not know it.)

use super::mailbox::Mailbox;
use crate::call;
use crate::pmu::Deferred;
use crate::pmu::pmi::ControlBlock;
use crate::ring3;
use crate::task;
use crate::trap::TrapFrame;
use crate::watchdog::Armed;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Most processors that are used; the rest is left alone.
pub const MAX_PROCESSORS: usize = 256;

/// One processor's own data.
#[repr(C)]
pub struct Processor {
    /// First, so that a pointer to the processor is one to its block.
    pmi: UnsafeCell<ControlBlock>,
    index: u32,
    in_use: AtomicBool,
    apic_id: AtomicU32,
    pub(crate) call: call::Running,
    pub(crate) ring3: ring3::Ring3Run,
    /// What ends its call if that does not end by itself.
    pub(crate) armed: Armed,
    pub(crate) mailbox: Mailbox,
    /// The tasks that it runs; null when it runs none. Its own handlers alone use them.
    pub(crate) tasks: AtomicPtr<task::Running<'static>>,
    /// What handlers outside of this crate find their data by; null while there is none. Whoever stores something says what.
    pub handlers_data: AtomicPtr<()>,
    /// What its counters are to do when the kernel is gone; null: that is not put off ([`crate::interrupts::deferring`]).
    pub(crate) deferred: AtomicPtr<Deferred>,
    /// Who gets its debug exceptions while it has breakpoints ([`crate::debug::Handler`]); null: nobody.
    pub(crate) debug_handler: AtomicPtr<()>,
    /// Its descriptor tables ([`crate::descriptors::Tables`]); null before they are loaded.
    pub(crate) tables: AtomicPtr<()>,
    /// How often each vector was taken through its stub.
    pub(crate) taken: [AtomicU64; 256],
    /// How often any vector was.
    pub(crate) taken_in_all: AtomicU64,
    /// How often the self-test's vector was taken.
    pub(crate) self_tests: AtomicU64,
}

// SAFETY: the control block is touched by its own processor alone: by its handler while LVTPC is open, by `pmi::install`
// and `uninstall` while it is masked. `pmi::block` hands out a raw pointer and says so. Everything else is atomic.
unsafe impl Sync for Processor {}

impl Processor {
    /// Number `index`, with nothing going on.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self {
            pmi: UnsafeCell::new(ControlBlock::EMPTY),
            index,
            in_use: AtomicBool::new(false),
            apic_id: AtomicU32::new(0),
            call: call::Running::none(),
            ring3: ring3::Ring3Run::none(),
            armed: Armed::idle(),
            mailbox: Mailbox::empty(),
            tasks: AtomicPtr::new(core::ptr::null_mut()),
            handlers_data: AtomicPtr::new(core::ptr::null_mut()),
            deferred: AtomicPtr::new(core::ptr::null_mut()),
            debug_handler: AtomicPtr::new(core::ptr::null_mut()),
            tables: AtomicPtr::new(core::ptr::null_mut()),
            taken: [const { AtomicU64::new(0) }; 256],
            taken_in_all: AtomicU64::new(0),
            self_tests: AtomicU64::new(0),
        }
    }

    /// Offset of the pointer, for assembly.
    pub(crate) const DEFERRED: usize = core::mem::offset_of!(Self, deferred);

    /// Its number: 0 is the boot processor; the others have those from 1 on, in the order of the MADT.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Its local APIC's id.
    #[must_use]
    pub fn apic_id(&self) -> u32 {
        self.apic_id.load(Ordering::Relaxed)
    }

    /// Notes its local APIC's id.
    pub fn note_apic_id(&self, id: u32) {
        self.apic_id.store(id, Ordering::Relaxed);
    }

    /// It has taken an interrupt or exception of this vector.
    #[inline]
    pub(crate) fn count(&self, vector: u64) {
        self.taken[vector as usize & 0xff].fetch_add(1, Ordering::Relaxed);
        self.taken_in_all.fetch_add(1, Ordering::Relaxed);
    }

    /// What its PMI's handler works with.
    pub(crate) fn block(&self) -> *mut ControlBlock {
        self.pmi.get()
    }

    /// The processor that took an interrupt, for its handler: cheaper than [`this`].
    ///
    /// # Safety
    /// `frame` is the one that the handler was given.
    #[must_use]
    pub unsafe fn of_interrupt(frame: &TrapFrame) -> &'static Self {
        Self::of_frame(frame)
    }

    /// The processor that took the interrupt which `frame` is of.
    pub(crate) fn of_frame(frame: &TrapFrame) -> &'static Self {
        let top = core::ptr::from_ref(frame).wrapping_add(1).cast::<&'static Self>();
        // SAFETY: every vector has an interrupt stack, which `Tables::load` left with this word above the place where the
        // processor begins to push; the frame reaches up to there.
        unsafe { *top }
    }
}

static BOOT: Processor = Processor::new(0);
/// The others, from 1 on; null for those that are not there.
static OTHERS: [AtomicPtr<Processor>; MAX_PROCESSORS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_PROCESSORS];
/// The processors in use, in the order of their numbers, the boot processor first. One that was called and did not
/// come leaves a gap in the numbers.
pub fn in_use() -> impl Iterator<Item = &'static Processor> + Clone {
    (0..MAX_PROCESSORS).filter_map(processor)
}

/// How many processors are in use.
#[must_use]
pub fn count() -> usize {
    in_use().count()
}

/// Processor number `index`, if it is in use.
#[must_use]
pub fn processor(index: usize) -> Option<&'static Processor> {
    known(index).filter(|processor| index == 0 || processor.in_use.load(Ordering::Acquire))
}

/// The same, if it has come so far that its number was noted.
fn known(index: usize) -> Option<&'static Processor> {
    if index == 0 {
        return Some(&BOOT);
    }
    let found = OTHERS.get(index)?.load(Ordering::Acquire);
    // SAFETY: the only values ever stored, other than null, are those of `note`.
    unsafe { found.as_ref() }
}

/// Notes a processor, before it is called.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "host tests have one processor"))]
pub(super) fn note(processor: &'static Processor) {
    OTHERS[processor.index()].store(core::ptr::from_ref(processor).cast_mut(), Ordering::Release);
}

/// Takes a processor into use.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "as above"))]
pub(super) fn add(processor: &'static Processor) {
    processor.in_use.store(true, Ordering::Release);
}

/// The boot processor.
#[must_use]
pub fn boot() -> &'static Processor {
    &BOOT
}

/// The processor that executes this.
#[must_use]
pub fn this() -> &'static Processor {
    known(number()).unwrap_or(&BOOT)
}

#[cfg(target_os = "none")]
fn number() -> usize {
    use crate::descriptors::PROCESSOR_NUMBER;
    let table = x86_64::instructions::tables::sgdt();
    let index = usize::from(PROCESSOR_NUMBER.index());
    if usize::from(table.limit) < 8 * index + 7 {
        // The boot loader's.
        return 0;
    }
    // SAFETY: the table is mapped while it is in use, and has that entry.
    let descriptor = unsafe { table.base.as_ptr::<u64>().add(index).read_volatile() };
    descriptor as u16 as usize
}

/// Host tests have one processor.
#[cfg(not(target_os = "none"))]
fn number() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m13_the_block_is_where_the_handlers_look_for_it() {
        assert_eq!(core::mem::offset_of!(Processor, pmi), 0);
        let one = Processor::new(7);
        assert_eq!(one.block() as usize, core::ptr::from_ref(&one) as usize);
        assert_eq!(one.index(), 7);
    }

    #[test]
    fn m13_an_interrupts_processor_stands_above_its_frame() {
        static ONE: Processor = Processor::new(3);
        #[repr(C)]
        struct Top(TrapFrame, &'static Processor);
        let top = Top(TrapFrame::default(), &ONE);
        assert_eq!(Processor::of_frame(&top.0).index(), 3);
    }

    #[test]
    fn only_the_boot_processor_is_there_at_first() {
        assert_eq!(processor(0).map(Processor::index), Some(0));
        assert!(processor(MAX_PROCESSORS).is_none());
        assert_eq!(this().index(), 0);
    }
}
