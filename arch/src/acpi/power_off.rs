//! Switching the machine off: ACPI specification, 7.4.2.5 and 4.8.3.2.

use super::Access;
use acpi::address::AddressSpace;
use acpi::aml::Interpreter;
use acpi::aml::object::Object;
use acpi::platform::AcpiPlatform;
use acpi::sdt::fadt::Fadt;
use acpi::{AcpiTables, aml::namespace::AmlName};
use alloc::format;
use alloc::string::String;
use core::str::FromStr;
use thiserror::Error;
use x86_64::instructions::port::Port;

/// Why the machine stays on.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum Error {
    /// The boot loader found no ACPI tables.
    #[error("the machine has no ACPI tables")]
    NoTables,
    /// A table is missing or broken, or its code does something that the interpreter does not know.
    #[error("the ACPI tables cannot be used: {0}")]
    Tables(String),
    /// There is no \_S5 package with the value for the sleep register.
    #[error("the ACPI tables do not say how to switch off (no \\_S5)")]
    NoSleepType,
    /// The sleep register is not an I/O port.
    #[error("the sleep control register is not an I/O port")]
    NoPort,
    /// Everything was done, and the machine still runs.
    #[error("the machine did not react to its sleep register")]
    NoEffect,
}

/// SLP_EN and the position of SLP_TYP in PM1_CNT.
const SLEEP_ENABLE: u16 = 1 << 13;
const SLEEP_TYPE_SHIFT: u64 = 10;

/// # Safety
/// As for [`super::Platform::power_off`].
pub unsafe fn power_off(rsdp: u64) -> Result<(), Error> {
    let broken = |error| Error::Tables(format!("{error:?}"));
    // SAFETY: passed on.
    let tables = unsafe { AcpiTables::from_rsdp(Access, rsdp as usize) }.map_err(broken)?;
    let (port_a, port_b) = {
        let fadt = tables.find_table::<Fadt>().ok_or(Error::NoTables)?;
        let io = |block: acpi::address::GenericAddress| {
            let port = u16::try_from(block.address).ok();
            port.filter(|_| block.address_space == AddressSpace::SystemIo)
                .ok_or(Error::NoPort)
        };
        let second = fadt.pm1b_control_block().map_err(broken)?;
        (
            io(fadt.pm1a_control_block().map_err(broken)?)?,
            second.map(io).transpose()?,
        )
    };
    let platform = AcpiPlatform::new(tables, Access).map_err(broken)?;
    let interpreter = Interpreter::new_from_platform(&platform).map_err(broken)?;
    let name = AmlName::from_str("\\_S5").map_err(|error| Error::Tables(format!("{error:?}")))?;
    let package = interpreter
        .evaluate(name, alloc::vec![])
        .map_err(|_| Error::NoSleepType)?;
    let Object::Package(elements) = &*package else {
        return Err(Error::NoSleepType);
    };
    let sleep_type = |index: usize| match elements.get(index).map(|element| &**element) {
        Some(Object::Integer(value)) => Ok((value & 7) << SLEEP_TYPE_SHIFT),
        _ => Err(Error::NoSleepType),
    };
    let values = (sleep_type(0)?, sleep_type(1).unwrap_or_default());
    // SAFETY: the ports are the FADT's; the machine goes off, which is what the caller asked for.
    unsafe {
        write(port_a, values.0);
        if let Some(port) = port_b {
            write(port, values.1);
        }
    }
    Access::wait();
    Err(Error::NoEffect)
}

/// # Safety
/// `port` must be a PM1 control register.
unsafe fn write(port: u16, sleep_type: u64) {
    const SLEEP_TYPE_MASK: u16 = 7 << SLEEP_TYPE_SHIFT;
    let mut port = Port::<u16>::new(port);
    // SAFETY: passed on.
    unsafe {
        let kept = port.read() & !SLEEP_TYPE_MASK & !SLEEP_ENABLE;
        port.write(kept | sleep_type as u16 | SLEEP_ENABLE);
    }
}

impl Access {
    /// Gives the chipset a second to act.
    fn wait() {
        use acpi::Handler;
        Access.sleep(1000);
    }
}
