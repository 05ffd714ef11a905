//! The register file of interrupted code.

use super::Exception;

/// What the stubs save and the processor pushes, in memory order. A handler that changes a field changes
/// the register at the return.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
#[allow(missing_docs, reason = "the names are the registers' own")]
pub struct TrapFrame {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rbp: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rbx: u64,
    pub rax: u64,
    /// Vector, pushed by the stub.
    pub vector: u64,
    /// Error code, or 0 for the vectors that have none.
    pub error_code: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
}

impl TrapFrame {
    /// The exception that this frame is of.
    #[must_use]
    pub fn exception(&self) -> Exception {
        Exception(self.vector as u8)
    }

    /// Whether it is of the kernel's own code, which alone lies in the upper half of the address space.
    #[must_use]
    pub const fn is_of_kernel(&self) -> bool {
        self.cs & 3 == 0 && self.rip >> 63 != 0
    }

    /// The error code, if the exception has one.
    #[must_use]
    pub fn error(&self) -> Option<u64> {
        self.exception().has_error_code().then_some(self.error_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::layout;

    #[test]
    fn m14_the_kernel_s_own_code_is_known_from_that_of_tasks() {
        let of = |rip, cs| TrapFrame { rip, cs, ..TrapFrame::default() }.is_of_kernel();
        // The image's lowest address (`kernel/src/main.rs`), and where tasks and snippets lie.
        assert!(of(0xffff_ffff_8000_0000, 8));
        for task in [layout::TASKS, layout::ARENA, layout::USER_CODE] {
            assert!(!of(task, 8) && !of(task, 0x23));
        }
        // A program of ring 3 that went wrong may be anywhere.
        assert!(!of(0xffff_ffff_8000_0000, 0x23));
    }
}
