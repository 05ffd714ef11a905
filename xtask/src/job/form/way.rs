//! The way back: from what an instruction of a form wrote to what the next one reads, where no register can be both.
//!
//! None of the instructions may be one that processors execute by renaming alone, as they do with MOV between registers:
//! that would take no time in some copies and some in others. Each adds its own latency to the chain.

use super::Form;
use super::registers::{Free, Kind, Reg};
use super::text::sized;

/// Where a result lies, or where it has to go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// In a register of this width; whether it is an operand, or implicit.
    Register(Reg, u16, bool),
    /// In memory at R14.
    Memory(u16),
    /// In an address register.
    Address(Reg),
    /// In the arithmetic flags.
    Flags,
}

/// Instructions that lead back, and the forms that they are of.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Way {
    /// The instructions.
    pub lines: Vec<String>,
    /// Their forms: each is in the chain once.
    pub forms: Vec<String>,
    /// They leave other flags behind.
    pub writes_flags: bool,
}

impl Way {
    fn step(mut self, line: String, form: &str) -> Self {
        self.lines.push(line);
        self.forms.push(form.to_string());
        self
    }
}

const NO_REGISTER: &str = "no register is left for the way back";

/// The way from `from` to `to`.
///
/// # Errors
/// There is none, for this reason.
pub fn back(form: &Form, from: End, to: End, free: &mut Free) -> Result<Way, String> {
    let way = between(form, from, to, free)?;
    let forms = way.forms.iter().map(|one| form.beside(one)).collect();
    Ok(Way { forms, ..way })
}

fn between(form: &Form, from: End, to: End, free: &mut Free) -> Result<Way, String> {
    let word = form.word();
    let r = if form.is_compatibility() { "r32" } else { "r64" };
    let mut general = |way: Way, reg: Reg, bits: u16| -> Result<(Way, Reg), String> {
        if reg.kind == Kind::General {
            return Ok((way, reg));
        }
        let other = free.take((Kind::General, word)).ok_or(NO_REGISTER)?;
        Ok((across(form, way, (reg, bits), (other, word))?, other))
    };
    match (from, to) {
        (End::Register(reg, bits, _), End::Register(other, other_bits, explicit)) => {
            let (from, to) = ((reg, bits), (other, other_bits));
            if reg.kind == other.kind {
                return within(form, from, to, explicit);
            }
            if reg.kind == Kind::General || other.kind == Kind::General {
                return across(form, Way::default(), from, to);
            }
            let (way, middle) = general(Way::default(), reg, bits)?;
            across(form, way, (middle, word), to)
        }
        (End::Register(reg, bits, _), End::Address(address)) => {
            // The address stays what it is, but has to wait for the result.
            let (way, reg) = general(Way::default(), reg, bits)?;
            let line = format!("xor {}, {}", address.name(word), reg.name(word));
            let named = format!("xor {r}, {r}");
            let way = way.step(line.clone(), &named).step(line, &named);
            Ok(Way { writes_flags: true, ..way })
        }
        (End::Register(reg, bits, _), End::Memory(wanted)) => store(form, reg, bits, wanted),
        (End::Register(reg, bits, _), End::Flags) => {
            let (way, reg) = general(Way::default(), reg, bits)?;
            let line = format!("test {0}, {0}", reg.name(word));
            let way = way.step(line, &format!("test {r}, {r}"));
            Ok(Way { writes_flags: true, ..way })
        }
        (End::Memory(bits), End::Register(reg, _, _)) => load(form, reg, bits),
        // Not every register has a byte; MOVZX between two would be a move, which may be eliminated.
        (End::Flags, End::Register(reg, _, _))
            if reg.kind == Kind::General && form.is_compatibility() =>
        {
            let byte = free.take((Kind::General, 8)).ok_or(NO_REGISTER)?.name(8);
            let way = Way::default().step(format!("setc {byte}"), "setc r8");
            Ok(way.step(format!("movsx {}, {byte}", reg.name(32)), "movsx r32, r8"))
        }
        (End::Flags, End::Register(reg, _, _)) if reg.kind == Kind::General => {
            let way = Way::default().step(format!("setc {}", reg.name(8)), "setc r8");
            let line = format!("movzx {}, {}", reg.name(32), reg.name(8));
            Ok(way.step(line, "movzx r32, r8"))
        }
        _ => Err("there is no simple way back".to_string()),
    }
}

/// Between registers of one kind.
fn within(
    form: &Form,
    (reg, _): (Reg, u16),
    (to, bits): (Reg, u16),
    explicit: bool,
) -> Result<Way, String> {
    let vex = form.is_vex();
    let way = Way::default();
    Ok(match reg.kind {
        // A divisor must not become 0.
        Kind::General if form.divides() && explicit => {
            let word = form.word();
            let line = format!("lea {}, [{} + 1]", to.name(word), reg.name(word));
            way.step(line, &format!("lea r{word}, m"))
        }
        Kind::General if form.is_compatibility() => {
            way.step(format!("movsx {}, {}", to.name(32), reg.name(16)), "movsx r32, r16")
        }
        Kind::General => {
            way.step(format!("movsxd {}, {}", to.name(64), reg.name(32)), "movsxd r64, r32")
        }
        Kind::Vector => {
            // One of the form's own domain, integer or floating point: crossing over takes time on many processors.
            let bits = if vex { bits.max(128) } else { 128 };
            let (class, [to, reg]) = (class(bits), [to, reg].map(|reg| reg.name(bits)));
            let v = if vex { "v" } else { "" };
            if form.one() == 1 {
                let named = format!("{v}pshufd {class}, {class}, imm8");
                way.step(format!("{v}pshufd {to}, {reg}, 0xe4"), &named)
            } else {
                way.step(format!("{v}movddup {to}, {reg}"), &format!("{v}movddup {class}, {class}"))
            }
        }
        Kind::Mmx => way.step(format!("pshufw {to}, {reg}, 0xe4"), "pshufw mm, mm, imm8"),
        Kind::Mask => {
            let [to, reg] = [to, reg].map(|reg| reg.name(64));
            way.step(format!("korw {to}, {reg}, {reg}"), "korw k, k, k")
        }
        Kind::X87 | Kind::Tile => return Err("there is no simple way back".to_string()),
    })
}

fn class(bits: u16) -> &'static str {
    match bits {
        256 => "ymm",
        512 => "zmm",
        _ => "xmm",
    }
}

/// Between a general register and one of another kind.
fn across(form: &Form, way: Way, (reg, _): (Reg, u16), (to, _): (Reg, u16)) -> Result<Way, String> {
    let v = if form.is_vex() { "v" } else { "" };
    let word = form.word();
    let mov = if form.is_compatibility() { "movd" } else { "movq" };
    let r = format!("r{word}");
    Ok(match (reg.kind, to.kind) {
        (Kind::General, Kind::Vector) => {
            let line = format!("{v}{mov} {}, {}", to.name(128), reg.name(word));
            way.step(line, &format!("{v}{mov} xmm, {r}"))
        }
        (Kind::Vector, Kind::General) => {
            let line = format!("{v}{mov} {}, {}", to.name(word), reg.name(128));
            way.step(line, &format!("{v}{mov} {r}, xmm"))
        }
        (Kind::General, Kind::Mmx) => {
            let line = format!("{mov} {}, {}", to.name(64), reg.name(word));
            way.step(line, &format!("{mov} mm, {r}"))
        }
        (Kind::Mmx, Kind::General) => {
            let line = format!("{mov} {}, {}", to.name(word), reg.name(64));
            way.step(line, &format!("{mov} {r}, mm"))
        }
        (Kind::General, Kind::Mask) => {
            way.step(format!("kmovw {}, {}", to.name(64), reg.name(32)), "kmovw k, r32")
        }
        (Kind::Mask, Kind::General) => {
            way.step(format!("kmovw {}, {}", to.name(32), reg.name(64)), "kmovw r32, k")
        }
        _ => return Err("there is no simple way back".to_string()),
    })
}

/// A store that the next load of `wanted` bits can take its data from.
fn store(form: &Form, reg: Reg, bits: u16, wanted: u16) -> Result<Way, String> {
    if form.divides() {
        return Err("the memory would become 0, which it divides by".to_string());
    }
    let (way, base) = (Way::default(), form.base());
    let v = if form.is_vex() { "v" } else { "" };
    match reg.kind {
        Kind::General if wanted <= form.word() => {
            let word = form.word();
            let line = format!("mov {}, {}", sized(Some(word), base), reg.name(word));
            Ok(way.step(line, &format!("mov m{word}, r{word}")))
        }
        Kind::Vector if wanted <= bits => {
            let (name, class) = (reg.name(bits), class(bits));
            Ok(way.step(
                format!("{v}movups [{base}], {name}"),
                &format!("{v}movups m{bits}, {class}"),
            ))
        }
        Kind::Mmx if wanted <= 64 => {
            Ok(way.step(format!("movq [{base}], {}", reg.name(64)), "movq m64, mm"))
        }
        _ => Err(format!("no store of its result covers a load of {wanted} bits")),
    }
}

/// A load of what the store of `bits` bits wrote.
fn load(form: &Form, reg: Reg, bits: u16) -> Result<Way, String> {
    let v = if form.is_vex() { "v" } else { "" };
    let bits = match reg.kind {
        // The lower half is a part of it.
        Kind::General if form.is_compatibility() && bits == 64 => 32,
        _ => bits,
    };
    let (way, from) = (Way::default(), sized(Some(bits), form.base()));
    let line = match (reg.kind, bits) {
        (Kind::General, 8 | 16) => {
            let named = format!("movzx r32, m{bits}");
            return Ok(way.step(format!("movzx {}, {from}", reg.name(32)), &named));
        }
        (Kind::General, 32 | 64) => {
            let named = format!("mov r{bits}, m{bits}");
            return Ok(way.step(format!("mov {}, {from}", reg.name(bits)), &named));
        }
        (Kind::Vector, 32) => (format!("{v}movd {}, {from}", reg.name(128)), "movd xmm, m32"),
        (Kind::Vector, 64) => (format!("{v}movq {}, {from}", reg.name(128)), "movq xmm, m64"),
        (Kind::Vector, 128 | 256 | 512) => {
            let (name, class) = (reg.name(bits), class(bits));
            let named = format!("{v}movups {class}, m{bits}");
            return Ok(way.step(format!("{v}movups {name}, {from}"), &named));
        }
        (Kind::Mmx, 64) => {
            return Ok(way.step(format!("movq {}, {from}", reg.name(64)), "movq mm, m64"));
        }
        _ => return Err(format!("no load takes up a store of {bits} bits")),
    };
    Ok(way.step(line.0, &format!("{v}{}", line.1)))
}
