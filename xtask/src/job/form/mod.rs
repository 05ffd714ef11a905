//! Instruction forms: `imul r64, r64` instead of a snippet.
//!
//! `text` reads a form, `evex` what stands in braces; `effects` asks the assembler and iced-x86 what it reads and writes; `chain` makes the
//! snippets of its latency, `apart` the one of its throughput, [`blocked`] those of its ports, and [`case`] the names that tell a reader of the report
//! what was measured. [`expand`] puts them into the job.

mod address;
mod apart;
pub mod blocked;
mod branch;
pub mod case;
pub mod catalog;
mod chain;
mod compatibility;
mod effects;
mod encoding;
mod evex;
mod expand;
pub mod operand;
mod privileged;
mod registers;
mod stack;
mod start;
mod text;
mod tile;
mod vsib;
mod way;

pub use case::Case;
pub use expand::expand;
pub use text::Form;

use thiserror::Error;

/// Why a form cannot be measured.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum FormError {
    /// There is no mnemonic.
    #[error("a form is empty; it is an instruction with operand classes, as in `imul r64, r64`")]
    Empty,
    /// Something that is part of no form.
    #[error("the form `{form}` has `{part}`, which is {reason}")]
    Part {
        /// The form.
        form: String,
        /// The part of it.
        part: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The assembler refuses it.
    #[error("the assembler refuses the form `{form}`, tried as `{tried}`: {message}")]
    Assembler {
        /// The form.
        form: String,
        /// The instruction that it was given.
        tried: String,
        /// Its message.
        message: String,
    },
    /// It is an instruction, but not one that can be put into chains or copies.
    #[error("the form `{form}` cannot be measured by itself: {reason}; write a snippet with `asm`")]
    Refused {
        /// The form.
        form: String,
        /// Why.
        reason: String,
    },
}

impl FormError {
    /// Why, without the form where that is a sentence by itself.
    fn reason(&self) -> String {
        match self {
            Self::Refused { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }
}

/// Latency and throughput of which forms an item of a job asks for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Latencies of these.
    pub latency: Vec<Form>,
    /// Throughputs of these.
    pub throughput: Vec<Form>,
    /// Forms without a latency (nothing to wait for) are left out instead of refused.
    pub lenient: bool,
    /// Forms of the catalog, as far as they can be measured.
    pub catalog: Option<catalog::Selection>,
    /// The ports of all of them, too.
    pub ports: bool,
}

#[cfg(test)]
mod tests;
