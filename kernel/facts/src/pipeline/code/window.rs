//! Two loads that miss, and what lies between them.

use super::{Code, mixed};

/// Most instructions between two loads.
pub const MOST_BETWEEN: u32 = 1056;
/// Rounds: each has two lines of its own.
pub const WINDOW_ROUNDS: u32 = 8;
/// Bytes between the lines' pages, and between lines in their pages: no two are neighbours, and no page has two.
const PAGE: u32 = 4096;
const APART: u32 = 320;
/// Lines, two for each round.
const LINES: u32 = 2 * WINDOW_ROUNDS;
/// Bytes of data to the end of what is in the last line.
pub(super) const DATA_BYTES: u32 = place(LINES) + 4;

/// Where a line lies, counted from 1: the first page has what is to be there.
const fn place(line: u32) -> u32 {
    line * PAGE + line * APART % PAGE
}

/// What lies between.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Filler {
    /// NOPs.
    Nops,
    /// Instructions that write a register, of others that are ready.
    Registers,
    /// Instructions that write a vector register, of another one.
    Vectors,
    /// Loads of a line of the first level.
    Loads,
    /// Instructions that wait for the first load.
    Waiting,
}

impl Filler {
    const fn bytes(self) -> &'static [u8] {
        match self {
            // nop [rax], with a displacement
            Self::Nops => &[0x0f, 0x1f, 0x40, 0],
            // lea r9d, [rsi + rsi]: of two registers, so that no renaming does it
            Self::Registers => &[0x44, 0x8d, 0x0c, 0x36],
            // pshufd xmm1, xmm2, 0: it does not need what XMM1 was, and no renaming does it
            Self::Vectors => &[0x66, 0x0f, 0x70, 0xca, 0],
            // mov r9d, [rsi], with a displacement
            Self::Loads => &[0x44, 0x8b, 0x4e, 0],
            // lea r9d, [rax + rax]
            Self::Waiting => &[0x44, 0x8d, 0x0c, 0x00],
        }
    }
}

impl Code {
    /// The loop at the beginning of the memory, and what flushes all lines before it.
    pub(super) fn window(
        &mut self,
        data: u32,
        (filler, between): (Filler, u32),
        chained: bool,
    ) -> u32 {
        // In an order that fetching ahead does not know.
        let mut places: [u32; LINES as usize] = core::array::from_fn(|at| place(at as u32 + 1));
        let mut state = 1;
        for at in (1..places.len()).rev() {
            state = mixed(state);
            places.swap(at, (state % (at as u64 + 1)) as usize);
        }
        // Each line has the next one of its chain: there is one, or the first and the second load have one each.
        let step = if chained { 1 } else { 2 };
        for (at, place) in places.iter().enumerate() {
            self.at(data + place);
            self.put(&places[(at + step) % places.len()].to_le_bytes());
        }
        self.at(data);
        self.put(&[0; 4]);
        self.at(0);
        // mov eax, imm32; mov r8d, imm32
        self.put(&[0xb8]);
        self.put(&places[0].to_le_bytes());
        self.put(&[0x41, 0xb8]);
        self.put(&places[1].to_le_bytes());
        self.rounds(WINDOW_ROUNDS);
        let top = self.here();
        // mov eax, [rsi + rax]
        self.put(&[0x8b, 0x04, 0x06]);
        (0..between.min(MOST_BETWEEN)).for_each(|_| self.put(filler.bytes()));
        // The same, or mov r8d, [rsi + r8]
        self.put(&[if chained { 0x40 } else { 0x46 }, 0x8b, 0x04, 0x06]);
        // lfence: the rounds do not overlap.
        self.put(&[0x0f, 0xae, 0xe8]);
        self.again(top);
        self.put(&[0xc3]);
        let before = self.here();
        for place in places {
            // clflush [rsi + place]
            self.put(&[0x0f, 0xae, 0xbe]);
            self.put(&place.to_le_bytes());
        }
        // mfence; lfence; ret
        self.put(&[0x0f, 0xae, 0xf0, 0x0f, 0xae, 0xe8, 0xc3]);
        before
    }
}
