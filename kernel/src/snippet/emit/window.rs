//! The window in which counters count: the reads of the TSC and the writes that open and close the gate.

use super::code::Code;
use super::{Data, R12, RAX, RCX, RDX};
use arch::pmu::Gate;
use arch::pmu::driver::Write;
use core::mem::offset_of;

pub(super) const LFENCE: [u8; 3] = [0x0f, 0xae, 0xe8];

/// Bytes of one WRMSR with its operands.
pub(super) const WRITE_BYTES: u64 = 17;

/// Bytes that `start_in_registers` emits in addition to its writes.
pub(super) const REGISTER_START_BYTES: u64 = 32;

/// Bytes that `start_timer` emits; checked there.
pub(super) const TIMER_START_BYTES: u64 = 48;

/// Bytes that `open` emits; checked there. Each write takes three times mov r32, imm32 and a WRMSR; around them three
/// registers are stored and loaded, and an LFENCE follows.
pub(super) fn gate_open_bytes(gate: &Gate) -> u64 {
    match gate.on().len() as u64 {
        0 => 0,
        writes => WRITE_BYTES * writes + 6 * 7 + 3,
    }
}

impl<'a> Code<'a> {
    /// lfence; rdtsc; the two halves to memory. MOV leaves the flags alone.
    fn read_timer(&mut self, offset: usize) {
        self.put_these([0x0f, 0xae, 0xe8, 0x0f, 0x31]);
        self.store_half(RAX, offset);
        self.store_half(RDX, offset + 4);
    }

    pub(super) fn start_timer(&mut self) {
        let before = self.at;
        self.store(RAX, offset_of!(Data, rax));
        self.store(RDX, offset_of!(Data, rdx));
        self.read_timer(offset_of!(Data, start));
        self.load(RAX, offset_of!(Data, rax));
        self.load(RDX, offset_of!(Data, rdx));
        // After the reloads, so that neither they nor RDTSC are still in flight when the body starts.
        self.put_these(LFENCE);
        debug_assert_eq!((self.at - before) as u64, TIMER_START_BYTES);
    }

    /// WRMSRs. They overwrite RAX, RCX and RDX, and leave the flags alone.
    pub(super) fn writes(&mut self, writes: &[Write]) {
        for write in writes {
            let (low, high) = (write.value as u32, (write.value >> 32) as u32);
            for (register, value) in [(RCX, write.msr), (RAX, low), (RDX, high)] {
                self.put(&[0xb8 | register]);
                self.put(&value.to_le_bytes());
            }
            self.put(&[0x0f, 0x30]);
        }
    }

    /// What `emit` emits may change RAX, RCX and RDX: they are kept in memory meanwhile.
    pub(super) fn kept(&mut self, emit: impl FnOnce(&mut Self)) {
        let kept = [
            (RAX, offset_of!(Data, rax)),
            (RCX, offset_of!(Data, rcx)),
            (RDX, offset_of!(Data, rdx)),
        ];
        for (register, offset) in kept {
            self.store(register, offset);
        }
        emit(self);
        for (register, offset) in kept {
            self.load(register, offset);
        }
    }

    /// What `emit` emits may change RAX alone.
    pub(super) fn keep_rax<T>(&mut self, emit: impl FnOnce(&mut Self) -> T) -> T {
        self.store(RAX, offset_of!(Data, rax));
        let result = emit(self);
        self.load(RAX, offset_of!(Data, rax));
        result
    }

    pub(super) fn open(&mut self, gate: &Gate) {
        let before = self.at;
        if gate.on().is_empty() {
            return;
        }
        self.kept(|code| code.writes(gate.on()));
        self.put_these(LFENCE);
        debug_assert_eq!((self.at - before) as u64, gate_open_bytes(gate));
    }

    /// Timer and gate without memory. MOV leaves the flags alone.
    pub(super) fn start_in_registers(&mut self, gate: &Gate) {
        // mov r9, rax; mov r10, rdx; mov r11, rcx
        self.put(&[0x49, 0x89, 0xc1, 0x49, 0x89, 0xd2, 0x49, 0x89, 0xcb]);
        // lfence; rdtsc; mov r12d, eax; mov r13d, edx
        self.put(&[0x0f, 0xae, 0xe8, 0x0f, 0x31, 0x41, 0x89, 0xc4, 0x41, 0x89, 0xd5]);
        self.writes(gate.on());
        // mov rax, r9; mov rdx, r10; mov rcx, r11
        self.put(&[0x4c, 0x89, 0xc8, 0x4c, 0x89, 0xd2, 0x4c, 0x89, 0xd9]);
        self.put(&LFENCE);
    }

    /// The start that R12 and R13 kept, to memory.
    pub(super) fn store_start(&mut self) {
        // shl r13, 32; or r12, r13
        self.put(&[0x49, 0xc1, 0xe5, 0x20, 0x4d, 0x09, 0xec]);
        self.store(R12, offset_of!(Data, start));
    }

    pub(super) fn stop_timer(&mut self) {
        self.read_timer(offset_of!(Data, stop));
        self.put_these(LFENCE);
    }
}
