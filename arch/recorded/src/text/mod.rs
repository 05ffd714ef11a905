//! Texts that hold the answers of CPUID, three forms of them:
//!
//! - InstLatx64's and AIDA64's: `CPUID 00000004: 1C004121-01C0003F-0000003F-00000000 [SL 00]`. Older ones lack the sub-leaf:
//!   a leaf that comes again is then its next sub-leaf.
//! - that of `cpuid -r`: `   0x00000004 0x00: eax=0x1c004121 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000`
//! - lines `leaf,subleaf,eax,ebx,ecx,edx`, hexadecimal
//!
//! Lines of another kind are passed over: such texts have headings and other registers. A line that begins like an answer
//! and is none is an error. Leaf 0 begins the next processor, if it comes again.

mod error;
mod line;

pub use error::{TextError, Wrong};

use crate::Leaves;
use line::{Answer, answer};

/// Most lines of a text, and most bytes: 1024 processors of 200 lines fit.
const MOST_LINES: usize = 250_000;

/// Reads the processors of a text, in its order: one at least, each with leaves 0 and 1.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(text: &str) -> Result<Vec<Leaves>, TextError> {
    let mut processors: Vec<Leaves> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = |wrong| TextError::Line { line: index + 1, wrong };
        if index >= MOST_LINES {
            return Err(TextError::Long { most: MOST_LINES });
        }
        let Some(answer) = answer(line).map_err(at)? else { continue };
        if answer.leaf == 0 && answer.subleaf.unwrap_or(0) == 0 {
            processors.push(Leaves::new());
        }
        let Some(leaves) = processors.last_mut() else { return Err(at(Wrong::Early(answer.leaf))) };
        add(leaves, &answer).map_err(at)?;
    }
    if processors.is_empty() {
        return Err(TextError::Nothing);
    }
    for (number, leaves) in processors.iter().enumerate() {
        if leaves.recorded(1, 0).is_none() {
            return Err(TextError::NoSignature { number });
        }
    }
    Ok(processors)
}

fn add(leaves: &mut Leaves, answer: &Answer) -> Result<(), Wrong> {
    let subleaf = match answer.subleaf {
        Some(subleaf) => subleaf,
        None => next(leaves, answer.leaf)?,
    };
    leaves.add(answer.leaf, subleaf, answer.registers).map_err(Wrong::Twice)
}

/// The first sub-leaf of `leaf` that is not there. No processor has more than 64.
fn next(leaves: &Leaves, leaf: u32) -> Result<u32, Wrong> {
    let free = (0..64).find(|&subleaf| leaves.recorded(leaf, subleaf).is_none());
    free.ok_or(Wrong::Often(leaf))
}

#[cfg(test)]
mod tests;
