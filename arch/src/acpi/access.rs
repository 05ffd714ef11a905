//! How the `acpi` crate reaches memory, ports and PCI configuration space.

use super::root;
use crate::memory::layout;
use crate::pci;
use acpi::sdt::SdtHeader;
use acpi::{AcpiTables, Handler, PciAddress, PhysicalMapping};
use core::ptr::NonNull;
use x86_64::instructions::port::{Port, PortRead, PortWrite};

/// Memory through the map of physical memory, registers through ports.
#[derive(Clone, Copy)]
pub struct Access;

/// The tables that start at `rsdp`; `None` if that is no root pointer or leads to none. The library takes whatever is at address 0
/// for a list of tables, and one that is shorter than its header for one without an end.
///
/// # Safety
/// As for [`super::Platform::read`].
pub(super) unsafe fn tables(rsdp: u64) -> Option<AcpiTables<Access>> {
    // SAFETY: the caller promises a root pointer there; more bytes than an old one has are memory all the same.
    let rsdp = unsafe { virtual_address::<[u8; root::RSDP_BYTES]>(rsdp as usize).read() };
    let (revision, list) = root::list(&rsdp)?;
    // SAFETY: the root pointer says that a table lies there, and physical memory is mapped.
    unsafe {
        let header = virtual_address::<SdtHeader>(list as usize).read_unaligned();
        let is_whole = header.length as usize >= size_of::<SdtHeader>();
        is_whole.then(|| AcpiTables::from_rsdt(Access, revision, list as usize).ok()).flatten()
    }
}

fn port_read<T: PortRead>(port: u16) -> T {
    // SAFETY: only the tables' own code names ports, and it runs in ring 0 as the vendor meant it to.
    unsafe { Port::new(port).read() }
}

fn port_write<T: PortWrite>(port: u16, value: T) {
    // SAFETY: as above.
    unsafe { Port::new(port).write(value) }
}

fn virtual_address<T>(physical: usize) -> *mut T {
    (layout::PHYSICAL as usize + physical) as *mut T
}

fn memory_read<T>(address: usize) -> T {
    // SAFETY: the tables name addresses of memory or device registers below the end of the map.
    unsafe { virtual_address::<T>(address).read_volatile() }
}

fn memory_write<T>(address: usize, value: T) {
    // SAFETY: as above.
    unsafe { virtual_address::<T>(address).write_volatile(value) }
}

/// Selects a register; returns the port where it is read and written.
fn select_pci(address: PciAddress, offset: u16) -> u16 {
    let (bus, device, function) = (address.bus(), address.device(), address.function());
    port_write(pci::ADDRESS_PORT, pci::Function { bus, device, function }.select(offset));
    pci::DATA_PORT + (offset & 3)
}

impl Handler for Access {
    unsafe fn map_physical_region<T>(
        &self,
        physical_start: usize,
        region_length: usize,
    ) -> PhysicalMapping<Self, T> {
        PhysicalMapping {
            physical_start,
            virtual_start: NonNull::new(virtual_address(physical_start)).expect("not address 0"),
            region_length,
            mapped_length: region_length,
            handler: *self,
        }
    }

    fn unmap_physical_region<T>(_: &PhysicalMapping<Self, T>) {}

    fn read_u8(&self, address: usize) -> u8 {
        memory_read(address)
    }
    fn read_u16(&self, address: usize) -> u16 {
        memory_read(address)
    }
    fn read_u32(&self, address: usize) -> u32 {
        memory_read(address)
    }
    fn read_u64(&self, address: usize) -> u64 {
        memory_read(address)
    }
    fn write_u8(&self, address: usize, value: u8) {
        memory_write(address, value);
    }
    fn write_u16(&self, address: usize, value: u16) {
        memory_write(address, value);
    }
    fn write_u32(&self, address: usize, value: u32) {
        memory_write(address, value);
    }
    fn write_u64(&self, address: usize, value: u64) {
        memory_write(address, value);
    }

    fn read_io_u8(&self, port: u16) -> u8 {
        port_read(port)
    }
    fn read_io_u16(&self, port: u16) -> u16 {
        port_read(port)
    }
    fn read_io_u32(&self, port: u16) -> u32 {
        port_read(port)
    }
    fn write_io_u8(&self, port: u16, value: u8) {
        port_write(port, value);
    }
    fn write_io_u16(&self, port: u16, value: u16) {
        port_write(port, value);
    }
    fn write_io_u32(&self, port: u16, value: u32) {
        port_write(port, value);
    }

    fn read_pci_u8(&self, address: PciAddress, offset: u16) -> u8 {
        port_read(select_pci(address, offset))
    }
    fn read_pci_u16(&self, address: PciAddress, offset: u16) -> u16 {
        port_read(select_pci(address, offset))
    }
    fn read_pci_u32(&self, address: PciAddress, offset: u16) -> u32 {
        port_read(select_pci(address, offset))
    }
    fn write_pci_u8(&self, address: PciAddress, offset: u16, value: u8) {
        port_write(select_pci(address, offset), value);
    }
    fn write_pci_u16(&self, address: PciAddress, offset: u16, value: u16) {
        port_write(select_pci(address, offset), value);
    }
    fn write_pci_u32(&self, address: PciAddress, offset: u16, value: u32) {
        port_write(select_pci(address, offset), value);
    }

    fn nanos_since_boot(&self) -> u64 {
        crate::time::tsc::now()
    }

    /// Waits by port 0x80, whose write takes about a microsecond on PC chipsets.
    fn stall(&self, microseconds: u64) {
        for _ in 0..microseconds {
            port_write(0x80, 0u8);
        }
    }

    fn sleep(&self, milliseconds: u64) {
        self.stall(milliseconds * 1000);
    }
}
