//! Code with operands, instructions before it, or stores that may make it slow.

use super::Code;

/// What may be slow. Each has a program with it, and one without that has as many instructions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hazard {
    /// A product that is denormal; without it, a half.
    Denormal,
    /// An SSE instruction after one of AVX that writes 256 bits; without it, 128, by which the upper half is zero.
    SseAfterAvx,
    /// A store to code that runs next; without it, to data.
    SelfModified,
    /// `lock add` of bytes of two lines; without it, of one.
    SplitLock,
    /// The same without LOCK.
    SplitAdd,
}

impl Hazard {
    /// How often it is in a round.
    pub const REPEATED: u64 = 8;
}

/// MXCSR after a reset: all exceptions masked, denormals neither flushed nor read as zeros (SDM vol. 1, 10.2.3).
const MXCSR: [u8; 4] = [0x80, 0x1f, 0, 0];
/// The least normal number, and one.
const LEAST_NORMAL: u64 = 0x0010_0000_0000_0000;
const ONE: u64 = 0x3ff0_0000_0000_0000;
const HALF: u64 = 0x3fe0_0000_0000_0000;
/// Places in the data: inside a line, and across lines of any length.
const INSIDE: i32 = 256;
const ACROSS: i32 = 256 + 128 - 2;

impl Code {
    /// Pushes MXCSR's value and loads it.
    fn mxcsr(&mut self) {
        // push imm32; ldmxcsr [rsp]; pop rax
        self.put(&[0x68]);
        self.put(&MXCSR);
        self.put(&[0x0f, 0xae, 0x14, 0x24, 0x58]);
    }

    pub(super) fn hazard(
        &mut self,
        (entry, data): (u32, u32),
        (hazard, hit): (Hazard, bool),
        rounds: u32,
    ) {
        self.at(entry);
        self.mxcsr();
        let factor = if hit { LEAST_NORMAL } else { ONE };
        // mov rax, imm64; movq xmm0 or xmm1, rax
        for (bits, register) in [(factor, 0xc0), (HALF, 0xc8)] {
            self.put(&[0x48, 0xb8]);
            self.put(&bits.to_le_bytes());
            self.put(&[0x66, 0x48, 0x0f, 0x6e, register]);
        }
        // xor eax, eax
        self.put(&[0x31, 0xc0]);
        self.rounds(rounds);
        let top = self.here();
        for _ in 0..Hazard::REPEATED {
            self.repeated((entry, data), hazard, hit);
        }
        self.again(top);
        if hazard == Hazard::SseAfterAvx {
            // vzeroupper
            self.put(&[0xc5, 0xf8, 0x77]);
        }
        // Flags that were raised are cleared, and registers are zeros: xorps.
        [0xc0, 0xc9, 0xd2, 0xdb, 0xe4]
            .iter()
            .for_each(|register| self.put(&[0x0f, 0x57, *register]));
        self.mxcsr();
        self.put(&[0xc3]);
    }

    fn repeated(&mut self, (entry, data): (u32, u32), hazard: Hazard, hit: bool) {
        match hazard {
            // movapd xmm2, xmm0; mulsd xmm2, xmm1
            Hazard::Denormal => self.put(&[0x66, 0x0f, 0x28, 0xd0, 0xf2, 0x0f, 0x59, 0xd1]),
            // vorps ymm3 or xmm3; sqrtps xmm4, xmm1, which since Skylake waits for what xmm4 had if upper halves are in use: Intel's
            // optimization manual, "Mixing AVX code with SSE code".
            Hazard::SseAfterAvx => {
                self.put(&[0xc5, if hit { 0xe4 } else { 0xe0 }, 0x56, 0xdb, 0x0f, 0x51, 0xe1]);
            }
            Hazard::SelfModified => {
                // mov byte [rsi + place], 0x90; jmp to the NOP behind it, which is what is stored.
                let nop = self.here() + 9;
                let place = if hit { nop - data } else { INSIDE as u32 };
                debug_assert!(nop > entry);
                self.put(&[0xc6, 0x86]);
                self.put(&place.to_le_bytes());
                self.put(&[0x90, 0xeb, 0, 0x90]);
            }
            // lock add [rsi + place], eax
            Hazard::SplitLock | Hazard::SplitAdd => {
                self.put(if hazard == Hazard::SplitLock {
                    &[0xf0, 0x01, 0x86]
                } else {
                    &[0x01, 0x86]
                });
                self.put(&(if hit { ACROSS } else { INSIDE }).to_le_bytes());
            }
        }
    }
}
