//! Ring 3: the way in by IRETQ, the way out by INT.
//!
//! Init code and body are two stays. Each begins with an IRETQ that takes its frame from [`Data::user`] and ends in an
//! INT of its own vector, whose gate leads straight to the code after it: all registers but RSP are still those of ring
//! 3, and the interrupted RSP and flags, which the processor has pushed, are kept for the next switch.

use super::{Code, Data, RAX, RSP};
use arch::descriptors::{KERNEL_DATA, USER_CODE, USER_CODE_32, USER_DATA};
use arch::vectors::SNIPPET_VECTORS;
use core::mem::offset_of;
use x86_64::registers::segmentation::SegmentSelector;

/// RFLAGS at the start of init: the bit that is always 1, interrupts off, IOPL 0.
const FLAGS: u64 = 2;

/// Fields of the frame, in words; RIP is the first.
const CS: usize = 1;
const RFLAGS: usize = 2;
const STACK: usize = 3;
const SS: usize = 4;

/// Bytes of [`Code::enter_user`].
pub(super) const ENTER_BYTES: u64 = 9;

const fn field(word: usize) -> usize {
    offset_of!(Data, user) + 8 * word
}

impl Code<'_> {
    /// Makes the frame for the first stay, but for RIP. Overwrites RAX.
    pub(super) fn prepare_user(&mut self, compatibility: bool) {
        let code = if compatibility { USER_CODE_32 } else { USER_CODE };
        for (word, value) in [
            (CS, u64::from(code.0)),
            (RFLAGS, FLAGS),
            (STACK, self.place.pointers[0]),
            (SS, u64::from(USER_DATA.0)),
        ] {
            self.load_constant(RAX, value);
            self.store(RAX, field(word));
        }
        if compatibility {
            // 32-bit code reaches data through DS and ES, which IRETQ would empty if they were those of ring 0.
            self.data_segments(USER_DATA);
        }
    }

    /// lea rsp, [rip + user]; iretq
    pub(super) fn enter_user(&mut self) {
        self.with_data(0x8d, RSP, offset_of!(Data, user));
        self.put(&[0x48, 0xcf]);
    }

    /// int imm8
    pub(super) fn leave_user(&mut self, index: usize) {
        self.put(&[0xcd, SNIPPET_VECTORS[index]]);
    }

    /// After a landing: keeps RSP and the flags of the stay for the next one. Overwrites RAX.
    pub(super) fn keep_user(&mut self) {
        // mov rax, [rsp + 24]: RSP
        self.put(&[0x48, 0x8b, 0x44, 0x24, 0x18]);
        self.store(RAX, field(STACK));
        // mov rax, [rsp + 16]: RFLAGS
        self.put(&[0x48, 0x8b, 0x44, 0x24, 0x10]);
        self.store(RAX, field(RFLAGS));
    }

    /// The way to ring 3 has emptied the data segments or left them to it, the way back has emptied SS.
    pub(super) fn kernel_segments(&mut self) {
        self.data_segments(KERNEL_DATA);
        // mov ss, eax
        self.put(&[0x8e, 0xd0]);
    }

    /// mov eax, imm32; mov ds, eax; mov es, eax
    fn data_segments(&mut self, selector: SegmentSelector) {
        self.put(&[0xb8 | RAX]);
        self.put(&u32::from(selector.0).to_le_bytes());
        self.put(&[0x8e, 0xd8, 0x8e, 0xc0]);
    }
}
