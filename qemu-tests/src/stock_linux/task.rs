//! A task of a job as a program for Linux: the same bytes at the same addresses, so that what is sampled of one can be held against
//! what is sampled of the other, address by address.
//!
//! Linux begins a program with all registers 0 but RSP, and maps its stack elsewhere: a task whose `init` sets what it uses does the
//! same on both sides, from its first instruction on. It ends in barecount's software interrupt, for which Linux has no gate: the
//! program is ended by a signal there.

use arch::task::memory;
use kernel::snippet::Place;
use kernel::snippet::emit::COUNT_AT;
use kernel::tasks::emit::{self, Emitted};
use protocol::job::Item;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use xtask::job::{self, Purpose, file};

/// The first task of an item, as it lies in memory.
#[derive(Clone, Debug)]
pub struct Task {
    /// What was emitted, as addresses.
    pub emitted: Emitted,
    /// From the first byte of the task's memory to the last of its code.
    pub code: Vec<u8>,
    /// How often the body runs: what the word in memory begins with.
    pub turns: u64,
}

impl Task {
    /// The first task of the first `[[sample]]` of a job.
    ///
    /// # Panics
    /// If the job is wrong, or has none.
    #[must_use]
    pub fn of(toml: &str) -> Self {
        let file = file::parse(toml, "test.toml").unwrap_or_else(|error| panic!("{error}"));
        let packed = job::pack(&file, Purpose::Qemu).unwrap_or_else(|error| panic!("{error}"));
        let sampled = packed.job.items.iter().find_map(|item| match item {
            Item::Sample(sampling) => Some(sampling),
            _ => None,
        });
        let task = sampled.and_then(|one| one.workload.tasks.first()).expect("a sampled task");
        let place = Place { code: memory::code(0), data: memory::count(0), pointers: [0; 5] };
        let mut code = vec![0; memory::CODE_BYTES as usize];
        let emitted = emit::emit(&mut code, &place, task);
        // INT imm8 is the last.
        code.truncate((emitted.exit + 2 - place.code) as usize);
        Self { emitted, code, turns: task.turns }
    }

    /// Writes it as an executable of two segments: its code, and all other memory of a task, zeroed.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, to: &Path) {
        fs::write(to, self.executable())
            .unwrap_or_else(|error| panic!("{}: {error}", to.display()));
        fs::set_permissions(to, fs::Permissions::from_mode(0o755)).expect("its own file");
    }

    /// ELF64, little-endian, ET_EXEC for x86-64: System V ABI, chapters 4 and 5.
    fn executable(&self) -> Vec<u8> {
        const PAGE: u64 = 4096;
        const READ_EXECUTE: u32 = 5;
        const READ_WRITE: u32 = 6;
        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(16, 0);
        let mut put = |bytes: &[u8]| out.extend_from_slice(bytes);
        for half in [2u16, 62] {
            put(&half.to_le_bytes());
        }
        put(&1u32.to_le_bytes());
        // Entry, program headers after this header, no sections.
        for word in [self.emitted.init.start, 64, 0] {
            put(&word.to_le_bytes());
        }
        put(&0u32.to_le_bytes());
        for half in [64u16, 56, 2, 64, 0, 0] {
            put(&half.to_le_bytes());
        }
        let bytes = self.code.len() as u64;
        // Behind the code in the file, at the same place of its page.
        let (data, count) = (memory::count(0), COUNT_AT as u64 + 8);
        let behind = PAGE + memory::CODE_BYTES;
        for (rights, offset, address, in_file, in_memory) in [
            (READ_EXECUTE, PAGE, memory::code(0), bytes, bytes),
            (READ_WRITE, behind, data, count, memory::code(1) - data),
        ] {
            // PT_LOAD.
            put(&1u32.to_le_bytes());
            put(&rights.to_le_bytes());
            for word in [offset, address, address, in_file, in_memory, PAGE] {
                put(&word.to_le_bytes());
            }
        }
        out.resize(PAGE as usize, 0);
        out.extend_from_slice(&self.code);
        out.resize(behind as usize + COUNT_AT, 0);
        out.extend_from_slice(&self.turns.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_begins_at_its_init_and_ends_in_its_interrupt() {
        let task = Task::of(
            "[[sample]]\nperiod = 9\nevents = [\"instructions\"]\n[[sample.task]]\nname = \"t\"\nring = 3\nturns = 2\n\
             init = \"stc\"\nasm = \"cmc\"\n",
        );
        let Emitted { init, body, exit } = task.emitted.clone();
        let at = |address: u64| task.code[(address - memory::code(0)) as usize];
        assert_eq!((at(init.start), at(body.start), at(exit)), (0xf9, 0xf5, 0xcd));
        assert_eq!(exit + 2 - memory::code(0), task.code.len() as u64);
        let elf = task.executable();
        assert_eq!(elf[24..32], init.start.to_le_bytes());
        assert_eq!(elf[4096..4096 + task.code.len()], task.code);
        assert_eq!(elf.last_chunk(), Some(&2u64.to_le_bytes()));
    }
}
