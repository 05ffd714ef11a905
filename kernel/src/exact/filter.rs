//! Which instructions count.

use super::Refusal;
use alloc::string::ToString;
use alloc::vec::Vec;
use iced_x86::Mnemonic;
use protocol::bits::Bits;
use protocol::job::exact::{AddressRange, Base, Filter};
use step::Touch;

/// A filter as it is applied: with the addresses that the registers point to at the start.
#[derive(Clone, Debug)]
pub struct Qualifier<'a> {
    filter: &'a Filter<'a>,
    mnemonics: Vec<Mnemonic>,
    /// Start values of RSP, RBP, RDI, RSI and R14.
    pointers: [u64; 5],
}

impl<'a> Qualifier<'a> {
    /// `pointers` are the start values of RSP, RBP, RDI, RSI and R14.
    ///
    /// # Errors
    /// An opcode that does not exist.
    pub fn new(filter: &'a Filter<'a>, pointers: [u64; 5]) -> Result<Self, Refusal> {
        let mnemonics = filter.opcodes.iter().map(|name| opcode(name)).collect::<Result<_, _>>()?;
        Ok(Self { filter, mnemonics, pointers })
    }

    /// Whether an instruction passes that begins `offset` bytes into a copy of the body; `None`: outside of it, where no
    /// range of instructions lies; and is executed as `bits`.
    #[must_use]
    pub fn takes(&self, mnemonic: Mnemonic, offset: Option<u64>, bits: Bits) -> bool {
        (self.mnemonics.is_empty() || self.mnemonics.contains(&mnemonic))
            && self.filter.bits.is_none_or(|wanted| wanted == bits)
            && self.filter.instructions.is_none_or(|range| {
                offset.is_some_and(|offset| range.overlaps(base(&range, self.pointers), offset, 1))
            })
    }

    /// Whether an access counts.
    #[must_use]
    pub fn touches(&self, touch: &Touch) -> bool {
        self.filter.data.is_none_or(|range| {
            range.overlaps(base(&range, self.pointers), touch.linear, u64::from(touch.bytes))
        })
    }

    /// Whether instructions without an access that counts do not count either.
    #[must_use]
    pub fn needs_access(&self) -> bool {
        self.filter.data.is_some()
    }
}

/// The opcode that a filter names.
///
/// # Errors
/// It does not exist.
pub fn opcode(name: &str) -> Result<Mnemonic, Refusal> {
    let found = Mnemonic::values().find(|&mnemonic| super::name(mnemonic) == name);
    found.ok_or_else(|| Refusal::UnknownOpcode(name.to_string()))
}

/// What a range's offsets count from. `pointers` are the start values of RSP, RBP, RDI, RSI and R14.
#[must_use]
pub const fn base(range: &AddressRange, [rsp, rbp, rdi, rsi, r14]: [u64; 5]) -> u64 {
    match range.base {
        None => 0,
        Some(Base::Rsp) => rsp,
        Some(Base::Rbp) => rbp,
        Some(Base::Rdi) => rdi,
        Some(Base::Rsi) => rsi,
        Some(Base::R14) => r14,
    }
}
