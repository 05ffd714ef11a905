//! Accesses with their addresses.

/// Accesses that are not done.
#[derive(Debug, Default)]
pub struct Memory {}

impl Memory {
    /// The instruction that made them is not done.
    pub fn drop_pending(&mut self) {}

    /// The guest goes on.
    pub fn enter(&mut self, _: bool) {}

    /// A repeated string instruction came to its end.
    pub fn end_string(&mut self) {}
}

use crate::facts::Facts;
use crate::plan::Action;
use crate::qemu::Insn;
use iced_x86::Instruction;

/// Instructions whose accesses callbacks see.
#[derive(Debug, Default)]
pub struct Traced {}

/// Asks QEMU for what an action on accesses needs.
pub fn apply(_: &mut Traced, _: Insn, _: &Instruction, _: &Facts, _: &Action) {}
