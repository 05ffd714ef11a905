//! Gathers and scatters: elements with an address each, of which the index is in a vector register.
//!
//! The instruction clears its mask as it goes, so each needs a new one. All elements lie in one page of zeros, each in a
//! cache line of its own; what is gathered is 0, so that an index or a mask can wait for it and stay what it is.

use super::address::Address;
use super::chain::{Made, Missing};
use super::effects::{Effects, refused};
use super::registers::{Free, Kind, Reg};
use super::text::Operand;
use super::{Case, Form, FormError, case};
use std::fmt::Write;

/// Instructions in a body, each with its own elements.
const MOST: usize = 12;
/// Bytes between two elements, and between the first elements of two instructions.
const LINE: usize = 64;
/// Where zeros lie that no element does, indices, and bits that are all set: after R14's place.
const ZEROS: u32 = 2048;
const INDICES: u32 = 4096;
const SET: u32 = 4160;

/// Which operand is what.
struct Parts<'a> {
    form: &'a Form,
    /// The register that is written; a scatter has none.
    result: Option<usize>,
    indices: usize,
    index_bits: u16,
    mask: usize,
}

impl<'a> Parts<'a> {
    fn of(form: &'a Form) -> Result<Self, FormError> {
        let none = || refused(form, "it has no mask");
        let (indices, index_bits) = form.indexed().ok_or_else(none)?;
        let is_mask = |one: &Operand| matches!(one, Operand::Mask { .. });
        let result = (indices > 0).then_some(0);
        let last = form.operands.len().checked_sub(1).filter(|&last| last > indices);
        let mask = form.operands.iter().position(is_mask).or(last).ok_or_else(none)?;
        Ok(Self { form, result, indices, index_bits, mask })
    }

    fn register(&self, index: usize) -> (Kind, u16) {
        self.form.register(index).unwrap_or((Kind::Vector, 128))
    }

    fn mask_name(&self) -> String {
        match self.form.operands[self.mask] {
            Operand::Mask { .. } => "mask".to_string(),
            _ => (self.mask + 1).to_string(),
        }
    }

    /// One register for each operand.
    fn registers(&self, free: &mut Free) -> Result<Vec<Option<Reg>>, FormError> {
        let registers = (0..self.form.operands.len()).map(|index| {
            let Some(register) = self.form.register(index) else { return Ok(None) };
            let reason = "it has more operands than there are registers";
            free.take(register).map(Some).ok_or_else(|| refused(self.form, reason))
        });
        registers.collect()
    }

    /// A mask of all elements: `set` is one, and the other may have to be waited for.
    fn new_mask(&self, mask: Reg, set: Reg, other: Reg) -> (String, String) {
        match self.register(self.mask) {
            (Kind::Mask, _) => {
                let [mask, set, other] = [mask, set, other].map(|reg| reg.name(64));
                (format!("korw {mask}, {set}, {other}"), "korw k, k, k".to_string())
            }
            (_, bits) => or(mask, set, other, bits),
        }
    }

    /// Zeros, indices, set bits, and registers with them.
    fn init(
        &self,
        registers: &[Option<Reg>],
        results: &[Reg],
        extra: &[(Reg, u16, u32)],
    ) -> String {
        let base = self.form.base();
        let mut code = self.fill();
        let mut load = |reg: Reg, bits: u16, from: u32| {
            // Writing to a String does not fail.
            let _ = match reg.kind {
                Kind::Mask => writeln!(code, "kmovw {}, word ptr [{base} + {from}]", reg.name(64)),
                _ => writeln!(code, "vmovups {}, [{base} + {from}]", reg.name(bits)),
            };
        };
        for (index, reg) in registers.iter().enumerate() {
            let from = match index {
                _ if index == self.indices => INDICES,
                _ if index == self.mask => SET,
                _ => ZEROS,
            };
            if let (Some(reg), Some((_, bits))) = (reg, self.form.register(index)) {
                load(*reg, bits, from);
            }
        }
        let bits = self.result.map_or(128, |index| self.register(index).1);
        results.iter().for_each(|reg| load(*reg, bits, ZEROS));
        extra.iter().for_each(|(reg, bits, from)| load(*reg, *bits, *from));
        code
    }

    /// Zeros, indices and set bits in memory, 32 bits at a time: no index needs more.
    fn fill(&self) -> String {
        let (at, step) = (self.form.named(Reg::general(1)), self.index_bits / 8);
        let high = if step == 4 { String::new() } else { format!("mov dword ptr [{at} + 4], 0\n") };
        let index = format!("mov [{at}], eax\n{high}add {at}, {step}\nadd eax, {LINE}");
        let same = format!("mov [{at}], eax\nadd {at}, 4");
        let fill = |from: u32, value: &str, count: u16, step: &str| {
            let base = self.form.base();
            format!(
                "lea {at}, [{base} + {from}]\n{value}\nmov edx, {count}\n2: {step}\ndec edx\njnz 2b\n"
            )
        };
        fill(0, "xor eax, eax", 1024, &same)
            + &fill(INDICES, "xor eax, eax", 64 / step, &index)
            + &fill(SET, "mov eax, -1", 16, &same)
    }
}

/// OR of two vectors, and its form.
fn or(to: Reg, one: Reg, other: Reg, bits: u16) -> (String, String) {
    let (name, class) = match bits {
        512 => ("vpord", "zmm"),
        256 => ("vpor", "ymm"),
        _ => ("vpor", "xmm"),
    };
    let [to, one, other] = [to, one, other].map(|reg| reg.name(bits));
    (format!("{name} {to}, {one}, {other}"), format!("{name} {class}, {class}, {class}"))
}

/// Instructions that do not wait for each other, each after one that makes its mask.
pub fn throughput(form: &Form, effects: &Effects) -> Result<Made, FormError> {
    let parts = Parts::of(form)?;
    let mut free = Free::of(form, &effects.taken());
    let none = || refused(form, "no register is left for its mask");
    let mut registers = parts.registers(&mut free)?;
    let (kind, bits) = parts.register(parts.mask);
    let set = free.take((kind, bits)).ok_or_else(none)?;
    let mask = registers[parts.mask].ok_or_else(none)?;
    let (reload, named) = parts.new_mask(mask, set, set);
    let (mut lines, mut results) = (Vec::new(), Vec::new());
    for copy in 0..MOST {
        if let Some(index) = parts.result.filter(|_| copy > 0) {
            let Some(next) = free.take((Kind::Vector, 128)) else { break };
            registers[index] = Some(next);
            results.push(next);
        }
        let displacement = (LINE * copy) as u32;
        lines.push(reload.clone());
        lines.push(form.with(&registers, Address { displacement, ..form.place() }));
    }
    let copies = (lines.len() / 2) as u32;
    let init = parts.init(&registers, &results, &[(set, bits, SET)]);
    let kind = case::Kind::Throughput { copies, with: vec![form.beside(&named)] };
    let case = Case { form: form.to_string(), kind, breaking: Vec::new() };
    Ok(Made { case, init, body: lines.join("\n") })
}

/// Chains into the register that a gather writes: from its old value, from the indices, the mask, and the base address.
pub fn latencies(form: &Form, effects: &Effects) -> Vec<Result<Made, Missing>> {
    let missing = |pair: &str, reason: String| Err(Missing { pair: pair.to_string(), reason });
    let parts = match Parts::of(form) {
        Ok(parts) => parts,
        Err(error) => return vec![missing("sources -> 1", error.reason())],
    };
    let Some(result) = parts.result else {
        let reason = "what it writes is memory at several addresses".to_string();
        return vec![missing("sources -> memory", reason)];
    };
    let sources = ["1".to_string(), (parts.indices + 1).to_string(), parts.mask_name()];
    let chains = sources.into_iter().chain(["address".to_string()]);
    chains.map(|from| chain(&parts, result, effects, &from)).collect()
}

fn chain(parts: &Parts<'_>, result: usize, effects: &Effects, from: &str) -> Result<Made, Missing> {
    let form = parts.form;
    let (pair, word) = (|| format!("{from} -> 1"), form.word());
    let none = || Missing { pair: pair(), reason: "no register is left".to_string() };
    let mut free = Free::of(form, &effects.taken());
    let registers = parts.registers(&mut free).map_err(|_| none())?;
    let given = |index: usize| registers[index].ok_or_else(none);
    let (own, indices, mask) = (given(result)?, given(parts.indices)?, given(parts.mask)?);
    let (mask_kind, mask_bits) = parts.register(parts.mask);
    let (_, bits) = parts.register(result);
    let set = free.take((mask_kind, mask_bits)).ok_or_else(none)?;
    let mut extra = vec![(set, mask_bits, SET)];
    let (mut address, mut back, mut lines) = (form.place(), Vec::new(), Vec::new());
    let mut before = String::new();
    let mut add = |(line, form): (String, String)| {
        lines.push(line);
        back.push(form);
    };
    let name = parts.mask_name();
    if from == name && mask_kind == Kind::Mask {
        // The mask has a bit for each element that is 0, which all are.
        let (class, named) = (or(own, own, own, bits).1, own.name(bits));
        let class = class.rsplit(' ').next().unwrap_or_default();
        let line = format!("vptestnmd {}, {named}, {named}", mask.name(64));
        add((line, format!("vptestnmd k, {class}, {class}")));
    } else if from == name {
        add(parts.new_mask(mask, own, set));
    } else if from == "address" {
        let [base, other] = [
            free.take((Kind::General, word)).ok_or_else(none)?,
            free.take((Kind::General, word)).ok_or_else(none)?,
        ];
        let [base_name, other] = [base, other].map(|reg| reg.name(word));
        let mov = if form.is_compatibility() { "vmovd" } else { "vmovq" };
        add((format!("{mov} {other}, {}", own.name(128)), format!("{mov} r{word}, xmm")));
        add((format!("xor {base_name}, {other}"), format!("xor r{word}, r{word}")));
        before = format!("lea {base_name}, [{}]\n", form.base());
        address = form.at(base);
    } else if from != "1" {
        let (_, bits) = parts.register(parts.indices);
        let constant = free.take((Kind::Vector, 128)).ok_or_else(none)?;
        extra.push((constant, bits, INDICES));
        add(or(indices, own, constant, bits));
    }
    let mut breaking = Vec::new();
    if from != "1" {
        lines.push(format!("vmovups {}, [{} + {ZEROS}]", own.name(bits), form.base()));
        breaking.push("1".to_string());
    }
    if from != name {
        lines.push(parts.new_mask(mask, set, set).0);
        breaking.push(name);
    }
    lines.insert(0, form.with(&registers, address));
    let init = parts.init(&registers, &[], &extra) + &before;
    let back = back.iter().map(|one: &String| form.beside(one)).collect();
    let kind = case::Kind::Latency { from: from.to_string(), to: "1".to_string(), back };
    let case = Case { form: form.to_string(), kind, breaking };
    Ok(Made { case, init, body: lines.join("\n") })
}

#[cfg(test)]
mod tests;
