//! Whose turn it is: on several processors the guest runs on one at a time, because QEMU's clock counts the instructions of
//! all.

/// What a processor does.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(u64)]
pub enum Status {
    /// It has not come to the hypervisor yet.
    #[default]
    Absent = 0,
    /// INIT was sent to it: it waits for a start-up interrupt.
    Initial = 1,
    /// Its guest runs, or would if it were its turn.
    Runs = 2,
    /// Its guest is halted until an interrupt comes.
    Halted = 3,
    /// Its guest is halted, with interrupts off.
    Stopped = 4,
    /// Its guest waits for another processor to write to memory, with interrupts off: it looks now and then.
    Dozes = 5,
}

impl Status {
    /// From the number.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        use Status::*;
        const ALL: [Status; 6] = [Absent, Initial, Runs, Halted, Stopped, Dozes];
        ALL.into_iter().find(|status| *status as u64 == number).unwrap_or_default()
    }

    /// What it counts as when somebody else's turn ends: who dozes comes in when it `is_due`.
    #[must_use]
    pub fn when_due(self, is_due: bool) -> Self {
        match self {
            Self::Dozes if is_due => Self::Runs,
            Self::Dozes => Self::Stopped,
            other => other,
        }
    }

    /// Whether it has turns: to run, or to look for interrupts.
    #[must_use]
    pub fn has_turns(self) -> bool {
        matches!(self, Self::Runs | Self::Halted)
    }
}

/// Who comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// The same processor again.
    Own,
    /// Another one.
    Other(usize),
    /// Nobody has anything to do: all wait for interrupts.
    Sleep,
}

/// Who comes next behind processor `own`, whose turn it is. `quiet`: turns in a row, this one included, in which a halted
/// processor found no interrupt.
#[must_use]
pub fn next(statuses: &[Status], own: usize, quiet: usize) -> Next {
    let count = statuses.len();
    let others = || (1..count).map(|step| (own + step) % count);
    let first = others().find(|&other| statuses[other].has_turns());
    let halted = statuses.iter().filter(|status| **status == Status::Halted).count();
    let runs = statuses.contains(&Status::Runs);
    match first {
        Some(other) if runs || quiet < halted => Next::Other(other),
        None if statuses[own] == Status::Runs => Next::Own,
        _ => Next::Sleep,
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{Absent, Dozes, Halted, Initial, Runs, Stopped};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn processors_take_turns_and_halted_ones_look_for_interrupts() {
        let all = [Runs, Halted, Absent, Runs];
        assert_eq!(next(&all, 0, 0), Next::Other(1));
        assert_eq!(next(&all, 1, 1), Next::Other(3));
        assert_eq!(next(&all, 3, 0), Next::Other(0));
    }

    #[test]
    fn a_processor_alone_goes_on() {
        assert_eq!(next(&[Runs], 0, 0), Next::Own);
        assert_eq!(next(&[Absent, Runs, Initial, Stopped], 1, 0), Next::Own);
        assert_eq!(next(&[Halted], 0, 1), Next::Sleep);
    }

    #[test]
    fn all_sleep_when_each_has_looked() {
        let all = [Halted, Stopped, Halted, Halted];
        assert_eq!(next(&all, 0, 1), Next::Other(2));
        assert_eq!(next(&all, 2, 2), Next::Other(3));
        assert_eq!(next(&all, 3, 3), Next::Sleep);
        assert_eq!(next(&[Stopped, Stopped], 0, 0), Next::Sleep);
    }

    #[test]
    fn who_dozes_has_a_turn_when_it_is_due() {
        assert_eq!(Dozes.when_due(true), Runs);
        assert_eq!(Dozes.when_due(false), Stopped);
        assert_eq!(Halted.when_due(true), Halted);
    }

    #[test]
    fn numbers_lead_back() {
        for status in [Absent, Initial, Runs, Halted, Stopped, Dozes] {
            assert_eq!(Status::from_number(status as u64), status);
        }
        assert_eq!(Status::from_number(99), Absent);
    }

    proptest! {
        /// Whoever runs has a turn before anybody has a second one.
        #[test]
        fn nobody_is_left_out(numbers in prop::collection::vec(0u64..6, 1..8), own: prop::sample::Index) {
            let statuses: Vec<_> = numbers.into_iter().map(Status::from_number).collect();
            let own = own.index(statuses.len());
            let (mut at, mut seen) = (own, vec![]);
            while let Next::Other(other) = next(&statuses, at, 0) {
                if seen.contains(&other) {
                    break;
                }
                seen.push(other);
                at = other;
            }
            for (index, status) in statuses.iter().enumerate() {
                prop_assert!(*status != Runs || index == own || seen.contains(&index), "{statuses:?}");
            }
        }
    }
}
