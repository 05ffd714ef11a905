//! What programs find enabled.

use x86_64::registers::control::{Cr0, Cr0Flags, Cr4, Cr4Flags, Efer, EferFlags};
use x86_64::registers::model_specific::Msr;
use x86_64::registers::xcontrol::{XCr0, XCr0Flags};

use crate::handlers;
use program_format::layout::selector::{KERNEL_DATA, USER_DATA};

/// SSE, AVX and XSAVE, RDPMC of ring 3, SYSCALL. Ring 0 executes pages that ring 3 may use, so no SMEP and no SMAP.
///
/// # Safety
/// Once, at the start.
pub unsafe fn set_up() {
    let cr0 = Cr0::read() - Cr0Flags::EMULATE_COPROCESSOR - Cr0Flags::TASK_SWITCHED;
    let forbidden = Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION
        | Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION;
    let wanted = Cr4Flags::OSFXSR
        | Cr4Flags::OSXMMEXCPT_ENABLE
        | Cr4Flags::OSXSAVE
        | Cr4Flags::PERFORMANCE_MONITOR_COUNTER;
    // SAFETY: QEMU's largest processor has all of this, and nobody here relies on what is switched off.
    unsafe {
        Cr0::write(cr0 | Cr0Flags::MONITOR_COPROCESSOR | Cr0Flags::NUMERIC_ERROR);
        Cr4::write((Cr4::read() - forbidden) | wanted);
        XCr0::write(XCr0Flags::X87 | XCr0Flags::SSE | XCr0Flags::AVX);
        // With NX a page fault says whether it came of a fetch.
        Efer::update(|efer| {
            efer.insert(EferFlags::SYSTEM_CALL_EXTENSIONS | EferFlags::NO_EXECUTE_ENABLE);
        });
        // STAR: SYSCALL's code selector, the stack's after it; SYSRET's are 8 and 16 above.
        let (kernel, user) = (u64::from(KERNEL_DATA) - 8, u64::from(USER_DATA) - 8);
        Msr::new(0xc000_0081).write(user << 48 | kernel << 32);
        Msr::new(0xc000_0082).write(handlers::system_call as *const () as u64);
        // Of the flags SYSCALL clears TF, IF and DF.
        Msr::new(0xc000_0084).write(0x700);
    }
}
