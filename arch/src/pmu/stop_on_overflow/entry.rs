//! The clock's interrupt on this processor.

use super::{Stop, StopOnOverflow};
use crate::apic::{self, Register};
use crate::interrupts;
use crate::msr::Msr;
use crate::pmu::driver::{MAX_WRITES, Write};
use crate::trap::exception;
use core::arch::naked_asm;
use core::ptr;

/// LVT delivery mode NMI: bits 10:8 (SDM vol. 3, 10.5.1).
const MODE_NMI: u32 = 0b100 << 8;
const LVT_MASK: u32 = 1 << 16;

/// What the handler works with: one processor has a clock.
#[repr(C)]
struct Handled {
    /// Writes that stop the counters. The last one is in the unused places too: it does no harm again.
    writes: [Write; MAX_WRITES],
    /// Interrupts so far.
    taken: u64,
    /// RIP of the last one.
    at: u64,
}

static mut HANDLED: Handled =
    Handled { writes: [Write::new(Msr(0), 0); MAX_WRITES], taken: 0, at: 0 };

/// Bytes of a [`Write`].
const STRIDE: usize = size_of::<Write>();
const _: () = assert!(STRIDE == 16 && core::mem::offset_of!(Write, value) == 8);
const _: () = assert!(MAX_WRITES == 8);
/// Where the count lies.
const TAKEN: usize = STRIDE * MAX_WRITES;
/// Where the interrupted RIP lies.
const AT: usize = TAKEN + size_of::<u64>();

/// Stops the counters, without a branch or a look at the stack before. [`Until::handling`] knows its instructions.
#[unsafe(naked)]
extern "C" fn stopping() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        ".set at, 0",
        ".rept {writes}",
        "mov ecx, [rip + {handled} + at]",
        "mov eax, [rip + {handled} + at + 8]",
        "mov edx, [rip + {handled} + at + 12]",
        "wrmsr",
        ".set at, at + {stride}",
        ".endr",
        // After the three registers lies the interrupt's frame, with RIP in front (SDM vol. 3, 6.14.2).
        "mov rax, [rsp + 24]",
        "mov [rip + {handled} + {place}], rax",
        "inc qword ptr [rip + {handled} + {taken}]",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "iretq",
        handled = sym HANDLED,
        writes = const MAX_WRITES,
        stride = const STRIDE,
        taken = const TAKEN,
        place = const AT,
    )
}

/// Counts itself: the counters are frozen.
#[unsafe(naked)]
extern "C" fn frozen() {
    naked_asm!(
        "push rax",
        "mov rax, [rsp + 8]",
        "mov [rip + {handled} + {place}], rax",
        "pop rax",
        "inc qword ptr [rip + {handled} + {taken}]",
        "iretq",
        handled = sym HANDLED,
        taken = const TAKEN,
        place = const AT,
    )
}

/// Takes the NMI for the clock of `until`.
///
/// # Safety
/// Ring 0, interrupt table loaded, no other user of this processor's LVTPC or NMI until [`uninstall`].
pub unsafe fn install(on_overflow: &StopOnOverflow) {
    let off = on_overflow.gate().off();
    let entry = match on_overflow.stop() {
        Stop::Freeze => frozen as *const () as u64,
        Stop::Handler => stopping as *const () as u64,
    };
    apic::write(Register::LvtPmc, LVT_MASK);
    // SAFETY: LVTPC is masked, so the handler does not run. The entries save what they change and end in IRETQ; an NMI
    // has no error code.
    unsafe {
        let writes = &raw mut HANDLED.writes;
        for (index, write) in (*writes).iter_mut().enumerate() {
            *write = *off.get(index).or(off.last()).unwrap_or(&Write::new(Msr(0), 0));
        }
        interrupts::set_entry(exception::NMI.0, entry);
    }
}

/// Lets the next overflow interrupt: Intel's APIC masks the entry at delivery (SDM vol. 3, 10.5.4).
pub fn allow() {
    apic::write(Register::LvtPmc, MODE_NMI);
}

/// How often the interrupt came since boot.
#[must_use]
pub fn taken() -> u64 {
    // SAFETY: an aligned word, which the handler changes in one instruction.
    unsafe { ptr::read_volatile(&raw const HANDLED.taken) }
}

/// The instruction that the last one came in front of.
#[must_use]
pub fn interrupted() -> u64 {
    // SAFETY: as for `taken`.
    unsafe { ptr::read_volatile(&raw const HANDLED.at) }
}

/// Gives the NMI back.
///
/// # Safety
/// Ring 0, interrupt table loaded, counters stopped.
pub unsafe fn uninstall() {
    apic::write(Register::LvtPmc, LVT_MASK);
    // SAFETY: the vector's own stub.
    unsafe { interrupts::reset_entry(exception::NMI.0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    /// SDM vol. 3, figure 10-8: bits 10:8 are the delivery mode, 100 is NMI; bit 16 is the mask.
    #[test]
    fn the_fields_of_lvtpc_are_where_the_manual_has_them() {
        assert_eq!((MODE_NMI, LVT_MASK), (0x400, 0x1_0000));
    }

    #[test]
    fn the_assembly_writes_where_the_count_and_the_place_are() {
        assert_eq!((TAKEN, AT), (offset_of!(Handled, taken), offset_of!(Handled, at)));
    }
}
