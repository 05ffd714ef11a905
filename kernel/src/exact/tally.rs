//! The counts.

use super::Qualifier;
use alloc::collections::BTreeMap;
use iced_x86::{CodeSize, Instruction, Mnemonic};
use pmu_model::uarch::AccessKind;
use pmu_model::{Branch, BranchKind, Ring};
use protocol::bits::Bits;
pub use protocol::job::exact::EVENTS;
use step::{Behind, Touch};

const INSTRUCTIONS: usize = 0;
const BRANCHES: usize = 1;
const CONDITIONAL: usize = 2;
const CONDITIONAL_TAKEN: usize = 3;
const TAKEN: usize = 4;
const NEAR_JUMPS: usize = 5;
const NEAR_CALLS: usize = 6;
const NEAR_RETURNS: usize = 7;
const FAR: usize = 8;
const LOADS: usize = 9;
const STORES: usize = 10;
const BYTES_LOADED: usize = 11;
const BYTES_STORED: usize = 12;

/// Exact counts of one run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Of [`EVENTS`].
    pub counts: [u64; EVENTS.len()],
    /// Executions by mnemonic.
    pub opcodes: BTreeMap<Mnemonic, u64>,
    /// Executions by place within a copy of the body and what it was executed as, with the instruction's length in bytes.
    pub places: BTreeMap<(u64, Bits), (u8, u64)>,
    /// Instructions of 64-bit and of 32-bit code.
    pub widths: [u64; 2],
}

/// What an instruction was decoded as.
fn bits_of(instruction: &Instruction) -> Bits {
    if instruction.code_size() == CodeSize::Code64 { Bits::SixtyFour } else { Bits::Compatibility }
}

impl Tally {
    /// Counts an instruction with these registers `behind` it, if it passes `qualifier`. `offset`: of its first byte within a copy
    /// of the body, if it lies there.
    pub fn retire(
        &mut self,
        qualifier: &Qualifier,
        instruction: &Instruction,
        offset: Option<u64>,
        behind: &Behind,
        accesses: &Accesses,
    ) {
        let bits = bits_of(instruction);
        if !qualifier.takes(instruction.mnemonic(), offset, bits) {
            return;
        }
        if qualifier.needs_access() && *accesses == Accesses::default() {
            return;
        }
        self.counts[LOADS] += accesses.loads;
        self.counts[STORES] += accesses.stores;
        self.counts[BYTES_LOADED] += accesses.bytes_loaded;
        self.counts[BYTES_STORED] += accesses.bytes_stored;
        self.counts[INSTRUCTIONS] += 1;
        self.widths[bits as usize] += 1;
        *self.opcodes.entry(instruction.mnemonic()).or_default() += 1;
        if let Some(offset) = offset {
            self.places.entry((offset, bits)).or_insert((instruction.len() as u8, 0)).1 += 1;
        }
        if let Some(branch) = step::branch(instruction, behind, Ring::Kernel) {
            self.branch(&branch);
        }
    }

    fn branch(&mut self, branch: &Branch) {
        self.counts[BRANCHES] += 1;
        self.counts[TAKEN] += u64::from(branch.taken);
        let kind = match branch.kind {
            BranchKind::Conditional => {
                self.counts[CONDITIONAL_TAKEN] += u64::from(branch.taken);
                CONDITIONAL
            }
            BranchKind::RelativeJump | BranchKind::IndirectJump => NEAR_JUMPS,
            BranchKind::RelativeCall | BranchKind::IndirectCall => NEAR_CALLS,
            BranchKind::Return => NEAR_RETURNS,
            BranchKind::Far => FAR,
        };
        self.counts[kind] += 1;
    }
}

/// What one instruction loaded and stored, as far as it counts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Accesses {
    loads: u64,
    stores: u64,
    bytes_loaded: u64,
    bytes_stored: u64,
}

impl Accesses {
    /// Adds an access, if it passes `qualifier`. One that reads and writes is both a load and a store.
    pub fn add(&mut self, qualifier: &Qualifier, touch: &Touch) {
        if !qualifier.touches(touch) {
            return;
        }
        let bytes = u64::from(touch.bytes);
        if matches!(touch.kind, AccessKind::Load | AccessKind::LoadStore) {
            self.loads += 1;
            self.bytes_loaded += bytes;
        }
        if matches!(touch.kind, AccessKind::Store | AccessKind::LoadStore) {
            self.stores += 1;
            self.bytes_stored += bytes;
        }
    }
}
