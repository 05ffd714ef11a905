//! What the firmware needs of the tables.

use super::access::{Access, tables};
use super::domains::Near;
use super::power_off;
use super::processors::{self, Listed};
use super::remapping;
use super::reset::Reset;
use super::root::leads_to_table;
use super::serial;
use crate::memory::layout;
use crate::pci::segments::Segment;
use crate::time::PmTimer;
use crate::uart::Place;
use acpi::AcpiTables;
use acpi::address::AddressSpace;
use acpi::sdt::fadt::Fadt;
use acpi::sdt::{SdtHeader, Signature};
use alloc::vec::Vec;

/// What the firmware needs of the tables, read once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Platform {
    /// Physical address of the root pointer.
    rsdp: Option<u64>,
    /// The power management timer.
    pub pm_timer: Option<PmTimer>,
    /// The register that resets the machine.
    pub reset: Option<Reset>,
    /// The processors that the MADT lists, in its order; empty without one.
    pub processors: Vec<Listed>,
    /// The console's serial port.
    pub console: Option<Place>,
    /// The debuggers' serial ports.
    pub debug: Vec<Place>,
    /// Where PCI configuration space is in memory; empty without an MCFG.
    pub segments: Vec<Segment>,
    /// Whether the machine's firmware asks that x2APIC mode stays off.
    pub opts_out_of_x2apic: bool,
}

impl Platform {
    /// Reads the tables that start at `rsdp`. Broken ones count as absent.
    ///
    /// # Safety
    /// `rsdp` must be the physical address of an RSDP, and physical memory mapped at
    /// [`crate::memory::layout::PHYSICAL`].
    #[must_use]
    pub unsafe fn read(rsdp: u64) -> Self {
        let nothing = Self { rsdp: Some(rsdp), ..Self::default() };
        // SAFETY: passed on.
        let Some(tables) = (unsafe { tables(rsdp) }) else {
            return nothing;
        };
        let nothing = nothing.with_bytes(&tables);
        let Some(fadt) = tables.find_table::<Fadt>() else {
            return nothing;
        };
        Self { pm_timer: pm_timer(&fadt), ..nothing }
    }

    /// Adds what is read from the tables' bytes.
    fn with_bytes(mut self, tables: &AcpiTables<Access>) -> Self {
        for (address, header) in tables.table_headers() {
            if !leads_to_table(address, header.length) {
                continue;
            }
            let length = header.length as usize;
            let at = (layout::PHYSICAL as usize + address) as *const u8;
            // SAFETY: the tables say that one of this length lies there, and physical memory is mapped.
            let bytes = || unsafe { core::slice::from_raw_parts(at, length) };
            match header.signature {
                Signature::SPCR => self.console = serial::console(bytes()),
                Signature::DBG2 => self.debug = serial::debug(bytes()),
                Signature::MCFG => self.segments = Segment::listed(bytes()),
                Signature::FADT => self.reset = Reset::read(bytes()),
                // The first, if there are several, as for the library's own search.
                Signature::MADT if self.processors.is_empty() => {
                    self.processors = processors::of_madt(bytes());
                }
                Signature::DMAR => self.opts_out_of_x2apic = remapping::opts_out_of_x2apic(bytes()),
                _ => {}
            }
        }
        self
    }

    /// What each table is, in their order, given to `each`: where it lies, and its bytes, which begin with the header.
    ///
    /// # Safety
    /// As for [`Platform::read`].
    pub unsafe fn each_table(&self, mut each: impl FnMut(usize, &[u8])) {
        let Some(rsdp) = self.rsdp else { return };
        // SAFETY: passed on.
        let Some(tables) = (unsafe { tables(rsdp) }) else { return };
        for (address, header) in tables.table_headers() {
            if !leads_to_table(address, header.length) {
                continue;
            }
            let at = (layout::PHYSICAL as usize + address) as *const u8;
            // SAFETY: the tables say that one of this length lies there, and physical memory is mapped.
            each(address, unsafe { core::slice::from_raw_parts(at, header.length as usize) });
        }
    }

    /// Physical address of the HPET, if a table names one in memory.
    ///
    /// # Safety
    /// As for [`Platform::read`].
    #[must_use]
    pub unsafe fn hpet(&self) -> Option<u64> {
        let mut found = None;
        // SAFETY: passed on.
        unsafe {
            self.each_table(|_, table| {
                // IA-PC HPET specification 1.0a, 3.2.4: the address's space, then the address.
                if let ([b'H', b'P', b'E', b'T', ..], Some(0), Some(at)) =
                    (table, table.get(40), table.get(44..52))
                {
                    found = Some(u64::from_le_bytes(at.try_into().expect("8")));
                }
            });
        }
        found
    }

    /// Whether the local APICs are to stay in xAPIC mode if they are in it: the machine's firmware asks for it, and that mode reaches
    /// all that are listed.
    #[must_use]
    pub fn keeps_xapic(&self) -> bool {
        self.opts_out_of_x2apic && self.processors.iter().all(|one| one.apic_id < 0xff)
    }

    /// Switches the machine off. Returns only if that fails.
    ///
    /// # Errors
    /// Says which step failed.
    ///
    /// # Safety
    /// As for [`Platform::read`]; nothing that still runs may need the machine.
    pub unsafe fn power_off(&self) -> Result<(), power_off::Error> {
        let rsdp = self.rsdp.ok_or(power_off::Error::NoTables)?;
        // SAFETY: passed on.
        unsafe { power_off::power_off(rsdp) }
    }
}

/// What memory is near to the processor with that APIC id, by the tables that start at `rsdp`. Takes no memory.
///
/// # Safety
/// As for [`Platform::read`].
#[must_use]
pub unsafe fn near(rsdp: u64, apic_id: u32) -> Option<Near> {
    // SAFETY: passed on.
    let tables = unsafe { tables(rsdp) }?;
    let is_srat = |(address, header): &(usize, SdtHeader)| {
        header.signature == Signature::SRAT && leads_to_table(*address, header.length)
    };
    let (address, header) = tables.table_headers().find(is_srat)?;
    let at = (layout::PHYSICAL as usize + address) as *const u8;
    // SAFETY: the tables say that one of this length lies there, and physical memory is mapped.
    Near::read(unsafe { core::slice::from_raw_parts(at, header.length as usize) }, apic_id)
}

fn pm_timer(fadt: &Fadt) -> Option<PmTimer> {
    let block = fadt.pm_timer_block().ok()??;
    if block.address_space != AddressSpace::SystemIo {
        return None;
    }
    let flags = fadt.flags;
    Some(PmTimer { port: u16::try_from(block.address).ok()?, wide: flags.pm_timer_is_32_bit() })
}
