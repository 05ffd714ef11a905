//! Where a hypervisor's file carries recorded processors: a part of it that begins with a mark, is empty as it is built, and is
//! filled in by who starts it.
//!
//! After the mark: the number of processors, then for each the number of its answers and these, six words each, and the number
//! of its registers and these, three words each: number, lower and upper half. All words have 32 bits and are little-endian.

use super::Answer;

/// Bytes of the slot. The longest of 444 recorded processors has 85 answers, 2,044 bytes.
pub const BYTES: usize = 32 << 10;
/// How it begins. Not to be found elsewhere in a hypervisor: this constant is of who fills it in alone.
pub const MARK: [u8; 16] = *b"recorded CPUs :\n";
/// Words of an answer, and of a register.
const ANSWER: usize = 6;
const REGISTER: usize = 3;

/// A processor that goes into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor<'a> {
    /// What CPUID answers.
    pub answers: &'a [Answer],
    /// Registers that somebody left, and what they hold: see [`crate::Pmu::leave`].
    pub registers: &'a [(u32, u64)],
}

impl Processor<'_> {
    /// Words that it takes.
    #[must_use]
    pub const fn words(&self) -> usize {
        2 + ANSWER * self.answers.len() + REGISTER * self.registers.len()
    }
}

/// The slot in a hypervisor.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Slot {
    mark: [u8; MARK.len()],
    words: [u32; (BYTES - MARK.len()) / 4],
}

impl Slot {
    /// An empty one.
    pub const EMPTY: Self = Self { mark: MARK, words: [0; (BYTES - MARK.len()) / 4] };

    /// Words of processor number `processor`, or of the last one, if they are fewer: its answers and its registers. `None` if it
    /// is empty, or damaged.
    fn of(&self, processor: usize) -> Option<[&[u32]; 2]> {
        let (&count, mut rest) = self.words.split_first()?;
        let number = processor.min((count as usize).checked_sub(1)?);
        let mut list = |bytes: usize| {
            let (&count, behind) = rest.split_first()?;
            let (own, others) = behind.split_at_checked((count as usize).checked_mul(bytes)?)?;
            rest = others;
            Some(own)
        };
        for _ in 0..number {
            list(ANSWER)?;
            list(REGISTER)?;
        }
        Some([list(ANSWER)?, list(REGISTER)?])
    }

    /// Answers of processor number `processor`, or of the last one, if they are fewer. `None` if it is empty.
    #[must_use]
    pub fn answers(&self, processor: usize) -> Option<impl Iterator<Item = Answer> + '_> {
        let [words, _] = self.of(processor)?;
        Some(words.chunks_exact(ANSWER).map(|word| Answer {
            leaf: word[0],
            subleaf: word[1],
            registers: [word[2], word[3], word[4], word[5]],
        }))
    }

    /// Its registers, each with what it holds.
    pub fn registers(&self, processor: usize) -> impl Iterator<Item = (u32, u64)> + '_ {
        let words = self.of(processor).map_or(&[][..], |[_, words]| words);
        let value = |word: &[u32]| (word[0], u64::from(word[1]) | u64::from(word[2]) << 32);
        words.chunks_exact(REGISTER).map(value)
    }
}

/// Fills the slot in the hypervisor's `file` in. `false`: there is no slot, or the processors do not fit into it.
#[must_use]
pub fn fill(file: &mut [u8], processors: &[Processor]) -> bool {
    let Some(at) = file.windows(MARK.len()).position(|window| window == MARK) else {
        return false;
    };
    let Some(mut room) = file.get_mut(at + MARK.len()..at + BYTES) else { return false };
    let mut put = |word: u32| {
        let Some((bytes, behind)) = core::mem::take(&mut room).split_first_chunk_mut() else {
            return false;
        };
        *bytes = word.to_le_bytes();
        room = behind;
        true
    };
    let mut fits = put(processors.len() as u32);
    for processor in processors {
        fits &= put(processor.answers.len() as u32);
        for one in processor.answers {
            let [eax, ebx, ecx, edx] = one.registers;
            fits &= [one.leaf, one.subleaf, eax, ebx, ecx, edx].into_iter().all(&mut put);
        }
        fits &= put(processor.registers.len() as u32);
        for &(msr, value) in processor.registers {
            fits &= [msr, value as u32, (value >> 32) as u32].into_iter().all(&mut put);
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn answer(leaf: u32) -> Answer {
        Answer { leaf, subleaf: leaf + 1, registers: [leaf + 2, leaf + 3, leaf + 4, leaf + 5] }
    }

    /// The file in memory, from its slot on.
    fn loaded(file: &[u8], at: usize) -> Slot {
        let word = |place: &[u8]| u32::from_le_bytes(place.try_into().unwrap());
        let words: Vec<u32> = file[at + MARK.len()..at + BYTES].chunks(4).map(word).collect();
        Slot { mark: MARK, words: words.try_into().unwrap() }
    }

    #[test]
    fn what_is_filled_in_is_read_by_each_processor() {
        let mut file = vec![0x5A; 100];
        file.extend_from_slice(&MARK);
        file.extend_from_slice(&[0; BYTES - MARK.len()]);
        file.push(0x5A);
        assert!(Slot::EMPTY.answers(0).is_none());
        let registers = [(0xC1, 0xFFFF_0000_0001), (0x186, 7)];
        let first = Processor { answers: &[answer(1), answer(10)], registers: &registers };
        let second = Processor { answers: &[answer(20)], registers: &[] };
        assert_eq!(first.words(), 2 + 12 + 6);
        assert!(fill(&mut file, &[first, second]));
        let slot = loaded(&file, 100);
        let of = |number| slot.answers(number).unwrap().collect::<Vec<_>>();
        assert_eq!(of(0), [answer(1), answer(10)]);
        assert_eq!(of(1), [answer(20)]);
        assert_eq!(of(7), of(1), "more processors than recordings");
        assert_eq!(slot.registers(0).collect::<Vec<_>>(), registers);
        assert_eq!(slot.registers(1).count() + slot.registers(7).count(), 0);
        assert_eq!(file[file.len() - 1], 0x5A);
        let many = vec![answer(1); BYTES / 24];
        let many = Processor { answers: &many, registers: &[] };
        assert!(!fill(&mut file, &[many]), "too many");
        assert_eq!(file[file.len() - 1], 0x5A);
        assert!(!fill(&mut file[..BYTES], &[]), "cut off");
        assert!(!fill(&mut [0; 64], &[]), "no slot");
    }

    #[test]
    fn a_damaged_slot_is_empty() {
        for words in [[1, 5000], [2, 9000], [1, u32::MAX]] {
            let mut slot = Slot::EMPTY;
            slot.words[..2].copy_from_slice(&words);
            assert!(slot.answers(1).is_none());
        }
    }
}
