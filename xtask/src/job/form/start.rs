//! What stands in registers and memory before the body.

use super::Form;
use super::effects::Effects;
use super::registers::{Kind, Reg};
use super::tile;
use std::fmt::Write;

/// Where a line of ones stays that nothing writes to, behind a form's memory.
pub fn ones(form: &Form) -> String {
    format!("{} + 4096", form.base())
}

/// Loads ones into a register, whatever it held.
pub fn load(form: &Form, reg: Reg, bits: u16) -> String {
    let (name, ones) = (reg.name(bits), ones(form));
    match reg.kind {
        Kind::General => format!("mov {}, {}", reg.name(32), value(form, false)),
        Kind::Vector if form.is_vex() => format!("vmovups {name}, [{ones}]"),
        Kind::Vector => format!("movups {name}, [{ones}]"),
        Kind::Mmx => format!("movq {name}, qword ptr [{ones}]"),
        Kind::Mask => format!("kmovw {name}, word ptr [{ones}]"),
        // The whole stack is filled at once: see `init`.
        Kind::X87 => String::new(),
        Kind::Tile => format!("tilezero {name}"),
    }
}

/// What a general register holds. A division of 0 by 1 gives 0, remainder 0, again and again.
pub fn value(form: &Form, implicit: bool) -> u64 {
    if implicit && tile::is_strided(form) {
        return tile::STRIDE;
    }
    u64::from(!(implicit && form.divides()))
}

/// Loads what an implicit register holds.
pub fn load_implicit(form: &Form, reg: Reg) -> String {
    match reg.kind {
        Kind::General => format!("mov {}, {}", reg.name(32), value(form, true)),
        _ => load(form, reg, 128),
    }
}

/// Init code: ones in the memory at R14, `lines` of 64 bytes, and in all registers that the form uses.
pub fn init(form: &Form, effects: &Effects, used: &[(Reg, u16)], lines: usize) -> String {
    let mut code = fill(form, lines);
    let implicit = effects.implicit.iter().map(|(reg, _)| reg);
    if used.iter().map(|(reg, _)| reg).chain(implicit).any(|reg| reg.kind == Kind::X87)
        || effects.stack.is_moved()
    {
        code += "fninit\n";
        code += &"fld1\n".repeat(effects.stack.depth());
    }
    if tile::needs(form) {
        code += &tile::init(form, lines);
    }
    for &(reg, bits) in used {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(code, "{}", load(form, reg, bits));
    }
    for (reg, _) in effects.implicit.iter().filter(|(reg, _)| !reg.is_pointer(form.bits)) {
        let _ = writeln!(code, "{}", load_implicit(form, *reg));
    }
    code
}

/// Ones in memory, in halves: 32-bit code has no wider store of a constant.
fn fill(form: &Form, lines: usize) -> String {
    let (low, high) = (form.one() as u32, form.one() >> 32);
    let at = form.named(Reg::general(1));
    let places = [(ones(form), 8), (form.base().to_string(), 8 * lines)];
    let mut code = String::new();
    for (place, count) in places.iter().filter(|(_, count)| *count > 0) {
        code += &format!("lea {at}, [{place}]\nmov edx, {count}\n");
        code +=
            &format!("2: mov dword ptr [{at}], {low:#x}\nmov dword ptr [{at} + 4], {high:#x}\n");
        code += &format!("add {at}, 8\ndec edx\njnz 2b\n");
    }
    code
}
