//! Handing a block's plan to QEMU.

use crate::callbacks;
use crate::cells::{ALARM, Cells, OPEN, RETURNED, SPENT, WHAT};
use crate::facts::Facts;
use crate::opened::{BEGUN, ITERATED, NOTHING};
use crate::plan::{Action, At};
use crate::qemu::{Block, Condition, Direction, Executed, Insn, Operation, Registers, Word, api};
use crate::running::running;
use crate::state::state;
use crate::tally::{INSTRUCTIONS, Tally};
use crate::trace;
use crate::translator::Translator;
use core::ffi::c_void;
use core::ptr::{from_ref, null_mut};
use iced_x86::Instruction;
use plugin_channel::Mode;

/// Asks QEMU for everything that the plan has.
pub fn apply(
    translator: &mut Translator,
    block: Block,
    insns: &[Insn],
    decoded: &[Option<Instruction>],
    facts: &[Facts],
    plan: &[(At, Action)],
) {
    let mut cells = state().cells();
    let vcpu = running().map_or(0, |vcpu| vcpu.index);
    for (at, action) in plan {
        let mut beside = Beside { cells: &mut cells, block, insns, at: *at, vcpu };
        match action {
            Action::FellThrough(key) => {
                let word = beside.word(OPEN);
                beside.call_if(callbacks::fell_through, Condition::Equal, word, *key, null_mut());
            }
            Action::Restarted(key) => {
                let (word, data) = (beside.word(OPEN), usize::from(facts[0].ip) as *mut c_void);
                beside.call_if(callbacks::restarted, Condition::Equal, word, *key, data);
            }
            Action::Iterated => beside.inline(Operation::Store, OPEN, ITERATED),
            Action::Done(word) => beside.inline(Operation::Store, OPEN, *word),
            Action::NoteCount => beside.call(callbacks::note_count, Registers::Read, null_mut()),
            Action::Begin(opened) => {
                let stays = translator.opened.get(*opened);
                beside.inline(Operation::Store, OPEN, BEGUN);
                beside.inline(Operation::Store, WHAT, from_ref(stays) as u64);
            }
            Action::Unfinished(ip) => {
                let (word, data) = (beside.word(OPEN), usize::from(*ip) as *mut c_void);
                beside.call_if(callbacks::unfinished, Condition::AtLeast, word, BEGUN, data);
            }
            Action::Continued(opened) => {
                let data = (usize::from(facts[0].ip) | callbacks::STRING) as *mut c_void;
                let (word, done) = (beside.word(OPEN), opened.element_word().unwrap_or(NOTHING));
                beside.call_if(callbacks::unfinished, Condition::NotEqual, word, done, data);
            }
            Action::Resolve(ip) => {
                let (word, data) = (beside.word(OPEN), usize::from(*ip) as *mut c_void);
                beside.call_if(callbacks::resolve, Condition::NotEqual, word, NOTHING, data);
            }
            Action::Close => beside.inline(Operation::Store, OPEN, NOTHING),
            Action::Spend(bound) => {
                state().raise(bound.others);
                let data = from_ref(translator.bounds.get(*bound)).cast_mut().cast();
                beside.inline(Operation::Add, SPENT, bound.most());
                let word = beside.word(SPENT);
                beside.call_if(callbacks::spent, Condition::AtLeast, word, ALARM, data);
            }
            Action::NoteStart => beside.call(callbacks::note_start, Registers::Read, null_mut()),
            Action::Returned => beside.inline(Operation::Store, RETURNED, 1),
            Action::Leave => beside.call(callbacks::undecided, Registers::None, null_mut()),
            Action::Count(tally) => beside.count(tally, translator.mode),
            Action::OpenSettled(opened) => {
                let stays = translator.opened.get(*opened);
                beside.inline(Operation::Store, OPEN, stays.address());
                if opened.notes_store() {
                    // The other word will state that it has stored.
                    beside.inline(Operation::Store, WHAT, from_ref(stays) as u64);
                }
            }
            Action::Open(opened) => {
                let stays = translator.opened.get(*opened);
                beside.inline(Operation::Store, OPEN, opened.key());
                beside.inline(Operation::Store, WHAT, from_ref(stays) as u64);
            }
            Action::Element | Action::Trace | Action::Commit => {
                let At::Before(index) = *at else { continue };
                let instruction = decoded[index].unwrap_or_default();
                let start = facts[0].ip;
                trace::apply(translator, insns[index], &instruction, &facts[index], start, action);
            }
        }
    }
}

/// Code next to a place in a block.
struct Beside<'a> {
    cells: &'a mut Cells,
    block: Block,
    insns: &'a [Insn],
    at: At,
    /// Who translates.
    vcpu: u32,
}

impl Beside<'_> {
    fn word(&self, index: usize) -> Word {
        self.cells.word(index, self.vcpu)
    }

    fn count(&mut self, tally: &Tally, mode: Mode) {
        let mut parts = vec![(*tally, 1)];
        if mode.contains(Mode::RECORDS) {
            // Records have the instructions between them, which one word then says.
            let (rest, instructions) = tally.without(INSTRUCTIONS);
            parts = vec![(rest, 1), (Tally::one(INSTRUCTIONS), instructions)];
        }
        for (part, times) in parts.into_iter().filter(|(part, _)| !part.is_none()) {
            for (index, more) in self.cells.additions(&part) {
                self.inline(Operation::Add, index, more * times);
            }
        }
    }

    fn inline(&self, operation: Operation, index: usize, value: u64) {
        let word = self.word(index);
        // SAFETY: the block is being translated, its instructions with it, and the word is of our scoreboard.
        unsafe {
            match self.at {
                At::Start => (api().at_block_inline)(self.block, operation, word, value),
                At::Before(index) => {
                    (api().before_inline)(self.insns[index], operation, word, value);
                }
                At::Loaded(index) => {
                    let insn = self.insns[index];
                    (api().accessed_inline)(insn, Direction::Load, operation, word, value);
                }
                At::Stored(index) => {
                    let insn = self.insns[index];
                    (api().accessed_inline)(insn, Direction::Store, operation, word, value);
                }
            }
        }
    }

    /// A callback at the block's start, or before an instruction.
    fn call(&self, callback: Executed, registers: Registers, data: *mut c_void) {
        // SAFETY: as above; the callback takes such data, which stays.
        unsafe {
            match self.at {
                At::Before(index) => (api().before)(self.insns[index], callback, registers, data),
                _ => (api().at_block)(self.block, callback, registers, data),
            }
        }
    }

    fn call_if(
        &self,
        callback: Executed,
        condition: Condition,
        word: Word,
        value: u64,
        data: *mut c_void,
    ) {
        let registers = Registers::Read;
        // SAFETY: as above.
        unsafe {
            (api().at_block_if)(self.block, callback, registers, condition, word, value, data);
        }
    }
}
