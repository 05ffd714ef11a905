//! Ring 3: the way in by IRETQ, the way out by INT.
//!
//! Init code and body are two stays. Each begins with an IRETQ that takes its frame from [`Data::user`] and ends in an
//! INT of its own vector, whose gate leads straight to the code behind it: all registers but RSP are still those of ring
//! 3, and the interrupted RSP and flags, which the processor has pushed, are kept for the next stay. Gate and timer stay
//! in ring 0. IRETQ and INT lie between them; as both code sizes have them, they cancel.

use super::{Code, Data, RAX, RSP};
use arch::descriptors::{KERNEL_DATA, USER_CODE, USER_DATA};
use arch::ring3::SNIPPET_VECTORS;
use core::mem::offset_of;

/// RFLAGS at the start of init: the bit that is always 1, interrupts off, IOPL 0.
const FLAGS: u64 = 2;

/// Fields of the frame, in words.
const RIP: usize = 0;
const CS: usize = 1;
const RFLAGS: usize = 2;
const STACK: usize = 3;
const SS: usize = 4;

/// Bytes of [`Code::enter_user`].
pub(super) const ENTER_BYTES: u64 = 9;

/// Where the address that a stay begins at has to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry(usize);

const fn field(word: usize) -> usize {
    offset_of!(Data, user) + 8 * word
}

impl Code<'_> {
    /// Makes the frame for the first stay. Overwrites RAX.
    pub(super) fn prepare_user(&mut self) -> Entry {
        for (word, value) in [
            (CS, u64::from(USER_CODE.0)),
            (RFLAGS, FLAGS),
            (STACK, self.place.pointers[0]),
            (SS, u64::from(USER_DATA.0)),
        ] {
            self.load_constant(RAX, value);
            self.store(RAX, field(word));
        }
        self.entry()
    }

    /// RIP of the frame, still to be filled in. Overwrites RAX.
    fn entry(&mut self) -> Entry {
        self.load_constant(RAX, 0);
        let at = self.at - 8;
        self.store(RAX, field(RIP));
        Entry(at)
    }

    /// Begins the stay that continues behind this.
    pub(super) fn enter_user(&mut self, entry: Entry) {
        let begin = self.address() + ENTER_BYTES;
        self.memory[entry.0..entry.0 + 8].copy_from_slice(&begin.to_le_bytes());
        // lea rsp, [rip + user]; iretq
        self.with_data(0x8d, RSP, offset_of!(Data, user));
        self.put(&[0x48, 0xcf]);
        debug_assert_eq!(self.address(), begin);
    }

    /// Ends stay `index`; returns the address at which ring 0 goes on.
    pub(super) fn land(&mut self, index: usize) -> u64 {
        // int imm8
        self.put(&[0xcd, SNIPPET_VECTORS[index]]);
        self.address()
    }

    /// Behind a landing: keeps RSP and the flags of the stay for the next one, and all other registers as they are.
    pub(super) fn keep_user(&mut self) -> Entry {
        self.store(RAX, offset_of!(Data, rax));
        // mov rax, [rsp + 24]: RSP
        self.put(&[0x48, 0x8b, 0x44, 0x24, 0x18]);
        self.store(RAX, field(STACK));
        // mov rax, [rsp + 16]: RFLAGS
        self.put(&[0x48, 0x8b, 0x44, 0x24, 0x10]);
        self.store(RAX, field(RFLAGS));
        let entry = self.entry();
        self.load(RAX, offset_of!(Data, rax));
        entry
    }

    /// The way to ring 3 has emptied the data segments, the way back SS.
    pub(super) fn kernel_segments(&mut self) {
        // mov eax, imm32; mov ds, eax; mov es, eax; mov ss, eax
        self.put(&[0xb8 | RAX]);
        self.put(&u32::from(KERNEL_DATA.0).to_le_bytes());
        self.put(&[0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xd0]);
    }
}
