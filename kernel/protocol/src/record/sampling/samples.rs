//! Single samples.

use super::is_boot;
use crate::hex::Hex;
use crate::job::sampling::VectorRegisters;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Single samples of one item, in the order in which they came; where several processors were sampled, those of one of them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// Index of the item in the job.
    pub item: u32,
    /// Number of the first sample of this record.
    pub first: u64,
    /// The processor, whose TSC is meant as well; absent: the boot processor.
    #[serde(default, skip_serializing_if = "is_boot")]
    pub cpu: u16,
    /// Addresses: each minus the one before it, as signed numbers; the first of a record as it is.
    pub addresses: Vec<i64>,
    /// TSC: likewise.
    pub tsc: Vec<i64>,
    /// The events that had overflowed, as bits of their indices.
    pub events: Vec<u32>,
    /// Task and ring, as 4 times the task's index plus the ring; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<u32>,
    /// The registers that the job asked for, those of each sample in a row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<Hex>,
    /// XMM0 to XMM15 of each sample, two words each, the lower one first, those of a sample in a row; empty if they were not
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<Hex>,
    /// YMM0 to YMM15 of each sample, four words each, the lowest one first; empty if they were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ymm: Vec<Hex>,
    /// ZMM0 to ZMM15 of each sample, eight words each, the lowest one first; empty if they were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zmm: Vec<Hex>,
    /// ZMM16 to ZMM31 of each sample, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hi16_zmm: Vec<Hex>,
    /// The opmask registers K0 to K7 of each sample, a word each; empty if they were not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opmasks: Vec<Hex>,
    /// Values of counters, those of each sample in a row, in the order of `values` of the item's result; empty if they were not
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<u64>,
    /// The data address of each sample, 0 where it has none; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Hex>,
    /// Cycles to the data of each sample, 0 where they are not determined; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<u32>,
    /// Where the data of each sample came from, as a number among `source_names`, from 1; 0: it is not determined. Empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<u32>,
    /// The names of these, as in `sources` of the item's result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_names: Vec<String>,
    /// The retire latency of each sample, 0 where its record states none; empty if no record states any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retire_latencies: Vec<u16>,
    /// Numbers of the samples that interrupted 32-bit code, from 0 in each record; all others interrupted 64-bit code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatibility: Vec<u32>,
}

impl Samples {
    /// The list of these registers.
    #[must_use]
    pub const fn vectors_of(&self, registers: VectorRegisters) -> &Vec<Hex> {
        match registers {
            VectorRegisters::Xmm => &self.vectors,
            VectorRegisters::Ymm => &self.ymm,
            VectorRegisters::Zmm => &self.zmm,
            VectorRegisters::Hi16Zmm => &self.hi16_zmm,
            VectorRegisters::Opmask => &self.opmasks,
        }
    }

    /// The same, to add to.
    pub const fn vectors_of_mut(&mut self, registers: VectorRegisters) -> &mut Vec<Hex> {
        match registers {
            VectorRegisters::Xmm => &mut self.vectors,
            VectorRegisters::Ymm => &mut self.ymm,
            VectorRegisters::Zmm => &mut self.zmm,
            VectorRegisters::Hi16Zmm => &mut self.hi16_zmm,
            VectorRegisters::Opmask => &mut self.opmasks,
        }
    }

    /// Appends one sample; `tsc` and address are kept as differences.
    pub fn push(&mut self, last: &mut [u64; 2], address: u64, tsc: u64, events: u32, task: u32) {
        self.addresses.push(address.wrapping_sub(last[0]) as i64);
        self.tsc.push(tsc.wrapping_sub(last[1]) as i64);
        *last = [address, tsc];
        self.events.push(events);
        self.tasks.push(task);
    }

    /// The samples again: address, TSC, events, task and ring. As many as all lists have.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, u32, u32)> + '_ {
        let whole = self.addresses.iter().zip(&self.tsc).zip(&self.events).enumerate();
        whole.scan([0u64; 2], |last, (index, ((address, tsc), &events))| {
            let address = last[0].wrapping_add_signed(*address);
            let tsc = last[1].wrapping_add_signed(*tsc);
            *last = [address, tsc];
            Some((address, tsc, events, self.tasks.get(index).copied().unwrap_or(0)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn m11_samples_come_back_as_they_went(all: Vec<(u64, u64, u32, u32)>) {
            let (mut chunk, mut last) = (Samples::default(), [0; 2]);
            for &(address, tsc, events, task) in &all {
                chunk.push(&mut last, address, tsc, events, task);
            }
            let text = serde_json::to_string(&chunk).unwrap();
            let again: Samples = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), all);
        }
    }
}
