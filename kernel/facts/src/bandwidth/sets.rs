//! Working sets that lie in a level: larger than the level in front, and smaller than the level.

use super::TURN;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::record::MemoryFacts;

/// Bytes of which a working set is a multiple: each half of a copy is whole turns.
pub const UNIT: u64 = 2 * TURN;

/// A level's working sets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Set {
    /// The cache, from 1; 0: memory.
    pub level: u32,
    /// Bytes of the one that is reported.
    pub bytes: u64,
    /// Bytes of another one, which must be as fast.
    pub other: u64,
    /// Bytes of the level in front; of memory, of the last cache.
    pub front: u64,
    /// How many caches there are up to this level, or before memory.
    pub caches: u32,
    /// Why it may not be the level's.
    pub doubts: Vec<String>,
}

impl Set {
    /// What the level is called.
    pub fn name(&self) -> String {
        match self.level {
            0 => "memory".to_string(),
            level => format!("L{level}"),
        }
    }
}

/// Whole units, at least one.
pub fn rounded(bytes: u64) -> u64 {
    (bytes / UNIT * UNIT).max(UNIT)
}

/// The working sets of all levels whose sizes were found, and why there are none of others. `most`: bytes of the largest.
pub fn of(memory: &MemoryFacts, most: u64) -> (Vec<Set>, Vec<String>) {
    let (mut sets, mut reasons): (Vec<Set>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut front, mut caches, mut is_known) = (0, 0, true);
    for cache in &memory.caches {
        let level = cache.level;
        let Some(own) = cache.bytes() else {
            reasons.push(format!(
                "L{level}: its size was not determined, so no working set is known to lie in it"
            ));
            is_known = false;
            break;
        };
        if own > most {
            reasons
                .push(format!("L{level}: its {own} bytes are more than the {most} that are used"));
            is_known = false;
            break;
        }
        let (bytes, other) = (rounded(u64::midpoint(front, own)), rounded((front + 3 * own) / 4));
        let mut doubts = Vec::new();
        if own < 3 * front {
            doubts.push("less than three times the level before".to_string());
        }
        caches = level;
        sets.push(Set { level, bytes, other, front, caches, doubts });
        front = own;
    }
    match memory_set((front, caches), most, is_known && front > 0) {
        Ok(set) => sets.push(set),
        Err(reason) => reasons.push(reason),
    }
    (sets, reasons)
}

/// Four times the last cache, as STREAM demands.
fn memory_set((last, caches): (u64, u32), most: u64, is_known: bool) -> Result<Set, String> {
    let wanted = (4 * last).next_power_of_two();
    let bytes = rounded(if is_known { wanted.min(most) } else { most });
    let mut doubts = Vec::new();
    if !is_known {
        doubts.push("the last cache's size is not known: part may be in it".to_string());
    } else if bytes < 2 * last {
        return Err(format!(
            "memory: {bytes} bytes are less than twice the last cache of {last}: give the item more memory"
        ));
    } else if bytes < 4 * last {
        doubts.push("less than four times the last cache: part may be in it".to_string());
    }
    let other = rounded(if bytes >= 4 * last { bytes / 2 } else { bytes / 4 * 3 });
    Ok(Set { level: 0, bytes, other, front: last, caches, doubts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::record::CacheFact;

    const KIB: u64 = 1 << 10;

    fn memory(caches: &[Option<u64>]) -> MemoryFacts {
        let cache = |(at, bytes): (usize, &Option<u64>)| CacheFact {
            level: at as u32 + 1,
            ways: bytes.map(|_| 8),
            set_stride: bytes.map(|bytes| bytes / 8),
            ..CacheFact::default()
        };
        let caches = caches.iter().enumerate().map(cache).collect();
        MemoryFacts { caches, ..MemoryFacts::default() }
    }

    /// Level, bytes of both working sets, and whether nothing is doubtful.
    type Short = (u32, u64, u64, bool);

    fn of_sizes(caches: &[Option<u64>], most: u64) -> (Vec<Short>, Vec<String>) {
        let (sets, reasons) = of(&memory(caches), most);
        let told = |set: &Set| (set.level, set.bytes, set.other, set.doubts.is_empty());
        (sets.iter().map(told).collect(), reasons)
    }

    #[test]
    fn d1_working_sets_lie_in_the_middle_of_levels() {
        let (sets, reasons) = of_sizes(&[Some(32 * KIB), Some(256 * KIB)], 64 << 20);
        let (first, second) = ((1, 16 * KIB, 24 * KIB, true), (2, 144 * KIB, 200 * KIB, true));
        assert_eq!(sets, [first, second, (0, 1024 * KIB, 512 * KIB, true)]);
        assert_eq!(reasons, [""; 0]);
        // Small ones are doubtful, and so is memory that is hardly larger than a cache.
        let (sets, _) = of_sizes(&[Some(32 * KIB), Some(64 * KIB)], 128 * KIB);
        assert_eq!(sets[1..], [(2, 48 * KIB, 56 * KIB, false), (0, 128 * KIB, 96 * KIB, false)]);
        let (sets, _) = of_sizes(&[Some(48 * KIB), Some(144 * KIB)], 1 << 20);
        assert!(sets.iter().all(|set| set.3 && set.1 % UNIT == 0 && set.2 % UNIT == 0), "{sets:?}");
    }

    #[test]
    fn d1_what_has_no_size_has_no_working_set() {
        let (sets, reasons) = of_sizes(&[Some(32 * KIB), None], 8 << 20);
        assert_eq!(sets, [(1, 16 * KIB, 24 * KIB, true), (0, 8 << 20, 4 << 20, false)]);
        assert!(reasons[0].starts_with("L2: its size was not determined"), "{reasons:?}");
        let (sets, reasons) = of_sizes(&[Some(32 * KIB), Some(1 << 20)], 1 << 20);
        assert_eq!(sets.len(), 2);
        assert!(reasons[0].contains("give the item more memory"), "{reasons:?}");
        let (sets, reasons) = of_sizes(&[Some(32 * KIB), Some(2 << 20)], 1 << 20);
        assert_eq!((sets.len(), sets[1].3), (2, false));
        assert!(reasons[0].contains("2097152 bytes are more than"), "{reasons:?}");
        // Without any cache all of it may be anything.
        assert_eq!(of_sizes(&[], 1 << 20).0, [(0, 1 << 20, 512 * KIB, false)]);
    }
}
