//! Runs the programs of its ramdisk one after the other, each from the same state of registers, memory, caches and TLBs, and
//! tells on the serial line what the PMU counted, where it interrupted, and what became of registers and memory.
//!
//! The ramdisk's form, and where all lies, is the crate `program-format`; what the lines say, `report`.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod apic;
mod counting;
mod descriptors;
mod handlers;
mod heap;
mod memory;
mod pmi;
mod processor;
mod report;
mod run;

use bootloader_api::config::Mapping;
use bootloader_api::{BootInfo, BootloaderConfig, entry_point};
use program_format::decode;
use x86_64::instructions::port::Port;

static CONFIG: BootloaderConfig = {
    let mut config = BootloaderConfig::new_default();
    config.mappings.physical_memory = Some(Mapping::FixedAddress(memory::PHYSICAL));
    config.kernel_stack_size = 64 << 10;
    config
};

entry_point!(main, config = &CONFIG);

fn main(info: &'static mut BootInfo) -> ! {
    // SAFETY: called once, on the boot loader's stack and page tables, in whose map of all physical memory the pool is.
    let memory = unsafe {
        processor::set_up();
        descriptors::set_up();
        memory::Memory::set_up(&info.memory_regions)
    };
    line!("pool {:#x}", memory.pool());
    let mut rest = match info.ramdisk_addr.into_option() {
        // SAFETY: the boot loader put the ramdisk there.
        Some(at) => unsafe {
            core::slice::from_raw_parts(at as *const u8, info.ramdisk_len as usize)
        },
        None => &[],
    };
    let mut number = 0;
    while let Some((program, behind)) =
        decode(rest).unwrap_or_else(|error| panic!("program {number}: {error}"))
    {
        memory.reset(&program);
        let seen = run::run(&program);
        report::program(number, &program, &seen, &memory);
        (number, rest) = (number + 1, behind);
    }
    line!("end {number}");
    exit(0x10)
}

/// Ends QEMU, by the exit device that the test attaches.
fn exit(code: u32) -> ! {
    loop {
        // SAFETY: nothing but the exit device has this port.
        unsafe { Port::<u32>::new(0xf4).write(code) };
        x86_64::instructions::hlt();
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    line!("panic {info}");
    exit(0x11)
}
