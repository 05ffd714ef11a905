//! Code that runs twice: as a task of barecount's, and as a program of Linux', the same bytes at the same addresses.

use super::task::Task;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The code. What it uses of registers and memory it sets itself, as both begin it with others.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The program's name.
    pub name: &'static str,
    /// What runs once.
    pub init: &'static str,
    /// What runs in each turn.
    pub asm: &'static str,
    /// How often. Linux ends the program where barecount's task ends.
    pub turns: u64,
}

impl Work {
    /// A task of ring 3 for an item of this kind, with so many turns.
    #[must_use]
    pub fn task(&self, kind: &str, turns: u64) -> String {
        let Self { init, asm, .. } = self;
        format!(
            "[[{kind}.task]]\nname = \"t\"\nring = 3\nturns = {turns}\ninit = \"{init}\"\nasm = \"{asm}\"\n"
        )
    }

    /// The program in this folder, and where its code lies.
    ///
    /// # Panics
    /// If the code is wrong, or the file cannot be written.
    #[must_use]
    pub fn program(&self, folder: &Path) -> (PathBuf, Range<u64>) {
        let task = self.task("sample", self.turns);
        let task =
            Task::of(&format!("[[sample]]\nevents = [\"instructions\"]\nperiod = 9\n{task}"));
        let file = folder.join(self.name);
        task.write(&file);
        // Without INT, which Linux does not let retire.
        let code = task.emitted.init.start / 4096 * 4096..task.emitted.exit;
        (file, code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_task_and_its_code_ends_where_it_leaves() {
        let work = Work { name: "w", init: "xor ecx, ecx", asm: "inc ecx", turns: 3 };
        assert!(work.task("count", 5).starts_with("[[count.task]]\n"));
        assert!(work.task("count", 5).contains("\nturns = 5\n"));
        let folder = tempfile::tempdir().unwrap();
        let (file, code) = work.program(folder.path());
        assert_eq!(file.file_name().unwrap(), "w");
        // The page before the file's first byte of code is the ELF header's; INT imm8 is its last instruction there.
        let bytes = std::fs::read(file).unwrap();
        let at = 4096 + (code.end - code.start) as usize;
        assert_eq!(bytes[at], 0xcd);
    }
}
