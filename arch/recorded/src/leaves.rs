//! The answers of one processor.

use pmu_model::recording::Answer;
use protocol::record::INDEXED_LEAVES;
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Which answer: the values in EAX and ECX.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Leaf {
    /// EAX.
    pub leaf: u32,
    /// ECX.
    pub subleaf: u32,
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "leaf {:#x} sub-leaf {:#x}", self.leaf, self.subleaf)
    }
}

/// EAX, EBX, ECX and EDX of an answer.
pub type Registers = [u32; 4];

/// The same leaf twice, with different answers.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{0} was answered before, differently")]
pub struct Twice(pub Leaf);

/// The answers of one logical processor.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Leaves {
    answers: BTreeMap<Leaf, Registers>,
}

/// Leaf 0 of Intel and of Centaur, EBX, ECX, EDX: makers whose processors answer a leaf above the highest basic one with
/// the highest (SDM vol. 2, CPUID).
const ECHOING: [Registers; 2] =
    [[0, 0x756e_6547, 0x6c65_746e, 0x4965_6e69], [0, 0x746e_6543, 0x736c_7561, 0x4872_7561]];

impl Leaves {
    /// No answer at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an answer.
    ///
    /// # Errors
    /// It is there already, and differs.
    pub fn add(&mut self, leaf: u32, subleaf: u32, answer: Registers) -> Result<(), Twice> {
        let key = Leaf { leaf, subleaf };
        match self.answers.insert(key, answer) {
            Some(before) if before != answer => {
                self.answers.insert(key, before);
                Err(Twice(key))
            }
            _ => Ok(()),
        }
    }

    /// Puts an answer in place of what was there.
    pub fn set(&mut self, leaf: u32, subleaf: u32, answer: Registers) {
        self.answers.insert(Leaf { leaf, subleaf }, answer);
    }

    /// The answer that was recorded, if it was.
    #[must_use]
    pub fn recorded(&self, leaf: u32, subleaf: u32) -> Option<Registers> {
        self.answers.get(&Leaf { leaf, subleaf }).copied()
    }

    /// All that was recorded, by leaf and sub-leaf.
    pub fn all(&self) -> impl Iterator<Item = (Leaf, Registers)> + '_ {
        self.answers.iter().map(|(&leaf, &answer)| (leaf, answer))
    }

    /// The same for the emulated PMU, which gives the only answer of a leaf for every sub-leaf: a leaf with sub-leaves of which one
    /// was recorded gets an empty second one.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let mut list: Vec<Answer> = Vec::with_capacity(self.answers.len());
        for (Leaf { leaf, subleaf }, registers) in self.all() {
            list.push(Answer { leaf, subleaf, registers });
            if subleaf == 0 && INDEXED_LEAVES.contains(&leaf) && self.recorded(leaf, 1).is_none() {
                list.push(Answer { leaf, subleaf: 1, registers: [0; 4] });
            }
        }
        list
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// What the processor answers. What was not recorded: the answer of sub-leaf 0 where the sub-leaf does not matter; of
    /// the highest basic leaf where the maker's processors repeat it; else 0, as for a leaf that is reserved.
    #[must_use]
    pub fn answer(&self, leaf: u32, subleaf: u32) -> Registers {
        let one = |leaf: u32| {
            let exact = self.recorded(leaf, subleaf);
            exact.or_else(|| self.recorded(leaf, 0).filter(|_| !INDEXED_LEAVES.contains(&leaf)))
        };
        one(leaf).or_else(|| self.echoed(leaf).and_then(one)).unwrap_or_default()
    }

    /// The highest basic leaf, if the processor answers with it in place of `leaf`.
    fn echoed(&self, leaf: u32) -> Option<u32> {
        let [highest, vendor @ ..] = self.recorded(0, 0)?;
        let echoes = ECHOING.iter().any(|maker| maker[1..] == vendor);
        let beyond = if leaf < 0x8000_0000 {
            leaf > highest
        } else {
            leaf > self.recorded(0x8000_0000, 0).map_or(0, |answer| answer[0])
        };
        (echoes && beyond).then_some(highest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: Registers = [4, 0x756e_6547, 0x6c65_746e, 0x4965_6e69];

    fn leaves(rows: &[(u32, u32, Registers)]) -> Leaves {
        let mut leaves = Leaves::new();
        for &(leaf, subleaf, answer) in rows {
            leaves.add(leaf, subleaf, answer).unwrap();
        }
        leaves
    }

    #[test]
    fn an_answer_that_was_not_recorded_is_that_of_the_maker() {
        let intel = leaves(&[(0, 0, INTEL), (1, 0, [7; 4]), (4, 0, [1; 4]), (4, 1, [2; 4])]);
        assert_eq!(intel.answer(1, 5), [7; 4], "the sub-leaf does not matter");
        assert_eq!(intel.answer(4, 1), [2; 4]);
        assert_eq!(intel.answer(4, 9), [0; 4], "a sub-leaf that is not there");
        assert_eq!(intel.answer(0xa, 1), [2; 4], "the highest basic leaf is repeated");
        assert_eq!(intel.answer(0x8000_0000, 0), [1; 4]);
        let amd = leaves(&[(0, 0, [4, 0x6874_7541, 0x444d_4163, 0x6974_6e65]), (4, 0, [1; 4])]);
        assert_eq!(amd.answer(0xa, 0), [0; 4]);
    }

    #[test]
    fn two_different_answers_are_refused_and_the_first_stays() {
        let mut leaves = leaves(&[(1, 0, [7; 4])]);
        assert_eq!(leaves.add(1, 0, [7; 4]), Ok(()));
        let error = leaves.add(1, 0, [8; 4]).unwrap_err();
        assert_eq!(error.to_string(), "leaf 0x1 sub-leaf 0x0 was answered before, differently");
        assert_eq!(leaves.recorded(1, 0), Some([7; 4]));
    }
}
