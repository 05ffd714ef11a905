//! Starting the direct loader: Multiboot 0.6.96, 3.2 and 3.3.

use super::files::Files;
use super::screen;
use bios::video::Mode;
use multiboot::information::{
    MemoryEntry, MemoryManagement, Module, Multiboot, MultibootInfo, PAddr,
};

unsafe extern "sysv64" {
    /// Leaves long mode and enters a multiboot program.
    fn start_multiboot(entry: u32, information: u32) -> !;
}

/// Memory for the list of modules: two of 16 bytes.
#[repr(align(8))]
struct List([u8; 32]);

impl MemoryManagement for List {
    unsafe fn paddr_to_slice(&self, _: PAddr, _: usize) -> Option<&'static [u8]> {
        None
    }

    unsafe fn allocate(&mut self, bytes: usize) -> Option<(PAddr, &mut [u8])> {
        let at = self.0.as_ptr() as PAddr;
        Some((at, self.0.get_mut(..bytes)?))
    }

    unsafe fn deallocate(&mut self, _: PAddr) {}
}

/// Starts it with what was loaded, and with `mode` as its screen.
pub fn start(files: &Files, regions: &[MemoryEntry], mode: Option<Mode>) -> ! {
    // On the stack, which nobody overwrites before the direct loader has read all of it.
    let (mut list, mut information) = (List([0; 32]), MultibootInfo::default());
    let module =
        |file: super::files::Loaded| Module { start: file.start, end: file.end, string: None };
    let kernel = module(files.kernel);
    {
        let mut multiboot = Multiboot::from_ref(&mut information, &mut list);
        match files.ramdisk.map(module) {
            Some(ramdisk) => multiboot.set_modules(Some(&[kernel, ramdisk])),
            None => multiboot.set_modules(Some(&[kernel])),
        }
        multiboot.set_memory_regions(Some((regions.as_ptr() as PAddr, regions.len())));
        multiboot.set_framebuffer_table(mode.as_ref().map(screen::table));
    }
    // SAFETY: the direct loader is at its address, and all of what it is told is true.
    unsafe { start_multiboot(files.entry, (&raw const information) as u32) }
}
