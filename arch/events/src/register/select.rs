//! `IA32_PERFEVTSELx` and AMD's `PERF_CTL`: one typed form for both.
//!
//! Intel SDM 3B, "Architectural Performance Monitoring", versions 1, 3 (AnyThread) and 6 (UMASK2,
//! EQ); AMD APM 2, 13.2.1. The vendors agree on bits 31:0. Above, AMD has the event's high bits at
//! 35:32, where Intel has transactional memory and PEBS controls, and guest and host at 41:40,
//! where Intel has UMASK2.

use crate::cpu::Vendor;
use thiserror::Error;

/// Contents of an event select register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventSelect {
    /// Event: 8 bits on Intel, 12 bits on AMD.
    pub event: u16,
    /// Unit mask, bits 15:8.
    pub umask: u8,
    /// UMASK2, bits 47:40, Intel version 6.
    pub umask2: u8,
    /// USR, bit 16: count at CPL above 0.
    pub user: bool,
    /// OS, bit 17: count at CPL 0.
    pub kernel: bool,
    /// E, bit 18: edge detect.
    pub edge: bool,
    /// PC, bit 19: pin control, obsolete.
    pub pin_control: bool,
    /// INT, bit 20: interrupt on overflow.
    pub interrupt: bool,
    /// ANY, bit 21: count for both hyper-threads. Intel versions 3 and 4.
    pub any_thread: bool,
    /// EN, bit 22.
    pub enable: bool,
    /// INV, bit 23: invert the comparison with the counter mask.
    pub invert: bool,
    /// CMASK, bits 31:24.
    pub cmask: u8,
    /// IN_TX, bit 32: only inside transactions. Intel with TSX.
    pub in_tx: bool,
    /// IN_TXCP, bit 33: drop what aborted transactions counted. Intel with TSX, counter 2.
    pub in_tx_checkpointed: bool,
    /// Adaptive PEBS record, bit 34, Intel.
    pub adaptive_record: bool,
    /// Log this counter's events in LBR_INFO, bit 35, Intel.
    pub log_in_branches: bool,
    /// EQ, bit 36: compare for equality with the counter mask. Intel version 6.
    pub equal: bool,
    /// RDPMC_USR_DISABLE, bit 37, Intel.
    pub rdpmc_user_disable: bool,
    /// Guest only, bit 40, AMD.
    pub guest_only: bool,
    /// Host only, bit 41, AMD.
    pub host_only: bool,
}

/// A raw value has bits that mean nothing on this vendor's processors.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{value:#x} sets bits {bits:#x}, which are reserved in an {vendor} event select register")]
pub struct ReservedBits {
    /// The whole value.
    pub value: u64,
    /// Its reserved bits.
    pub bits: u64,
    /// Whose register.
    pub vendor: Vendor,
}

const INTEL_BITS: u64 = 0x0000_ff3f_ffff_ffff;
/// Reserved on AMD: 19, 21, 39:36 and 63:42. 19 and 21 are also in the mask of bits that KVM's SVM
/// code drops.
const AMD_BITS: u64 = 0x0000_030f_ffd7_ffff;

/// Fields that both vendors have.
const FIELDS: [(&str, u64); 9] = [
    ("event", 0xff),
    ("unit mask", 0xff00),
    ("USR", 1 << 16),
    ("OS", 1 << 17),
    ("edge", 1 << 18),
    ("INT", 1 << 20),
    ("EN", 1 << 22),
    ("INV", 1 << 23),
    ("CMASK", 0xff << 24),
];
const INTEL_FIELDS: [(&str, u64); 9] = [
    ("pin control", 1 << 19),
    ("AnyThread", 1 << 21),
    ("IN_TX", 1 << 32),
    ("IN_TXCP", 1 << 33),
    ("adaptive PEBS record", 1 << 34),
    ("log in LBR", 1 << 35),
    ("EQ", 1 << 36),
    ("RDPMC_USR_DISABLE", 1 << 37),
    ("UMASK2", 0xff << 40),
];
const AMD_FIELDS: [(&str, u64); 3] =
    [("event (high bits)", 0xf << 32), ("guest only", 1 << 40), ("host only", 1 << 41)];

impl EventSelect {
    /// The register's value. Fields that the vendor does not have are left out.
    #[must_use]
    pub fn to_bits(&self, vendor: Vendor) -> u64 {
        let bit = |set: bool, at: u32| u64::from(set) << at;
        let common = u64::from(self.event & 0xff)
            | u64::from(self.umask) << 8
            | bit(self.user, 16)
            | bit(self.kernel, 17)
            | bit(self.edge, 18)
            | bit(self.interrupt, 20)
            | bit(self.enable, 22)
            | bit(self.invert, 23)
            | u64::from(self.cmask) << 24;
        common
            | match vendor {
                Vendor::Intel => {
                    bit(self.pin_control, 19)
                        | bit(self.any_thread, 21)
                        | bit(self.in_tx, 32)
                        | bit(self.in_tx_checkpointed, 33)
                        | bit(self.adaptive_record, 34)
                        | bit(self.log_in_branches, 35)
                        | bit(self.equal, 36)
                        | bit(self.rdpmc_user_disable, 37)
                        | u64::from(self.umask2) << 40
                }
                Vendor::Amd => {
                    u64::from(self.event >> 8 & 0xf) << 32
                        | bit(self.guest_only, 40)
                        | bit(self.host_only, 41)
                }
            }
    }

    /// Reads a register's value.
    ///
    /// # Errors
    /// [`ReservedBits`] if a bit is set that has no meaning in this vendor's register. Whether the
    /// processor at hand has the field is another question.
    pub fn from_bits(vendor: Vendor, value: u64) -> Result<Self, ReservedBits> {
        let known = match vendor {
            Vendor::Intel => INTEL_BITS,
            Vendor::Amd => AMD_BITS,
        };
        if value & !known != 0 {
            return Err(ReservedBits { value, bits: value & !known, vendor });
        }
        let bit = |at: u32| value >> at & 1 == 1;
        let byte = |at: u32| (value >> at) as u8;
        let mut select = Self {
            event: u16::from(byte(0)),
            umask: byte(8),
            user: bit(16),
            kernel: bit(17),
            edge: bit(18),
            interrupt: bit(20),
            enable: bit(22),
            invert: bit(23),
            cmask: byte(24),
            ..Self::default()
        };
        match vendor {
            Vendor::Intel => {
                select.pin_control = bit(19);
                select.any_thread = bit(21);
                select.in_tx = bit(32);
                select.in_tx_checkpointed = bit(33);
                select.adaptive_record = bit(34);
                select.log_in_branches = bit(35);
                select.equal = bit(36);
                select.rdpmc_user_disable = bit(37);
                select.umask2 = byte(40);
            }
            Vendor::Amd => {
                select.event |= u16::from(byte(32) & 0xf) << 8;
                select.guest_only = bit(40);
                select.host_only = bit(41);
            }
        }
        Ok(select)
    }

    /// The fields that `bits` of a register of this vendor are in, as the manuals call them, in
    /// rising order.
    pub fn fields(bits: u64, vendor: Vendor) -> impl Iterator<Item = &'static str> {
        let above = match vendor {
            Vendor::Intel => &INTEL_FIELDS[..],
            Vendor::Amd => &AMD_FIELDS[..],
        };
        let touched = move |(_, mask): &&(&str, u64)| bits & mask != 0;
        FIELDS.iter().chain(above).filter(touched).map(|(name, _)| *name)
    }

    /// Unit mask and UMASK2 as one number, as the tables have them.
    #[must_use]
    pub fn wide_umask(&self) -> u16 {
        u16::from(self.umask2) << 8 | u16::from(self.umask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_stand_where_the_manuals_put_them() {
        let inst_retired = EventSelect {
            event: 0xc0,
            user: true,
            kernel: true,
            enable: true,
            ..EventSelect::default()
        };
        assert_eq!(inst_retired.to_bits(Vendor::Intel), 0x4300c0);
        // The merge event of AMD's large increments, as the kernel writes it, with EN.
        let merge = EventSelect { event: 0xfff, enable: true, ..EventSelect::default() };
        assert_eq!(merge.to_bits(Vendor::Amd), 0xf_0040_00ff);
        // Conditional branches on Lion Cove: UMASK2 bit 0 is bit 40.
        let lion_cove = EventSelect::from_bits(Vendor::Intel, 0x100_0051_11c4).unwrap();
        assert_eq!((lion_cove.event, lion_cove.wide_umask()), (0xc4, 0x111));
        assert!(lion_cove.interrupt && lion_cove.user && !lion_cove.kernel);
    }

    #[test]
    fn reserved_bits_are_named() {
        let error = EventSelect::from_bits(Vendor::Amd, 1 << 21 | 0xc0).unwrap_err();
        assert_eq!(error.bits, 1 << 21);
        assert!(error.to_string().contains("0x200000"), "{error}");
        assert!(EventSelect::from_bits(Vendor::Intel, 1 << 63).is_err());
    }

    #[test]
    fn every_bit_has_one_field() {
        for (vendor, known) in [(Vendor::Intel, INTEL_BITS), (Vendor::Amd, AMD_BITS)] {
            for bit in 0..64 {
                let count = EventSelect::fields(1 << bit, vendor).count();
                assert_eq!(count, usize::from(known >> bit & 1 == 1), "{vendor} {bit}");
            }
        }
        let names: Vec<&str> = EventSelect::fields(3 << 40 | 1 << 20, Vendor::Amd).collect();
        assert_eq!(names, ["INT", "guest only", "host only"]);
    }

    proptest! {
        #[test]
        fn every_value_without_reserved_bits_comes_back(value in any::<u64>()) {
            for (vendor, known) in [(Vendor::Intel, INTEL_BITS), (Vendor::Amd, AMD_BITS)] {
                let select = EventSelect::from_bits(vendor, value & known).unwrap();
                prop_assert_eq!(select.to_bits(vendor), value & known);
                prop_assert_eq!(EventSelect::from_bits(vendor, value).is_ok(), value & !known == 0);
            }
        }
    }
}
