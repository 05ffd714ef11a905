//! What comes when a report has been shown.

use crate::names::Kind;
use crate::region::After;
use core::time::Duration;

/// What has not worked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failed {
    /// Nothing.
    Nothing,
    /// Saving, which somebody has to do something about.
    Saving,
    /// Sending: a server comes back by itself, and it is tried again after this time.
    Sending(Duration),
}

impl Failed {
    /// How long somebody is asked. `None`: for good.
    #[must_use]
    pub fn patience(self) -> Option<Duration> {
        match self {
            Self::Nothing | Self::Saving => None,
            Self::Sending(time) => Some(time),
        }
    }
}

/// What comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Then {
    /// The machine goes on with what it boots else.
    Leave,
    /// It is switched off.
    PowerOff,
    /// Somebody is asked.
    Ask(Failed),
}

impl Then {
    /// What comes after a report of that kind, whose job wants `after`.
    #[must_use]
    pub fn of(failed: Failed, kind: Kind, after: After) -> Self {
        match after {
            After::Leave if failed == Failed::Nothing && kind == Kind::Report => Self::Leave,
            After::PowerOff if failed == Failed::Nothing && kind == Kind::Report => Self::PowerOff,
            _ => Self::Ask(failed),
        }
    }

    /// Whether the machine waits for somebody anyway. Else nothing may wait for a key: nobody has to be there.
    #[must_use]
    pub fn needs_somebody(self) -> bool {
        matches!(self, Self::Ask(failed) if failed.patience().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDING: Failed = Failed::Sending(Duration::from_secs(60));

    #[test]
    fn what_a_job_wants_comes_only_when_its_whole_report_is_out() {
        let wanted = [
            (After::Show, Then::Ask(Failed::Nothing)),
            (After::Leave, Then::Leave),
            (After::PowerOff, Then::PowerOff),
        ];
        for (after, then) in wanted {
            assert_eq!(Then::of(Failed::Nothing, Kind::Report, after), then);
            for failed in [Failed::Saving, SENDING] {
                assert_eq!(Then::of(failed, Kind::Report, after), Then::Ask(failed));
            }
            for kind in [Kind::Partial, Kind::Foreign, Kind::Damaged] {
                assert_eq!(Then::of(Failed::Nothing, kind, after), Then::Ask(Failed::Nothing));
            }
        }
    }

    #[test]
    fn a_machine_that_goes_on_by_itself_waits_for_nobody() {
        for then in [Then::Leave, Then::PowerOff, Then::Ask(SENDING)] {
            assert!(!then.needs_somebody(), "{then:?}");
        }
        for failed in [Failed::Nothing, Failed::Saving] {
            assert!(Then::Ask(failed).needs_somebody(), "{failed:?}");
        }
    }
}
