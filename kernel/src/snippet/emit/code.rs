//! Machine code under construction.

use super::{COUNT_AT, Place};
use core::ops::Range;
use protocol::bits::Bits;
use protocol::job::LoopCounter;

/// Machine code under construction.
pub(crate) struct Code<'a> {
    pub(super) memory: &'a mut [u8],
    pub(super) at: usize,
    pub(super) place: &'a Place,
}

impl<'a> Code<'a> {
    /// No code yet.
    pub(crate) fn new(memory: &'a mut [u8], place: &'a Place) -> Self {
        Self { memory, at: 0, place }
    }

    pub(super) fn address(&self) -> u64 {
        self.place.code + self.at as u64
    }

    /// Appends bytes; returns their addresses.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Range<u64> {
        let start = self.address();
        self.memory[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        start..self.address()
    }

    /// Appends so many bytes: what [`Code::put`] does, without a copy whose length is not known.
    pub(super) fn put_these<const BYTES: usize>(&mut self, bytes: [u8; BYTES]) {
        let end = self.at + BYTES;
        self.memory[self.at..end].copy_from_slice(&bytes);
        self.at = end;
    }

    /// Appends `copies` copies, doubling what is there already.
    pub(super) fn repeat(&mut self, bytes: &[u8], copies: u64) -> Range<u64> {
        let total = bytes.len() * copies as usize;
        let (start, first) = (self.address(), self.at);
        if total > 0 {
            self.put(bytes);
        }
        while self.at - first < total {
            let piece = (self.at - first).min(total - (self.at - first));
            self.memory.copy_within(first..first + piece, self.at);
            self.at += piece;
        }
        start..self.address()
    }

    /// Fills with NOPs (0x90) until what follows after `ahead` more bytes is `offset` after a multiple of `align`, a
    /// power of two.
    pub(crate) fn align(&mut self, align: u64, offset: u64, ahead: u64) {
        let missing = offset.wrapping_sub(self.address() + ahead) & (align - 1);
        let end = self.at + missing as usize;
        self.memory[self.at..end].fill(0x90);
        self.at = end;
    }

    /// Displacement from the end of an instruction, whose last 4 bytes are to hold it, to `target`.
    pub(super) fn displacement(&self, target: u64, instruction_bytes: usize) -> [u8; 4] {
        let end = self.address() + instruction_bytes as u64;
        i32::try_from(target.wrapping_sub(end) as i64).expect("within 2 GiB").to_le_bytes()
    }

    /// Address of what is at `offset` in [`Data`](super::Data).
    pub(super) fn data(&self, offset: usize) -> u64 {
        self.place.data + offset as u64
    }

    /// Opcode with REX.W, ModRM of a register and [rip + disp32].
    pub(super) fn with_data(&mut self, opcode: u8, register: u8, offset: usize) {
        let rex = 0x48 | (register >> 3) << 2;
        let [a, b, c, d] = self.displacement(self.data(offset), 7);
        self.put_these([rex, opcode, (register & 7) << 3 | 5, a, b, c, d]);
    }

    /// mov [rip + data], r64
    pub(super) fn store(&mut self, register: u8, offset: usize) {
        self.with_data(0x89, register, offset);
    }

    /// mov r64, [rip + data]
    pub(super) fn load(&mut self, register: u8, offset: usize) {
        self.with_data(0x8b, register, offset);
    }

    /// mov [rip + data], r32, for the eight old registers
    pub(super) fn store_half(&mut self, register: u8, offset: usize) {
        let [a, b, c, d] = self.displacement(self.data(offset), 6);
        self.put_these([0x89, register << 3 | 5, a, b, c, d]);
    }

    /// mov r64, imm64
    pub(super) fn load_constant(&mut self, register: u8, value: u64) {
        let mut bytes = [0x48 | register >> 3, 0xb8 | register & 7, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[2..].copy_from_slice(&value.to_le_bytes());
        self.put_these(bytes);
    }

    /// Counts down, and goes back to `target` while something is left. 32-bit code counts in memory.
    pub(crate) fn loop_back(&mut self, counter: LoopCounter, bits: Bits, target: u64) {
        match (bits, counter) {
            // dec r15
            (Bits::SixtyFour, LoopCounter::R15) => {
                self.put(&[0x49, 0xff, 0xcf]);
            }
            // dec qword ptr [rip + count]
            (Bits::SixtyFour, LoopCounter::Memory) => self.with_data(0xff, 1, COUNT_AT),
            (Bits::Compatibility, _) => self.count_down_compatibility(COUNT_AT),
        }
        // jnz rel32
        let displacement = self.displacement(target, 6);
        self.put(&[0x0f, 0x85]);
        self.put(&displacement);
    }
}
