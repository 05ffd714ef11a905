//! A form as it is written, and as instructions with registers.

use super::FormError;
use super::address::Address;
use super::branch;
use super::compatibility;
use super::encoding::Encoding;
use super::evex;
use super::privileged;
use super::registers::{Kind, Reg};
use super::stack;
use protocol::bits::Bits;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// An instruction with operand classes in place of operands.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(try_from = "String")]
pub struct Form {
    /// Mnemonic, with prefixes.
    pub mnemonic: String,
    /// Operands, destination first.
    pub operands: Vec<Operand>,
    /// The one encoding that it is bound to; otherwise the assembler chooses one.
    pub encoding: Option<Encoding>,
    /// Which code it is of.
    pub bits: Bits,
}

/// One operand of a form.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Operand {
    /// Any register of a kind, `bits` wide.
    Register {
        /// Its kind.
        kind: Kind,
        /// Its width.
        bits: u16,
    },
    /// Memory of so many bits; `m` leaves the size away.
    Memory(Option<u16>),
    /// One element in memory of so many bits, which stands for `count` of them.
    Broadcast {
        /// Its width.
        bits: u16,
        /// Elements of the vector.
        count: u8,
    },
    /// Elements in memory, each with an address of its own.
    Indexed {
        /// Bits of one index.
        index: u16,
        /// Width of the register with all of them.
        bits: u16,
    },
    /// Rows in memory, which a register has the distance of.
    Strided,
    /// The next instruction, in so many bits.
    Branch {
        /// Its width.
        bits: u16,
        /// Whether a conditional branch goes there.
        taken: Option<bool>,
    },
    /// A constant of so many bits.
    Immediate(u16),
    /// The mask of EVEX: any of K1 to K7.
    Mask {
        /// Elements that it leaves out become 0; otherwise they stay as they are.
        zeroing: bool,
    },
    /// Rounding of this instruction alone, or no exceptions of it.
    Control(&'static str),
    /// This very register or number.
    Fixed(String),
}

/// The classes and what they are.
static CLASSES: [(&str, Operand); 30] = {
    use Operand::{Immediate, Indexed, Memory, Register, Strided};
    const fn register(kind: Kind, bits: u16) -> Operand {
        Register { kind, bits }
    }
    [
        ("r8", register(Kind::General, 8)),
        ("r16", register(Kind::General, 16)),
        ("r32", register(Kind::General, 32)),
        ("r64", register(Kind::General, 64)),
        ("xmm", register(Kind::Vector, 128)),
        ("ymm", register(Kind::Vector, 256)),
        ("zmm", register(Kind::Vector, 512)),
        ("mm", register(Kind::Mmx, 64)),
        ("k", register(Kind::Mask, 64)),
        ("st", register(Kind::X87, 80)),
        ("tmm", register(Kind::Tile, 8192)),
        ("sibmem", Strided),
        ("m", Memory(None)),
        ("m8", Memory(Some(8))),
        ("m16", Memory(Some(16))),
        ("m32", Memory(Some(32))),
        ("m64", Memory(Some(64))),
        ("m128", Memory(Some(128))),
        ("m256", Memory(Some(256))),
        ("m512", Memory(Some(512))),
        ("vm32x", Indexed { index: 32, bits: 128 }),
        ("vm32y", Indexed { index: 32, bits: 256 }),
        ("vm32z", Indexed { index: 32, bits: 512 }),
        ("vm64x", Indexed { index: 64, bits: 128 }),
        ("vm64y", Indexed { index: 64, bits: 256 }),
        ("vm64z", Indexed { index: 64, bits: 512 }),
        ("imm8", Immediate(8)),
        ("imm16", Immediate(16)),
        ("imm32", Immediate(32)),
        ("imm64", Immediate(64)),
    ]
};

/// Registers that a form may name itself: the ones that encodings are bound to.
const NAMED: [&str; 14] =
    ["al", "ax", "eax", "rax", "cl", "cx", "ecx", "rcx", "dx", "edx", "rdx", "ah", "xmm0", "st0"];

fn is_named(word: &str) -> bool {
    NAMED.contains(&word) || privileged::NAMES.contains(&word)
}

impl FromStr for Form {
    type Err = FormError;

    fn from_str(text: &str) -> Result<Self, FormError> {
        let lower = text.trim().to_lowercase();
        let (lower, bits) = compatibility::marked(&lower);
        let (head, rest) = split(lower);
        if head.is_empty() {
            return Err(FormError::Empty);
        }
        let part = |part: &str, reason| {
            let (form, part) = (text.trim().to_string(), part.to_string());
            FormError::Part { form, part, reason }
        };
        let strange = |c: char| !(c.is_ascii_alphanumeric() || c == ' ');
        if let Some(c) = head.chars().find(|&c| strange(c)) {
            return Err(part(&c.to_string(), "no part of a mnemonic"));
        }
        if head.split(' ').any(|word| word.starts_with("rep")) {
            return Err(part(head, "a repeated instruction: its cost depends on RCX"));
        }
        let operands = rest.split(',').map(str::trim).filter(|_| !rest.is_empty());
        let mut added = Vec::new();
        let operands = operands.enumerate().filter_map(|(index, word)| {
            if let Some(control) = evex::CONTROLS.iter().find(|control| **control == word) {
                added.push(Operand::Control(control));
                return None;
            }
            Some((index, word))
        });
        let operands: Vec<(usize, &str)> = operands.collect();
        let mut mask = None;
        let operands = operands.into_iter().map(|(index, whole)| {
            if let Some(target) = branch::parse(whole) {
                return Ok(target);
            }
            let (word, broadcast, masked) = evex::braces(whole, index == 0)
                .map_err(|braces| part(&braces, evex::BRACES))?;
            mask = mask.take().or(masked);
            let class = CLASSES.iter().find(|(name, _)| *name == word);
            let number = word.trim_start_matches("0x");
            let is_number = number.len() < 17
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_hexdigit())
                && word.starts_with(|c: char| c.is_ascii_digit());
            match (class, broadcast) {
                (Some((_, Operand::Memory(Some(bits)))), Some(count)) => {
                    Ok(Operand::Broadcast { bits: *bits, count })
                }
                (_, Some(_)) => Err(part(whole, "no memory operand whose size is known")),
                (Some((_, class)), None) => Ok(class.clone()),
                (None, None) if is_named(word) || is_number => {
                    Ok(Operand::Fixed(word.to_string()))
                }
                (None, None) => Err(part(
                    word,
                    "no operand class: r8 to r64, xmm, ymm, zmm, mm, k, st, tmm, m, sibmem, m8 to m512, rel8, rel32, vm32x to \
                     vm64z, imm8 to imm64, a number, or a \
                     register that the instruction insists on (al, ax, eax, rax, cl, dx, xmm0, st0, cr0 to cr8, dr0 to dr7)",
                )),
            }
        });
        let mut operands = operands.collect::<Result<Vec<_>, _>>()?;
        if bits == Bits::Compatibility {
            let lacking = operands.iter().find_map(|one| Some((one, compatibility::lacks(one)?)));
            if let Some((operand, why)) = lacking {
                return Err(part(&text_of(operand), why));
            }
        }
        operands.append(&mut added);
        operands.extend(mask);
        let encoding = branch::bound(head, &operands, bits);
        let encoding = encoding.map_err(|(word, why)| part(&word, why))?;
        Ok(Self { mnemonic: head.to_string(), operands, encoding, bits })
    }
}

impl TryFrom<String> for Form {
    type Error = FormError;

    fn try_from(text: String) -> Result<Self, FormError> {
        text.parse()
    }
}

/// Mnemonic and operands: prefixes belong to the mnemonic.
fn split(text: &str) -> (&str, &str) {
    let mut end = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        end += word.len();
        if !matches!(word.trim(), "lock" | "rep" | "repe" | "repz" | "repne" | "repnz") {
            break;
        }
    }
    let (head, rest) = text.split_at(end);
    (head.trim(), rest.trim())
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mnemonic)?;
        if !self.operands.is_empty() {
            let texts = self.operands.iter().map(text_of).collect();
            write!(f, " {}", evex::join(&self.operands, texts))?;
        }
        if let Some(encoding) = self.encoding.filter(|encoding| encoding.named) {
            write!(f, " [{}]", encoding.code.op_code().op_code_string())?;
        }
        if self.is_compatibility() { write!(f, " {}", compatibility::SUFFIX) } else { Ok(()) }
    }
}

/// An operand as a form has it.
fn text_of(operand: &Operand) -> String {
    match operand {
        Operand::Fixed(text) => text.clone(),
        Operand::Mask { zeroing: false } => "{k}".to_string(),
        Operand::Mask { zeroing: true } => "{k}{z}".to_string(),
        Operand::Control(text) => (*text).to_string(),
        Operand::Broadcast { bits, count } => format!("m{bits} {{1to{count}}}"),
        Operand::Branch { bits, taken } => branch::text(*bits, *taken),
        class => {
            let known = CLASSES.iter().find(|(_, other)| other == class);
            known.map_or("?", |(name, _)| name).to_string()
        }
    }
}

/// The word that gives a memory operand its size.
pub fn sized(bits: Option<u16>, address: &str) -> String {
    let word = match bits {
        Some(8) => "byte ptr ",
        Some(16) => "word ptr ",
        Some(32) => "dword ptr ",
        Some(64) => "qword ptr ",
        Some(128) => "xmmword ptr ",
        Some(256) => "ymmword ptr ",
        Some(512) => "zmmword ptr ",
        _ => "",
    };
    format!("{word}[{address}]")
}

impl Form {
    /// The instruction with these registers, one entry for each operand, and this address.
    ///
    /// Of one encoding it is its bytes. What the encoder refuses is left to the assembler.
    pub fn with(&self, registers: &[Option<Reg>], address: Address) -> String {
        let bytes = self.encoding.map(|one| one.bytes(&self.operands, registers, address));
        if let Some(Ok(bytes)) = bytes {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
            return format!(".byte {}", bytes.join(", "));
        }
        let address = &address.to_string();
        let operands = self.operands.iter().zip(registers).map(|(operand, reg)| match operand {
            Operand::Register { bits, .. } => reg.map_or_else(String::new, |reg| reg.name(*bits)),
            Operand::Memory(bits) => sized(*bits, address),
            Operand::Strided => format!("[{address} + r13]"),
            Operand::Indexed { bits, .. } => {
                let index = reg.map_or_else(String::new, |reg| reg.name(*bits));
                format!("[{address} + {index}]")
            }
            Operand::Broadcast { bits, count } => {
                format!("{}{{1to{count}}}", sized(Some(*bits), address))
            }
            Operand::Mask { zeroing } => {
                let mask = reg.map_or_else(String::new, |reg| reg.name(64));
                format!("{{{mask}}}{}", if *zeroing { "{z}" } else { "" })
            }
            Operand::Control(text) => (*text).to_string(),
            // It always has an encoding.
            Operand::Branch { .. } => String::new(),
            // Not 1, which has encodings of its own in shifts; wide ones so that no shorter encoding takes them.
            Operand::Immediate(8) => "3".to_string(),
            Operand::Immediate(16) => "0x1234".to_string(),
            Operand::Immediate(32) => "0x12345678".to_string(),
            Operand::Immediate(_) => "0x123456789abcdef0".to_string(),
            Operand::Fixed(text) if text == "st0" => "st(0)".to_string(),
            Operand::Fixed(text) => text.clone(),
        });
        let operands = evex::join(&self.operands, operands.collect());
        format!("{} {operands}", self.mnemonic).trim().to_string()
    }

    /// The memory operand's number and size, if there is one.
    pub fn memory(&self) -> Option<(usize, Option<u16>)> {
        self.operands.iter().enumerate().find_map(|(index, operand)| match operand {
            Operand::Memory(bits) => Some((index, *bits)),
            Operand::Broadcast { bits, .. } => Some((index, Some(*bits))),
            Operand::Strided => Some((index, None)),
            _ => None,
        })
    }

    /// The operand with an address for each of its elements, if there is one, and bits of an index.
    pub fn indexed(&self) -> Option<(usize, u16)> {
        self.operands.iter().enumerate().find_map(|(place, operand)| match operand {
            Operand::Indexed { index, .. } => Some((place, *index)),
            _ => None,
        })
    }

    /// Kind and width of a register operand.
    pub fn register(&self, index: usize) -> Option<(Kind, u16)> {
        match self.operands.get(index)? {
            Operand::Register { kind, bits } => Some((*kind, *bits)),
            Operand::Indexed { bits, .. } => Some((Kind::Vector, *bits)),
            Operand::Mask { .. } => Some((Kind::Mask, 64)),
            _ => None,
        }
    }

    /// Whether it is encoded with VEX or EVEX, after whose instructions old SSE ones may be slow.
    pub fn is_vex(&self) -> bool {
        self.mnemonic.starts_with('v') && !matches!(&*self.mnemonic, "verr" | "verw")
    }

    /// Whether it divides integers, which faults for most operands.
    pub fn divides(&self) -> bool {
        matches!(&*self.mnemonic, "div" | "idiv")
    }

    /// A 64-bit value that its operands can have: 1 as the numbers that it works on.
    pub fn one(&self) -> u64 {
        let name = self.mnemonic.trim_start_matches('v');
        // The lower bound 0 and the upper bound 1.
        if let ("bound", Some((_, bits))) = (&*self.mnemonic, self.register(0)) {
            return 1 << bits;
        }
        if let (true, Some((_, bits))) = (stack::takes_floats(&self.mnemonic), self.memory()) {
            return stack::one(bits);
        }
        let has = |ends: [&str; 2], within: [&str; 2]| {
            let converts = name.starts_with("cvt") && within.iter().any(|part| name.contains(part));
            !name.starts_with('p') && (converts || ends.iter().any(|end| name.ends_with(end)))
        };
        if has(["pd", "sd"], ["pd2", "sd2"]) {
            1.0_f64.to_bits()
        } else if has(["ps", "ss"], ["ps2", "ss2"]) {
            0x3f80_0000_3f80_0000
        } else {
            1
        }
    }
}
