//! The processors that the MADT lists: ACPI specification, 5.2.12.2 and 5.2.12.12. It is read from its bytes: the `acpi` crate (6.1.1)
//! meets an entry of length 0 for ever.

use super::bytes::{entries, word};
use alloc::vec::Vec;

/// Where the entries begin (5.2.12).
const ENTRIES: usize = 44;
/// Kinds of entries: a processor by its APIC's id of 8 bits, and of 32 bits.
const LOCAL_APIC: u8 = 0;
const LOCAL_X2APIC: u8 = 9;

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

/// All of them, in the table's order. `madt` begins with its header.
#[must_use]
pub fn of_madt(madt: &[u8]) -> Vec<Listed> {
    let mut list = Vec::new();
    for entry in entries(madt, ENTRIES) {
        let one = match *entry {
            [LOCAL_APIC, _, _, id, _, _, _, _, ..] => listed(u32::from(id), word(entry, 4), false),
            [LOCAL_X2APIC, ..] if entry.len() >= 16 => listed(word(entry, 4), word(entry, 8), true),
            _ => None,
        };
        if let Some(one) = one {
            add(&mut list, one);
        }
    }
    list
}

/// A processor by an entry's id and flags; `None` for one that stands for nobody.
fn listed(apic_id: u32, flags: u32, x2apic_entry: bool) -> Option<Listed> {
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
fn add(list: &mut Vec<Listed>, new: Listed) {
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

    #[test]
    fn i7_a_madt_that_is_damaged_ends_where_it_is() {
        let apic = |id: u8| vec![LOCAL_APIC, 8, 0, id, 1, 0, 0, 0];
        let x2apic = |id: u8| [&[LOCAL_X2APIC, 16, 0, 0, id, 1, 0, 0, 1][..], &[0; 7]].concat();
        let ids = |parts: &[Vec<u8>]| {
            let table = [&[0; ENTRIES][..], &parts.concat()].concat();
            of_madt(&table).iter().map(|one| one.apic_id).collect::<Vec<_>>()
        };
        let io_apic = [&[1, 12][..], &[0; 10]].concat();
        assert_eq!(ids(&[apic(0), io_apic, apic(2), x2apic(4)]), [0, 2, 0x104]);
        assert_eq!(ids(&[apic(0), vec![0; 8], apic(2)]), [0], "an entry of length 0");
        assert_eq!(ids(&[apic(0), vec![0, 1], apic(2)]), [0], "one of length 1");
        assert_eq!(ids(&[apic(0), vec![0, 4, 0, 7], apic(2)]), [0, 2], "one that lacks its flags");
        assert_eq!(ids(&[apic(0), apic(2)[..7].to_vec()]), [0], "one that is cut off");
        assert!(of_madt(&[0; ENTRIES - 1]).is_empty(), "shorter than its own fields");
    }
}
