//! One list of several, made by the compiler.

use super::Event;

/// The events of all lists, in their order.
macro_rules! joined {
    ($($list:expr),+ $(,)?) => {{
        const LISTS: &[&[Event]] = &[$($list),+];
        const EVENTS: [Event; $crate::events::join::length(LISTS)] =
            $crate::events::join::join(LISTS);
        &EVENTS
    }};
}
pub(super) use joined;

/// How many events the lists have.
pub(super) const fn length(lists: &[&[Event]]) -> usize {
    let (mut sum, mut list) = (0, 0);
    while list < lists.len() {
        sum += lists[list].len();
        list += 1;
    }
    sum
}

/// The events of all lists. `N` is their [`length`].
pub(super) const fn join<const N: usize>(lists: &[&[Event]]) -> [Event; N] {
    let mut all = [lists[0][0]; N];
    let (mut next, mut list) = (0, 0);
    while list < lists.len() {
        let mut event = 0;
        while event < lists[list].len() {
            all[next] = lists[list][event];
            (next, event) = (next + 1, event + 1);
        }
        list += 1;
    }
    all
}
