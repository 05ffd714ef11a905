//! Interrupts that wait until the guest can take them.

/// A set of vectors.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Vectors([u64; 4]);

impl Vectors {
    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Adds `vector`.
    pub fn insert(&mut self, vector: u8) {
        self.0[usize::from(vector / 64)] |= 1 << (vector % 64);
    }

    /// The highest.
    #[must_use]
    pub fn highest(&self) -> Option<u8> {
        let word = (0..4).rev().find(|&word| self.0[word] != 0)?;
        Some((64 * word + 63 - self.0[word].leading_zeros() as usize) as u8)
    }

    /// Takes the highest, which has the highest priority (SDM vol. 3, 11.8.3.1).
    pub fn take(&mut self) -> Option<u8> {
        let vector = self.highest()?;
        self.0[usize::from(vector / 64)] &= !(1 << (vector % 64));
        Some(vector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vectors_come_out_once_and_the_highest_first(given: Vec<u8>) {
            let mut waiting = Vectors::default();
            for &vector in &given {
                waiting.insert(vector);
            }
            let mut expected = given;
            expected.sort_unstable();
            expected.dedup();
            expected.reverse();
            let taken: Vec<u8> = core::iter::from_fn(|| waiting.take()).collect();
            prop_assert_eq!(taken, expected);
            prop_assert!(waiting.is_empty());
        }
    }
}
