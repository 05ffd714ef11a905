//! A value handed there and back between two processors, many times: the answer belongs to the question.

use super::sync::{AtomicU64, Ordering, spin_loop};

/// Questions are numbered; one processor asks, another answers.
pub(crate) struct Exchange {
    /// Odd: the question of this number was asked. Even: the one before was answered.
    turn: AtomicU64,
    answer: AtomicU64,
}

impl Exchange {
    /// Before the first question.
    pub(crate) fn new() -> Self {
        Self { turn: AtomicU64::new(0), answer: AtomicU64::new(0) }
    }

    /// Asks question `number` (0, 1, …; each once) and waits for its answer.
    pub(crate) fn ask(&self, number: u64) -> Asked<'_> {
        self.turn.store(2 * number + 1, Ordering::Release);
        self.wait(2 * number + 2);
        Asked(&self.answer)
    }

    /// Waits for question `number` and answers it by what `answer` returns then.
    pub(crate) fn answer(&self, number: u64, answer: impl FnOnce() -> u64) {
        self.wait(2 * number + 1);
        self.answer.store(answer(), Ordering::Relaxed);
        self.turn.store(2 * number + 2, Ordering::Release);
    }

    fn wait(&self, turn: u64) {
        while self.turn.load(Ordering::Acquire) != turn {
            spin_loop();
        }
    }
}

/// A question that was answered. The answer is read later, so that the asker can look at its clock before.
pub(crate) struct Asked<'a>(&'a AtomicU64);

impl Asked<'_> {
    /// The answer.
    pub(crate) fn answer(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
