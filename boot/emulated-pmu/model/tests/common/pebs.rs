//! A debug store in made-up memory.

use pmu_model::{Delta, GuestMemory, Outcome, Pmu, Retirement};

/// Where the DS area lies.
pub const AREA: u64 = 0x4000;
/// Where the buffer lies.
pub const BASE: u64 = 0x1_0000;
/// Words that are mapped after the area and after the base.
const MAPPED: usize = 2048;

pub struct Area {
    words: [u64; 56],
    memory: Vec<u64>,
    end: usize,
}

impl Area {
    /// A buffer with its threshold and its end after so many words.
    pub fn new(threshold: usize, end: usize) -> Self {
        let mut words = [0; 56];
        let at = |words: usize| BASE + 8 * words as u64;
        words[4..8].copy_from_slice(&[BASE, BASE, at(end), at(threshold)]);
        Self { words, memory: vec![0; MAPPED], end }
    }

    /// Sets the reset value at this place among them.
    pub fn set_reset(&mut self, place: usize, value: u64) {
        self.words[8 + place] = value;
    }

    pub fn index(&self) -> u64 {
        self.words[5]
    }

    /// Records of so many words that the index says are there.
    pub fn records(&self, words: usize) -> usize {
        (self.index() - BASE) as usize / 8 / words
    }

    pub fn buffer(&self) -> &[u64] {
        &self.memory[..self.end]
    }

    /// Words written after the end.
    pub fn beyond(&self) -> usize {
        self.memory[self.end..].iter().filter(|word| **word != 0).count()
    }

    fn word(&mut self, linear: u64) -> Option<&mut u64> {
        match linear {
            AREA..BASE => self.words.get_mut((linear - AREA) as usize / 8),
            _ => self.memory.get_mut(linear.checked_sub(BASE)? as usize / 8),
        }
    }
}

impl GuestMemory for Area {
    fn read(&mut self, linear: u64) -> Option<u64> {
        self.word(linear).map(|word| *word)
    }

    fn write(&mut self, linear: u64, value: u64) -> Option<()> {
        *self.word(linear)? = value;
        Some(())
    }

    fn write_physical(&mut self, _: u64, _: u64) -> Option<()> {
        panic!("a debug store has linear addresses");
    }
}

/// The instruction with this number retires: a byte long, RAX its number, R8 to R15 their own.
pub fn instruction(
    pmu: &mut Pmu,
    area: &mut dyn GuestMemory,
    number: u64,
    delta: Delta,
) -> Outcome {
    let outcome = pmu.advance(&delta);
    if outcome.due == 0 {
        return outcome;
    }
    let mut registers = [number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    registers[4] = 0x8000;
    let ip = 0x1000 + number;
    let retired = Retirement {
        ip,
        next: ip + 1,
        flags: 2,
        registers,
        load: Some(0x10_0000),
        store: Some(0x20_0000),
        tsc: 5000 + number,
        vectors: core::array::from_fn(|n| 0x7000 + n as u64),
        ymm_upper: Some(core::array::from_fn(|n| 0x8000 + n as u64)),
        ..Retirement::default()
    };
    pmu.write_record(outcome.due, &retired, area)
}
