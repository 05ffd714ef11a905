//! A compressed kernel, as GRUB or iPXE may have loaded it from an image's files. `qemu -kernel` loads a plain one.

use crate::failure;
use crate::memory::Memory;
use crate::modules::Module;
use compressed_kernel::KernelFile;
use core::slice;

/// Everything that is used is mapped one to one below it.
const END: u64 = 4 << 30;

/// Unpacks `kernel` to `first_free`, which goes behind it then, if it is compressed.
pub fn unpack(kernel: Module, first_free: &mut u64, memory: &Memory) -> Module {
    let file = KernelFile::parse(kernel.bytes()).unwrap_or_else(|error| failure::stop(error));
    let KernelFile::Compressed(compressed) = file else { return kernel };
    let (from, bytes) = (*first_free, compressed.bytes());
    let start = memory.first_free(from, bytes as u64, END);
    let start = start.unwrap_or_else(|| {
        panic!("no memory to unpack the kernel: {bytes} bytes from {from:#x} on")
    });
    let end = start + bytes as u64;
    // SAFETY: usable memory after everything that was loaded, mapped one to one.
    let to = unsafe { slice::from_raw_parts_mut(start as *mut u8, bytes) };
    compressed.unpack(to).unwrap_or_else(|error| failure::stop(error));
    *first_free = end.next_multiple_of(4096);
    Module { start, end }
}
