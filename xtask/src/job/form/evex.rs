//! What EVEX adds to an instruction: a mask, one element for all, and how to round.
//!
//! In a form's text these stand in braces where the assembler has them: `vaddpd zmm {k}{z}, zmm, m64 {1to8}`. The mask
//! is the last operand of the form, so that the others keep their numbers.

use super::text::Operand;
use iced_x86::{Code, Instruction, MemorySize, Register, RoundingControl};

/// Rounding of one instruction, or no exceptions of it. The first is of the catalog: the four have one encoding, two
/// bits of which say which.
pub const CONTROLS: [&str; 5] = ["{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}", "{sae}"];

/// What braces can be.
pub const BRACES: &str = "none of {k} and {k}{z} at the first operand, {1to2} to {1to32} at memory, and {rn-sae}, {rd-sae}, \
     {ru-sae}, {rz-sae}, {sae} as an operand";

/// An operand's text without what stands in braces, and what that adds: the broadcast of the operand itself, and the
/// mask of the instruction.
///
/// # Errors
/// Braces that are none of these.
pub fn braces(word: &str, is_first: bool) -> Result<(&str, Option<u8>, Option<Operand>), String> {
    let Some(start) = word.find('{') else { return Ok((word, None, None)) };
    let (class, braces) = word.split_at(start);
    let strange = || Err(braces.to_string());
    let parts: Vec<&str> = braces.split_inclusive('}').map(str::trim).collect();
    let (broadcast, mask) = match parts[..] {
        ["{k}"] if is_first => (None, Some(Operand::Mask { zeroing: false })),
        ["{k}", "{z}"] if is_first => (None, Some(Operand::Mask { zeroing: true })),
        [part] => {
            let count = part.strip_prefix("{1to").and_then(|rest| rest.strip_suffix('}'));
            match count.and_then(|count| count.parse().ok()) {
                Some(count) if [2, 4, 8, 16, 32].contains(&count) => (Some(count), None),
                _ => return strange(),
            }
        }
        _ => return strange(),
    };
    Ok((class.trim(), broadcast, mask))
}

/// The lists of operands of an encoding with all that EVEX can add to them.
pub fn variants(code: Code, list: &[Operand]) -> Vec<Vec<Operand>> {
    let op = code.op_code();
    let memory = list.iter().position(|one| matches!(one, Operand::Memory(_)));
    let mut bases = vec![list.to_vec()];
    if let (Some(index), true) = (memory, op.can_broadcast()) {
        let (whole, one) = (op.memory_size(), op.broadcast_memory_size());
        if let Some(operand) = broadcast(whole, one) {
            let mut list = list.to_vec();
            list[index] = operand;
            bases.push(list);
        }
    }
    let control = if op.can_use_rounding_control() {
        Some(CONTROLS[0])
    } else {
        op.can_suppress_all_exceptions().then_some(CONTROLS[4])
    };
    if let (None, Some(control)) = (memory, control) {
        bases.push([list, &[Operand::Control(control)]].concat());
    }
    let into_memory = matches!(list.first(), Some(Operand::Memory(_) | Operand::Indexed { .. }));
    let mut all = Vec::new();
    for base in bases {
        if !op.require_op_mask_register() {
            all.push(base.clone());
        }
        if op.can_use_op_mask_register() {
            all.push([&base[..], &[Operand::Mask { zeroing: false }]].concat());
        }
        if op.can_use_zeroing_masking() && !into_memory {
            all.push([&base[..], &[Operand::Mask { zeroing: true }]].concat());
        }
    }
    all
}

/// One element that stands for all of the operand.
fn broadcast(whole: MemorySize, one: MemorySize) -> Option<Operand> {
    let bits = one.info().element_size() * 8;
    let count = (whole.size() * 8).checked_div(bits)?;
    Some(Operand::Broadcast { bits: bits as u16, count: count as u8 })
}

/// Puts these into an instruction; nothing for other operands.
pub fn decorate(instruction: &mut Instruction, operand: &Operand, mask: Option<Register>) {
    match operand {
        Operand::Broadcast { .. } => instruction.set_is_broadcast(true),
        Operand::Mask { zeroing } => {
            instruction.set_op_mask(mask.unwrap_or_default());
            instruction.set_zeroing_masking(*zeroing);
        }
        Operand::Control("{sae}") => instruction.set_suppress_all_exceptions(true),
        Operand::Control(text) => instruction.set_rounding_control(match *text {
            "{rd-sae}" => RoundingControl::RoundDown,
            "{ru-sae}" => RoundingControl::RoundUp,
            "{rz-sae}" => RoundingControl::RoundTowardZero,
            _ => RoundingControl::RoundToNearest,
        }),
        _ => {}
    }
}

/// Operands that stand in the instruction as operands do.
pub fn is_written(operand: &Operand) -> bool {
    !matches!(operand, Operand::Mask { .. } | Operand::Control(_))
}

/// The text of an instruction's or a form's operands: those in braces at their places. Rounding stands before a constant
/// at the end, as in the assembler's syntax.
pub fn join(operands: &[Operand], texts: Vec<String>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let (mut mask, mut control) = (None, None);
    let mut constants = 0;
    for (operand, text) in operands.iter().zip(texts) {
        match operand {
            Operand::Mask { .. } => mask = Some(text),
            Operand::Control(_) => control = Some(text),
            other => {
                constants = if matches!(other, Operand::Immediate(_)) { constants + 1 } else { 0 };
                parts.push(text);
            }
        }
    }
    if let (Some(mask), Some(first)) = (mask, parts.first_mut()) {
        first.push(' ');
        first.push_str(&mask);
    }
    if let Some(control) = control {
        parts.insert(parts.len() - constants, control);
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests;
