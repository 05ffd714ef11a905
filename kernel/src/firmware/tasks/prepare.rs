//! Tasks are made ready.

use super::processors::Processors;
use crate::firmware::programs::Owner;
use alloc::format;
use alloc::string::String;
use arch::memory::Space;
use arch::task::memory::{self, Memory};
use arch::task::{Context, Extended};
use kernel::snippet::{Place, emit};
use kernel::tasks::{self, Emitted};
use protocol::bits::Bits;
use protocol::job::workload::{Ring, Task};

impl Processors<'_> {
    /// Makes one task ready, as the next one.
    pub(super) fn prepare(
        &mut self,
        number: usize,
        task: &Task,
    ) -> Result<(Context, Emitted), String> {
        if self.slots.0.len() == number {
            let memory = Memory::allocate(number, self.frames);
            self.slots.0.push(memory.map_err(|error| format!("task `{}`: {error}", task.name))?);
        }
        let memory = &mut self.slots.0[number];
        let user = task.ring == Ring::User;
        let compatibility = task.bits == Bits::Compatibility;
        // SAFETY: no task runs; physical memory is mapped, and the space has the kernel at its place.
        let root = unsafe { memory.clear(self.space.root(), user) };
        if let Some(program) = task.program {
            let (programs, frames) = (&mut *self.programs, &mut *self.frames);
            let map = |space: &mut Space| {
                programs.select(Owner::Task(number), (program, user), space, frames)
            };
            // SAFETY: as above.
            let mapped = unsafe { memory.with_program(map) };
            mapped.map_err(|error| format!("task `{}`: {error}", task.name))?;
        }
        let place = Place {
            code: memory::code(number),
            data: memory::count(number),
            pointers: pointers(number),
        };
        let emitted = tasks::emit::emit(memory.code_mut(), &place, task);
        let count = &mut memory.count_mut()[emit::COUNT_AT..][..8];
        count.copy_from_slice(&task.turns.to_le_bytes());
        let frame = tasks::emit::registers(&place, task, &emitted);
        let extended = task.extended_state.then(|| Extended::new(self.machine.extended));
        Ok((Context::new(&frame, user, compatibility, root.as_u64(), extended), emitted))
    }
}

/// What RSP, RBP, RDI, RSI and R14 of a task point to.
pub fn pointers(number: usize) -> [u64; 5] {
    let area = |area| memory::area(number, area);
    [memory::stack(number), area(0), area(1), area(2), area(VALUE_AREA)]
}

/// The memory area that R14 points to.
pub const VALUE_AREA: u64 = memory::AREAS - 1;
