//! Registers by kind and number, as a form's operands get them.

use iced_x86::Register;
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
    pub fn is_pointer(self) -> bool {
        self.kind == Kind::General && matches!(self.number, 4..=7 | 14 | 15)
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
/// counts loops; AX, CX and DX come last, because instructions use them without naming them.
pub fn pool(kind: Kind) -> Vec<Reg> {
    let numbers: Vec<u8> = match kind {
        Kind::General => vec![8, 9, 10, 11, 12, 13, 3, 0, 1, 2],
        // XMM0 and K0 have special meanings in some encodings.
        Kind::Vector => (1..16).collect(),
        Kind::Mmx | Kind::Tile => (0..8).collect(),
        Kind::Mask => (1..8).collect(),
        // ST(0) is an operand of nearly all.
        Kind::X87 => (1..8).collect(),
    };
    numbers.into_iter().map(|number| Reg { kind, number }).collect()
}

/// Hands registers out.
pub struct Free(Vec<Reg>);

impl Free {
    /// All registers but `taken`.
    pub fn without(taken: &[Reg]) -> Self {
        let kinds = [Kind::General, Kind::Vector, Kind::Mmx, Kind::Mask, Kind::X87, Kind::Tile];
        Self(kinds.into_iter().flat_map(pool).filter(|reg| !taken.contains(reg)).collect())
    }

    /// The next one of a kind.
    pub fn take(&mut self, kind: Kind) -> Option<Reg> {
        let index = self.0.iter().position(|reg| reg.kind == kind)?;
        Some(self.0.remove(index))
    }

    /// Hands these out no more.
    pub fn forbid(&mut self, taken: &[Reg]) {
        self.0.retain(|reg| !taken.contains(reg));
    }

    /// How many of a kind are left.
    pub fn left(&self, kind: Kind) -> usize {
        self.0.iter().filter(|reg| reg.kind == kind).count()
    }
}
