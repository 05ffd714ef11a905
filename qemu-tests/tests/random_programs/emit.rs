//! From the parts of a program to instructions.
//!
//! R15 holds the data area's address, R14 where #GP goes on, R12 the innermost loop's counter, RBP gathers what is read of
//! the PMU. The other registers are anybody's.

use super::access::{self, FORMS};
use super::assemble::{self, ALIAS, CODE, DATA, FIRST_DATA, TABLE};
use super::fragment::*;
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use program_format::layout::{LARGE, PAGE, address, slot, slot_address};
use program_format::{Pmu, Write};

pub type Result = std::result::Result<(), IcedError>;

/// An entry of the page of tables.
pub struct Target {
    pub label: CodeLabel,
    /// By the code's second linear address.
    pub alias: bool,
}

/// Most instructions that a loop executes, or one round if that has more.
const LOOP_BUDGET: u32 = 300;
/// Most that a sequence executes; what comes after is left out.
const BUDGET: u32 = 1200;

/// Code as it is being written.
pub struct Emitter {
    pub asm: CodeAssembler,
    pub tables: Vec<Target>,
    pub entry: CodeLabel,
    pub(super) functions: Vec<(CodeLabel, u32)>,
    data: Vec<(u8, bool)>,
    data_frames: Vec<u16>,
    /// Nothing that is interrupted in its middle: how often is not known.
    pub(super) whole: bool,
    /// What starts counting, and what stops it.
    pub(super) switches: [Vec<Write>; 2],
    pub(super) ring: u8,
    /// Which function this is within; they call those after.
    pub(super) level: usize,
}

impl Emitter {
    pub fn new(code: &Code, pmu: &Pmu) -> std::result::Result<Self, IcedError> {
        let mut asm = CodeAssembler::new(64)?;
        let functions = code.functions.iter().map(|_| (asm.create_label(), 0)).collect();
        let entry = asm.create_label();
        let data_frames = (0..assemble::DATA_FRAMES).map(|n| assemble::frame(code, n)).collect();
        let data = code.data.clone();
        let whole = code.timer.is_some();
        let switches = [pmu.start.clone(), pmu.stop.clone()];
        Ok(Self {
            asm,
            tables: Vec::new(),
            entry,
            functions,
            data,
            data_frames,
            whole,
            switches,
            ring: 0,
            level: 0,
        })
    }

    /// Functions, the last first so that what each costs is known where it is called; then the main part.
    pub fn all(&mut self, code: &Code) -> Result {
        let count = self.functions.len();
        for alias in [false, true] {
            let labels = self.functions.iter().map(|&(label, _)| Target { label, alias });
            self.tables.extend(labels);
        }
        // What may stand in any ring is written as for ring 3.
        self.ring = 3;
        for (number, body) in code.functions.iter().enumerate().rev() {
            self.level = number + 1;
            self.functions[number].1 = 1 + self.cost(body).min(BUDGET);
            let mut label = self.functions[number].0;
            self.asm.set_label(&mut label)?;
            // A label knows where it is only from now on.
            self.functions[number].0 = label;
            self.tables[number].label = label;
            self.tables[count + number].label = label;
            self.asm.zero_bytes()?;
            self.sequence(body)?;
            self.asm.ret()?;
        }
        (self.ring, self.level) = (0, 0);
        let mut entry = self.entry;
        self.asm.set_label(&mut entry)?;
        self.entry = entry;
        self.asm.mov(r15, address(FIRST_DATA))?;
        self.asm.mov(r12d, 5)?;
        if let Some(ticks) = code.timer {
            self.timer(ticks)?;
        }
        self.sequence(&code.main)?;
        self.asm.jmp(qword_ptr(slot_address(slot::EXIT)))
    }

    /// As many fragments as the budget allows.
    pub(super) fn sequence(&mut self, fragments: &[Fragment]) -> Result {
        let mut left = BUDGET;
        for fragment in fragments {
            let cost = self.cost(std::slice::from_ref(fragment));
            if cost > left {
                continue;
            }
            left -= cost;
            self.fragment(fragment)?;
        }
        Ok(())
    }

    /// Instructions that fragments execute at the most, roughly.
    pub(super) fn cost(&self, fragments: &[Fragment]) -> u32 {
        fragments.iter().map(|fragment| self.cost_of(fragment)).fold(0, u32::saturating_add)
    }

    fn cost_of(&self, fragment: &Fragment) -> u32 {
        match fragment {
            Fragment::Plain(list) => list.len() as u32,
            Fragment::Skip(_, _, body) | Fragment::Masked(body) => 4 + self.cost(body),
            Fragment::Uncounted(body) => 60 + self.cost(body),
            Fragment::User(_, body) => 12 + self.cost(body),
            Fragment::Loop(_, count, body) => 4 + self.rounds(*count, body) * (2 + self.cost(body)),
            Fragment::Call(_, index) => {
                3 + self.callee(*index).map_or(0, |callee| self.functions[callee].1)
            }
            Fragment::Deep(depth) => 3 + 4 * u32::from(*depth),
            Fragment::Table(_, cases) => {
                6 + cases.iter().map(|case| self.cost(case)).max().unwrap_or_default()
            }
            Fragment::Compatibility(_, count) => 20 + 12 * u32::from(*count),
            Fragment::Ipi(_) | Fragment::Cut(_) => 60,
            _ => 10,
        }
    }

    /// Rounds of a loop within the budget.
    pub(super) fn rounds(&self, count: u8, body: &[Fragment]) -> u32 {
        u32::from(count).min(LOOP_BUDGET / (2 + self.cost(body))).max(1)
    }

    /// The function that a call goes to: one after the one it is in.
    pub(super) fn callee(&self, number: u8) -> Option<usize> {
        let count = self.functions.len() - self.level;
        (count > 0).then(|| self.level + usize::from(number) % count)
    }

    /// Offset of a place in the data area, with this alignment.
    pub(super) fn offset(&self, place: &Place, align: u16) -> i32 {
        let spot = match place.spot {
            Spot::At(byte) => byte % 4096,
            Spot::LineEnd(line, bytes) => u16::from(line % 64) * 64 + 64 - u16::from(bytes),
            Spot::PageEnd(bytes) => 4096 - u16::from(bytes),
        };
        i32::from(place.page % 16) * 4096 + i32::from(spot / align * align)
    }

    /// The memory operand, with RBX as index where one is wanted.
    pub(super) fn operand(
        &mut self,
        place: &Place,
        align: u16,
    ) -> std::result::Result<AsmMemoryOperand, IcedError> {
        let offset = self.offset(place, align);
        Ok(match place.form {
            Addressing::Base => r15 + offset,
            Addressing::Absolute => (address(FIRST_DATA) as i32 + offset).into(),
            Addressing::Indexed(scale) => {
                // RBX holds what makes up for the displacement.
                let index = offset >> scale & 0x3ff;
                self.asm.mov(rbx, i64::from(index))?;
                let scaled = match scale & 3 {
                    0 => rbx * 1,
                    1 => rbx * 2,
                    2 => rbx * 4,
                    _ => rbx * 8,
                };
                r15 + scaled + (offset - (index << (scale & 3)))
            }
            Addressing::Large => {
                let page = usize::from(FIRST_DATA - DATA) + offset as usize / 4096;
                let frame = self.data_frames[usize::from(self.data[page].0)];
                // Behind a frame there is another one, maybe one of code.
                let within = (offset % 4096).min(4096 - 64);
                (LARGE as i32 + i32::from(frame) * PAGE as i32 + within).into()
            }
        })
    }

    /// `instruction`, after which #GP goes on.
    pub(super) fn guarded(&mut self, instruction: impl FnOnce(&mut Self) -> Result) -> Result {
        let mut next = self.asm.create_label();
        self.asm.lea(r14, ptr(next))?;
        instruction(self)?;
        self.asm.set_label(&mut next)?;
        self.asm.zero_bytes()
    }

    fn fragment(&mut self, fragment: &Fragment) -> Result {
        match fragment {
            Fragment::Plain(list) => list.iter().try_for_each(|&number| self.plain(number)),
            Fragment::Access(form, place) => self.access(&FORMS[usize::from(*form)], place),
            Fragment::Save(kind, place) => self.save(*kind, place),
            Fragment::Strings(strings) => self.strings(strings, false),
            Fragment::Stack(kind, place) => self.stack(*kind, place),
            Fragment::Skip(condition, test, body) => self.skip(*condition, *test, body),
            Fragment::Nowhere(condition, test, count) => self.nowhere(*condition, *test, *count),
            Fragment::Loop(kind, count, body) => {
                self.repeat(*kind, self.rounds(*count, body), body)
            }
            Fragment::Call(kind, index) => self.call(*kind, *index),
            Fragment::Deep(depth) => self.deep(*depth),
            Fragment::Table(four, cases) => self.table(*four, cases),
            Fragment::Change(change, alias) => self.change(*change, *alias),
            other => self.system(other),
        }
    }

    fn plain(&mut self, number: u8) -> Result {
        let a = &mut self.asm;
        match number % 16 {
            0 => a.add(rax, rdx),
            1 => a.imul_3(rcx, rax, 77),
            2 => a.xor(rdx, rcx),
            3 => a.shr(rax, 3),
            4 => a.lea(rdx, rax + rcx * 2 + 5),
            5 => a.inc(rsi),
            6 => a.bswap(rdi),
            7 => a.cmovb(r8, r9),
            8 => a.pause(),
            9 => a.rol(r10, 9),
            10 => a.paddq(xmm0, xmm1),
            11 => a.vpxor(ymm2, ymm1, ymm0),
            12 => a.adc(r9, r12),
            13 => a.nop(),
            14 => a.xchg(r9, r10),
            _ => a.sub(r11d, i32::from(number)),
        }
    }

    fn access(&mut self, form: &access::Form, place: &Place) -> Result {
        let memory = self.operand(place, form.align)?;
        self.guarded(|this| (form.encode)(&mut this.asm, memory))
    }

    fn save(&mut self, kind: u8, place: &Place) -> Result {
        // Its parts need another displacement each.
        let base = self.offset(place, access::SAVE_ALIGN);
        self.guarded(|this| access::save(&mut this.asm, kind, |offset| r15 + (base + offset)))
    }

    /// `held_back`: an interrupt waits, and is let in by an STI before it.
    pub(super) fn strings(&mut self, strings: &Strings, held_back: bool) -> Result {
        let (from, to) = (self.offset(&strings.source, 1), self.offset(&strings.destination, 1));
        let whole = self.whole;
        let a = &mut self.asm;
        a.lea(rsi, ptr(r15 + from))?;
        a.lea(rdi, ptr(r15 + to))?;
        a.mov(ecx, i32::from(strings.count))?;
        let is_port = matches!(strings.kind, StringKind::Outs);
        if is_port && self.ring != 0 {
            return Ok(());
        }
        if strings.backward {
            a.std()?;
        }
        if is_port {
            // POST codes, which nobody reads.
            a.mov(edx, 0x80)?;
        }
        if held_back {
            a.sti()?;
        }
        if strings.repeated && !whole {
            match strings.kind {
                StringKind::Scas(false) | StringKind::Cmps(false) => a.repne(),
                _ => a.rep(),
            };
        }
        match (strings.kind, strings.size % 4) {
            (StringKind::Movs, 0) => a.movsb(),
            (StringKind::Movs, 1) => a.movsw(),
            (StringKind::Movs, 2) => a.movsd(),
            (StringKind::Movs, _) => a.movsq(),
            (StringKind::Stos, 0) => a.stosb(),
            (StringKind::Stos, 1) => a.stosw(),
            (StringKind::Stos, 2) => a.stosd(),
            (StringKind::Stos, _) => a.stosq(),
            (StringKind::Lods, 0) => a.lodsb(),
            (StringKind::Lods, 1) => a.lodsw(),
            (StringKind::Lods, 2) => a.lodsd(),
            (StringKind::Lods, _) => a.lodsq(),
            (StringKind::Scas(_), 0) => a.scasb(),
            (StringKind::Scas(_), 1) => a.scasw(),
            (StringKind::Scas(_), 2) => a.scasd(),
            (StringKind::Scas(_), _) => a.scasq(),
            (StringKind::Cmps(_), 0) => a.cmpsb(),
            (StringKind::Cmps(_), 1) => a.cmpsw(),
            (StringKind::Cmps(_), 2) => a.cmpsd(),
            (StringKind::Cmps(_), _) => a.cmpsq(),
            (StringKind::Outs, 0) => a.outsb(),
            (StringKind::Outs, 1) => a.outsw(),
            (StringKind::Outs, _) => a.outsd(),
        }?;
        if strings.backward { a.cld() } else { Ok(()) }
    }

    fn stack(&mut self, kind: u8, place: &Place) -> Result {
        let memory = self.operand(place, 1)?;
        let a = &mut self.asm;
        match kind {
            0 => {
                a.push(qword_ptr(memory))?;
                a.pop(rax)
            }
            1 => {
                a.push(rdx)?;
                a.pop(qword_ptr(memory))
            }
            2 => {
                a.push(qword_ptr(memory))?;
                a.pop(qword_ptr(memory))
            }
            3 => {
                a.pushfq()?;
                a.pop(rax)?;
                // What is undefined, and RF, is not to be seen.
                a.and(eax, 0x200)
            }
            4 => {
                a.pushfq()?;
                a.add(eax, 1)?;
                a.popfq()
            }
            5 => {
                a.push(0x1234)?;
                a.add(rsp, 8)
            }
            6 => {
                a.push(word_ptr(memory))?;
                a.pop(ax)
            }
            _ => {
                a.push(rcx)?;
                a.xchg(qword_ptr(rsp), rax)?;
                a.pop(rcx)
            }
        }
    }

    /// The address of a code label by the alias is so much further.
    pub(super) const ALIAS_BYTES: i32 = (address(ALIAS) - address(CODE)) as i32;

    /// Address of an entry of the tables.
    pub(super) fn entry_of(index: usize) -> i32 {
        address(TABLE) as i32 + 8 * index as i32
    }
}
