//! What must be known of an instruction to count it.

use crate::leaves::{self, End};
use crate::opened::Opened;
use crate::shape::Shape;
use crate::tally::{self, Tally};
use crate::vcpu::Passes;
use iced_x86::{CodeSize, Instruction, InstructionInfoFactory};
use plugin_channel::Mode;
use pmu_model::uarch::AccessKind;
use pmu_model::{BranchKind, Occurrence, Ring};
use step::{Behind, Condition, Kind, Maintenance, StringOperation, Touch};

#[cfg(test)]
mod tests;

/// Bits of an address that every mapping of a page shares: QEMU translates a page once, whatever its linear addresses.
pub const OFFSET: u64 = 0xfff;

/// A branch instruction. Addresses are offsets in their pages.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Branch {
    /// Its own address.
    pub from: u16,
    /// The address after it.
    pub next: u16,
    /// Where it goes if its bytes say it.
    pub target: u16,
    /// Its kind.
    pub kind: BranchKind,
    /// Its target does not lie after it.
    pub backward: bool,
    /// It is conditional, and offsets do not state whether it was taken: target and next differ in their pages alone.
    pub ambiguous: bool,
    /// The condition of a jump to the next instruction. Registers state whether it was taken, which QEMU shows at an exit alone.
    pub undecided: Option<Condition>,
    /// Whether it passes the qualifiers.
    pub passes: Passes,
}

impl Branch {
    /// Whether it can raise an exception.
    pub fn can_fail(&self) -> bool {
        !matches!(self.kind, BranchKind::Conditional | BranchKind::RelativeJump)
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Offset of its address.
    pub ip: u16,
    /// Offset of the address after it.
    pub next: u16,
    /// By what one sees that it is done.
    pub end: End,
    /// The branch that it is.
    pub branch: Option<Branch>,
    /// It is SYSCALL or SYSRET.
    pub is_system_call: bool,
    /// It is IRET.
    pub is_interrupt_return: bool,
    /// The repeated string operation that it is.
    pub repeated: Option<StringOperation>,
    /// The part of RCX that counts its elements.
    pub count_mask: u64,
    /// Its accesses, but for those of a repeated string operation; addresses are not known.
    pub touches: Vec<Touch>,
    /// What it does to caches and translations.
    pub maintenance: Option<Maintenance>,
    /// What is done about its accesses where their addresses count.
    pub shape: Shape,
    /// Its micro-operations by port, and its cycles; nothing unless these are counted.
    pub uops: Tally,
    /// Whether it passes the qualifiers.
    pub passes: Passes,
}

impl Facts {
    /// Of an instruction that is not valid, at an address: it raises an exception.
    pub fn invalid(linear: u64, bytes: usize) -> Self {
        Self {
            ip: offset(linear),
            next: offset(linear.wrapping_add(bytes as u64)),
            end: End::Unknown,
            branch: None,
            is_system_call: false,
            is_interrupt_return: false,
            repeated: None,
            count_mask: 0,
            touches: Vec::new(),
            maintenance: None,
            shape: Shape::None,
            uops: Tally::NONE,
            passes: Passes::No,
        }
    }

    /// Of a valid one, decoded at its linear address.
    pub fn of(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Self {
        let kind = step::kind(instruction);
        let repeated = match kind {
            Kind::Repeated(operation) => Some(operation),
            _ => None,
        };
        let branch = branch(instruction);
        let mut touches = Vec::new();
        if repeated.is_none() {
            step::accesses(factory, instruction, |_| 0, |touch| touches.push(touch));
        }
        let end = leaves::end(instruction, &touches, branch.map(|branch| branch.kind));
        Self {
            ip: offset(instruction.ip()),
            next: offset(instruction.next_ip()),
            end,
            shape: Shape::of(instruction, &touches, end),
            branch,
            is_system_call: matches!(kind, Kind::SystemCall | Kind::SystemReturn(_)),
            is_interrupt_return: kind == Kind::InterruptReturn,
            repeated,
            count_mask: StringOperation::count_mask(instruction),
            touches,
            maintenance: step::maintenance(instruction),
            uops: Tally::NONE,
            passes: Passes::No,
        }
    }

    /// Whether it may raise a page fault, by what is known of its accesses: SYSCALL and SYSRET read nothing, other far branches
    /// read descriptors.
    pub fn may_page_fault(&self) -> bool {
        let is_far = self.branch.is_some_and(|branch| branch.kind == BranchKind::Far);
        !self.touches.is_empty() || is_far && !self.is_system_call
    }

    /// Whether it stores anything.
    pub fn stores(&self) -> bool {
        self.touches.iter().any(|touch| touch.kind != AccessKind::Load)
    }

    /// Whether QEMU may let it begin once more where only its whole address says so: [`Opened::restart`].
    pub fn may_restart(&self) -> bool {
        self.end == End::Unknown && self.stores()
    }

    /// What is open of it once it has begun, if it was counted early. `start`: the offset of its block.
    pub fn opened_early(&self, start: u16, tally: Tally, faults: bool) -> Opened {
        let at = self.ip.wrapping_sub(start) & OFFSET as u16;
        Opened::Early { ip: self.ip, at, stores: self.stores(), tally, faults }
    }

    /// Whether it is an unconditional direct jump or call.
    pub fn is_direct(&self) -> bool {
        let kind = self.branch.map(|branch| branch.kind);
        matches!(kind, Some(BranchKind::RelativeJump | BranchKind::RelativeCall))
    }

    /// Whether it passes the qualifiers, of which it holds those that do not depend on accesses.
    pub fn pass(&mut self, by_data: bool) {
        let touches = self.repeated.is_some() || !self.touches.is_empty();
        self.passes = match by_data {
            false => Passes::Always,
            true if touches => Passes::ByData,
            true => Passes::No,
        };
        if let Some(branch) = &mut self.branch {
            branch.passes = self.passes;
        }
    }

    /// What it leaves open if it is a repeated string operation.
    pub fn opened_string(&self) -> Option<Opened> {
        let operation = self.repeated?;
        let stores = operation.destination == Some(AccessKind::Store);
        let passes = self.passes.may();
        let compares = operation.destination == Some(AccessKind::Load);
        let pair = operation.source && compares;
        let (ip, next, count_mask) = (self.ip, self.next, self.count_mask);
        Some(Opened::Repeat { ip, next, stores, passes, pair, compares, count_mask })
    }

    /// What it adds once it is done, with `branch` as the branch that it counts as; conditional jumps as taken.
    pub fn tally(&self, mode: Mode, branch: Option<Branch>) -> Tally {
        let mut tally = self.uops;
        if self.repeated.is_none() && mode.contains(Mode::INSTRUCTIONS) {
            tally.more(tally::INSTRUCTIONS, 1);
        }
        if let Some(branch) = branch.filter(|_| mode.contains(Mode::BRANCHES)) {
            tally.count(Occurrence::of(branch.kind, true, branch.backward, false));
        }
        let inline = mode.contains(Mode::ACCESSES) && !mode.contains(Mode::MEMORY);
        for touch in self.touches.iter().filter(|_| inline) {
            tally.count(match touch.kind {
                AccessKind::Load => Occurrence::Load,
                AccessKind::Store => Occurrence::Store,
                AccessKind::LoadStore => Occurrence::LoadStore,
            });
            if touch.locked {
                tally.count(Occurrence::Locked);
            }
        }
        let is_flush = self.maintenance == Some(Maintenance::FlushLine { evicts: true });
        if is_flush && mode.contains(Mode::ACCESSES) {
            tally.count(Occurrence::ClFlush);
        }
        if self.passes == Passes::Always {
            tally.qualify(self.repeated.is_none().into());
        }
        tally
    }
}

fn offset(linear: u64) -> u16 {
    (linear & OFFSET) as u16
}

fn branch(instruction: &Instruction) -> Option<Branch> {
    let kind = step::branch(instruction, &Behind::default(), Ring::Kernel)?.kind;
    let (ip, next) = (instruction.ip(), instruction.next_ip());
    let target = instruction.near_branch_target();
    // The instruction pointer wraps at the code's size, and the linear address has the segment's base in it.
    let distance = target.wrapping_sub(ip);
    let backward = match instruction.code_size() {
        CodeSize::Code16 => distance as i16 <= 0,
        CodeSize::Code32 => distance as i32 <= 0,
        _ => distance as i64 <= 0,
    };
    let conditional = kind == BranchKind::Conditional;
    let ambiguous = conditional && offset(target) == offset(next) && distance != next - ip;
    Some(Branch {
        from: offset(ip),
        next: offset(next),
        target: offset(target),
        kind,
        backward,
        ambiguous,
        undecided: step::undecided(instruction),
        passes: Passes::No,
    })
}
