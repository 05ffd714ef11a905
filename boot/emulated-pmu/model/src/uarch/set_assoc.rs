//! A set-associative store of tags with least-recently-used replacement.

/// `SETS` sets of `WAYS` tags. Each set is kept in order of use, so the state is the order.
#[derive(Clone, Debug)]
pub struct SetAssoc<const SETS: usize, const WAYS: usize> {
    /// Key + 1; 0 is an empty way. All zeros is the empty store, so that it can be in zeroed
    /// memory.
    tags: [[u64; WAYS]; SETS],
}

impl<const SETS: usize, const WAYS: usize> SetAssoc<SETS, WAYS> {
    /// An empty store.
    #[must_use]
    pub const fn new() -> Self {
        Self { tags: [[0; WAYS]; SETS] }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.tags = [[0; WAYS]; SETS];
    }

    /// Looks a key up and makes it the most recently used of its set; an absent key replaces the
    /// least recently used one. True if it was there.
    pub fn touch(&mut self, key: u64) -> bool {
        let tag = key.wrapping_add(1);
        let set = self.set(key);
        let place = set.iter().position(|way| *way == tag);
        let hit = place.is_some();
        set[..=place.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = tag;
        hit
    }

    /// Whether a key is the most recently used one of its set, so that looking it up again would change nothing.
    #[must_use]
    #[inline]
    pub fn is_newest(&self, key: u64) -> bool {
        self.tags[(key % SETS as u64) as usize][0] == key.wrapping_add(1)
    }

    /// Makes the second most recently used key of this key's set the most recently used one, as looking it up would.
    ///
    /// # Panics
    /// If a set has one way.
    #[inline]
    pub fn exchange_newest(&mut self, key: u64) {
        self.set(key).swap(0, 1);
    }

    /// Whether a key is there; changes nothing.
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        let tag = key.wrapping_add(1);
        self.tags[(key % SETS as u64) as usize].contains(&tag)
    }

    /// Takes a key out. True if it was there.
    pub fn remove(&mut self, key: u64) -> bool {
        let tag = key.wrapping_add(1);
        let set = self.set(key);
        let Some(place) = set.iter().position(|way| *way == tag) else {
            return false;
        };
        set[place..].rotate_left(1);
        set[WAYS - 1] = 0;
        true
    }

    fn set(&mut self, key: u64) -> &mut [u64; WAYS] {
        &mut self.tags[(key % SETS as u64) as usize]
    }
}

impl<const SETS: usize, const WAYS: usize> Default for SetAssoc<SETS, WAYS> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replaces_the_least_recently_used() {
        let mut store = SetAssoc::<2, 2>::new();
        // Keys 0, 2 and 4 share set 0.
        assert!(!store.touch(0) && !store.touch(2));
        assert!(store.touch(0));
        assert!(!store.touch(4), "2 has to go");
        assert!(store.contains(0) && store.contains(4) && !store.contains(2));
        assert!(!store.touch(1), "set 1 is its own");
        assert!(store.contains(0));
    }

    #[test]
    fn a_removed_key_frees_its_way() {
        let mut store = SetAssoc::<1, 2>::new();
        store.touch(10);
        store.touch(20);
        assert!(store.remove(10) && !store.remove(10));
        store.touch(30);
        assert!(store.contains(20) && store.contains(30));
    }

    #[test]
    fn the_greatest_key_is_a_key() {
        let mut store = SetAssoc::<1, 1>::new();
        assert!(!store.contains(u64::MAX - 1));
        store.touch(u64::MAX - 1);
        assert!(store.contains(u64::MAX - 1));
    }

    proptest! {
        /// Against a list in order of use, for each set.
        #[test]
        fn behaves_as_a_list(keys in proptest::collection::vec((0u64..40, 0u8..8), 0..400)) {
            let mut store = SetAssoc::<4, 3>::new();
            let mut lists = vec![Vec::<u64>::new(); 4];
            for (key, action) in keys {
                let list = &mut lists[(key % 4) as usize];
                let place = list.iter().position(|k| *k == key);
                if let Some(place) = place {
                    list.remove(place);
                }
                if action == 0 {
                    prop_assert_eq!(store.remove(key), place.is_some());
                } else {
                    let newest = place == Some(0);
                    let mut exchanged = store.clone();
                    exchanged.exchange_newest(key);
                    prop_assert_eq!(store.is_newest(key), newest);
                    let before = store.clone();
                    prop_assert_eq!(store.touch(key), place.is_some());
                    prop_assert!(!newest || before.tags == store.tags);
                    prop_assert!(place != Some(1) || exchanged.tags == store.tags);
                    list.insert(0, key);
                    list.truncate(3);
                }
            }
        }
    }
}
