//! From a drawn program to machine code, page tables and contents.

use super::emit::{Emitter, Target};
use super::fragment::Code;
use iced_x86::{BlockEncoderOptions, IcedError};
use program_format::layout::{PAGE, address, flag};
use program_format::{Content, Frame, Mapping, Pmu, Program};

/// Pages of code, at the most.
pub const CODE_PAGES: u16 = 10;
/// Where code lies, by the first of its addresses.
pub const CODE: u16 = 0;
/// The same frames once more.
pub const ALIAS: u16 = 16;
/// Frames with the same bytes, for [`super::fragment::Fragment::SwapCode`].
pub const COPY: u16 = 32;
/// Addresses of functions and of cases.
pub const TABLE: u16 = 96;
/// The data area with what string instructions may run over on both sides.
pub const DATA: u16 = 64;
/// Its pages.
pub const DATA_PAGES: usize = 24;
/// The first page that an access is aimed at.
pub const FIRST_DATA: u16 = DATA + 4;
/// Frames that the data area's pages show.
pub const DATA_FRAMES: u16 = 6;
const STACK: u16 = 112;
const STACK_PAGES: u16 = 4;
const USER_STACK: u16 = 120;
const USER_STACK_PAGES: u16 = 2;

/// End of ring 3's stack.
pub const USER_STACK_END: u64 = address(USER_STACK + USER_STACK_PAGES);

const ALL: u16 = flag::PRESENT | flag::WRITE | flag::USER;

/// A program, and its code for those who read it.
pub struct Assembled {
    pub program: Program,
    pub code: Vec<u8>,
    pub start: u64,
}

/// The frame of the pool that is a program's with this number, the data's first: scattered, as 499 is a prime.
pub fn frame(code: &Code, number: u16) -> u16 {
    (number * 37 + code.frames) % 499
}

/// # Errors
/// Code that cannot be encoded.
///
/// # Panics
/// If it does not fit.
pub fn assemble(code: &Code, pmu: Pmu) -> Result<Assembled, IcedError> {
    let start = address(CODE) + u64::from(code.offset);
    let mut emitter = Emitter::new(code, &pmu)?;
    emitter.all(code)?;
    let Emitter { mut asm, tables, entry, .. } = emitter;
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let result = asm.assemble_options(start, options)?;
    let mut table = Vec::new();
    for Target { label, alias } in &tables {
        let at = result.label_ip(label)? + if *alias { address(ALIAS) - address(CODE) } else { 0 };
        table.extend(at.to_le_bytes());
    }
    let entry = result.label_ip(&entry)?;
    let bytes = result.inner.code_buffer;
    let end = usize::from(code.offset) + bytes.len();
    assert!(end <= usize::from(CODE_PAGES) * PAGE as usize, "{end} bytes of code");
    assert!(table.len() <= PAGE as usize, "{} bytes of tables", table.len());
    let mut memory = Memory { code, program: empty(entry, pmu), frames: 0 };
    let data: Vec<u16> = (0..u64::from(DATA_FRAMES))
        .map(|n| memory.frame(Content::Random(code.seed.wrapping_add(n))))
        .collect();
    for (page, &(frame, present)) in (DATA..).zip(&code.data) {
        let flags = if present { ALL } else { ALL & !flag::PRESENT | flag::DEMAND };
        memory.map(page, data[usize::from(frame)], flags);
    }
    let mut whole = vec![0xcc; usize::from(code.offset)];
    whole.extend(&bytes);
    for (number, page) in (0..).zip(whole.chunks(PAGE as usize)) {
        let one = memory.frame(Content::Bytes(page.to_vec()));
        memory.map(CODE + number, one, ALL);
        memory.map(ALIAS + number, one, ALL);
        let other = memory.frame(Content::Bytes(page.to_vec()));
        memory.map(COPY + number, other, ALL);
    }
    let one = memory.frame(Content::Bytes(table));
    memory.map(TABLE, one, ALL);
    for page in (STACK..STACK + STACK_PAGES).chain(USER_STACK..USER_STACK + USER_STACK_PAGES) {
        let one = memory.frame(Content::Bytes(Vec::new()));
        memory.map(page, one, ALL);
    }
    Ok(Assembled { program: memory.program, code: bytes, start })
}

fn empty(entry: u64, pmu: Pmu) -> Program {
    let stack = address(STACK + STACK_PAGES);
    Program { frames: Vec::new(), pages: Vec::new(), entry, stack, pmu, detailed: false }
}

struct Memory<'a> {
    code: &'a Code,
    program: Program,
    frames: u16,
}

impl Memory<'_> {
    fn frame(&mut self, content: Content) -> u16 {
        let number = frame(self.code, self.frames);
        self.frames += 1;
        self.program.frames.push(Frame { number, content });
        number
    }

    fn map(&mut self, page: u16, frame: u16, flags: u16) {
        self.program.pages.push(Mapping { page, frame, flags });
    }
}
