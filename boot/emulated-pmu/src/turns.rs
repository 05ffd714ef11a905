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
    /// Another one, which runs, or was called.
    Other(usize),
    /// Another one, which is halted, to look for interrupts of devices: nobody knows of those but itself.
    Look(usize),
    /// Nobody has anything to do: all wait for interrupts.
    Sleep,
}

/// Halted processors that look from one turn of a processor that runs to the next. Each look takes the machine as long as
/// thousands of instructions, so of many processors not all do.
pub const LOOKS: u64 = 2;

/// Where the turns are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Round {
    /// Whose turn it is.
    pub own: usize,
    /// Who had the last turn that was not a look.
    pub last: usize,
    /// Who looked last.
    pub looker: usize,
    /// How many have looked since that turn.
    pub looks: u64,
}

impl Round {
    /// Who comes next. `called`: halted processors that another one has sent an interrupt, or whose timer has rung, as bits.
    #[must_use]
    pub fn next(&self, statuses: &[Status], called: u64) -> Next {
        let count = statuses.len();
        let behind = |from: usize| (1..=count).map(move |step| (from + step) % count);
        let is_other = |index: &usize| *index != self.own;
        let is_called = |index: usize| called >> index & 1 != 0;
        let is_halted = |index: usize| statuses[index] == Status::Halted;
        let runs = |index: &usize| {
            statuses[*index] == Status::Runs || is_halted(*index) && is_called(*index)
        };
        let runner = behind(self.last).filter(is_other).find(runs);
        let own_runs = statuses[self.own] == Status::Runs;
        if runner.is_none() && !own_runs {
            return Next::Sleep;
        }
        // Not in front of one for which another has just halted: it is waited for.
        let may_look = self.looks < LOOKS && (own_runs || self.looks > 0);
        let waits = |index: &usize| is_halted(*index) && !is_called(*index);
        let looker = behind(self.looker).filter(is_other).find(waits);
        match (looker.filter(|_| may_look), runner) {
            (Some(looker), _) => Next::Look(looker),
            (None, Some(runner)) => Next::Other(runner),
            (None, None) => Next::Own,
        }
    }

    /// The same when that one has come.
    #[must_use]
    pub fn with(self, next: Next) -> Self {
        match next {
            Next::Own => Self { looks: 0, ..self },
            Next::Other(other) => Self { own: other, last: other, looks: 0, ..self },
            Next::Look(other) => Self { own: other, looker: other, looks: self.looks + 1, ..self },
            Next::Sleep => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{Absent, Dozes, Halted, Initial, Runs, Stopped};
    use super::*;
    use proptest::prelude::*;

    /// The next ones, as far as they do not depend on what these do.
    fn course(statuses: &[Status], called: u64, own: usize, length: usize) -> Vec<Next> {
        let mut round = Round { own, last: own, ..Round::default() };
        let step = |_| {
            let next = round.next(statuses, called);
            round = round.with(next);
            next
        };
        (0..length).map(step).collect()
    }

    #[test]
    fn processors_take_turns_and_two_halted_ones_look_in_between() {
        use Next::{Look, Other};
        let all = [Runs, Halted, Absent, Runs, Halted, Halted];
        let expected = [Look(1), Look(4), Other(3), Look(5), Look(1), Other(0), Look(4)];
        assert_eq!(course(&all, 0, 0, 7), expected);
        // One that was called has a turn, and does not look.
        assert_eq!(course(&all, 1 << 4, 3, 4), [Look(1), Look(5), Other(4), Other(0)]);
    }

    #[test]
    fn a_processor_alone_goes_on() {
        let next = |statuses: &[Status], own| course(statuses, 0, own, 1)[0];
        assert_eq!(next(&[Runs], 0), Next::Own);
        assert_eq!(next(&[Absent, Runs, Initial, Stopped], 1), Next::Own);
        assert_eq!(next(&[Halted], 0), Next::Sleep);
        assert_eq!(course(&[Runs, Halted], 0, 0, 2), [Next::Look(1), Next::Other(0)]);
    }

    #[test]
    fn all_sleep_when_nobody_runs_or_is_called() {
        let all = [Halted, Stopped, Halted, Halted];
        assert_eq!(course(&all, 0, 0, 1), [Next::Sleep]);
        assert_eq!(course(&all, 1 << 2, 0, 1), [Next::Other(2)]);
        // Who is halted with interrupts off is not woken by a call.
        assert_eq!(course(&[Stopped, Stopped], 0b11, 0, 1), [Next::Sleep]);
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
        /// Whoever runs has a turn before anybody has a second one, and whoever is halted looks now and then.
        #[test]
        fn nobody_is_left_out(
            numbers in prop::collection::vec(0u64..6, 1..8), own: prop::sample::Index, called: u64,
        ) {
            let statuses: Vec<_> = numbers.into_iter().map(Status::from_number).collect();
            let own = own.index(statuses.len());
            let course = course(&statuses, called, own, 64);
            let others: Vec<_> = course
                .iter()
                .filter_map(|next| if let Next::Other(other) = next { Some(*other) } else { None })
                .collect();
            let again = (1..others.len()).find(|end| others[..*end].contains(&others[*end]));
            let first = &others[..again.unwrap_or(others.len())];
            let nobody = course.contains(&Next::Sleep);
            for (index, status) in statuses.iter().enumerate().filter(|(index, _)| *index != own) {
                let is_called = called >> index & 1 != 0;
                if *status == Runs || *status == Halted && is_called {
                    prop_assert!(first.contains(&index), "{statuses:?} {course:?}");
                } else if *status == Halted && statuses.contains(&Runs) {
                    prop_assert!(nobody || course.contains(&Next::Look(index)), "{statuses:?}");
                }
            }
        }
    }
}
