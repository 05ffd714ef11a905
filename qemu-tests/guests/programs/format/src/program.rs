//! A program, and its form in bytes: a length in four bytes and that many bytes of postcard, one after the other.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A write to a model-specific register.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[repr(C)]
pub struct Write {
    /// The register.
    pub register: u64,
    /// Its new value.
    pub value: u64,
}

/// What a frame of the pool holds before the program starts.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Frame {
    /// Its number.
    pub number: u16,
    /// Its bytes.
    pub content: Content,
}

/// A frame's bytes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Content {
    /// As many words of a generator with this seed as it holds.
    Random(u64),
    /// These, and zeros.
    Bytes(Vec<u8>),
}

/// A page of the window.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Mapping {
    /// Its number.
    pub page: u16,
    /// The frame that it shows.
    pub frame: u16,
    /// [`crate::layout::flag`].
    pub flags: u16,
}

/// A counter that interrupts at overflow: what it starts from, each time.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Preset {
    /// Register by which it is read.
    pub counter: u32,
    /// The write that sets it.
    pub write: Write,
    /// The bit that the start has and that it loses when it overflows.
    pub bit: u64,
}

/// What the PMU is to do.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Pmu {
    /// Writes before, while nothing is counted.
    pub set_up: Vec<Write>,
    /// Writes that start counting, right in front of the program, and after each PMI.
    pub start: Vec<Write>,
    /// Writes that stop counting.
    pub stop: Vec<Write>,
    /// The same two for the moment before the program, in which caches and TLBs are flushed under the eyes of a counter of
    /// cache misses: what nobody counts the emulated PMU's caches do not see.
    pub flush: [Vec<Write>; 2],
    /// Counters, as registers to read.
    pub counters: Vec<u32>,
    /// Those that interrupt.
    pub presets: Vec<Preset>,
    /// LVTPC.
    pub lvtpc: u32,
    /// Status, to be acknowledged at a PMI, and the register that does so.
    pub status: Option<[u32; 2]>,
    /// Further registers to read at the end: branch records.
    pub records: Vec<u32>,
}

/// A program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Program {
    /// The frames that it uses.
    pub frames: Vec<Frame>,
    /// The pages that it sees.
    pub pages: Vec<Mapping>,
    /// Where it starts, in ring 0.
    pub entry: u64,
    /// Its stack's end.
    pub stack: u64,
    /// The PMU.
    pub pmu: Pmu,
    /// Every PMI, register and frame is to be reported, not hashes alone.
    pub detailed: bool,
}

/// Bytes of all of `programs`.
#[must_use]
pub fn encode(programs: &[Program]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for program in programs {
        // Serializing into a vector fails for nothing that this type holds.
        let one = postcard::to_allocvec(program).unwrap_or_default();
        bytes.extend((one.len() as u32).to_le_bytes());
        bytes.extend(one);
    }
    bytes
}

/// The first program of `bytes`, and the rest. `None` at the end.
///
/// # Errors
/// Bytes that are no program.
pub fn decode(bytes: &[u8]) -> Result<Option<(Program, &[u8])>, postcard::Error> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    let one = rest.get(..length).ok_or(postcard::Error::DeserializeUnexpectedEnd)?;
    Ok(Some((postcard::from_bytes(one)?, &rest[length..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(entry: u64) -> Program {
        Program {
            frames: vec![
                Frame { number: 3, content: Content::Bytes(vec![0x90, 0xc3]) },
                Frame { number: 4, content: Content::Random(7) },
            ],
            pages: vec![Mapping { page: 1, frame: 3, flags: 7 }],
            entry,
            stack: 0x4000_2000,
            pmu: Pmu { counters: vec![0xc1], ..Pmu::default() },
            detailed: false,
        }
    }

    #[test]
    fn programs_come_back_one_by_one() {
        let bytes = encode(&[program(1), program(2)]);
        let (first, rest) = decode(&bytes).unwrap().unwrap();
        let (second, rest) = decode(rest).unwrap().unwrap();
        assert_eq!([first, second], [program(1), program(2)]);
        assert_eq!(decode(rest), Ok(None));
    }

    #[test]
    fn a_program_that_is_cut_off_is_refused() {
        let bytes = encode(&[program(1)]);
        for length in 4..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "{length}");
        }
    }
}
