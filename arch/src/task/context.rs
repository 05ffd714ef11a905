//! What a task has in the processor.

use super::segments::Segments;
use crate::cpu::native;
use crate::descriptors::{
    KERNEL_CODE, KERNEL_CODE_32, KERNEL_DATA, USER_CODE, USER_CODE_32, USER_DATA,
};
use crate::interrupts::TrapFrame;
use alloc::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::arch::asm;
use core::ptr::NonNull;
use raw_cpuid::CpuIdReader as _;
use x86_64::VirtAddr;
use x86_64::registers::control::Cr3;
use x86_64::registers::model_specific::{FsBase, GsBase};

/// RFLAGS with interrupts on: bit 9, and the reserved one.
const FLAGS: u64 = 1 << 9 | 1 << 1;

/// Registers of a task that does not run.
#[derive(Debug)]
pub struct Context {
    frame: TrapFrame,
    segments: Segments,
    fs_base: VirtAddr,
    gs_base: VirtAddr,
    /// CR3.
    root: u64,
    extended: Option<Extended>,
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
        Self { frame, root, extended, segments: Segments::flat(data), ..Self::kernel() }
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
            segments: Segments::flat(KERNEL_DATA),
            fs_base: FsBase::read(),
            gs_base: GsBase::read(),
            root: Cr3::read().0.start_address().as_u64(),
            extended: None,
        }
    }

    /// Takes over what the processor holds, with `frame` for what is on the interrupt stack. Returns the data segments.
    pub(super) fn save(&mut self, frame: &TrapFrame) -> Segments {
        self.frame = *frame;
        self.segments = Segments::read();
        self.fs_base = FsBase::read();
        self.gs_base = GsBase::read();
        if let Some(extended) = &mut self.extended {
            extended.save();
        }
        self.segments
    }

    /// Gives it back to the processor, which holds the data segments `from`; `frame` is what the interrupt returns to.
    ///
    /// # Safety
    /// The address space must have the running code at the same place; the registers must be good for whatever runs
    /// with them.
    pub(super) unsafe fn load(&self, frame: &mut TrapFrame, from: Segments) {
        *frame = self.frame;
        // Before the bases: on some processors a selector overwrites its base.
        self.segments.load(from);
        FsBase::write(self.fs_base);
        GsBase::write(self.gs_base);
        // SAFETY: the caller's promise. The frame that the interrupt returns with was written just now.
        unsafe { asm!("mov cr3, {}", in(reg) self.root, options(nostack, preserves_flags)) };
        if let Some(extended) = &self.extended {
            extended.load();
        }
    }
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
        // SAFETY: the area is aligned and has the size that the processor asked for.
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
