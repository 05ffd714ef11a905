//! Operands of an encoding as tables of instructions describe them: each with its number, what it is, and whether it is
//! read and written; behind those that are written in the instruction, the ones that are not.

use super::catalog::Entry;
use super::registers::{Kind, Reg, pool};
use super::text::Operand;
use iced_x86::RflagsBits;
use protocol::bits::Bits;

/// What an operand is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum What {
    /// A register.
    Register,
    /// Memory.
    Memory,
    /// An address of which nothing is read, as of LEA.
    AddressOnly,
    /// A constant.
    Immediate,
    /// The arithmetic flags.
    Flags,
}

/// An operand.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Described {
    /// Its number, from 1.
    pub index: usize,
    /// `REG0`, `MEM0`, `IMM0`: numbered by kind; an implicit register's own name, or `FLAGS`.
    pub name: String,
    /// Kind and width, as in `R64`.
    pub class: String,
    /// What it is.
    pub what: What,
    /// Its width; 0 where it has none.
    pub bits: u16,
    /// Its value is needed.
    pub read: bool,
    /// It gets a new one.
    pub written: bool,
    /// It is not written in the instruction.
    pub suppressed: bool,
    /// The registers that it can be.
    pub registers: Vec<String>,
    /// Each flag as `flag_CF`, with `r`, `w` or `r/w`.
    pub flags: Vec<(String, &'static str)>,
}

/// The flags by name.
const FLAGS: [(&str, u32); 6] = [
    ("flag_AF", RflagsBits::AF),
    ("flag_CF", RflagsBits::CF),
    ("flag_OF", RflagsBits::OF),
    ("flag_PF", RflagsBits::PF),
    ("flag_SF", RflagsBits::SF),
    ("flag_ZF", RflagsBits::ZF),
];

/// All operands of a form; nothing where it cannot be measured.
#[must_use]
pub fn describe(entry: &Entry) -> Option<Vec<Described>> {
    let form = entry.form.as_ref().ok()?;
    let effects = entry.effects().ok()?;
    let mut all: Vec<Described> = Vec::new();
    for (operand, access) in form.operands.iter().zip(&effects.operands) {
        let accessed = access.read || access.write;
        let (what, class, bits, registers) = match operand {
            Operand::Register { kind, bits } => {
                (What::Register, class(*kind, *bits), *bits, names(*kind, *bits))
            }
            Operand::Control(_) => continue,
            Operand::Branch { bits, .. } => {
                (What::Immediate, format!("I{bits}"), *bits, Vec::new())
            }
            Operand::Indexed { bits, .. } => {
                (What::Memory, format!("VSIB_{}", class(Kind::Vector, *bits)), 0, Vec::new())
            }
            Operand::Mask { .. } => (What::Register, "K".to_string(), 64, mask_names()),
            Operand::Broadcast { bits, count } => {
                (What::Memory, format!("M{bits}_1to{count}"), *bits, Vec::new())
            }
            Operand::Strided => (What::Memory, "M".to_string(), 0, Vec::new()),
            Operand::Memory(bits) => {
                let bits = bits.unwrap_or(0);
                let what = if accessed { What::Memory } else { What::AddressOnly };
                (
                    what,
                    if bits > 0 { format!("M{bits}") } else { "M".to_string() },
                    bits,
                    Vec::new(),
                )
            }
            Operand::Immediate(bits) => (What::Immediate, format!("I{bits}"), *bits, Vec::new()),
            Operand::Fixed(text) if text == "1" => {
                (What::Immediate, "1".to_string(), 8, Vec::new())
            }
            Operand::Fixed(text) => {
                let name = text.to_uppercase();
                (What::Register, name.clone(), fixed_bits(text), vec![name])
            }
        };
        let (mut read, mut written) = (access.read, access.write);
        if let Operand::Fixed(text) = operand
            && let Some((_, access)) = effects.implicit.iter().find(|(reg, _)| is(*reg, text))
        {
            (read, written) = (access.read, access.write);
        }
        let number = all.iter().filter(|one| prefix(one.what) == prefix(what)).count();
        let name = format!("{}{number}", prefix(what));
        let (index, suppressed, flags) = (all.len() + 1, false, Vec::new());
        all.push(Described {
            index,
            name,
            class,
            what,
            bits,
            read,
            written,
            suppressed,
            registers,
            flags,
        });
    }
    let named = |reg: Reg| {
        form.operands.iter().any(|one| matches!(one, Operand::Fixed(text) if is(reg, text)))
    };
    for (reg, access) in effects.implicit.iter().filter(|(reg, _)| !named(*reg)) {
        let bits = if reg.kind == Kind::Vector { 128 } else { 64 };
        let name = reg.name(bits).to_uppercase();
        all.push(Described {
            index: all.len() + 1,
            name: name.clone(),
            class: name.clone(),
            what: What::Register,
            bits,
            read: access.read,
            written: access.write,
            suppressed: true,
            registers: vec![name],
            flags: Vec::new(),
        });
    }
    if effects.flags.read || effects.flags.write {
        let (read, written) = entry.flags();
        let access = |bit: u32| match (read & bit != 0, written & bit != 0) {
            (true, true) => Some("r/w"),
            (true, false) => Some("r"),
            (false, true) => Some("w"),
            (false, false) => None,
        };
        let flags = FLAGS.iter().filter_map(|(name, bit)| Some((name.to_string(), access(*bit)?)));
        all.push(Described {
            index: all.len() + 1,
            name: "FLAGS".to_string(),
            class: "FLAGS".to_string(),
            what: What::Flags,
            bits: 0,
            read: effects.flags.read,
            written: effects.flags.write,
            suppressed: true,
            registers: Vec::new(),
            flags: flags.collect(),
        });
    }
    Some(all)
}

/// The number of what a latency is from or to: an operand by number, `address`, `memory`, `flags`, or a register.
#[must_use]
pub fn index_of(operands: &[Described], name: &str) -> Option<usize> {
    let found = match name {
        "address" | "memory" => {
            operands.iter().find(|one| matches!(one.what, What::Memory | What::AddressOnly))
        }
        "flags" => operands.iter().find(|one| one.what == What::Flags),
        // K0 cannot be one.
        "mask" => operands.iter().find(|one| one.registers == mask_names()),
        _ => match name.parse::<usize>() {
            Ok(index) => operands.iter().find(|one| one.index == index),
            Err(_) => operands
                .iter()
                .find(|one| matches!(&one.registers[..], [only] if is_name(only, name))),
        },
    };
    found.map(|one| one.index)
}

/// Whether an event counts the micro-operations of an instruction, by its name.
#[must_use]
pub fn counts_uops(event: &str) -> bool {
    let name = event.to_lowercase();
    [
        "uops_issued.any",
        "uops_retired.retire_slots",
        "uops_retired.slots",
        "ex_ret_ops",
        "uops_retired.all",
    ]
    .iter()
    .any(|known| name.starts_with(known))
}

/// Whether a fixed operand such as `cl` is a part of a register.
fn is(reg: Reg, text: &str) -> bool {
    reg.to_string() == text || [8, 16, 32, 64, 128].iter().any(|bits| reg.name(*bits) == text)
}

/// Whether two names are of one register.
fn is_name(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    [Kind::General, Kind::Vector, Kind::Mmx, Kind::Mask]
        .into_iter()
        .flat_map(|kind| pool(kind, Bits::SixtyFour))
        .any(|reg| is(reg, &one) && is(reg, &other))
}

fn fixed_bits(text: &str) -> u16 {
    match text {
        "al" | "cl" => 8,
        "ax" | "dx" => 16,
        "eax" => 32,
        "st0" => 80,
        _ => 64,
    }
}

fn prefix(what: What) -> &'static str {
    match what {
        What::Register => "REG",
        What::Memory => "MEM",
        What::AddressOnly => "AGEN",
        What::Immediate => "IMM",
        What::Flags => "FLAGS",
    }
}

fn class(kind: Kind, bits: u16) -> String {
    match (kind, bits) {
        (Kind::General, bits) => format!("R{bits}"),
        (Kind::Vector, 256) => "YMM".to_string(),
        (Kind::Vector, 512) => "ZMM".to_string(),
        (Kind::Vector, _) => "XMM".to_string(),
        (Kind::Mmx, _) => "MM".to_string(),
        (Kind::Mask, _) => "K".to_string(),
        (Kind::X87, _) => "ST".to_string(),
        (Kind::Tile, _) => "TMM".to_string(),
    }
}

/// The registers that can be the mask of EVEX.
fn mask_names() -> Vec<String> {
    pool(Kind::Mask, Bits::SixtyFour).into_iter().map(|reg| reg.name(64).to_uppercase()).collect()
}

/// All registers of a class, by number.
fn names(kind: Kind, bits: u16) -> Vec<String> {
    let most = match kind {
        Kind::General | Kind::Vector => 16,
        Kind::Mmx | Kind::Mask | Kind::X87 | Kind::Tile => 8,
    };
    (0..most).map(|number| Reg { kind, number }.name(bits).to_uppercase()).collect()
}
