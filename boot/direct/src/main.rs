//! A multiboot loader for the kernel: no firmware call, no disk.
//!
//! `qemu -kernel direct.bin -initrd kernel,ramdisk`, GRUB (`multiboot`, `module`, `module`) and iPXE start
//! it in 32-bit protected mode ([`entry`]) with the kernel's ELF file as the first module and the ramdisk
//! as the second. A third one, with `pmu=MODEL` on the command line, is the emulated PMU's hypervisor. It enters long mode, and hands both to the same code that the `bootloader` crate's loaders use,
//! so that the kernel sees the same `BootInfo`.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

mod emulated;
mod entry;
mod failure;
mod memory;
mod modules;
mod rsdp;
mod screen;
mod unpack;

use bootloader_boot_config::BootConfig;
use bootloader_x86_64_common::legacy_memory_region::LegacyFrameAllocator;
use bootloader_x86_64_common::{Kernel, SystemInfo, load_and_switch_to_kernel};
use x86_64::PhysAddr;
use x86_64::structures::paging::PhysFrame;

/// Called by [`entry`] in long mode, the first 4 GiB mapped one to one.
extern "sysv64" fn main(magic: u32, information: u32) -> ! {
    assert!(magic == multiboot::information::SIGNATURE_EAX, "not started by a multiboot loader");
    let mut access = modules::Access;
    // SAFETY: the loader says that this is its information structure; all of it is below 4 GiB.
    let information =
        unsafe { multiboot::information::Multiboot::from_ptr(u64::from(information), &mut access) };
    let information = information.expect("the multiboot information cannot be read");
    let modules = modules::find(&information);
    let rsdp = rsdp::find();
    let mut memory = memory::Memory::read(&information);
    let framebuffer = screen::find(&information);
    let mut first_free = modules.end();
    if let Some(file) = modules.hypervisor {
        let options = information.command_line().unwrap_or("");
        first_free = emulated::launch(file.bytes(), options, rsdp, first_free, &mut memory);
    }
    // From here on the loader's information may be overwritten: nothing says where it lies.
    let kernel = unpack::unpack(modules.kernel, &mut first_free, &memory);
    let first_free = PhysFrame::containing_address(PhysAddr::new(first_free));
    let mut frames = LegacyFrameAllocator::new_starting_at(first_free, memory.leak());
    let page_tables = memory::page_tables(&mut frames);
    let system = SystemInfo {
        framebuffer,
        rsdp_addr: rsdp.map(PhysAddr::new),
        ramdisk_addr: modules.ramdisk.map(|module| module.start),
        ramdisk_len: modules.ramdisk.map_or(0, |module| module.len()),
    };
    let kernel = Kernel::parse(kernel.bytes());
    load_and_switch_to_kernel(kernel, BootConfig::default(), frames, page_tables, system)
}
