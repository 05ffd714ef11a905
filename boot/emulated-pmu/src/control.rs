//! Control registers of the guest: which writes raise #GP on a processor, and which states VMRUN takes.
//!
//! QEMU's MOV takes values that a processor refuses, and its VMRUN then refuses the guest that has them. So writes to CR0
//! and CR4 are looked at before they are executed: what passes [`Control::write`] passes [`Control::may_enter`].

/// CR0.PE: protected mode.
const CR0_PE: u64 = 1 << 0;
/// CR0.NW: not write-through.
const CR0_NW: u64 = 1 << 29;
/// CR0.CD: cache disable.
const CR0_CD: u64 = 1 << 30;
/// CR0.PG: paging.
const CR0_PG: u64 = 1 << 31;
const CR4_PAE: u64 = 1 << 5;
const CR4_LA57: u64 = 1 << 12;
const CR4_PCIDE: u64 = 1 << 17;
const EFER_LME: u64 = 1 << 8;
const EFER_LMA: u64 = 1 << 10;
/// CS.L and CS.D, as a VMCB has them.
const CS_LONG: u16 = 1 << 9;
const CS_DEFAULT: u16 = 1 << 10;
/// CR3 of a MOV with CR4.PCIDE: keep the translations of this PCID (SDM vol. 3, 4.10.4.1).
const KEEP_TRANSLATIONS: u64 = 1 << 63;
/// CR3: the PCID.
const PCID: u64 = 0xfff;

/// CR4 bits that every x86-64 processor has: VME, PVI, TSD, DE, PSE, PAE, MCE, PGE, PCE, OSFXSR, OSXMMEXCPT.
const CR4_ALWAYS: u64 = 0x7ff;
/// CR4 bits that CPUID reports: leaf 1 ECX or leaf 7 EBX or ECX, its bit there, and the bit in CR4 (SDM vol. 3, 2.5).
const CR4_BY_CPUID: [(Leaf, u32, u32); 9] = [
    (Leaf::OneEcx, 17, 17),   // PCIDE
    (Leaf::OneEcx, 26, 18),   // OSXSAVE
    (Leaf::SevenEbx, 0, 16),  // FSGSBASE
    (Leaf::SevenEbx, 7, 20),  // SMEP
    (Leaf::SevenEbx, 20, 21), // SMAP
    (Leaf::SevenEcx, 2, 11),  // UMIP
    (Leaf::SevenEcx, 3, 22),  // PKE
    (Leaf::SevenEcx, 16, 12), // LA57
    (Leaf::SevenEcx, 31, 24), // PKS
];

#[derive(Clone, Copy)]
enum Leaf {
    OneEcx,
    SevenEbx,
    SevenEcx,
}

/// The processor's features that decide which bits are reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Features {
    /// Bits of CR4 that are not reserved.
    pub cr4: u64,
    /// Bits of a physical address: CPUID leaf 0x8000_0008 EAX bits 7:0.
    pub physical_bits: u32,
}

impl Features {
    /// From CPUID leaf 1 ECX, leaf 7 EBX and ECX, and leaf 0x8000_0008 EAX.
    #[must_use]
    pub fn new(leaf_1_ecx: u32, leaf_7: (u32, u32), leaf_8000_0008_eax: u32) -> Self {
        let has = |&(leaf, bit, _): &(Leaf, u32, u32)| {
            let register = match leaf {
                Leaf::OneEcx => leaf_1_ecx,
                Leaf::SevenEbx => leaf_7.0,
                Leaf::SevenEcx => leaf_7.1,
            };
            register >> bit & 1 != 0
        };
        let told = CR4_BY_CPUID.iter().filter(|row| has(row));
        let cr4 = told.fold(CR4_ALWAYS, |bits, &(_, _, bit)| bits | 1 << bit);
        Self { cr4, physical_bits: (leaf_8000_0008_eax & 0xff).clamp(32, 52) }
    }
}

/// A control register that MOV writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Register {
    /// CR0.
    Cr0,
    /// CR3.
    Cr3,
    /// CR4.
    Cr4,
}

/// The write raises #GP(0) and changes nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GeneralProtection;

/// What VMRUN looks at in addition to the intercepts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Control {
    /// CR0.
    pub cr0: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER, without SVME.
    pub efer: u64,
    /// Attributes of CS as in a VMCB.
    pub cs: u16,
}

impl Control {
    /// The state after a MOV of `value` to `register` in ring 0.
    ///
    /// # Errors
    /// Where a processor raises #GP: SDM vol. 2, MOV to control registers, and vol. 3, 2.5 and 10.8.5 (NW without CD).
    pub fn write(
        self,
        register: Register,
        value: u64,
        features: &Features,
    ) -> Result<Self, GeneralProtection> {
        let refused = match register {
            Register::Cr0 => self.refuses_cr0(value),
            Register::Cr3 => self.refuses_cr3(value, features),
            Register::Cr4 => self.refuses_cr4(value, features),
        };
        if refused {
            return Err(GeneralProtection);
        }
        // Outside long mode the operand has 32 bits.
        let value = if self.is_long() { value } else { value & 0xffff_ffff };
        let mut next = self;
        match register {
            Register::Cr0 => {
                next.cr0 = value;
                let active = value & CR0_PG != 0 && self.efer & EFER_LME != 0;
                next.efer = self.efer & !EFER_LMA | if active { EFER_LMA } else { 0 };
            }
            Register::Cr3 if self.cr4 & CR4_PCIDE != 0 => next.cr3 = value & !KEEP_TRANSLATIONS,
            Register::Cr3 => next.cr3 = value,
            Register::Cr4 => next.cr4 = value,
        }
        Ok(next)
    }

    fn is_long(&self) -> bool {
        self.efer & EFER_LMA != 0
    }

    fn refuses_cr0(&self, value: u64) -> bool {
        let (paging, was_paging) = (value & CR0_PG != 0, self.cr0 & CR0_PG != 0);
        let is_64_bit = self.is_long() && self.cs & CS_LONG != 0;
        let begins = paging && !was_paging && self.efer & EFER_LME != 0;
        value >> 32 != 0
            || paging && value & CR0_PE == 0
            || value & CR0_NW != 0 && value & CR0_CD == 0
            || was_paging && !paging && (is_64_bit || self.cr4 & CR4_PCIDE != 0)
            || begins && (self.cr4 & CR4_PAE == 0 || self.cs & CS_LONG != 0)
    }

    fn refuses_cr3(&self, value: u64, features: &Features) -> bool {
        let kept = if self.cr4 & CR4_PCIDE != 0 { KEEP_TRANSLATIONS } else { 0 };
        self.is_long() && (value & !kept) >> features.physical_bits != 0
    }

    fn refuses_cr4(&self, value: u64, features: &Features) -> bool {
        let changes = value ^ self.cr4;
        // What a loader has left set may stay set.
        value & !(features.cr4 | self.cr4) != 0
            || self.is_long() && (value & CR4_PAE == 0 || changes & CR4_LA57 != 0)
            || changes & value & CR4_PCIDE != 0 && (!self.is_long() || self.cr3 & PCID != 0)
    }

    /// Whether a write of `efer` raises #GP: LME must not change while paging is on (SDM vol. 3, 10.8.5).
    #[must_use]
    pub fn refuses_efer(&self, efer: u64) -> bool {
        self.cr0 & CR0_PG != 0 && (efer ^ self.efer) & EFER_LME != 0
    }

    /// Whether VMRUN takes the state: AMD APM vol. 2, 15.5.1, "Canonicalization and Consistency Checks", as QEMU has them.
    #[must_use]
    pub fn may_enter(&self, features: &Features) -> bool {
        let (protected, paging) = (self.cr0 & CR0_PE != 0, self.cr0 & CR0_PG != 0);
        let pae = self.cr4 & CR4_PAE != 0;
        let begins_long = self.efer & EFER_LME != 0 && paging;
        self.cr0 >> 32 == 0
            && (self.cr0 & CR0_NW == 0 || self.cr0 & CR0_CD != 0)
            && !(self.is_long() && self.cr3 >> features.physical_bits != 0)
            && self.cr4 & !features.cr4 == 0
            && !(begins_long && (!pae || !protected))
            && !(begins_long && pae && self.cs & CS_LONG != 0 && self.cs & CS_DEFAULT != 0)
    }
}

/// Whether a write of CR0 changes nothing but MP, EM, TS, NE, WP, AM, NW and CD: neither mode nor paging, and no bit that is
/// fixed.
#[must_use]
pub const fn only_flags(old: u64, new: u64) -> bool {
    const FLAGS: u64 = 0b1110 | 1 << 5 | 1 << 16 | 1 << 18 | 1 << 29 | 1 << 30;
    (old ^ new) & !FLAGS == 0
}

/// Attributes of CS that VMRUN takes: of a 64-bit segment with the reserved D bit, without that bit. A processor raises #GP
/// when such a segment is loaded (SDM vol. 3, 5.2.1); QEMU does not, and runs it as 64-bit code.
#[must_use]
pub const fn enterable_code_segment(attributes: u16) -> u16 {
    if attributes & CS_LONG != 0 { attributes & !CS_DEFAULT } else { attributes }
}

#[cfg(test)]
mod tests;
