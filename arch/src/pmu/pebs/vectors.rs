//! Vector registers beyond XMM, which architectural records have group by group.
//!
//! Sizes and order are those of `struct arch_pebs_*` and `setup_arch_pebs_sample_data` in Linux; the words of a group stand in the
//! order of its registers, the lowest word of each first, as XSAVE has them (SDM vol. 1, 13.5.3 and 13.5.5).

use super::Groups;
use super::config::VECTOR_WORDS;

/// Words of the groups: 16 halves of YMM, eight masks, 16 halves of ZMM, 16 whole ones.
pub(super) const YMM_WORDS: usize = 32;
pub(super) const MASK_WORDS: usize = 8;
pub(super) const ZMM_WORDS: usize = 64;
pub(super) const ZMM_HIGH_WORDS: usize = 128;

/// Each group with its words, in the order of a record.
pub const GROUPS: [(Groups, usize); 5] = [
    (Groups::VECTORS, VECTOR_WORDS),
    (Groups::YMM_UPPER, YMM_WORDS),
    (Groups::MASKS, MASK_WORDS),
    (Groups::ZMM_UPPER, ZMM_WORDS),
    (Groups::ZMM_HIGH, ZMM_HIGH_WORDS),
];

/// Words of 8 bytes that the vector registers among `groups` have.
#[must_use]
pub const fn words(groups: Groups) -> usize {
    let (mut words, mut index) = (0, 0);
    while index < GROUPS.len() {
        let (group, each) = GROUPS[index];
        if groups.contains(group) {
            words += each;
        }
        index += 1;
    }
    words
}

/// The groups of a record that are not XMM.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BeyondXmm<'a> {
    /// Upper halves of YMM0 to YMM15, two words each.
    pub ymm_upper: Option<&'a [u64; YMM_WORDS]>,
    /// K0 to K7.
    pub masks: Option<&'a [u64; MASK_WORDS]>,
    /// Upper halves of ZMM0 to ZMM15, four words each.
    pub zmm_upper: Option<&'a [u64; ZMM_WORDS]>,
    /// ZMM16 to ZMM31, eight words each.
    pub zmm_high: Option<&'a [u64; ZMM_HIGH_WORDS]>,
}

impl<'a> BeyondXmm<'a> {
    /// With XMM0 to XMM15 of the same record: the words of each group, in the order of [`GROUPS`].
    #[must_use]
    pub fn with(&self, xmm: Option<&'a [u64; VECTOR_WORDS]>) -> [Option<&'a [u64]>; 5] {
        [
            xmm.map(|all| &all[..]),
            self.ymm_upper.map(|all| &all[..]),
            self.masks.map(|all| &all[..]),
            self.zmm_upper.map(|all| &all[..]),
            self.zmm_high.map(|all| &all[..]),
        ]
    }

    /// The groups that are there.
    #[must_use]
    pub fn groups(&self) -> Groups {
        let there = GROUPS.into_iter().zip(self.with(None));
        let there = there.filter(|(_, words)| words.is_some());
        there.fold(Groups::empty(), |all, ((group, _), _)| all | group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_each_group_of_vector_registers_has_its_words() {
        let all = GROUPS.map(|(group, _)| words(group));
        // 16 registers of 16 bytes, their upper halves, eight masks, 16 halves of 32 bytes, 16 registers of 64.
        assert_eq!(all, [32, 32, 8, 64, 128]);
        assert_eq!(words(Groups::ANY_VECTORS | Groups::GENERAL), 264);
        assert_eq!(words(Groups::GENERAL), 0);
        let masks = [7; 8];
        let some = BeyondXmm { masks: Some(&masks), ..BeyondXmm::default() };
        assert_eq!((some.groups(), some.with(None)[2]), (Groups::MASKS, Some(&masks[..])));
    }
}
