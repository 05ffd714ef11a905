//! Branches of every kind, and code that changes itself.

use super::access;
use super::emit::{Emitter, Result, Target};
use super::fragment::*;
use iced_x86::code_asm::*;

impl Emitter {
    pub(super) fn skip(&mut self, condition: u8, test: Test, body: &[Fragment]) -> Result {
        self.test(test)?;
        let mut end = self.asm.create_label();
        self.jump(condition, end)?;
        self.sequence(body)?;
        self.place(&mut end)
    }

    pub(super) fn nowhere(&mut self, condition: u8, test: Test, count: u8) -> Result {
        self.asm.mov(ecx, i32::from(count))?;
        self.test(test)?;
        let mut end = self.asm.create_label();
        self.jump(condition, end)?;
        self.place(&mut end)
    }

    fn test(&mut self, test: Test) -> Result {
        match test {
            Test::Counter(mask) => self.asm.test(r12d, i32::from(mask))?,
            Test::Memory(place, bit) => {
                let memory = self.operand(&place, 1)?;
                self.asm.bt(dword_ptr(memory), i32::from(bit))?;
                access::define_flags(&mut self.asm)?;
            }
            Test::Flags => {}
        }
        Ok(())
    }

    fn jump(&mut self, condition: u8, end: CodeLabel) -> Result {
        let a = &mut self.asm;
        match condition {
            0 => a.jo(end),
            1 => a.jno(end),
            2 => a.jb(end),
            3 => a.jae(end),
            4 => a.je(end),
            5 => a.jne(end),
            6 => a.jbe(end),
            7 => a.ja(end),
            8 => a.js(end),
            9 => a.jns(end),
            10 => a.jp(end),
            11 => a.jnp(end),
            12 => a.jl(end),
            13 => a.jge(end),
            14 => a.jle(end),
            15 => a.jg(end),
            ON_COUNT => a.loop_(end),
            17 => a.loope(end),
            18 => a.loopne(end),
            19 => a.jrcxz(end),
            // JECXZ with a displacement of 0, which the assembler does not know in 64-bit code.
            _ => a.db(&[0x67, 0xe3, 0]),
        }
    }

    /// A jump ends QEMU's block. Within one, what is to go on without a breakpoint (RF), as after a page fault, goes on to its
    /// end, and so into what an INT n pushes there.
    pub(super) fn new_block(&mut self) -> Result {
        let mut next = self.asm.create_label();
        self.asm.jmp(next)?;
        self.place(&mut next)
    }

    /// Sets a label where another may stand already.
    fn place(&mut self, label: &mut CodeLabel) -> Result {
        self.asm.set_label(label)?;
        self.asm.zero_bytes()
    }

    pub(super) fn repeat(&mut self, kind: LoopKind, count: u32, body: &[Fragment]) -> Result {
        let (mut head, mut end) = (self.asm.create_label(), self.asm.create_label());
        let count = count as i32;
        self.asm.push(r12)?;
        match kind {
            LoopKind::DecJnz => {
                self.asm.mov(r12d, count)?;
                self.place(&mut head)?;
                self.sequence(body)?;
                self.asm.dec(r12d)?;
                self.asm.jne(head)?;
            }
            LoopKind::Loop => {
                self.asm.mov(ecx, count)?;
                self.place(&mut head)?;
                self.asm.push(rcx)?;
                self.asm.mov(r12d, ecx)?;
                self.sequence(body)?;
                self.asm.pop(rcx)?;
                self.asm.loop_(head)?;
            }
            LoopKind::Jrcxz => {
                self.asm.mov(r12d, count)?;
                self.place(&mut head)?;
                self.asm.mov(ecx, r12d)?;
                self.asm.jrcxz(end)?;
                self.sequence(body)?;
                self.asm.dec(r12d)?;
                self.asm.jmp(head)?;
                self.place(&mut end)?;
            }
        }
        self.asm.pop(r12)
    }

    pub(super) fn call(&mut self, kind: CallKind, number: u8) -> Result {
        let Some(callee) = self.callee(number) else { return Ok(()) };
        let label = self.functions[callee].0;
        match kind {
            CallKind::Direct => self.asm.call(label),
            CallKind::Register => {
                self.asm.lea(rax, ptr(label))?;
                self.asm.call(rax)
            }
            CallKind::Memory => self.asm.call(qword_ptr(Self::entry_of(callee))),
            CallKind::Alias => {
                self.asm.call(qword_ptr(Self::entry_of(self.functions.len() + callee)))
            }
        }
    }

    pub(super) fn deep(&mut self, depth: u8) -> Result {
        let (mut over, mut again, mut out) =
            (self.asm.create_label(), self.asm.create_label(), self.asm.create_label());
        self.asm.mov(r13d, i32::from(depth))?;
        self.asm.call(again)?;
        self.asm.jmp(over)?;
        self.place(&mut again)?;
        self.asm.dec(r13d)?;
        self.asm.je(out)?;
        self.asm.call(again)?;
        self.place(&mut out)?;
        self.asm.ret()?;
        self.place(&mut over)
    }

    pub(super) fn table(&mut self, four: bool, cases: &[Vec<Fragment>]) -> Result {
        let count = if four { 4 } else { 2 };
        let mut end = self.asm.create_label();
        let mut labels: Vec<_> = (0..count).map(|_| self.asm.create_label()).collect();
        let first = self.tables.len();
        // Reserved before the cases, which may have tables of their own.
        self.tables.extend(labels.iter().map(|&label| Target { label, alias: false }));
        self.asm.mov(ebx, r12d)?;
        self.asm.and(ebx, count - 1)?;
        self.asm.jmp(qword_ptr(rbx * 8 + Self::entry_of(first)))?;
        for (number, label) in labels.iter_mut().enumerate() {
            self.place(label)?;
            self.tables[first + number].label = *label;
            self.sequence(cases.get(number).map_or(&[], Vec::as_slice))?;
            self.asm.jmp(end)?;
        }
        self.place(&mut end)
    }

    pub(super) fn change(&mut self, change: Change, alias: bool) -> Result {
        let mut target = self.asm.create_label();
        self.asm.lea(rdi, ptr(target))?;
        if alias {
            // From either to the other.
            self.asm.xor(rdi, Self::ALIAS_BYTES)?;
        }
        // Under nested paging, which stepping needs, QEMU 10 does not begin a block anew that its own store changes, if that is
        // the first one to its linear page. So the first one changes nothing, in a block before.
        self.asm.xor(byte_ptr(rdi), 0)?;
        self.new_block()?;
        match change {
            Change::Immediate(value) => {
                // B0 ib.
                self.asm.mov(byte_ptr(rdi + 1), i32::from(value))?;
                self.asm.xor(byte_ptr(rdi + 1), r12b)?;
                self.asm.set_label(&mut target)?;
                self.asm.mov(al, 0)
            }
            Change::Jump => {
                // EB 00, a jump to the next instruction, and 3C 00, CMP AL, 0. One byte tells them apart, so that a page's
                // end between the two does no harm where only one of the pages has another frame.
                self.asm.xor(byte_ptr(rdi), 0xeb ^ 0x3c)?;
                self.asm.set_label(&mut target)?;
                self.asm.db(&[0xeb, 0x00])
            }
        }
    }
}
