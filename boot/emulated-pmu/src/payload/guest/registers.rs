//! The guest's registers, by the decoder's names and as RDMSR has them.

use super::Guest;
use crate::payload::port::read_msr;
use iced_x86::Register;

const FS_BASE: u32 = 0xc000_0100;
const GS_BASE: u32 = 0xc000_0101;

impl Guest {
    /// EDX:EAX as RDMSR, RDPMC and the like leave it.
    pub fn set_edx_eax(&mut self, value: u64) {
        self.vmcb.rax = value & 0xffff_ffff;
        self.registers.rdx = value >> 32;
    }

    /// EDX:EAX as WRMSR takes it.
    pub fn edx_eax(&self) -> u64 {
        self.registers.rdx << 32 | self.vmcb.rax & 0xffff_ffff
    }

    /// Sets a general register.
    pub fn set_register(&mut self, name: Register, value: u64) {
        let r = &mut self.registers;
        *match name.full_register() {
            Register::RAX => &mut self.vmcb.rax,
            Register::RCX => &mut r.rcx,
            Register::RDX => &mut r.rdx,
            Register::RBX => &mut r.rbx,
            Register::RSP => &mut self.vmcb.rsp,
            Register::RBP => &mut r.rbp,
            Register::RSI => &mut r.rsi,
            Register::RDI => &mut r.rdi,
            Register::R8 => &mut r.r8,
            Register::R9 => &mut r.r9,
            Register::R10 => &mut r.r10,
            Register::R11 => &mut r.r11,
            Register::R12 => &mut r.r12,
            Register::R13 => &mut r.r13,
            Register::R14 => &mut r.r14,
            Register::R15 => &mut r.r15,
            _ => return,
        } = value;
    }

    /// Bits of an address in the code that runs.
    pub fn code_bits(&self) -> u32 {
        const LONG: u16 = 1 << 9;
        const DEFAULT_32: u16 = 1 << 10;
        match self.vmcb.cs.attributes {
            attributes if attributes & LONG != 0 => 64,
            attributes if attributes & DEFAULT_32 != 0 => 32,
            _ => 16,
        }
    }

    /// A register by the decoder's name, cut to its width; of a segment register, the base.
    pub fn register(&self, name: Register) -> u64 {
        let r = &self.registers;
        let whole = match name.full_register() {
            Register::RAX => self.vmcb.rax,
            Register::RCX => r.rcx,
            Register::RDX => r.rdx,
            Register::RBX => r.rbx,
            Register::RSP => self.vmcb.rsp,
            Register::RBP => r.rbp,
            Register::RSI => r.rsi,
            Register::RDI => r.rdi,
            Register::R8 => r.r8,
            Register::R9 => r.r9,
            Register::R10 => r.r10,
            Register::R11 => r.r11,
            Register::R12 => r.r12,
            Register::R13 => r.r13,
            Register::R14 => r.r14,
            Register::R15 => r.r15,
            Register::CS | Register::DS | Register::ES | Register::SS if self.code_bits() == 64 => {
                return 0;
            }
            Register::CS => return self.vmcb.cs.base,
            Register::DS => return self.vmcb.ds.base,
            Register::ES => return self.vmcb.es.base,
            Register::SS => return self.vmcb.ss.base,
            // SAFETY: both registers exist in 64-bit mode; the guest's values are live in them.
            Register::FS => return unsafe { read_msr(FS_BASE) },
            // SAFETY: as above.
            Register::GS => return unsafe { read_msr(GS_BASE) },
            // Vector registers, as indexes of gathers: their first element stands for nothing here.
            _ => return 0,
        };
        match name.size() {
            8 => whole,
            4 => whole & 0xffff_ffff,
            2 => whole & 0xffff,
            _ => whole & 0xff,
        }
    }
}
