//! Exceptions, interrupts, rings, page tables, and the PMU's own instructions.

use super::assemble::{CODE, COPY, FIRST_DATA, USER_STACK_END};
use super::compatibility;
use super::emit::{Emitter, Result};
use super::fragment::*;
use iced_x86::code_asm::*;
use iced_x86::{Code, Instruction};
use program_format::Write;
use program_format::layout::{
    LEAVE_CALL, address, entry_address, page, selector, slot, slot_address, vector,
};

/// Interrupt command register, initial count.
const ICR: u64 = 0x300;
const INITIAL_COUNT: u64 = 0x380;

fn apic(register: u64) -> AsmMemoryOperand {
    dword_ptr(address(page::APIC) + register)
}

fn word(slot: u64) -> AsmMemoryOperand {
    qword_ptr(slot_address(slot))
}

impl Emitter {
    pub(super) fn system(&mut self, fragment: &Fragment) -> Result {
        match fragment {
            Fragment::Service => {
                self.new_block()?;
                self.asm.int(i32::from(vector::SERVICE))
            }
            Fragment::Breakpoint => {
                self.new_block()?;
                self.asm.int3()
            }
            Fragment::Undefined => self.asm.ud2(),
            Fragment::Division => {
                self.asm.xor(ecx, ecx)?;
                self.asm.div(cl)
            }
            Fragment::Protection(kind) => self.protection(*kind),
            Fragment::Counter(number) => self.counter(*number),
            Fragment::Cpuid => {
                self.asm.mov(eax, 1)?;
                self.asm.cpuid()
            }
            Fragment::Forget(Forget::Line(place)) => {
                let memory = self.operand(place, 1)?;
                self.asm.clflush(byte_ptr(memory))
            }
            Fragment::SystemCall if self.ring == 3 && self.level == 0 => {
                self.asm.xor(eax, eax)?;
                self.asm.syscall()
            }
            Fragment::SystemCall => self.asm.nop(),
            other if self.ring == 0 => self.privileged(other),
            // Refused.
            _ => self.guarded(|this| this.asm.cli()),
        }
    }

    fn protection(&mut self, kind: u8) -> Result {
        self.guarded(|this| match kind {
            // Non-canonical addresses, a selector beyond the table, an address that is not aligned.
            0 => {
                this.asm.mov(rax, 0x8000_0000_0000_0000u64)?;
                this.asm.mov(rax, qword_ptr(rax))
            }
            1 => {
                this.asm.mov(eax, 0x7ff8)?;
                this.asm.mov(ds, ax)
            }
            2 => this.asm.movaps(xmm0, xmmword_ptr(r15 + 1)),
            _ => {
                this.asm.mov(rax, 0x0123_4567_89ab_cdefu64)?;
                this.asm.lock().inc(qword_ptr(rax))
            }
        })
    }

    /// RDPMC, gathered.
    fn counter(&mut self, number: u8) -> Result {
        self.asm.mov(ecx, i32::from(number))?;
        self.asm.rdpmc()?;
        self.asm.shl(rdx, 32)?;
        self.asm.or(rax, rdx)?;
        self.asm.rol(rbp, 7)?;
        self.asm.xor(rbp, rax)
    }

    fn privileged(&mut self, fragment: &Fragment) -> Result {
        match fragment {
            Fragment::User(call, body) => self.user(*call, body),
            Fragment::Compatibility(list, count) => self.compatibility(list, *count),
            Fragment::Ipi(nmi) => self.ipi(*nmi),
            Fragment::Masked(body) => {
                self.asm.cli()?;
                self.ipi(false)?;
                self.sequence(body)?;
                self.asm.sti()?;
                self.asm.nop()
            }
            Fragment::Cut(strings) => {
                self.asm.cli()?;
                self.ipi(false)?;
                self.strings(strings, true)?;
                self.new_block()
            }
            Fragment::Timer(ticks) => self.timer(*ticks),
            Fragment::Halt(ticks) => self.halt(*ticks),
            Fragment::Unmap(number) => {
                let number = FIRST_DATA + u16::from(number % 16);
                // The mark of pages that come back, instead of presence.
                self.asm.mov(eax, dword_ptr(entry_address(number)))?;
                self.asm.and(eax, !1)?;
                self.asm.or(eax, 1 << 9)?;
                self.asm.mov(dword_ptr(entry_address(number)), eax)?;
                self.asm.invlpg(byte_ptr(address(number)))
            }
            Fragment::Swap(one, other) => {
                let [one, other] = [one, other].map(|number| FIRST_DATA + u16::from(number % 16));
                self.swap(one, other)
            }
            Fragment::SwapCode(number) => {
                let number = u16::from(number % 4);
                self.swap(CODE + number, COPY + number)
            }
            Fragment::SameOffset(back, absent) => self.same_offset(*back, *absent),
            Fragment::Uncounted(body) => self.uncounted(body),
            Fragment::Forget(forget) => self.forget(*forget),
            Fragment::Port => {
                self.asm.mov(al, 1)?;
                self.asm.out(0x80, al)
            }
            Fragment::Shadow => {
                self.asm.mov(eax, i32::from(selector::KERNEL_DATA))?;
                self.asm.mov(ss, ax)?;
                self.asm.inc(rsi)
            }
            _ => Ok(()),
        }
    }

    /// Goes to its own address in the code's second pages, and from there on to what follows.
    fn same_offset(&mut self, back: Back, absent: bool) -> Result {
        let (mut here, mut next) = (self.asm.create_label(), self.asm.create_label());
        self.asm.lea(rdi, ptr(here))?;
        self.asm.add(rdi, Self::ALIAS_BYTES)?;
        self.asm.lea(rsi, ptr(next))?;
        if absent {
            // As for a data page.
            self.asm.mov(eax, edi)?;
            self.asm.sub(eax, address(CODE) as i32)?;
            self.asm.shr(eax, 12)?;
            self.asm.shl(eax, 3)?;
            self.asm.and(dword_ptr(rax + entry_address(CODE)), !1)?;
            self.asm.or(dword_ptr(rax + entry_address(CODE)), 1 << 9)?;
            self.asm.invlpg(byte_ptr(rdi))?;
        }
        let data = i32::from(selector::KERNEL_DATA);
        self.asm.mov(ecx, cs)?;
        for to in [rsi, rdi] {
            if matches!(back, Back::Interrupt) {
                self.asm.mov(rax, rsp)?;
                self.asm.push(data)?;
                self.asm.push(rax)?;
                self.asm.pushfq()?;
            }
            if !matches!(back, Back::Near) {
                self.asm.push(rcx)?;
            }
            self.asm.push(to)?;
        }
        self.asm.set_label(&mut here)?;
        match back {
            Back::Near => self.asm.ret(),
            Back::Interrupt => self.asm.iretq(),
            Back::Far => self.asm.add_instruction(Instruction::with(Code::Retfq)),
        }?;
        self.asm.set_label(&mut next)?;
        self.asm.zero_bytes()
    }

    fn ipi(&mut self, nmi: bool) -> Result {
        // To itself, as an edge.
        let command = if nmi { 0x4_0400 } else { 0x4_0000 | i32::from(vector::DEVICE) };
        self.asm.mov(apic(ICR), command)?;
        self.asm.nop()?;
        // QEMU sets RF in the frame of an interrupt that it delivers itself, and drops it at the end of a block alone: an INT
        // would push it.
        let mut next = self.asm.create_label();
        self.asm.jmp(next)?;
        self.asm.set_label(&mut next)?;
        self.asm.zero_bytes()
    }

    /// Waits until one more device interrupt has come, whatever else ends HLT.
    fn halt(&mut self, ticks: u16) -> Result {
        let mut again = self.asm.create_label();
        self.asm.cli()?;
        self.asm.mov(rsi, word(slot::DEVICES))?;
        self.asm.mov(apic(INITIAL_COUNT), 40_000 + i32::from(ticks))?;
        self.asm.set_label(&mut again)?;
        self.asm.sti()?;
        self.asm.hlt()?;
        self.asm.cli()?;
        self.asm.cmp(word(slot::DEVICES), rsi)?;
        self.asm.je(again)?;
        // How many had come before is not known where the timer is set anyhow.
        self.asm.xor(esi, esi)?;
        self.asm.sti()
    }

    /// Sets the timer.
    pub(super) fn timer(&mut self, ticks: u32) -> Result {
        self.asm.mov(apic(INITIAL_COUNT), ticks as i32)
    }

    fn exchange(&mut self, one: u16, other: u16) -> Result {
        self.asm.mov(rax, qword_ptr(entry_address(one)))?;
        self.asm.xchg(qword_ptr(entry_address(other)), rax)?;
        self.asm.mov(qword_ptr(entry_address(one)), rax)
    }

    fn swap(&mut self, one: u16, other: u16) -> Result {
        self.exchange(one, other)?;
        self.asm.invlpg(byte_ptr(address(one)))?;
        self.asm.invlpg(byte_ptr(address(other)))
    }

    /// `body` while nothing is counted. Not where the timer may ring in it: its handler's counts would be of either kind.
    fn uncounted(&mut self, body: &[Fragment]) -> Result {
        if self.whole {
            return Ok(());
        }
        let [start, stop] = self.switches.clone();
        self.write_registers(&stop)?;
        self.sequence(body)?;
        self.write_registers(&start)
    }

    fn write_registers(&mut self, list: &[Write]) -> Result {
        list.iter().try_for_each(|write| {
            self.asm.mov(ecx, write.register as u32)?;
            self.asm.mov(eax, write.value as u32)?;
            self.asm.mov(edx, (write.value >> 32) as u32)?;
            self.asm.wrmsr()
        })
    }

    fn forget(&mut self, forget: Forget) -> Result {
        match forget {
            Forget::Page(number) => {
                let number = FIRST_DATA + u16::from(number % 16);
                self.asm.invlpg(byte_ptr(address(number)))
            }
            Forget::All => {
                self.asm.mov(rax, cr3)?;
                self.asm.mov(cr3, rax)
            }
            Forget::Swapped(one, other) => {
                let [one, other] = [one, other].map(|number| FIRST_DATA + u16::from(number % 16));
                self.exchange(one, other)?;
                // PGE (SDM vol. 3, 4.10.4.1).
                self.asm.mov(rax, cr4)?;
                self.asm.btc(rax, 7)?;
                self.asm.mov(cr4, rax)
            }
            Forget::Caches => self.asm.wbinvd(),
            Forget::Line(_) => Ok(()),
        }
    }

    /// An interrupt frame for ring 3, with RAX as RIP.
    fn enter(&mut self, code: u16, back: CodeLabel) -> Result {
        self.asm.lea(rcx, ptr(back))?;
        self.asm.mov(word(slot::BACK_RIP), rcx)?;
        self.asm.mov(word(slot::BACK_RSP), rsp)?;
        self.asm.push(i32::from(selector::USER_DATA))?;
        self.asm.push(USER_STACK_END as i32)?;
        // Interrupts on.
        self.asm.push(0x202)?;
        self.asm.push(i32::from(code))?;
        self.asm.push(rax)?;
        self.asm.iretq()
    }

    fn user(&mut self, call: bool, body: &[Fragment]) -> Result {
        let (mut start, mut back) = (self.asm.create_label(), self.asm.create_label());
        self.asm.lea(rax, ptr(start))?;
        self.enter(selector::USER_CODE, back)?;
        self.asm.set_label(&mut start)?;
        self.asm.zero_bytes()?;
        self.ring = 3;
        self.sequence(body)?;
        self.ring = 0;
        if call {
            self.asm.mov(eax, LEAVE_CALL)?;
            self.asm.syscall()?;
        } else {
            self.asm.int(i32::from(vector::LEAVE))?;
        }
        self.asm.set_label(&mut back)?;
        self.asm.zero_bytes()
    }

    fn compatibility(&mut self, list: &[u8], count: u8) -> Result {
        let (mut start, mut back) = (self.asm.create_label(), self.asm.create_label());
        let code = compatibility::code(list, count)?;
        self.asm.lea(rax, ptr(start))?;
        self.enter(selector::USER_CODE_32, back)?;
        self.asm.set_label(&mut start)?;
        self.asm.zero_bytes()?;
        self.asm.db(&code)?;
        self.asm.set_label(&mut back)?;
        // The upper halves of registers are undefined after 32-bit code.
        for register in [rax, rcx, rdx, rbx, rsi, rdi, r8, r9, r10, r11] {
            self.asm.xor(register, register)?;
        }
        self.asm.mov(r13d, r13d)?;
        self.asm.mov(r15, address(FIRST_DATA))
    }
}
