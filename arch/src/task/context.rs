//! What a task has in the processor.

use super::segments::Segments;
use crate::cpu::native;
use crate::descriptors::{
    KERNEL_CODE, KERNEL_CODE_32, KERNEL_DATA, USER_CODE, USER_CODE_32, USER_DATA,
};
use crate::msr::{self, Msr};
use crate::smp::Processor;
use crate::trap::TrapFrame;
use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::arch::asm;
use core::ptr::NonNull;
use raw_cpuid::CpuIdReader as _;
use x86_64::registers::control::{Cr3, Cr4, Cr4Flags};

/// RFLAGS with interrupts on: bit 9, and the reserved one.
const FLAGS: u64 = 1 << 9 | 1 << 1;

/// Registers of a task that does not run.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Context {
    /// The processor pushes them here when it interrupts the task, below the two words that an interrupt stack has at its
    /// end as well (`crate::descriptors`).
    frame: TrapFrame,
    processor: *const Processor,
    stack: u64,
    held: Held,
    /// CR3.
    root: u64,
    extended: Option<Extended>,
    /// The bases are 0, and there is no extended state.
    is_plain: bool,
}

// An interrupt stack's end is a multiple of 16 (SDM vol. 3, 6.14.2).
const _: () = assert!(size_of::<TrapFrame>().is_multiple_of(16));

// SAFETY: the processor is one for all, and its address all that is used.
unsafe impl Send for Context {}

/// What the processor holds of a task in addition to the general registers, and keeps from one task to the next if they have the
/// same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Held {
    segments: Segments,
    /// Of FS and GS.
    bases: [u64; 2],
}

impl Context {
    /// A task that begins at `frame.rip` with the stack `frame.rsp` and the general registers of `frame`, in ring 3 if
    /// `user`, as 32-bit code if `compatibility`, interrupts on, in the address space whose top table is at `root`. `extended` is its
    /// own extended state; `None` for a task that has none. FS and GS are the kernel's; DS and ES begin at 0.
    #[must_use]
    pub fn new(
        frame: &TrapFrame,
        user: bool,
        compatibility: bool,
        root: u64,
        extended: Option<Extended>,
    ) -> Self {
        let (cs, data) = match (user, compatibility) {
            (false, false) => (KERNEL_CODE, KERNEL_DATA),
            (false, true) => (KERNEL_CODE_32, KERNEL_DATA),
            (true, false) => (USER_CODE, USER_DATA),
            (true, true) => (USER_CODE_32, USER_DATA),
        };
        let frame =
            TrapFrame { cs: u64::from(cs.0), ss: u64::from(data.0), rflags: FLAGS, ..*frame };
        let kernel = Self::kernel();
        let held = Held { segments: Segments::flat(data), ..kernel.held };
        let is_plain = extended.is_none() && held.bases == [0; 2];
        Self { frame, root, extended, held, is_plain, ..kernel }
    }

    /// The general registers as they were when it was switched away from, or at its start.
    #[must_use]
    pub fn frame(&self) -> &TrapFrame {
        &self.frame
    }

    /// The kernel, with registers that are still to be saved.
    pub(super) fn kernel() -> Self {
        Self {
            frame: TrapFrame::default(),
            processor: core::ptr::null(),
            stack: 0,
            held: Held { segments: Segments::flat(KERNEL_DATA), bases: bases() },
            root: Cr3::read().0.start_address().as_u64(),
            extended: None,
            is_plain: false,
        }
    }

    /// Whether it was interrupted, or begins, in ring 3.
    pub(super) fn is_user(&self) -> bool {
        self.frame.cs & RING_3 == RING_3
    }

    /// Whose task it is, and the end of the stack that its interrupts' handlers have.
    pub(super) fn belongs_to(&mut self, processor: &'static Processor, stack: u64) {
        (self.processor, self.stack) = (processor, stack);
    }

    /// Where the processor begins to push the registers.
    #[inline]
    pub(super) fn stack(&self) -> u64 {
        (&raw const self.processor) as u64
    }

    /// Keeps registers that were pushed elsewhere.
    pub(super) fn keep(&mut self, frame: &TrapFrame) {
        self.frame = *frame;
    }

    /// Whether another can continue with what the processor holds of this one in addition to the general registers, which are here
    /// already; and that is nothing that is not kept. `harmless`: as from [`harmless`]. Code that is not may have changed the bases.
    #[inline]
    pub(super) fn gives_way_to(&self, other: &Self, harmless: u64) -> bool {
        let segments = Segments::read();
        self.held.segments == segments
            && other.held.segments == segments
            && self.is_plain & other.is_plain
            && (self.frame.cs & harmless == RING_3 || bases() == [0; 2])
    }

    /// Gives its address space to the processor, which holds all else.
    ///
    /// # Safety
    /// As for [`Context::load`].
    #[inline]
    pub(super) unsafe fn enter(&self) {
        // SAFETY: the caller's promise.
        unsafe { asm!("mov cr3, {}", in(reg) self.root, options(nostack, preserves_flags)) };
    }

    /// Keeps what the processor holds in addition to the general registers, which are here already. `harmless`: as from
    /// [`harmless`].
    pub(super) fn hold(&mut self, harmless: u64) -> Held {
        self.held.segments = Segments::read();
        if self.frame.cs & harmless != RING_3 || self.held.bases != [0; 2] {
            self.held.bases = bases();
            self.is_plain = self.extended.is_none() && self.held.bases == [0; 2];
        }
        if let Some(extended) = &mut self.extended {
            extended.save();
        }
        self.held
    }

    /// Gives it back to the processor, which holds `now`.
    ///
    /// # Safety
    /// The address space must have the running code at the same place; the registers must be good for whatever runs
    /// with them.
    pub(super) unsafe fn load(&self, now: Held) {
        if self.held != now {
            // SAFETY: the caller's promise.
            unsafe { self.held.load(now) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.enter() };
        if let Some(extended) = &self.extended {
            extended.load();
        }
    }
}

impl Held {
    /// # Safety
    /// The bases must be good for whatever runs with them.
    unsafe fn load(self, now: Self) {
        if self.segments != now.segments {
            self.segments.load();
        }
        // After the selectors: on some processors one overwrites its base.
        for (msr, base) in BASES.into_iter().zip(self.bases) {
            // SAFETY: 64-bit processors have both registers; the kernel uses neither.
            unsafe { msr::write(msr, base) };
        }
    }
}

/// Bits of CS that say that code is of ring 3.
const RING_3: u64 = 3;

/// Gives the kernel's data segments to the processor.
pub(super) fn load_kernel_segments() {
    Segments::flat(KERNEL_DATA).load();
}

/// What tells by CS whether code could not change a base that is 0, which is [`RING_3`] then: that of ring 3 cannot, as all
/// segments begin there, unless WRFSBASE is allowed (CR4.FSGSBASE; SDM vol. 3, 2.5).
pub(super) fn harmless() -> u64 {
    if Cr4::read().contains(Cr4Flags::FSGSBASE) { 0 } else { RING_3 }
}

/// IA32_FS_BASE and IA32_GS_BASE (SDM vol. 4, table 2-2).
const BASES: [Msr; 2] = [Msr(0xc000_0100), Msr(0xc000_0101)];

/// What they are. Read one by one: a loop over the two costs a switch 18 instructions.
#[inline(always)]
fn bases() -> [u64; 2] {
    let [fs, gs] = BASES;
    // SAFETY: 64-bit processors have both.
    unsafe { [msr::read(fs), msr::read(gs)] }
}

/// Bytes of FXSAVE's area (SDM vol. 1, 10.5.1).
const FXSAVE_BYTES: usize = 512;
/// XSAVE wants this (SDM vol. 1, 13.4).
const ALIGN: usize = 64;

/// x87, SSE, AVX and whatever else XSAVE manages, in memory; FXSAVE's part of it on processors without.
#[derive(Debug)]
pub struct Extended {
    area: NonNull<u8>,
    layout: Layout,
    /// As in XCR0; 0: there is no XSAVE.
    components: u64,
}

impl Extended {
    /// The initial configuration. `components` as returned by [`crate::cpu::features::enable`].
    #[must_use]
    pub fn new(components: u64) -> Self {
        // Leaf 0xD EBX: bytes for the components that XCR0 has on.
        let bytes =
            if components == 0 { FXSAVE_BYTES } else { native().cpuid2(0xd, 0).ebx as usize };
        let layout = Layout::from_size_align(bytes, ALIGN).expect("64 is a power of two");
        // SAFETY: the layout has at least the 512 bytes of FXSAVE. A zeroed XSAVE header says: all in initial
        // configuration (SDM vol. 1, 13.4.2). The legacy part holds the x87 control word of FNINIT and the MXCSR of
        // reset, which FXRSTOR and XRSTOR load in any case.
        let area = unsafe {
            let Some(area) = NonNull::new(alloc_zeroed(layout)) else { handle_alloc_error(layout) };
            area.cast::<u16>().write(0x037f);
            area.add(24).cast::<u32>().write(0x1f80);
            area
        };
        Self { area, layout, components }
    }

    fn save(&mut self) {
        let (low, high) = self.halves();
        // SAFETY: the area is aligned and has the size that the processor requested.
        unsafe {
            if self.components == 0 {
                asm!("fxsave64 [{}]", in(reg) self.area.as_ptr(), options(nostack, preserves_flags));
            } else {
                asm!("xsave64 [{}]", in(reg) self.area.as_ptr(), in("eax") low, in("edx") high, options(nostack, preserves_flags));
            }
        }
    }

    fn load(&self) {
        let (low, high) = self.halves();
        // SAFETY: the area holds the initial configuration or what `save` wrote; the firmware itself keeps nothing in
        // these registers.
        unsafe {
            if self.components == 0 {
                asm!("fxrstor64 [{}]", in(reg) self.area.as_ptr(), options(nostack, preserves_flags));
            } else {
                asm!("xrstor64 [{}]", in(reg) self.area.as_ptr(), in("eax") low, in("edx") high, options(nostack, preserves_flags));
            }
        }
    }

    fn halves(&self) -> (u32, u32) {
        (self.components as u32, (self.components >> 32) as u32)
    }
}

// SAFETY: the area is owned, and nothing in it belongs to a processor.
unsafe impl Send for Extended {}

impl Drop for Extended {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody else has it.
        unsafe { dealloc(self.area.as_ptr(), self.layout) };
    }
}
