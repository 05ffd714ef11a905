//! Finding ACPI's root pointer the BIOS way: ACPI specification, 5.2.5.1.

use acpi::rsdp::Rsdp;
use acpi::{Handler, PciAddress, PhysicalMapping};
use core::ptr::NonNull;

/// Physical address of the root pointer, if there is one.
pub fn find() -> Option<u64> {
    // SAFETY: the areas that are searched lie in the first MiB, which is mapped one to one.
    let found = unsafe { Rsdp::search_for_on_bios(Identity) }.ok()?;
    Some(found.physical_start as u64)
}

/// Physical addresses are virtual ones. The search needs no more than that.
#[derive(Clone)]
struct Identity;

macro_rules! unused {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $(fn $name(&self, $(_: $argument),*) $(-> $result)? {
            unreachable!("the search for the root pointer only maps memory")
        })*
    };
}

impl Handler for Identity {
    unsafe fn map_physical_region<T>(
        &self,
        physical_start: usize,
        region_length: usize,
    ) -> PhysicalMapping<Self, T> {
        PhysicalMapping {
            physical_start,
            virtual_start: NonNull::new(physical_start as *mut T).expect("not address 0"),
            region_length,
            mapped_length: region_length,
            handler: self.clone(),
        }
    }

    fn unmap_physical_region<T>(_: &PhysicalMapping<Self, T>) {}

    unused! {
        read_u8(usize) -> u8;
        read_u16(usize) -> u16;
        read_u32(usize) -> u32;
        read_u64(usize) -> u64;
        write_u8(usize, u8);
        write_u16(usize, u16);
        write_u32(usize, u32);
        write_u64(usize, u64);
        read_io_u8(u16) -> u8;
        read_io_u16(u16) -> u16;
        read_io_u32(u16) -> u32;
        write_io_u8(u16, u8);
        write_io_u16(u16, u16);
        write_io_u32(u16, u32);
        read_pci_u8(PciAddress, u16) -> u8;
        read_pci_u16(PciAddress, u16) -> u16;
        read_pci_u32(PciAddress, u16) -> u32;
        write_pci_u8(PciAddress, u16, u8);
        write_pci_u16(PciAddress, u16, u16);
        write_pci_u32(PciAddress, u16, u32);
        nanos_since_boot() -> u64;
        stall(u64);
        sleep(u64);
    }
}
