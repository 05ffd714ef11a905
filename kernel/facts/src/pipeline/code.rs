//! The code that is run. It is reached by a call with the address of its data ([`data`]) in RSI, changes RAX, RCX, RDI, R8, R9, R10,
//! XMM0 to XMM4 and flags, and uses the stack below; it lies anywhere, as all addresses in it are relative.

mod data;
mod direct;
mod hazards;
mod nops;
#[cfg(test)]
mod tests;
mod window;

pub use data::{MOST_STORES, Pair};
pub use direct::{LEAST_DISTANCE, most_jumps};
pub use hazards::Hazard;
pub use nops::{BLOCK, most_nops};
pub use window::{Filler, MOST_BETWEEN, WINDOW_ROUNDS};

use alloc::vec::Vec;

/// Rounds of each program.
pub const ROUNDS: u64 = 16;
/// Most returns that are outstanding at once. No known processor remembers more than 64.
pub const MOST_DEPTH: u32 = 72;
/// Bytes of a jump with what is in front of it; so far apart they are at least.
pub const JUMP_BYTES: u32 = 11;
/// Bytes of memory that all programs fit into, a power of two. [`Program::Window`] needs the most: its lines lie in 17 pages of data.
pub const LEAST_BYTES: u32 = 256 << 10;
/// Bytes of the rest: its page is the last one of the memory.
const PAGE: u32 = 4096;
const _: () = assert!(
    data(LEAST_BYTES) + window::DATA_BYTES <= LEAST_BYTES - PAGE
        && data(LEAST_BYTES) + data::STORED_BYTES <= LEAST_BYTES - PAGE,
    "data would lie in the code's page"
);
/// Where in it the random bits lie.
const BITS: u32 = 2048;
/// Bytes of a level of nested calls.
const LEVEL: u32 = 32;

/// What is run, [`ROUNDS`] times.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// A call of a function, which changes its return address by as much as nothing, or by the length of a jump.
    Return {
        /// It does not return to where it was called from.
        elsewhere: bool,
    },
    /// Nested calls, each from one of two places, by random bits. Both share the return after it.
    Nested {
        /// Returns that are outstanding in the innermost function, from 1 to [`MOST_DEPTH`].
        depth: u32,
        /// They are made; otherwise the stack is dropped.
        returns: bool,
    },
    /// Jumps from each place to the next one.
    Jumps {
        /// Where they are.
        places: &'a [u32],
        /// Where the round ends.
        end: u32,
        /// Through a register; otherwise directly, by as many instructions.
        indirect: bool,
        /// How often, in place of [`ROUNDS`].
        rounds: u32,
    },
    /// A loop of direct jumps, one after the other, and nothing else.
    Direct {
        /// How many, up to [`most_jumps`].
        jumps: u32,
        /// Bytes from one to the next, at least [`LEAST_DISTANCE`]: a power of two.
        distance: u32,
        /// How often, in place of [`ROUNDS`].
        rounds: u32,
    },
    /// A loop of NOPs.
    Loop {
        /// Its instructions, at least 2, with the two that end it, up to [`most_nops`].
        instructions: u32,
        /// How many lie in a [`BLOCK`], from 4 to 16.
        in_block: u32,
        /// How often, in place of [`ROUNDS`].
        rounds: u32,
    },
    /// Something that may be slow.
    Hazard {
        /// What.
        hazard: Hazard,
        /// With it; otherwise without, by as many instructions.
        hit: bool,
    },
    /// Stores, and after each a load whose address has the value that was loaded before.
    Forward(Pair),
    /// Two loads of lines that no cache holds, in each of [`WINDOW_ROUNDS`] rounds.
    Window {
        /// What lies between them.
        filler: Filler,
        /// How many of it, up to [`MOST_BETWEEN`].
        between: u32,
        /// The second load waits for the first.
        chained: bool,
    },
    /// Stores to lines that no cache holds, once.
    Stores {
        /// How many, up to [`MOST_STORES`].
        stores: u32,
    },
}

/// Where data lie in the memory of so many bytes.
#[must_use]
pub const fn data(bytes: u32) -> u32 {
    bytes / 2
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// Pieces of code and data, and where they lie.
    pub pieces: Vec<(u32, Vec<u8>)>,
    /// Where the program is entered, whose time is taken.
    pub entry: u32,
    /// What is called before each try, and not timed.
    pub before: Option<u32>,
}

/// Writes a program. `bytes` is what there is for it: a power of two, at least [`LEAST_BYTES`].
#[must_use]
pub fn emit(program: &Program<'_>, bytes: u32) -> Emitted {
    debug_assert!(bytes.is_power_of_two() && bytes >= LEAST_BYTES, "{bytes} bytes for programs");
    let mut entry = bytes - PAGE;
    let mut code = Code { pieces: Vec::new() };
    let mut before = None;
    match *program {
        Program::Return { elsewhere } => code.changed_return(entry, elsewhere),
        Program::Nested { depth, returns } => code.nested(entry, depth, returns),
        Program::Jumps { places, end, indirect, rounds } => {
            code.jumps(entry, places, (end, rounds), indirect);
        }
        Program::Direct { jumps, distance, rounds } => {
            let (timed, other) = code.direct(entry, (jumps, distance), rounds);
            (entry, before) = (timed, Some(other));
        }
        Program::Loop { instructions, in_block, rounds } => {
            entry = code.loop_of_nops(instructions, in_block, rounds);
        }
        Program::Hazard { hazard, hit } => {
            code.hazard((entry, data(bytes)), (hazard, hit), ROUNDS as u32);
        }
        Program::Forward(pair) => code.forward((entry, data(bytes)), &pair, ROUNDS as u32),
        Program::Window { filler, between, chained } => {
            before = Some(code.window(data(bytes), (filler, between), chained));
            entry = 0;
        }
        Program::Stores { stores } => before = Some(code.stores(entry, stores)),
    }
    Emitted { pieces: code.pieces, entry, before }
}

/// 32 bits that lead from the end of an instruction to a place.
fn distance(from: u32, to: u32) -> [u8; 4] {
    to.wrapping_sub(from).to_le_bytes()
}

struct Code {
    pieces: Vec<(u32, Vec<u8>)>,
}

impl Code {
    /// Begins a piece.
    fn at(&mut self, place: u32) {
        self.pieces.push((place, Vec::new()));
    }

    /// Where the next byte lies.
    fn here(&self) -> u32 {
        self.pieces.last().map_or(0, |(at, bytes)| at + bytes.len() as u32)
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some((_, all)) = self.pieces.last_mut() {
            all.extend_from_slice(bytes);
        }
    }

    /// An instruction that ends with 32 bits which lead to a place.
    fn reach(&mut self, opcode: &[u8], to: u32) {
        let end = self.here() + opcode.len() as u32 + 4;
        self.put(opcode);
        self.put(&distance(end, to));
    }

    /// `mov ecx, rounds`.
    fn rounds(&mut self, rounds: u32) {
        self.put(&[0xb9]);
        self.put(&rounds.to_le_bytes());
    }

    /// `dec ecx` and `jnz`, 8 bytes.
    fn again(&mut self, to: u32) {
        self.put(&[0xff, 0xc9]);
        self.reach(&[0x0f, 0x85], to);
    }

    fn changed_return(&mut self, entry: u32, elsewhere: bool) {
        // add [rsp], r8; ret
        self.at(0);
        self.put(&[0x4c, 0x01, 0x04, 0x24, 0xc3]);
        self.at(entry);
        self.rounds(ROUNDS as u32);
        // mov r8d, 0 or 2
        self.put(&[0x41, 0xb8, if elsewhere { 2 } else { 0 }, 0, 0, 0]);
        let top = self.here();
        self.reach(&[0xe8], 0);
        // Two jumps to what comes after both.
        self.put(&[0xeb, 2, 0xeb, 0]);
        self.again(top);
        self.put(&[0xc3]);
    }

    fn nested(&mut self, entry: u32, depth: u32, returns: bool) {
        let levels = MOST_DEPTH - 1;
        for level in 0..levels {
            let next = (level + 1) * LEVEL;
            self.at(level * LEVEL);
            // ror r9, 1; jc to the second call
            self.put(&[0x49, 0xd1, 0xc9, 0x72, 7]);
            self.reach(&[0xe8], next);
            // jmp to the return
            self.put(&[0xeb, 7]);
            self.reach(&[0xe8], next);
            // jmp to the return; ret
            self.put(&[0xeb, 0, 0xc3]);
        }
        self.at(entry);
        self.reach(&[0x48, 0x8d, 0x3d], entry + BITS);
        self.rounds(ROUNDS as u32);
        let top = self.here();
        // mov r9, [rdi]; mov r10, rsp
        self.put(&[0x4c, 0x8b, 0x0f, 0x49, 0x89, 0xe2]);
        let first = (MOST_DEPTH - depth.clamp(1, MOST_DEPTH)) * LEVEL;
        self.reach(&[0xe8], first);
        let after = self.here();
        // add rdi, 8
        self.put(&[0x48, 0x83, 0xc7, 8]);
        self.again(top);
        self.put(&[0xc3]);
        let drop = self.here();
        // mov rsp, r10
        self.put(&[0x4c, 0x89, 0xd4]);
        self.reach(&[0xe9], after);
        self.at(levels * LEVEL);
        let leaf = self.here() + 5;
        self.reach(&[0xe9], if returns { leaf } else { drop });
        self.put(&[0xc3]);
        self.at(entry + BITS);
        let mut state = 1u64;
        for _ in 0..ROUNDS {
            state = mixed(state);
            self.put(&state.to_le_bytes());
        }
    }

    fn jumps(&mut self, entry: u32, places: &[u32], (end, rounds): (u32, u32), indirect: bool) {
        let nexts = places.iter().skip(1).chain([&end]);
        for (at, next) in places.iter().zip(nexts) {
            self.at(*at);
            // add rax, the distance
            self.put(&[0x48, 0x05]);
            self.put(&distance(*at, *next));
            match indirect {
                true => self.put(&[0xff, 0xe0]),
                false => self.reach(&[0xe9], *next),
            }
        }
        let first = places.first().copied().unwrap_or(end);
        self.at(entry);
        self.rounds(rounds);
        self.reach(&[0x48, 0x8d, 0x05], first);
        self.reach(&[0xe9], first);
        let out = self.here();
        self.put(&[0xc3]);
        self.at(end);
        // dec ecx; jz
        self.put(&[0xff, 0xc9]);
        self.reach(&[0x0f, 0x84], out);
        self.reach(&[0x48, 0x8d, 0x05], first);
        self.reach(&[0xe9], first);
    }
}

/// Random bits (SplitMix64)
pub const fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
