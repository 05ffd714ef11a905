//! A processor that somebody recorded by CPUID, as one to present: what its leaves say of the PMU, the behaviour of the nearest
//! model, and a list of what is not known from the recording.

mod inferred;
mod nearest;
mod shape;
pub mod slot;
mod unfit;

pub(crate) use shape::main_23;
pub use unfit::Unfit;

use crate::model::{Model, Spec};

/// An answer of CPUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// EAX that was asked with.
    pub leaf: u32,
    /// ECX that was asked with.
    pub subleaf: u32,
    /// EAX, EBX, ECX, EDX.
    pub registers: [u32; 4],
}

/// Leaf 0 EBX of the makers whose processors repeat the highest basic leaf for one beyond it: Intel, and Centaur as Intel's
/// licensee (SDM volume 2, CPUID).
const ECHOING: [u32; 2] = [0x756E_6547, 0x746E_6543];

/// A recorded processor.
#[derive(Debug)]
pub struct Recording {
    answers: &'static [Answer],
    spec: Spec,
    nearest: Model,
    own: bool,
}

impl Recording {
    /// Takes the answers of one processor. A leaf with one answer, for sub-leaf 0, gives it for every sub-leaf: who has only
    /// that one of a leaf with sub-leaves adds an empty second one.
    ///
    /// # Errors
    /// Why this processor cannot be presented.
    pub fn of(answers: &'static [Answer]) -> Result<Self, Unfit> {
        let leaves = Leaves(answers);
        let nearest = nearest::of(&leaves)?;
        let spec = shape::of(&leaves, nearest)?;
        Ok(Self { answers, spec, nearest: nearest.model, own: nearest.own })
    }

    /// The model whose behaviour it has.
    #[must_use]
    pub const fn nearest(&self) -> Model {
        self.nearest
    }

    /// Whether it is of the microarchitecture of [`Recording::nearest`], whose events it then has.
    #[must_use]
    pub const fn is_of_nearest(&self) -> bool {
        self.own
    }

    /// Its facts.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(crate) const fn leaves(&self) -> Leaves {
        Leaves(self.answers)
    }
}

/// The answers, to be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaves(&'static [Answer]);

impl Leaves {
    /// What was recorded.
    fn exact(self, leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        let mut found = self.0.iter();
        found.find(|one| (one.leaf, one.subleaf) == (leaf, subleaf)).map(|one| one.registers)
    }

    /// What the processor answers with: see [`Recording::of`]. A leaf that was not recorded is 0.
    pub(crate) fn answer(self, leaf: u32, subleaf: u32) -> [u32; 4] {
        let alone = || !self.0.iter().any(|one| one.leaf == leaf && one.subleaf != 0);
        let whole = || if alone() { self.exact(leaf, 0) } else { None };
        self.exact(leaf, subleaf).or_else(whole).unwrap_or_default()
    }

    /// The highest basic leaf.
    pub(crate) fn highest_basic(self) -> u32 {
        self.answer(0, 0)[0]
    }

    /// The highest extended leaf, or 0. Some old processors answer with another leaf.
    pub(crate) fn highest_extended(self) -> u32 {
        match self.exact(0x8000_0000, 0) {
            Some([highest, ..]) if highest >> 16 == 0x8000 => highest,
            _ => 0,
        }
    }

    /// Whether it has that leaf.
    pub(crate) fn has(self, leaf: u32) -> bool {
        let extended = leaf >= 0x8000_0000;
        leaf <= if extended { self.highest_extended() } else { self.highest_basic() }
    }

    /// The answer, or 0 if the processor does not have that leaf.
    pub(crate) fn of(self, leaf: u32, subleaf: u32) -> [u32; 4] {
        if self.has(leaf) { self.answer(leaf, subleaf) } else { [0; 4] }
    }

    /// Whether a leaf beyond the highest one is answered with that one.
    pub(crate) fn echoes(self) -> bool {
        ECHOING.contains(&self.answer(0, 0)[1])
    }

    /// Family and model with their extensions (leaf 1 EAX).
    pub(crate) fn family_and_model(self) -> (u32, u32) {
        let [signature, ..] = self.answer(1, 0);
        let (base, low) = (signature >> 8 & 0xF, signature >> 4 & 0xF);
        let family = if base == 0xF { base + (signature >> 20 & 0xFF) } else { base };
        let model = if matches!(base, 6 | 0xF) { low | (signature >> 16 & 0xF) << 4 } else { low };
        (family, model)
    }
}

#[cfg(test)]
mod tests;
