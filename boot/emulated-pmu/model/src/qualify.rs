//! Qualifiers: which instructions a counter counts, as Itanium's counters have them (Itanium SDM vol. 2, 7.2.3: address
//! range of instructions, opcode, address range of data). No x86 processor has such registers; these are barecount's own.
//!
//! An instruction passes if it holds all checks that are on. An access of it passes if it lies in the range of data, and with it
//! all that the caches and TLBs did for it; with that check on, an instruction without such an access does not pass. Of a
//! repeated string instruction each cache line is an access, so there the check is of the line.

use crate::uarch::LINE_BYTES;

/// Words of the registers.
pub const WORDS: usize = 11;
/// Opcodes that can be looked for.
pub const OPCODES: usize = 16;

/// Bits of [`Qualifiers::checks`].
const CODE: u64 = 1 << 0;
const OPCODE: u64 = 1 << 1;
const DATA: u64 = 1 << 2;
const CHECKS: u64 = CODE | OPCODE | DATA;

const SELECT: usize = 0;
const CHECK: usize = 1;
const CODE_START: usize = 2;
const CODE_END: usize = 3;
const CODE_PART: usize = 4;
const DATA_START: usize = 5;
const DATA_END: usize = 6;
const FIRST_OPCODES: usize = 7;

/// The registers, in the order of their numbers:
///
/// | register | what it holds |
/// | --- | --- |
/// | 0 | the counters that are qualified, as in the global control |
/// | 1 | which checks are on: \[0\] addresses of instructions, \[1\] opcodes, \[2\] addresses of data |
/// | 2, 3 | the first address of the range of instructions, and the first one after it |
/// | 4 | \[63:32\] 0, or the range recurs every so many bytes, and \[31:0\] so many bytes of each count |
/// | 5, 6 | the same as 2 and 3, of data |
/// | 7 to 10 | opcodes, 16 bits each: their numbers in the decoder `iced-x86`; 0: none |
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Qualifiers([u64; WORDS]);

impl Qualifiers {
    /// After RESET: no counter is qualified.
    pub const RESET: Self = Self([0; WORDS]);

    /// As written into registers.
    #[must_use]
    pub const fn of_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// The registers.
    #[must_use]
    pub const fn words(&self) -> [u64; WORDS] {
        self.0
    }

    /// Bits that can be set in the register of that number, if `counters` are the bits of the counters.
    pub(crate) const fn valid(register: usize, counters: u64) -> u64 {
        match register {
            SELECT => counters,
            CHECK => CHECKS,
            _ => u64::MAX,
        }
    }

    pub(crate) const fn get(&self, register: usize) -> u64 {
        self.0[register]
    }

    pub(crate) const fn set(&mut self, register: usize, value: u64) {
        self.0[register] = value;
    }

    /// Whether a counter, by its bit in the global control, counts only what passes.
    #[must_use]
    pub const fn selects(&self, counter: u64) -> bool {
        self.0[SELECT] & counter != 0
    }

    /// Whether any counter does.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.0[SELECT] != 0
    }

    /// Whether accesses matter.
    #[must_use]
    pub const fn checks_data(&self) -> bool {
        self.0[CHECK] & DATA != 0
    }

    /// Whether the instruction at an address, with that opcode, holds the checks that do not depend on its accesses.
    #[must_use]
    pub fn takes(&self, ip: u64, opcode: u16) -> bool {
        let checks = self.0[CHECK];
        (checks & CODE == 0 || self.has_code(ip)) && (checks & OPCODE == 0 || self.has(opcode))
    }

    fn has_code(&self, ip: u64) -> bool {
        let (start, part) = (self.0[CODE_START], self.0[CODE_PART]);
        let (bytes, period) = (part & 0xffff_ffff, part >> 32);
        (start..self.0[CODE_END]).contains(&ip)
            && (ip - start).checked_rem(period).is_none_or(|offset| offset < bytes)
    }

    fn has(&self, opcode: u16) -> bool {
        let words = self.0[FIRST_OPCODES..].iter();
        opcode != 0
            && words
                .flat_map(|word| (0..4).map(move |at| (word >> (16 * at)) as u16))
                .any(|one| one == opcode)
    }

    /// Whether an access holds the check of data.
    #[must_use]
    pub fn touches(&self, linear: u64, bytes: u32) -> bool {
        let after = linear.saturating_add(bytes.into());
        !self.checks_data() || linear < self.0[DATA_END] && after > self.0[DATA_START]
    }

    /// The same of what a repeated string instruction accesses in a line.
    #[must_use]
    pub fn touches_line(&self, linear: u64) -> bool {
        self.touches(linear & !(LINE_BYTES - 1), LINE_BYTES as u32)
    }
}

/// The registers for the opcodes.
#[must_use]
pub fn pack(opcodes: &[u16]) -> [u64; OPCODES / 4] {
    let mut words = [0; OPCODES / 4];
    for (place, opcode) in opcodes.iter().take(OPCODES).enumerate() {
        words[place / 4] |= u64::from(*opcode) << (16 * (place % 4));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(list: &[(usize, u64)]) -> Qualifiers {
        let mut all = Qualifiers::RESET;
        list.iter().for_each(|(register, value)| all.set(*register, *value));
        all
    }

    #[test]
    fn t1_a_range_of_code_has_its_ends_and_recurs_where_it_says_so() {
        let range = with(&[(CHECK, CODE), (CODE_START, 0x1000), (CODE_END, 0x1020)]);
        let inside =
            |one: &Qualifiers| (0xff0..0x1030).filter(|ip| one.takes(*ip, 1)).collect::<Vec<_>>();
        assert_eq!(inside(&range), (0x1000..0x1020).collect::<Vec<_>>());
        // 3 bytes of every 16.
        let mut parts = range;
        parts.set(CODE_PART, 16 << 32 | 3);
        assert_eq!(inside(&parts), [0x1000, 0x1001, 0x1002, 0x1010, 0x1011, 0x1012]);
        // One that ends before it begins has nothing.
        parts.set(CODE_END, 0xff8);
        assert!(inside(&parts).is_empty());
    }

    #[test]
    fn t2_opcodes_are_found_in_each_place_and_none_is_no_opcode() {
        let opcodes: Vec<u16> = (100..116).collect();
        let mut all = with(&[(CHECK, OPCODE)]);
        for (place, word) in pack(&opcodes).into_iter().enumerate() {
            all.set(FIRST_OPCODES + place, word);
        }
        let found = (0..200).filter(|opcode| all.takes(0, *opcode)).collect::<Vec<_>>();
        assert_eq!(found, opcodes);
        assert!(!with(&[(CHECK, OPCODE)]).takes(0, 0), "what is no instruction has no opcode");
    }

    #[test]
    fn t3_an_access_that_reaches_into_the_range_passes() {
        let range = with(&[(CHECK, DATA), (DATA_START, 0x100), (DATA_END, 0x108)]);
        let passes = |linear, bytes| range.touches(linear, bytes);
        assert!(passes(0xf9, 8) && passes(0x107, 1) && passes(0x100, 64));
        assert!(!passes(0xf8, 8) && !passes(0x108, 8) && !passes(u64::MAX, 8));
        assert!(range.touches_line(0x13f) && !range.touches_line(0x140));
        assert!(with(&[]).touches(0, 1), "without the check every access passes");
    }

    #[test]
    fn t8_all_checks_have_to_hold() {
        let both = with(&[(CHECK, CODE | OPCODE), (CODE_END, 8), (FIRST_OPCODES, 7)]);
        assert!(both.takes(7, 7) && !both.takes(8, 7) && !both.takes(7, 8));
    }
}
