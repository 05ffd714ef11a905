//! One line.

use super::error::{Wrong, short};
use crate::Registers;

/// What a line says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub leaf: u32,
    /// `None`: the next one of that leaf.
    pub subleaf: Option<u32>,
    pub registers: Registers,
}

const NAMES: [&str; 4] = ["eax", "ebx", "ecx", "edx"];

/// Reads a line; `None` if it does not begin like an answer.
pub(super) fn answer(line: &str) -> Result<Option<Answer>, Wrong> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("CPUID ") {
        // `CPUID Registers`, `CPUID Manufacturer`: AIDA64's other lines.
        return match rest.split_once(':') {
            Some((leaf, rest)) if leaf.starts_with(|c: char| c.is_ascii_digit()) => {
                dashed(leaf, rest).map(Some)
            }
            _ => Ok(None),
        };
    }
    match line.split_once(':') {
        Some((leaves, rest)) if leaves.starts_with("0x") => named(leaves, rest).map(Some),
        _ if line.starts_with(|c: char| c.is_ascii_hexdigit()) && line.split(',').count() >= 5 => {
            separated(line).map(Some)
        }
        _ => Ok(None),
    }
}

/// `00000004: 1C004121-01C0003F-0000003F-00000000 [SL 00]`. In brackets may be a text in place of the sub-leaf.
fn dashed(leaf: &str, rest: &str) -> Result<Answer, Wrong> {
    let rest = rest.trim();
    let (values, note) = rest.split_once(' ').unwrap_or((rest, ""));
    let subleaf = match note.trim().strip_prefix("[SL ") {
        Some(number) => {
            let number = number.split(']').next().unwrap_or(number);
            Some(hex("sub-leaf", number)?)
        }
        None => None,
    };
    Ok(Answer { leaf: hex("leaf", leaf)?, subleaf, registers: registers(values.split('-'))? })
}

/// `0x00000004 0x00: eax=0x1c004121 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000`.
fn named(leaves: &str, rest: &str) -> Result<Answer, Wrong> {
    let (leaf, subleaf) = leaves.split_once(' ').unwrap_or((leaves, "0x00"));
    let words: Vec<&str> = rest.split_whitespace().collect();
    let values: Vec<&str> = words
        .iter()
        .zip(NAMES)
        .map(|(word, name)| {
            let value = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            value.ok_or_else(|| Wrong::Name { name, text: short(word) })
        })
        .collect::<Result<_, _>>()?;
    if let Some(word) = words.get(4) {
        return Err(Wrong::Rest { text: short(word) });
    }
    Ok(Answer {
        leaf: hex("leaf", leaf)?,
        subleaf: Some(hex("sub-leaf", subleaf)?),
        registers: registers(values.into_iter())?,
    })
}

/// `00000004,0,1c004121,01c0003f,0000003f,00000000`.
fn separated(line: &str) -> Result<Answer, Wrong> {
    let mut parts = line.split(',');
    let leaf = hex("leaf", parts.next().unwrap_or_default())?;
    let subleaf = hex("sub-leaf", parts.next().unwrap_or_default())?;
    Ok(Answer { leaf, subleaf: Some(subleaf), registers: registers(parts)? })
}

fn registers<'a>(values: impl Iterator<Item = &'a str>) -> Result<Registers, Wrong> {
    let values: Vec<&str> = values.collect();
    let four: [&str; 4] =
        values.try_into().map_err(|all: Vec<_>| Wrong::Registers { found: all.len() })?;
    let mut registers = [0; 4];
    for ((register, name), text) in registers.iter_mut().zip(NAMES).zip(four) {
        *register = hex(name, text)?;
    }
    Ok(registers)
}

fn hex(what: &'static str, text: &str) -> Result<u32, Wrong> {
    let digits = text.trim();
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let valid = matches!(digits.len(), 1..=8) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = valid.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
    number.ok_or_else(|| Wrong::Number { what, text: short(text) })
}
