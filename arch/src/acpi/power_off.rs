//! Switching the machine off: ACPI specification, 7.4.2.5 and 4.8.3.2.
//!
//! The value for the sleep register is in the DSDT as the package `\_S5`. It is looked up in the table's
//! bytes, not by running the table's code: an interpreter would double the size of the firmware, and with
//! it the time that a BIOS takes to load it, and the package is a constant on practically every machine.

use super::access::tables;
use super::sleep::{Ports, Registers};
use super::sleep_type;
use acpi::address::{AddressSpace, GenericAddress};
use acpi::sdt::SdtHeader;
use acpi::sdt::fadt::Fadt;
use alloc::format;
use alloc::string::String;
use thiserror::Error;
use x86_64::instructions::port::Port;

/// Why the machine stays on.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Error {
    /// The boot loader found no ACPI tables.
    #[error("the machine has no ACPI tables")]
    NoTables,
    /// A table is missing or broken.
    #[error("the ACPI tables cannot be used: {0}")]
    Tables(String),
    /// There is no constant \_S5 package with the value for the sleep register.
    #[error("the ACPI tables do not describe how to switch off (no constant \\_S5)")]
    NoSleepType,
    /// The sleep register is not an I/O port.
    #[error("the sleep control register is not an I/O port")]
    NoPort,
    /// Everything was done, and the machine still runs.
    #[error("the machine did not react to its sleep register")]
    NoEffect,
}

/// # Safety
/// As for [`super::Platform::power_off`].
pub unsafe fn power_off(rsdp: u64) -> Result<(), Error> {
    let broken = |error| Error::Tables(format!("{error:?}"));
    // SAFETY: passed on.
    let tables = unsafe { tables(rsdp) }.ok_or(Error::NoTables)?;
    let fadt = tables.find_table::<Fadt>().ok_or(Error::NoTables)?;
    let port_a = port(fadt.pm1a_control_block().map_err(broken)?)?;
    let port_b = fadt.pm1b_control_block().map_err(broken)?.map(port).transpose()?;
    let dsdt = fadt.dsdt_address().map_err(broken)? as u64;
    // SAFETY: the FADT says that the DSDT lies there.
    let types = sleep_type::find(unsafe { code(dsdt) }).ok_or(Error::NoSleepType)?;
    let status = |block: Option<GenericAddress>| block.and_then(|block| port(block).ok());
    let registers = Registers {
        control: [Some((port_a, types[0])), port_b.map(|port| (port, types[1]))],
        status: [
            status(fadt.pm1a_event_block().ok()),
            status(fadt.pm1b_event_block().ok().flatten()),
        ],
        acpi_mode: acpi_mode(fadt.smi_cmd_port, fadt.acpi_enable),
    };
    registers.sleep(&mut Machine);
    Err(Error::NoEffect)
}

fn port(block: GenericAddress) -> Result<u16, Error> {
    let port = u16::try_from(block.address).ok();
    port.filter(|_| block.address_space == AddressSpace::SystemIo).ok_or(Error::NoPort)
}

/// The AML code of a table.
///
/// # Safety
/// `table` must be the physical address of one.
unsafe fn code(table: u64) -> &'static [u8] {
    let at = crate::memory::layout::PHYSICAL + table;
    // SAFETY: the caller's promise; physical memory is mapped.
    unsafe {
        let header = &*(at as *const SdtHeader);
        let bytes = (header.length as usize).saturating_sub(size_of::<SdtHeader>());
        core::slice::from_raw_parts((at as *const u8).add(size_of::<SdtHeader>()), bytes)
    }
}

/// Port and command that switch to ACPI mode; zeros: it is always on.
fn acpi_mode(port: u32, command: u8) -> Option<(u16, u8)> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    (command != 0).then_some((port, command))
}

/// The ports of this machine.
struct Machine;

impl Ports for Machine {
    fn read(&mut self, port: u16) -> u16 {
        // SAFETY: the ports are the FADT's; the machine goes off, which is what the caller of `power_off` asked for.
        unsafe { Port::new(port).read() }
    }

    fn write(&mut self, port: u16, value: u16) {
        // SAFETY: as above.
        unsafe { Port::new(port).write(value) }
    }

    fn command(&mut self, port: u16, value: u8) {
        // SAFETY: as above.
        unsafe { Port::new(port).write(value) }
    }

    fn pause(&mut self) {
        crate::power::delay();
    }
}
