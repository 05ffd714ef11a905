//! An address as symbol, line and instruction.

use super::inside;
use crate::disassembly::{instruction, unhex};
use crate::job::sample::TaskCode;
use crate::parts;
use crate::program::places::Names;
use crate::symbols::Symbols;
use protocol::record::SampleResult;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

/// What the longest instruction takes: Intel's manual, volume 2, 2.3.11.
const MAX_INSTRUCTION_BYTES: usize = 15;

/// What is at an address.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Place {
    /// The function, or the label of the task's code.
    pub symbol: String,
    /// Bytes from there to the address, if the symbol's start is known.
    pub offset: Option<u64>,
    /// File and line, for the firmware's own code.
    pub line: Option<String>,
    /// The instruction; empty if its bytes are not known.
    pub instruction: String,
}

/// Knows the tasks' code, and the firmware's.
#[derive(Default)]
pub struct Resolver {
    /// By the item's index.
    pub(super) tasks: HashMap<u32, Vec<TaskCode>>,
    /// Names of programs that tasks call.
    pub(super) programs: RefCell<Names>,
    pub(super) kernel: Option<Kernel>,
}

pub(super) struct Kernel {
    pub(super) symbols: Symbols,
    /// Where it was loaded.
    pub(super) base: u64,
}

impl Resolver {
    /// A resolver of the tasks that a job was packed with, and of the firmware whose file, with symbols, is `kernel`
    /// and was loaded at `base`. Without either their addresses stay numbers.
    #[must_use]
    pub fn new(sampled: &[(u32, Vec<TaskCode>)], kernel: Option<(&Path, u64)>) -> Self {
        let kernel = kernel.filter(|(path, _)| path.exists());
        let kernel = kernel.map(|(path, base)| Kernel { symbols: Symbols::of(path), base });
        let programs = RefCell::default();
        Self { tasks: sampled.iter().cloned().collect(), programs, kernel }
    }

    /// What is at `address`, where `task` was interrupted. `bytes`: machine code there, hexadecimal, if the target sent
    /// some. `bits`: what it was executed as.
    #[must_use]
    pub fn place(
        &self,
        result: &SampleResult,
        task: u32,
        address: u64,
        bytes: &str,
        bits: u8,
    ) -> Place {
        let sent = unhex(bytes).unwrap_or_default();
        let name = |what: &str| match result.tasks.get(task as usize) {
            Some(task) => format!("{task}{what}"),
            None => format!("task {task}{what}"),
        };
        // Each task has its code at an address of its own.
        let index = task as usize;
        if let Some(code) = result.code.get(index) {
            if inside(&code.body, address) {
                let at = address - code.body[0].0;
                let known = self.tasks.get(&result.item).and_then(|tasks| tasks.get(index));
                let label = known.and_then(|known| known.labels.iter().rfind(|(to, _)| *to <= at));
                let body = known.and_then(|known| known.body.get(at as usize..));
                let (symbol, offset) = match label {
                    Some((start, label)) => (name(&format!(":{label}")), at - start),
                    None => (name(""), at),
                };
                let code = if sent.is_empty() { body.unwrap_or_default() } else { &sent };
                let instruction = instruction(code, at, bits);
                return Place { symbol, offset: Some(offset), line: None, instruction };
            }
            for (range, what) in
                [(&code.init, " (init)"), (&code.function, " (loop, measuring code)")]
            {
                if inside(range, address) {
                    let at = address - range[0].0;
                    let instruction = instruction(&sent, at, bits);
                    let offset = Some(at);
                    return Place { symbol: name(what), offset, line: None, instruction };
                }
            }
        }
        let called = result.code.get(index).and_then(|code| code.program);
        if let Some(frame) =
            called.and_then(|program| self.programs.borrow_mut().at(program, address))
        {
            return Place {
                symbol: frame.function.unwrap_or_else(|| format!("{address:#x}")),
                offset: None,
                line: frame.location.map(|line| short(&line)),
                instruction: instruction(&sent, address, bits),
            };
        }
        self.kernel.as_ref().and_then(|kernel| kernel.place(address)).unwrap_or_else(|| Place {
            symbol: format!("{address:#x}"),
            instruction: instruction(&sent, address, bits),
            ..Place::default()
        })
    }
}

impl Kernel {
    fn place(&self, address: u64) -> Option<Place> {
        let at = self.symbols.in_file(address, self.base);
        let frame = self.symbols.at(at)?;
        let code = self.symbols.code(at).map(|mut code| {
            code.truncate(MAX_INSTRUCTION_BYTES);
            code
        });
        Some(Place {
            symbol: frame.function?,
            offset: None,
            line: frame.location.map(|line| short(&line)),
            instruction: instruction(&code.unwrap_or_default(), address, 64),
        })
    }
}

/// A line without the folders that are the same for every file: the project's, and those of Rust's own sources.
#[must_use]
pub fn short(line: &str) -> String {
    // What the installed program carries was built elsewhere, and it knows where.
    if let Some(file) = parts::installed().and_then(|parts| below_source(line, parts.source())) {
        return file;
    }
    let root = crate::build::root().unwrap_or(Path::new(""));
    below(line, |file| root.join(file).is_file())
}

/// A file's name below `source`.
fn below_source(line: &str, source: &Path) -> Option<String> {
    let file = Path::new(line).strip_prefix(source).ok()?;
    Some(file.to_string_lossy().into_owned())
}

/// The project's part is found by what `is_ours`, because the kernel may have been built before its checkout was moved.
fn below(line: &str, is_ours: impl Fn(&Path) -> bool) -> String {
    const RUST: &str = "/rustlib/src/rust/";
    if let Some(at) = line.find(RUST) {
        return line[at + RUST.len()..].to_string();
    }
    // `kernel/src/run.rs:12:5`: the place in the file is not a part of its name.
    let file = line.split(':').next().unwrap_or(line);
    let starts = file.match_indices('/').map(|(at, _)| at + 1);
    let ours = starts.filter(|&at| at < file.len()).find(|&at| is_ours(Path::new(&file[at..])));
    line[ours.unwrap_or(0)..].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_what_is_carried_is_relative_to_where_it_was_built() {
        let source = Path::new("/build/barecount");
        let seen = below_source("/build/barecount/kernel/src/run.rs:12", source);
        assert_eq!(seen.as_deref(), Some("kernel/src/run.rs:12"));
        assert_eq!(below_source("/build/barecounter/x.rs:1", source), None);
    }

    #[test]
    fn a_line_is_relative_to_the_project_wherever_it_was_built() {
        let ours = |file: &Path| file == Path::new("kernel/src/run.rs");
        for (line, expected) in [
            ("/old/place/kernel/src/run.rs:12", "kernel/src/run.rs:12"),
            ("/kernel/kernel/src/run.rs:12:5", "kernel/src/run.rs:12:5"),
            ("/x/lib/rustlib/src/rust/library/core/src/a.rs:1", "library/core/src/a.rs:1"),
            ("/elsewhere/kernel/src/walk.rs:3", "/elsewhere/kernel/src/walk.rs:3"),
            ("kernel/src/run.rs:1", "kernel/src/run.rs:1"),
            ("??", "??"),
        ] {
            assert_eq!(below(line, ours), expected);
        }
    }
}
