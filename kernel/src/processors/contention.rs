//! Rounds in which all processors do the same things at once, and what must have come of them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use protocol::record::ContentionRounds;

/// What the processors did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Together {
    /// By member.
    pub each: Vec<ContentionRounds>,
    /// What stood at the end in the word that each of them had raised by one, in each round, while it held the lock.
    pub sum: u64,
    /// By member: what the counter counted in one round alone, if there is a PMU.
    pub alone: Vec<Option<u64>>,
}

impl Together {
    /// Everything that `rounds` rounds must have come to.
    ///
    /// # Errors
    /// What did not, and on which member, by its place.
    pub fn judge(self, rounds: u32) -> Result<Vec<ContentionRounds>, (usize, String)> {
        let rounds = u64::from(rounds);
        for (place, one) in self.each.iter().enumerate() {
            let seen = [
                ("rounds", one.rounds),
                ("turns with the lock", one.locked),
                ("interrupts", one.interrupts),
                ("PMIs", one.pmis),
            ];
            if let Some((what, seen)) = seen.into_iter().find(|&(_, seen)| seen != rounds) {
                return Err((place, format!("{seen} {what} in {rounds} rounds")));
            }
            let alone = self.alone.get(place).copied().flatten();
            if alone == Some(0) {
                return Err((place, "the counter does not count".into()));
            }
            let due = alone.map(|alone| alone.saturating_mul(rounds));
            if one.counted != due {
                let (seen, due) = (one.counted.unwrap_or(0), due.unwrap_or(0));
                return Err((place, format!("{seen} instructions counted, not {due}")));
            }
        }
        let due = rounds * self.each.len() as u64;
        if self.sum != due {
            return Err((0, format!("the lock let {} of {due} additions through", self.sum)));
        }
        Ok(self.each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Together {
        let counted = Some(500);
        let one = ContentionRounds { rounds: 5, locked: 5, interrupts: 5, pmis: 5, counted };
        let each = Vec::from([one, ContentionRounds { counted: None, ..one }]);
        Together { each, sum: 10, alone: Vec::from([Some(100), None]) }
    }

    #[test]
    fn i7_m10_rounds_that_came_to_what_they_must_are_reported() {
        assert_eq!(good().judge(5), Ok(good().each));
    }

    #[test]
    fn i7_m10_each_figure_that_is_not_as_it_must_be_is_named_with_its_processor() {
        type Spoil = fn(&mut Together);
        let cases: [(Spoil, usize, &str); 8] = [
            (|all| all.each[1].rounds = 4, 1, "4 rounds in 5 rounds"),
            (|all| all.each[0].locked = 6, 0, "6 turns with the lock in 5 rounds"),
            (|all| all.each[1].interrupts = 4, 1, "4 interrupts in 5 rounds"),
            (|all| all.each[0].pmis = 0, 0, "0 PMIs in 5 rounds"),
            (|all| all.each[0].counted = Some(499), 0, "499 instructions counted, not 500"),
            (|all| all.each[1].counted = Some(1), 1, "1 instructions counted, not 0"),
            (
                |all| (all.alone[0], all.each[0].counted) = (Some(0), Some(0)),
                0,
                "the counter does not count",
            ),
            (|all| all.sum = 9, 0, "the lock let 9 of 10 additions through"),
        ];
        for (spoil, place, text) in cases {
            let mut all = good();
            spoil(&mut all);
            assert_eq!(all.judge(5), Err((place, text.into())));
        }
    }
}
