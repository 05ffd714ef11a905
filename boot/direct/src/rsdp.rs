//! Finding ACPI's root pointer the BIOS way: ACPI specification, 5.2.5.1.

use core::ptr::NonNull;
use rsdp::Rsdp;
use rsdp::handler::{AcpiHandler, PhysicalMapping};

/// Physical address of the root pointer, if there is one.
pub fn find() -> Option<u64> {
    // SAFETY: the areas that are searched are in the first MiB, which is mapped one to one.
    let found = unsafe { Rsdp::search_for_on_bios(Identity) }.ok()?;
    Some(found.physical_start() as u64)
}

/// Physical addresses are virtual ones.
#[derive(Clone)]
struct Identity;

impl AcpiHandler for Identity {
    unsafe fn map_physical_region<T>(
        &self,
        physical_start: usize,
        bytes: usize,
    ) -> PhysicalMapping<Self, T> {
        let at = NonNull::new(physical_start as *mut T).expect("not address 0");
        // SAFETY: everything below 4 GiB is mapped, for as long as the loader runs.
        unsafe { PhysicalMapping::new(physical_start, at, bytes, bytes, self.clone()) }
    }

    fn unmap_physical_region<T>(_: &PhysicalMapping<Self, T>) {}
}
