//! All instruction forms: every encoding of 64-bit code that iced-x86 knows, each with its operand classes, or with the
//! reason why it is not measured.
//!
//! An encoding with a register or memory operand is two forms, one that can be locked has a third. One of EVEX has a form
//! for each of its masks, broadcasts and roundings, too. Where two encodings have one text, all but the first are named with their opcode.

mod operands;
mod refused;
mod select;

pub use select::Selection;

use super::chain::{self, Made, Missing};
use super::effects::{self, Effects};
use super::encoding::Encoding;
use super::evex;
use super::text::Operand;
use super::{Form, FormError, apart};
use iced_x86::{Code, CpuidFeature, EncodingKind, Instruction};
use protocol::bits::Bits;
use std::collections::HashSet;

/// An instruction form of the catalog.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name: of a form that is not measured, the manual's way to write it.
    pub name: String,
    /// The encoding.
    pub code: Code,
    /// The form; otherwise why none of it can be measured.
    pub form: Result<Form, String>,
}

impl Entry {
    /// Bits of CPUID, in iced-x86's names, without which a processor does not have it.
    #[must_use]
    pub fn features(&self) -> &'static [CpuidFeature] {
        self.code.cpuid_features()
    }

    /// Its mnemonic, in capitals, LOCK before it.
    #[must_use]
    pub fn mnemonic(&self) -> String {
        let lock = if self.is_locked() { "LOCK " } else { "" };
        format!("{lock}{}", format!("{:?}", self.code.mnemonic()).to_uppercase())
    }

    /// Whether it has a LOCK prefix.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        let encoding = self.form.as_ref().ok().and_then(|form| form.encoding);
        encoding.is_some_and(|encoding| encoding.lock)
    }

    /// Flags that are read, and flags that are changed, as iced-x86's bits.
    #[must_use]
    pub fn flags(&self) -> (u32, u32) {
        let mut instruction = Instruction::default();
        instruction.set_code(self.code);
        (instruction.rflags_read(), instruction.rflags_modified())
    }

    /// Bits of CPUID as one text.
    #[must_use]
    pub fn extension(&self) -> String {
        self.features().iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(" ")
    }

    /// What its instruction reads and writes, or why it cannot be measured.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn effects(&self) -> Result<Effects, String> {
        let form = self.form.as_ref().map_err(Clone::clone)?;
        effects_of(form).map_err(|error| error.reason())
    }
}

/// What is measured of a form, and what is not.
pub struct Measurements {
    /// Snippets of its latencies and its throughput.
    pub made: Vec<Made>,
    /// What of it is not measured, with the reason: nothing of a form that is refused.
    pub missing: Vec<Missing>,
}

/// What can be measured of an entry. A form without results has a throughput only.
#[must_use]
pub fn measure(entry: &Entry) -> Measurements {
    let whole = |reason| {
        let missing = vec![Missing { pair: String::new(), reason }];
        Measurements { made: Vec::new(), missing }
    };
    let (form, effects) = match (&entry.form, entry.effects()) {
        (Ok(form), Ok(effects)) => (form, effects),
        (Err(reason), _) => return whole(reason.clone()),
        (_, Err(reason)) => return whole(reason),
    };
    let (mut made, mut missing) = (Vec::new(), Vec::new());
    for one in chain::latencies(form, &effects) {
        match one {
            Ok(one) => made.push(one),
            Err(one) => missing.push(one),
        }
    }
    made.extend(chain::same_register(form, &effects));
    match apart::throughput(form, &effects) {
        Ok(one) => made.push(one),
        Err(error) => {
            missing.push(Missing { pair: "throughput".to_string(), reason: error.reason() });
        }
    }
    Measurements { made, missing }
}

/// What an instruction of a form that is bound to an encoding reads and writes. No assembler is needed.
///
/// # Errors
/// It cannot be encoded, or cannot be measured by itself.
pub(super) fn effects_of(form: &Form) -> Result<Effects, FormError> {
    let (registers, _) = effects::probe(form)?;
    let encoding = form.encoding.ok_or_else(|| effects::refused(form, "it has no encoding"))?;
    let code = encoding.bytes(&form.operands, &registers, form.place());
    Effects::of(form, &registers, &code.map_err(|reason| effects::refused(form, &reason))?)
}

/// The catalog of 64-bit code, in the order of iced-x86's encodings.
#[must_use]
pub fn all() -> Vec<Entry> {
    in_code_of(Bits::SixtyFour)
}

/// The catalog of 64-bit or of 32-bit code.
#[must_use]
pub fn in_code_of(bits: Bits) -> Vec<Entry> {
    let codes = Code::values().filter(|code| {
        let op = code.op_code();
        // MVEX is of a coprocessor (Knights Corner) that boots nothing.
        let there = if bits == Bits::SixtyFour { op.mode64() } else { op.mode32() };
        op.is_instruction() && there && op.encoding() != EncodingKind::MVEX
    });
    let mut texts = HashSet::new();
    let mut entries: Vec<Entry> = codes.flat_map(|code| of(code, bits)).collect();
    for entry in &mut entries {
        let Ok(form) = &mut entry.form else { continue };
        if let Some(encoding) = form.encoding.as_mut().filter(|_| !texts.insert(entry.name.clone()))
        {
            encoding.named = true;
            entry.name = form.to_string();
        }
    }
    entries
}

/// The forms of an encoding.
fn of(code: Code, bits: Bits) -> Vec<Entry> {
    let op = code.op_code();
    let mnemonic = format!("{:?}", code.mnemonic()).to_lowercase();
    let entry = |operands: Vec<Operand>, lock| {
        let mnemonic = if lock { format!("lock {mnemonic}") } else { mnemonic.clone() };
        let encoding = Some(Encoding { code, lock, named: false });
        let form = Form { mnemonic, operands, encoding, bits };
        Entry { name: form.to_string(), code, form: Ok(form) }
    };
    let refused = refused::reason(code).map(str::to_string);
    let lists = match refused.map_or_else(|| operands::of(code), Err) {
        Ok(lists) => lists,
        Err(reason) => {
            return vec![Entry {
                name: op.instruction_string().to_string(),
                code,
                form: Err(reason),
            }];
        }
    };
    let lists: Vec<_> = lists.iter().flat_map(|list| evex::variants(code, list)).collect();
    let has_memory = |list: &Vec<Operand>| list.iter().any(|one| matches!(one, Operand::Memory(_)));
    let plain = lists.iter().map(|list| entry(list.clone(), false));
    let locked = lists.iter().filter(|list| op.can_use_lock_prefix() && has_memory(list));
    plain.chain(locked.map(|list| entry(list.clone(), true))).collect()
}

#[cfg(test)]
mod tests;
