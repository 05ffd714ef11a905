//! What the multiboot loader put into memory: kernel and ramdisk.

use crate::entry;
use core::slice;
use multiboot::information::{MemoryManagement, Multiboot, PAddr};

/// Reaches the information structure: physical addresses are virtual ones here.
pub struct Access;

impl MemoryManagement for Access {
    unsafe fn paddr_to_slice(&self, address: PAddr, size: usize) -> Option<&'static [u8]> {
        // SAFETY: the caller, the parser, follows the pointers that the multiboot loader left.
        (address != 0).then(|| unsafe { slice::from_raw_parts(address as *const u8, size) })
    }

    unsafe fn allocate(&mut self, _: usize) -> Option<(PAddr, &mut [u8])> {
        None
    }

    unsafe fn deallocate(&mut self, _: PAddr) {}
}

/// A file in memory.
#[derive(Clone, Copy)]
pub struct Module {
    /// Physical address of the first byte.
    pub start: u64,
    /// The address behind the last.
    pub end: u64,
}

impl Module {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Its content.
    pub fn bytes(&self) -> &'static [u8] {
        // SAFETY: the multiboot loader put the file there, and the frame allocator starts after it.
        unsafe { slice::from_raw_parts(self.start as *const u8, self.len() as usize) }
    }
}

/// The files.
pub struct Modules {
    /// The kernel's ELF file.
    pub kernel: Module,
    /// The job, if a second file came along.
    pub ramdisk: Option<Module>,
    /// The emulated PMU's hypervisor, if a third one did.
    pub hypervisor: Option<Module>,
}

/// Reads the list of modules.
pub fn find(information: &Multiboot) -> Modules {
    let modules = information.modules().into_iter().flatten();
    let mut files = modules.map(|m| Module { start: m.start, end: m.end });
    // An empty file counts as none, but keeps its place.
    let mut next = || files.next().filter(|module| module.len() > 0);
    let kernel = next().expect("no module: the first one has to be the kernel");
    Modules { kernel, ramdisk: next(), hypervisor: next() }
}

impl Modules {
    /// The first address after the loader and all files.
    pub fn end(&self) -> u64 {
        let files = [Some(self.kernel), self.ramdisk, self.hypervisor];
        let end = files.into_iter().flatten().map(|module| module.end).max().unwrap_or(0);
        entry::end().max(end).next_multiple_of(4096)
    }
}
