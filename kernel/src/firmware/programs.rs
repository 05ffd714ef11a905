//! The job's programs: compiled code that items call.
//!
//! A program is made ready when the first item wants it, and stays mapped until one wants another. Each item finds its data
//! as they were linked.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::memory::program::{Image, Part};
use arch::memory::{Frames, Space};
use core::ops::Range;
use kernel::snippet::fault;
use protocol::program::{Program, ProgramKey, STACK_BYTES, STACK_END};
use protocol::ramdisk::{self, SectionKind};
use protocol::record::Fault;

/// Whose copy of a program's memory it is: each has its own data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Owner {
    /// Of the processor with this index among those in use; 0 is the boot processor.
    Processor(usize),
    /// Of the task with this number, with a stack.
    Task(usize),
}

/// A program that was used.
struct Ready {
    number: u16,
    program: Program<'static>,
    copies: Vec<(Owner, Image)>,
}

/// What is mapped where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Mapped {
    owner: Owner,
    /// Position in `ready`.
    at: usize,
    user: bool,
}

/// The programs of a job, and those that are mapped.
pub struct Programs {
    ramdisk: &'static [u8],
    ready: Vec<Ready>,
    mapped: Vec<Mapped>,
}

/// The stack of a task that calls a function, in place of the small one that tasks have. `xtask` puts RSP there.
const STACK: Part<'static> = Part {
    address: STACK_END - STACK_BYTES,
    memory: STACK_BYTES,
    bytes: &[],
    write: true,
    execute: false,
};

fn parts<'a>(program: &'a Program<'static>) -> impl Iterator<Item = Part<'a>> {
    program.segments().map(|(segment, bytes)| Part {
        address: segment.address,
        memory: segment.memory,
        bytes,
        write: segment.write,
        execute: segment.execute,
    })
}

impl Programs {
    /// Those of a ramdisk.
    pub fn new(ramdisk: &'static [u8]) -> Self {
        Self { ramdisk, ready: Vec::new(), mapped: Vec::new() }
    }

    /// Maps program `number` into `space`, of `owner`, with its data as they were linked. A processor that is not this one has
    /// to empty its TLB afterwards.
    ///
    /// # Errors
    /// It is damaged or missing, or there is no memory for it.
    pub fn select(
        &mut self,
        owner: Owner,
        (number, user): (u16, bool),
        space: &mut Space,
        frames: &mut Frames,
    ) -> Result<(), String> {
        let wrong = |what: &dyn ToString| format!("program {number}: {}", what.to_string());
        let at = self.find(number).map_err(|what| wrong(&what))?;
        let Ready { program, copies, .. } = &mut self.ready[at];
        let stack = matches!(owner, Owner::Task(_)).then_some(STACK);
        let all = || parts(program).chain(stack);
        match copies.iter_mut().find(|(whose, _)| *whose == owner) {
            // SAFETY: the item before has ended.
            Some((_, image)) => unsafe { image.refill(all()) },
            None => copies.push((owner, Image::new(all(), frames).map_err(|error| wrong(&error))?)),
        }
        let wanted = Mapped { owner, at, user };
        let before = self.mapped.iter().position(|one| one.owner == owner);
        if before.is_some_and(|before| self.mapped[before] == wanted) {
            return Ok(());
        }
        if let Some(before) = before {
            let Mapped { at, .. } = self.mapped.remove(before);
            if let Some(image) = self.image(at, owner) {
                image.unmap(space);
            }
        }
        let image = self.image(at, owner).expect("made above");
        let mapped = image.map(space, frames, user);
        if mapped.is_err() {
            image.unmap(space);
        }
        mapped.map_err(|error| wrong(&error))?;
        self.mapped.push(wanted);
        Ok(())
    }

    /// The position of program `number`, which is read when it is first wanted.
    fn find(&mut self, number: u16) -> Result<usize, String> {
        if let Some(at) = self.ready.iter().position(|ready| ready.number == number) {
            return Ok(at);
        }
        let bytes = ramdisk::nth_section(self.ramdisk, SectionKind::Program, number.into())
            .map_err(|error| error.to_string())?
            .ok_or("the ramdisk does not have it")?;
        let program = Program::unpack(bytes).map_err(|error| error.to_string())?;
        self.ready.push(Ready { number, program, copies: Vec::new() });
        Ok(self.ready.len() - 1)
    }

    fn image(&self, at: usize, owner: Owner) -> Option<&Image> {
        let copies = &self.ready[at].copies;
        copies.iter().find(|(whose, _)| *whose == owner).map(|(_, image)| image)
    }

    /// What `owner` has mapped.
    fn of(&self, owner: Owner) -> Option<(&Program<'static>, &Image)> {
        let mapped = self.mapped.iter().find(|one| one.owner == owner)?;
        Some((&self.ready[mapped.at].program, self.image(mapped.at, owner)?))
    }

    /// What the report calls the program of `owner`.
    pub fn name(&self, owner: Owner) -> Option<ProgramKey> {
        self.of(owner).map(|(program, _)| program.head.name())
    }

    /// Completes the fault of an item that uses the program of `owner` and has its stack above `stack`.
    pub fn explain(&self, owner: Owner, fault: &mut Fault, stack: u64) {
        let Some((program, image)) = self.of(owner) else { return };
        fault::of_program(fault, &program.head, stack, |at, count| image.read(at, count));
    }

    /// The code of this processor's program, piece by piece with its addresses.
    pub fn code(&self) -> Vec<(u64, &[u8])> {
        let Some((_, image)) = self.of(Owner::Processor(0)) else { return Vec::new() };
        let whole = |range: Range<u64>| image.read(range.start, range.end - range.start);
        image.code().filter_map(|range| Some((range.start, whole(range)?))).collect()
    }

    /// What stands in the program of any task: at most `count` bytes.
    pub fn any(&self, address: u64, count: u64) -> Vec<u8> {
        let tasks = self.mapped.iter().filter(|one| matches!(one.owner, Owner::Task(_)));
        let read = |one: &Mapped| {
            let image = self.image(one.at, one.owner)?;
            (1..=count).rev().find_map(|count| image.read(address, count))
        };
        tasks.filter_map(read).next().unwrap_or_default().to_vec()
    }

    /// What stands in the program of `owner`.
    pub fn read(&self, owner: Owner, address: u64, count: u64) -> Option<&[u8]> {
        self.of(owner)?.1.read(address, count)
    }
}
