//! Snippets from a seed: instructions, accesses and branches of all kinds in random order.
//!
//! Every run of a snippet takes the same path, so that the PMU's runs and the stepped one can be compared: branches
//! depend on R13 alone, which a linear congruential generator moves from 0 on and which is never loaded from memory.

/// Registers that anything may be written to. RCX counts loops, RSI and RDI belong to string instructions, R12 is the
/// target of indirect branches.
const REGISTERS: [&str; 8] = ["rax", "rbx", "rdx", "r8", "r9", "r10", "r11", "rbp"];
const OPERATIONS: [&str; 10] =
    ["add", "sub", "xor", "and", "or", "cmp", "test", "adc", "imul", "cmovc"];
const CONDITIONS: [&str; 4] = ["z", "nz", "p", "s"];

/// xorshift64* (Vigna, 2016).
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.next(list.len() as u64) as usize]
    }

    /// Instructions without branch or label.
    fn simple(&mut self) -> String {
        let (a, b) = (self.of(&REGISTERS), self.of(&REGISTERS));
        let operation = self.of(&OPERATIONS);
        let at = 8 * self.next(64);
        match self.next(14) {
            0..=2 => format!("{operation} {a}, {b}"),
            3 => format!("lea {a}, [{b} + 4*{b} + {at}]"),
            4 => format!("mov {a}, {at}; shl {a}, 3; bswap {a}"),
            5 => format!("mov [r14 + {at}], {a}"),
            6 => format!("mov {a}, [r14 + {at}]"),
            7 => format!("add [r14 + {at}], {a}"),
            8 => format!("add {a}, [rsi + {at}]"),
            9 => format!("lock xadd [r14 + {at}], {a}"),
            10 => format!("push {a}; pop {b}"),
            11 => "pushfq; popfq".to_string(),
            12 => format!("movups xmm1, [r14 + {at}]; addps xmm0, xmm1; movups [r14], xmm0"),
            _ => format!("xchg {a}, {b}; movzx {a}, byte ptr [r14 + {at}]; setc byte ptr [r14]"),
        }
    }

    /// Any instructions. Labels are used up within each piece.
    fn piece(&mut self) -> String {
        let (inner, other) = (self.simple(), self.simple());
        let condition = self.of(&CONDITIONS);
        let count = self.next(5);
        let turns = 1 + count;
        let bit = 1 << self.next(31);
        match self.next(12) {
            0..=2 => format!(
                "imul r13d, r13d, 1664525; add r13d, 1013904223; test r13d, {bit}; j{condition} 2f; {inner}; 2: {other}"
            ),
            3 => format!("jmp 2f; {inner}; 2: {other}"),
            4 => format!("call 2f; jmp 3f; 2: {inner}; ret; 3:"),
            5 => format!("lea r12, [rip + 2f]; jmp r12; ud2; 2: {inner}"),
            6 => format!("lea r12, [rip + 2f]; call r12; jmp 3f; 2: {inner}; ret 0; 3:"),
            7 => format!("mov ecx, {turns}; 2: {inner}; loop 2b"),
            8 => format!("mov ecx, {turns}; 2: {inner}; dec ecx; jnz 2b"),
            9 => "xor ecx, ecx; jrcxz 2f; ud2; 2:".to_string(),
            10 => format!("mov ecx, {count}; lea rdi, [r14 + 512]; lea rsi, [r14]; rep movsd"),
            _ => inner,
        }
    }
}

/// The snippet of this number.
pub fn snippet(seed: u64) -> String {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 32 | seed));
    random.next(2);
    let pieces = 1 + random.next(8);
    (0..pieces).map(|_| random.piece()).collect::<Vec<_>>().join("; ")
}
