//! The guest's next instruction: where it is, what it is, and going over it.

use super::{Guest, RF, TF};
use crate::payload::events;
use crate::payload::plugin::Plugin;
use emulated_pmu::debug_registers::SINGLE_STEP;
use emulated_pmu::nested::paging::Translation;
use emulated_pmu::step::{self, Behind};
use emulated_pmu::walk::Paging;
use iced_x86::Instruction;
use plugin_channel::STACK_WORDS;

impl Guest {
    /// The linear address of its next instruction.
    pub fn linear_rip(&self) -> u64 {
        match self.code_bits() {
            64 => self.vmcb.rip,
            _ => self.vmcb.cs.base.wrapping_add(self.vmcb.rip) & 0xffff_ffff,
        }
    }

    /// What a branch is judged by that it has just executed.
    pub fn behind(&self) -> Behind {
        Behind { rip: self.linear_rip(), rflags: self.vmcb.rflags, rcx: self.registers.rcx }
    }

    /// Whether the plugin sees what is delivered to it, by the frames of long mode.
    pub fn sees_deliveries(&self) -> bool {
        self.sees(Plugin::sees_deliveries)
    }

    /// The same of page faults alone.
    pub fn sees_page_faults(&self) -> bool {
        self.sees(Plugin::sees_page_faults)
    }

    fn sees(&self, what: impl Fn(&Plugin) -> bool) -> bool {
        let seen = self.plugin.as_ref().is_some_and(what);
        seen && self.is_long_mode() && !self.svm.runs_nested()
    }

    /// The words at the top of its stack in long mode, 0 where there is none.
    pub fn stack(&self) -> [u64; STACK_WORDS] {
        let mut bytes = [0; 8 * STACK_WORDS];
        self.read(self.vmcb.rsp, &mut bytes);
        let (words, _) = bytes.as_chunks::<8>();
        core::array::from_fn(|index| u64::from_le_bytes(words[index]))
    }

    /// The linear address of the top of its stack.
    pub fn linear_stack(&self) -> u64 {
        match self.code_bits() {
            64 => self.vmcb.rsp,
            _ => self.vmcb.ss.base.wrapping_add(self.vmcb.rsp) & 0xffff_ffff,
        }
    }

    /// Whether its next instruction needs no special care.
    pub fn is_plain(&self) -> bool {
        let mut bytes = [0; step::MAX_BYTES];
        let count = self.read(self.linear_rip(), &mut bytes);
        step::is_plain(&bytes[..count])
    }

    /// Its next instruction, by linear address, if it can be read and is one.
    pub fn instruction(&self) -> Option<Instruction> {
        let mut bytes = [0; step::MAX_BYTES];
        let rip = self.linear_rip();
        let count = self.read(rip, &mut bytes);
        step::decode(&bytes[..count], rip, self.code_bits())
    }

    /// How its addresses are translated.
    pub fn translation(&self) -> Translation {
        let vmcb = &self.vmcb;
        let own = Paging { cr0: vmcb.cr0, cr3: vmcb.cr3, cr4: vmcb.cr4, efer: vmcb.efer };
        Translation { own, nested: self.svm.nested_paging() }
    }

    /// Goes over an instruction that was emulated.
    pub fn skip(&mut self, bytes: u64) {
        self.vmcb.rip += bytes;
        // It ends an interrupt shadow, as any instruction does, and RF.
        self.vmcb.int_state &= !1;
        self.vmcb.rflags &= !RF;
        self.after_ss = false;
        // The guest steps itself: as the processor would, unless something else comes now. None of the instructions that
        // come here is a branch, but INT n and INT1, which are not stepped.
        if self.event.is_none() {
            let steps = self.vmcb.rflags & TF != 0 && !self.needs.branch_trap;
            events::traps(self, if steps { SINGLE_STEP } else { 0 }, false);
        }
    }
}
