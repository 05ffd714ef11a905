//! Events that hold on every processor of a vendor, without any table.
//!
//! Intel: the eight of CPUID.0AH:EBX, available where bit i is clear (SDM 3B, "Pre-defined
//! Architectural Performance Events"). AMD promises none, but the four of Linux'
//! `amd_perfmon_event_map` have had the same numbers from family 0Fh on.

use crate::cpu::Vendor;
use crate::event::Way;
use crate::processor::Processor;

/// An architectural event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architectural {
    /// Bit in CPUID.0AH:EBX.
    pub index: u8,
    /// The manual's name, shortened.
    pub name: &'static str,
    /// Event of a general-purpose counter.
    pub event: u16,
    /// Its unit mask.
    pub umask: u16,
    /// Fixed counter that counts it as well.
    pub fixed: Option<u8>,
    /// Whether the general-purpose form counts the very same. Reference cycles do not: event
    /// 3CH/01H ticks at another rate than fixed counter 2 on many parts.
    pub same_on_both: bool,
    /// AMD's code for the same, if there is one.
    pub amd: Option<u16>,
}

impl Architectural {
    const fn new(index: u8, name: &'static str, event: u16, umask: u16) -> Self {
        Self { index, name, event, umask, fixed: None, same_on_both: false, amd: None }
    }

    const fn on_fixed(mut self, fixed: u8, same_on_both: bool) -> Self {
        self.fixed = Some(fixed);
        self.same_on_both = same_on_both;
        self
    }

    const fn on_amd(mut self, event: u16) -> Self {
        self.amd = Some(event);
        self
    }

    /// Whether this processor counts it.
    #[must_use]
    pub fn is_available(&self, processor: &Processor) -> bool {
        match processor.vendor {
            Vendor::Intel => processor.architectural_events >> self.index & 1 == 1,
            Vendor::Amd => self.amd.is_some(),
        }
    }

    /// Whether Intel's code means it on this processor.
    #[must_use]
    pub fn is_coded(&self, processor: &Processor) -> bool {
        processor.vendor == Vendor::Intel && processor.coded_events >> self.index & 1 == 1
    }

    /// The code for a general-purpose counter.
    #[must_use]
    pub fn way(&self, vendor: Vendor) -> Way {
        let (event, umask) = match (vendor, self.amd) {
            (Vendor::Amd, Some(event)) => (event, 0),
            _ => (self.event, self.umask),
        };
        Way { event, umask, msr: None }
    }
}

/// All, by their bit in CPUID.0AH:EBX.
pub const ALL: [Architectural; 8] = [
    Architectural::new(0, "core cycles", 0x3c, 0x00).on_fixed(1, true).on_amd(0x76),
    Architectural::new(1, "instructions retired", 0xc0, 0x00).on_fixed(0, true).on_amd(0xc0),
    Architectural::new(2, "reference cycles", 0x3c, 0x01).on_fixed(2, false),
    Architectural::new(3, "LLC references", 0x2e, 0x4f),
    Architectural::new(4, "LLC misses", 0x2e, 0x41),
    Architectural::new(5, "branches retired", 0xc4, 0x00).on_amd(0xc2),
    Architectural::new(6, "branch misses retired", 0xc5, 0x00).on_amd(0xc3),
    Architectural::new(7, "topdown slots", 0xa4, 0x01).on_fixed(3, true),
];

/// The architectural event with this code, on Intel.
#[must_use]
pub fn by_code(event: u16, umask: u16) -> Option<&'static Architectural> {
    ALL.iter().find(|a| a.event == event && a.umask == umask)
}

/// The architectural event that this fixed counter counts.
#[must_use]
pub fn by_fixed(fixed: u8) -> Option<&'static Architectural> {
    ALL.iter().find(|a| a.fixed == Some(fixed))
}
