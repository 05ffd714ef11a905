//! Vector registers of samples: which groups of a record they are made of, and the registers put together.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::Capabilities;
use arch::pmu::pebs::vectors::{self, GROUPS};
use arch::pmu::pebs::{Format, Groups};
use protocol::hex::Hex;
use protocol::job::sampling::VectorRegisters;
use protocol::record::Samples;

/// What there is besides, without any vector register.
const GENERAL: &str = "registers has the general ones";

/// The groups whose words make up the registers.
const fn groups_of(registers: VectorRegisters) -> Groups {
    let ymm = Groups::VECTORS.union(Groups::YMM_UPPER);
    match registers {
        VectorRegisters::Xmm => Groups::VECTORS,
        VectorRegisters::Ymm => ymm,
        VectorRegisters::Zmm => ymm.union(Groups::ZMM_UPPER),
        VectorRegisters::Hi16Zmm => Groups::ZMM_HIGH,
        VectorRegisters::Opmask => Groups::MASKS,
    }
}

/// A group's name, and its bit in CPUID leaf 0x23.4 EBX.
fn named(group: Groups) -> (&'static str, u32) {
    match group {
        Groups::VECTORS => ("XMM registers", 17),
        Groups::YMM_UPPER => ("upper halves of YMM registers", 18),
        Groups::MASKS => ("opmask registers", 21),
        Groups::ZMM_UPPER => ("upper halves of ZMM registers", 22),
        _ => ("ZMM16 to ZMM31", 23),
    }
}

/// What samples have: each kind once, in the order of [`VectorRegisters::ALL`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kinds(Vec<VectorRegisters>);

impl Kinds {
    /// Those that the item asks for.
    ///
    /// # Errors
    /// The processor's records lack one: which group, and the nearest that they have.
    pub(super) fn of(asked: &[VectorRegisters], has: &Capabilities) -> Result<Self, String> {
        let mut all = asked.to_vec();
        all.sort_unstable();
        all.dedup();
        for &one in &all {
            check(one, has)?;
        }
        Ok(Self(all))
    }

    /// The groups that records need.
    pub(super) fn groups(&self) -> Groups {
        self.0.iter().fold(Groups::empty(), |all, &one| all | groups_of(one))
    }

    /// Words of a sample in the report.
    pub(super) fn reported_words(&self) -> usize {
        let words = self.0.iter().map(|one| one.shape()).map(|(count, each)| count * each);
        words.sum()
    }

    /// Adds the registers of a sample, whose groups are in `kept` one after the other.
    pub(super) fn report(&self, kept: &[u64], chunk: &mut Samples) {
        let groups = self.groups();
        let part = |group: Groups, words: usize| {
            let ahead = GROUPS.iter().take_while(|(one, _)| *one != group);
            let ahead: Groups = ahead.fold(Groups::empty(), |all, (one, _)| all | *one);
            let start = vectors::words(groups & ahead);
            kept.get(start..start + words).unwrap_or(&[])
        };
        for &kind in &self.0 {
            let wanted = groups_of(kind);
            let (count, _) = kind.shape();
            // The lowest part of each register first.
            let mut parts: Vec<_> = GROUPS
                .iter()
                .filter(|(group, _)| wanted.contains(*group))
                .map(|&(group, words)| part(group, words).chunks_exact(words / count))
                .collect();
            let list = chunk.vectors_of_mut(kind);
            for _ in 0..count {
                for words in &mut parts {
                    list.extend(words.next().into_iter().flatten().copied().map(Hex));
                }
            }
        }
    }
}

/// Whether records have the registers.
fn check(kind: VectorRegisters, has: &Capabilities) -> Result<(), String> {
    let there = has.record_groups();
    let missing = groups_of(kind).difference(there);
    let Some(group) = missing.iter().next() else { return Ok(()) };
    let (name, bit) = named(group);
    let reason = match (has.is_intel(), has.pebs_format()) {
        (false, _) => "samples of IBS have none".to_string(),
        (true, None) => "there is no PEBS that can be used".to_string(),
        (true, Some(Format::Architectural)) => {
            format!("this processor's PEBS records have no {name} (CPUID leaf 0x23.4 EBX[{bit}])")
        }
        (true, Some(format)) if there.contains(Groups::VECTORS) => format!(
            "PEBS records of format {} have no {name}, they came with architectural PEBS",
            format.number()
        ),
        (true, Some(format)) => format!(
            "PEBS records of format {} have none, they came with format 4 (Ice Lake)",
            format.number()
        ),
    };
    // The widest of the first sixteen.
    let order = [VectorRegisters::Zmm, VectorRegisters::Ymm, VectorRegisters::Xmm];
    let nearest = order.into_iter().find(|&one| there.contains(groups_of(one)));
    let nearest = match nearest {
        Some(nearest) => format!("\"{}\" in vectors", nearest.name()),
        None => GENERAL.to_string(),
    };
    let which = if kind == VectorRegisters::Xmm || there.is_empty() {
        String::new()
    } else {
        format!("{}: ", kind.name())
    };
    Err(format!("vectors: {which}{reason}; the nearest: {nearest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word is its own number: of the group in the upper digits, its place in the lower ones.
    fn kept(groups: Groups) -> Vec<u64> {
        let there = GROUPS.iter().enumerate().filter(|(_, (group, _))| groups.contains(*group));
        there
            .flat_map(|(n, &(_, words))| (0..words as u64).map(move |w| 1000 * n as u64 + w))
            .collect()
    }

    #[test]
    fn s1_whole_registers_are_put_together_of_their_groups() {
        // Register 3 of each kind: by the places of its parts in the groups (XMM, YMM, masks, ZMM, ZMM16 to ZMM31).
        let third: [&[u64]; 5] = [
            &[6, 7],
            &[6, 7, 1006, 1007],
            &[6, 7, 1006, 1007, 3012, 3013, 3014, 3015],
            &[4024, 4025, 4026, 4027, 4028, 4029, 4030, 4031],
            &[2003],
        ];
        for bits in 0..32usize {
            let asked = (0..5).filter(|n| bits >> n & 1 != 0).map(|n| VectorRegisters::ALL[n]);
            let kinds = Kinds(asked.collect());
            let words = kept(kinds.groups());
            assert_eq!(words.len(), vectors::words(kinds.groups()));
            let mut chunk = Samples::default();
            kinds.report(&words, &mut chunk);
            kinds.report(&words, &mut chunk);
            let mut all = 0;
            for (kind, third) in VectorRegisters::ALL.into_iter().zip(third) {
                let list: Vec<u64> = chunk.vectors_of(kind).iter().map(|word| word.0).collect();
                let (count, each) = kind.shape();
                let asked = kinds.0.contains(&kind);
                assert_eq!(list.len(), if asked { 2 * count * each } else { 0 }, "{kind:?}");
                if asked {
                    all += count * each;
                    for sample in list.chunks(count * each) {
                        assert_eq!(&sample[3 * each..4 * each], third, "{kind:?} {bits:#b}");
                    }
                }
            }
            assert_eq!(kinds.reported_words(), all);
        }
    }
}
