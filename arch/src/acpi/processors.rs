//! The processors that the MADT lists: ACPI specification, 5.2.12.2 and 5.2.12.12.

use alloc::vec::Vec;

/// One of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Listed {
    /// Its local APIC's id.
    pub apic_id: u32,
    /// Whether it can be used.
    pub state: State,
}

/// Whether a listed processor can be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// It can.
    Enabled,
    /// Not now; the machine could enable it while it runs.
    OnlineCapable,
    /// It cannot.
    Disabled,
}

/// Flags of both kinds of entries.
const ENABLED: u32 = 1 << 0;
const ONLINE_CAPABLE: u32 = 1 << 1;
/// Ids that mean no processor: the broadcasts of both modes.
const NOBODY: [u32; 2] = [0xff, u32::MAX];

/// A processor by an entry's id and flags; `None` for one that stands for nobody.
#[must_use]
pub fn listed(apic_id: u32, flags: u32, x2apic_entry: bool) -> Option<Listed> {
    if apic_id == NOBODY[usize::from(x2apic_entry)] {
        return None;
    }
    let state = match flags & (ENABLED | ONLINE_CAPABLE) {
        0 => State::Disabled,
        ONLINE_CAPABLE => State::OnlineCapable,
        // Both: the specification wants the second bit 0 then.
        _ => State::Enabled,
    };
    Some(Listed { apic_id, state })
}

/// Adds `new` unless its id is there: firmware may list a processor in both forms. An enabled entry counts.
pub fn add(list: &mut Vec<Listed>, new: Listed) {
    match list.iter_mut().find(|old| old.apic_id == new.apic_id) {
        Some(old) if old.state != State::Enabled => *old = new,
        Some(_) => {}
        None => list.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_the_flags_say_who_can_be_started() {
        let state = |flags| listed(3, flags, false).map(|one| one.state);
        assert_eq!(state(0), Some(State::Disabled));
        assert_eq!(state(1), Some(State::Enabled));
        assert_eq!(state(2), Some(State::OnlineCapable));
        assert_eq!(state(3), Some(State::Enabled));
    }

    #[test]
    fn i7_broadcast_ids_are_nobody_each_in_its_own_mode() {
        assert_eq!(listed(0xff, 1, false), None);
        assert_eq!(listed(0xff, 1, true).map(|one| one.apic_id), Some(0xff));
        assert_eq!(listed(u32::MAX, 1, true), None);
    }

    #[test]
    fn i7_a_processor_that_is_listed_twice_is_one() {
        let mut list = Vec::new();
        for (id, flags) in [(0, 1), (4, 0), (4, 1), (0, 0), (9, 1)] {
            add(&mut list, listed(id, flags, true).unwrap());
        }
        let found: Vec<_> = list.iter().map(|one| (one.apic_id, one.state)).collect();
        assert_eq!(found, [(0, State::Enabled), (4, State::Enabled), (9, State::Enabled)]);
    }
}
