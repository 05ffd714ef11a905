//! Numbers for the tests of blind recovery.

/// Always the same numbers for the same start (SplitMix64).
pub struct Draw(pub u64);

impl Draw {
    /// One of a list.
    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        list[(mixed >> 33) as usize % list.len()].clone()
    }
}
