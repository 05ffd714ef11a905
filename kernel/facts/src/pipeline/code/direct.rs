//! Loops of direct jumps.

use super::Code;

/// The least distance of two jumps, in bytes: a jump has five.
pub const LEAST_DISTANCE: u32 = 8;
/// Where the first jump lies: at a multiple of every distance, with the loop's counter and its entry before it.
const START: u32 = 64;
/// Bytes of `dec ecx` and `jz`, right before the first jump.
const COUNTER: u32 = 8;
/// Bytes of `mov ecx` before it.
const ENTRY: u32 = 5;
/// Rounds that are not timed: in the first one the table takes the jumps.
const BEFORE: u32 = 2;
/// INT3, which is never reached.
const BETWEEN: u8 = 0xcc;

/// The most jumps so far apart that fit into so many bytes.
#[must_use]
pub const fn most_jumps(bytes: u32, distance: u32) -> u32 {
    (bytes - START) / distance
}

impl Code {
    /// `jumps` of them, `distance` bytes apart; the last one leads to the counter before the first. Returns where it is entered, and
    /// where for rounds that are not timed. No other direct jump is executed.
    pub(super) fn direct(
        &mut self,
        other: u32,
        (jumps, distance): (u32, u32),
        rounds: u32,
    ) -> (u32, u32) {
        self.at(other);
        self.rounds(BEFORE + 1);
        self.reach(&[0x48, 0x8d, 0x05], START - COUNTER);
        // jmp rax; ret
        self.put(&[0xff, 0xe0]);
        let out = self.here();
        self.put(&[0xc3]);
        let entry = START - COUNTER - ENTRY;
        self.at(entry);
        // It ends before the last one.
        self.rounds(rounds + 1);
        // dec ecx; jz
        self.put(&[0xff, 0xc9]);
        self.reach(&[0x0f, 0x84], out);
        let gap = [BETWEEN; 64];
        for jump in 1..=jumps {
            let next = if jump < jumps { START + jump * distance } else { START - COUNTER };
            self.reach(&[0xe9], next);
            if jump < jumps {
                let bytes = next - self.here();
                self.put(&gap[..bytes as usize]);
            }
        }
        (entry, other)
    }
}
