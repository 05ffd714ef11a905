//! Registers by kind and number, as a form's operands get them.

use super::Form;
use iced_x86::Register;
use protocol::bits::Bits;
use std::fmt;

/// Kinds of registers that can be renamed within a form.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// General registers.
    General,
    /// XMM, YMM, ZMM.
    Vector,
    /// MMX.
    Mmx,
    /// AVX-512 masks.
    Mask,
    /// The x87 stack's.
    X87,
    /// AMX tiles.
    Tile,
}

/// A register of any width.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Reg {
    /// Its kind.
    pub kind: Kind,
    /// Its number in the encoding.
    pub number: u8,
}

const OLD: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];

impl Reg {
    /// A general register.
    pub const fn general(number: u8) -> Self {
        Self { kind: Kind::General, number }
    }

    /// The register that `register` is a part of, if it is of one of the kinds.
    pub fn of(register: Register) -> Option<Self> {
        let full = register.full_register();
        let kind = match full {
            _ if full.is_gpr64() => Kind::General,
            _ if full.is_vector_register() => Kind::Vector,
            _ if full.is_mm() => Kind::Mmx,
            _ if full.is_k() => Kind::Mask,
            _ if full.is_st() => Kind::X87,
            _ if full.is_tmm() => Kind::Tile,
            _ => return None,
        };
        Some(Self { kind, number: full.number() as u8 })
    }

    /// Its name at a width in bits.
    pub fn name(self, bits: u16) -> String {
        let number = self.number;
        match (self.kind, bits) {
            (Kind::Vector, 256) => format!("ymm{number}"),
            (Kind::Vector, 512) => format!("zmm{number}"),
            (Kind::Vector, _) => format!("xmm{number}"),
            (Kind::Mmx, _) => format!("mm{number}"),
            (Kind::Mask, _) => format!("k{number}"),
            (Kind::X87, _) => format!("st({number})"),
            (Kind::Tile, _) => format!("tmm{number}"),
            (Kind::General, _) if number >= 8 => {
                let suffix = match bits {
                    8 => "b",
                    16 => "w",
                    32 => "d",
                    _ => "",
                };
                format!("r{number}{suffix}")
            }
            (Kind::General, bits) => {
                let old = OLD[usize::from(number)];
                match bits {
                    8 if number < 4 => format!("{}l", &old[..1]),
                    8 => format!("{old}l"),
                    16 => old.to_string(),
                    32 => format!("e{old}"),
                    _ => format!("r{old}"),
                }
            }
        }
    }

    /// Whether measuring needs its value: the stack and what points to memory.
    pub fn is_pointer(self, bits: Bits) -> bool {
        let of_code = match bits {
            Bits::SixtyFour => matches!(self.number, 14 | 15),
            Bits::Compatibility => self.number == 3,
        };
        self.kind == Kind::General && (of_code || matches!(self.number, 4..=7))
    }

    /// Whether code of so many bits can name it at a width. Without a REX prefix, of the lowest bytes only those of four registers.
    fn is_there(self, width: u16, code: Bits) -> bool {
        self.kind != Kind::General || width != 8 || code == Bits::SixtyFour || self.number < 4
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            // A name without parentheses.
            Kind::X87 => write!(f, "st{}", self.number),
            _ => f.write_str(&self.name(64)),
        }
    }
}

/// Registers that operands may get, in the order in which they do. RSP, RBP, RSI, RDI and R14 point to memory, R15
/// counts loops; AX, CX and DX come last, because instructions use them without naming them. In 32-bit code, ESP and EBX point to
/// memory.
pub fn pool(kind: Kind, code: Bits) -> Vec<Reg> {
    let numbers: Vec<u8> = match (kind, code) {
        (Kind::General, Bits::SixtyFour) => vec![8, 9, 10, 11, 12, 13, 3, 0, 1, 2],
        (Kind::General, Bits::Compatibility) => vec![6, 7, 5, 0, 1, 2],
        // XMM0 and K0 have special meanings in some encodings.
        (Kind::Vector, Bits::SixtyFour) => (1..16).collect(),
        (Kind::Mmx | Kind::Tile, _) => (0..8).collect(),
        (Kind::Vector | Kind::Mask, _) => (1..8).collect(),
        // ST(0) is an operand of nearly all.
        (Kind::X87, _) => (1..8).collect(),
    };
    numbers.into_iter().map(|number| Reg { kind, number }).collect()
}

/// Hands registers out.
pub struct Free {
    left: Vec<Reg>,
    code: Bits,
}

impl Free {
    /// All registers of a form's code but `taken`.
    pub fn of(form: &Form, taken: &[Reg]) -> Self {
        let kinds = [Kind::General, Kind::Vector, Kind::Mmx, Kind::Mask, Kind::X87, Kind::Tile];
        let all = kinds.into_iter().flat_map(|kind| pool(kind, form.bits));
        Self { left: all.filter(|reg| !taken.contains(reg)).collect(), code: form.bits }
    }

    /// The next one of a kind that has a name at a width.
    pub fn take(&mut self, (kind, bits): (Kind, u16)) -> Option<Reg> {
        let fits = |reg: &Reg| reg.kind == kind && reg.is_there(bits, self.code);
        let index = self.left.iter().position(fits)?;
        Some(self.left.remove(index))
    }

    /// Hands these out no more.
    pub fn forbid(&mut self, taken: &[Reg]) {
        self.left.retain(|reg| !taken.contains(reg));
    }

    /// How many of a kind are left that have a name at a width.
    pub fn left(&self, (kind, bits): (Kind, u16)) -> usize {
        let fits = |reg: &&Reg| reg.kind == kind && reg.is_there(bits, self.code);
        self.left.iter().filter(fits).count()
    }
}
