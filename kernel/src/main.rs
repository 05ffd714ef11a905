//! The bootable program.
//!
//! A boot loader (`boot/direct` or `boot/uefi-loader`) enters [`start`] with
//! its `BootInfo`; nothing here can tell which one it was. In order: memory and an address space of our
//! own, interrupts, the report, the machine's identity, the job, the end.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod firmware;

use alloc::vec::Vec;
use arch::memory::{Handover, Space, layout};
use bootloader_api::config::Mapping;
use bootloader_api::{BootInfo, BootloaderConfig, entry_point};
use firmware::{boot, crash, display, finish, heap, output, probe, saved, stacks, target};
use protocol::job::{Conformance, Item, Job, OnEnd};
use protocol::ktap::Ktap;
use protocol::ramdisk::{self, SectionKind};
use protocol::serial::SerialPorts;

/// What the boot loader is asked for: everything at the places of `arch::memory::layout`. The image is linked for its
/// own (see `build.rs`).
static CONFIG: BootloaderConfig = {
    let mut config = BootloaderConfig::new_default();
    config.kernel_stack_size = stacks::STACK_BYTES;
    config.mappings.kernel_stack = Mapping::FixedAddress(layout::BOOT_STACK);
    config.mappings.boot_info = Mapping::FixedAddress(layout::BOOT_INFO);
    config.mappings.framebuffer = Mapping::FixedAddress(layout::SCREEN);
    config.mappings.ramdisk_memory = Mapping::FixedAddress(layout::RAMDISK);
    config.mappings.page_table_recursive = Some(Mapping::FixedAddress(layout::RECURSIVE));
    config
};

entry_point!(start, config = &CONFIG);

/// On the boot loader's stack and page tables: build our own of both, and move over.
fn start(info: &'static mut BootInfo) -> ! {
    // SAFETY: the configuration above asks the boot loader for the recursive entry.
    let mut old = unsafe { Handover::new() };
    let mut handed = boot::Handed::take(info, &old);
    let pool = old.map_pool(&mut handed.frames);
    let (mut pool, window) = pool.unwrap_or_else(|error| panic!("no page tables: {error}"));
    let giant_pages = arch::cpu::features::has_giant_pages(&arch::cpu::native());
    let physical = |address| old.physical(address);
    // SAFETY: `map_pool` mapped the pool after the window.
    let space = unsafe { Space::build(&mut pool, window, &handed.mapped, giant_pages, physical) };
    let mut space = space.unwrap_or_else(|error| panic!("no address space: {error}"));
    let stacks = stacks::map(&mut space, &mut pool, &mut handed.frames)
        .unwrap_or_else(|error| panic!("no stacks: {error}"));
    stacks::enter(stacks, boot::Ready { handed, space }, main)
}

/// On our own stack and page tables.
fn main(ready: boot::Ready) -> ! {
    crash::arm();
    arch::interrupts::stray::set_judge(step::can_raise);
    let boot::Ready { mut handed, mut space } = ready;
    output::set_key(handed.key);
    handed.find_near();
    heap::init(&mut handed.frames);
    handed.map_screen(&mut space);
    display::Display::keep(&handed);
    saved::open(&mut handed, &mut space);
    let job = handed.ramdisk.map_or_else(|| Ok(bring_up()), ramdisk::unpack);
    let terms = finish::Terms::of(job.as_ref().ok());
    finish::agree(terms);
    let section = |kind| ramdisk::section(handed.ramdisk?, kind).ok().flatten();
    let ports = SerialPorts::unpack(section(SectionKind::SerialPorts));
    let items = job.as_ref().map_or(0, |job| job.items.len() as u32);
    let ktap = section(SectionKind::Ktap).map(|_| Ktap::new(items));
    let baud = job.as_ref().map_or(output::DEFAULT_BAUD, |job| job.baud);
    let mut report = output::open(ports, baud, ktap);
    output::start(&mut report, handed.entered);
    let is_bring_up = |item: &Item| matches!(item, Item::BringUp(_));
    let brings_up = job.as_ref().is_ok_and(|job| job.items.iter().any(is_bring_up));
    crash::early_self_test(job.as_ref().ok().and_then(|job| job.self_test));
    let machine = probe::machine(&mut handed, &mut space, &mut report, brings_up);
    let end = match job {
        Ok(mut job) => {
            crash::self_test(job.self_test);
            kernel::run::core_kinds::find(&mut job.items, &machine.kinds);
            target::run(&job, &machine, handed, space, &mut report)
        }
        Err(error) => target::no_job(&error, &machine, &mut report),
    };
    machine.release();
    finish::finish(end, &mut report, &machine)
}

/// What is done on a machine that was given nothing to do.
fn bring_up() -> Job<'static> {
    let suite = Conformance { name: "bring-up".into(), checks: Vec::new() };
    Job {
        name: "bring-up".into(),
        baud: output::DEFAULT_BAUD,
        on_end: OnEnd::Halt,
        exit_port: None,
        self_test: None,
        requires: Vec::new(),
        items: Vec::from([Item::BringUp(suite)]),
        criteria: Vec::new(),
        memory: Vec::new(),
    }
}
