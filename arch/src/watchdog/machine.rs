//! The machine's own watchdog, which resets it: described by ACPI's table for it ([`wdat`]), or the TCO timer of Intel's chipsets
//! ([`tco`]).

pub mod tco;
pub mod wdat;

use crate::memory::layout;
use x86_64::instructions::port::Port;

/// How registers are reached.
pub trait Access {
    /// Reads `bytes` (1, 2 or 4) at an I/O port, or at a physical address.
    fn read(&mut self, is_port: bool, address: u64, bytes: u8) -> u32;
    /// Writes as many.
    fn write(&mut self, is_port: bool, address: u64, bytes: u8, value: u32);
}

/// The machine.
#[derive(Debug)]
pub struct Hardware {
    _private: (),
}

impl Access for Hardware {
    fn read(&mut self, is_port: bool, address: u64, bytes: u8) -> u32 {
        let (port, at) = (address as u16, layout::PHYSICAL + address);
        // SAFETY: the maker of this value promised that the registers are the watchdog's.
        unsafe {
            match (is_port, bytes) {
                (true, 1) => Port::<u8>::new(port).read().into(),
                (true, 2) => Port::<u16>::new(port).read().into(),
                (true, _) => Port::<u32>::new(port).read(),
                (false, 1) => (at as *const u8).read_volatile().into(),
                (false, 2) => (at as *const u16).read_volatile().into(),
                (false, _) => (at as *const u32).read_volatile(),
            }
        }
    }

    fn write(&mut self, is_port: bool, address: u64, bytes: u8, value: u32) {
        let (port, at) = (address as u16, layout::PHYSICAL + address);
        // SAFETY: as for reading.
        unsafe {
            match (is_port, bytes) {
                (true, 1) => Port::<u8>::new(port).write(value as u8),
                (true, 2) => Port::<u16>::new(port).write(value as u16),
                (true, _) => Port::<u32>::new(port).write(value),
                (false, 1) => (at as *mut u8).write_volatile(value as u8),
                (false, 2) => (at as *mut u16).write_volatile(value as u16),
                (false, _) => (at as *mut u32).write_volatile(value),
            }
        }
    }
}

/// Which one there is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// That of ACPI's table.
    Wdat(wdat::Wdat),
    /// Intel's.
    Tco(tco::Tco),
}

/// A watchdog that resets the machine.
#[derive(Debug)]
pub struct Watchdog<A> {
    kind: Kind,
    access: A,
}

impl Watchdog<Hardware> {
    /// The machine's: what its table says, else the chipset's. `table`: ACPI's, if there is one.
    ///
    /// # Safety
    /// Ring 0, physical memory mapped; nobody else uses it, nor PCI configuration space meanwhile.
    #[must_use]
    pub unsafe fn find(table: Option<&[u8]>) -> Option<Self> {
        let mut access = Hardware { _private: () };
        let described = table.and_then(wdat::Wdat::read).filter(|wdat| wdat.works(&mut access));
        let described = described.map(Kind::Wdat);
        let kind = described.or_else(|| tco::Tco::find(&mut access).map(Kind::Tco))?;
        Some(Self { kind, access })
    }
}

impl<A: Access> Watchdog<A> {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Wdat(_) => "the watchdog of ACPI's WDAT",
            Kind::Tco(_) => "the TCO timer",
        }
    }

    /// Resets the machine in so many milliseconds, or as near to it as it can, unless it is armed again before. `false`: it does not
    /// take that.
    pub fn arm(&mut self, ms: u64) -> bool {
        match &self.kind {
            Kind::Wdat(wdat) => wdat.arm(&mut self.access, ms),
            Kind::Tco(tco) => tco.arm(&mut self.access, ms),
        }
    }

    /// Begins the same time again.
    pub fn reload(&mut self) {
        match &self.kind {
            Kind::Wdat(wdat) => wdat.reload(&mut self.access),
            Kind::Tco(tco) => tco.reload(&mut self.access),
        }
    }

    /// Resets nothing any more.
    pub fn stop(&mut self) {
        match &self.kind {
            Kind::Wdat(wdat) => wdat.stop(&mut self.access),
            Kind::Tco(tco) => tco.stop(&mut self.access),
        }
    }
}
