//! Code whose instructions were counted by hand, and what a PMU says to it.
//!
//! Each case prints a line `case NAME SEEN EXPECTED`; the test in `qemu-tests` compares. The ramdisk's first word says
//! which group of cases is wanted: groups that take long are run by themselves.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

mod code;
mod counts;
mod debug;
mod halted;
mod handlers;
mod interrupted;
mod machine;
mod nested;
mod once;
mod overflow;
mod plugin;
mod pmu;
mod records;
mod refusals;
mod rings;
mod serial;
mod stepped;
mod storm;
mod strings;

use bootloader_api::config::Mapping;
use bootloader_api::{BootInfo, BootloaderConfig, entry_point};
use machine::exit;
use pmu::Unit;

static CONFIG: BootloaderConfig = {
    let mut config = BootloaderConfig::new_default();
    config.mappings.physical_memory = Some(Mapping::FixedAddress(machine::PHYSICAL));
    config.kernel_stack_size = 64 << 10;
    config
};

entry_point!(main, config = &CONFIG);

fn main(info: &'static mut BootInfo) -> ! {
    let group = info.ramdisk_addr.into_option().map_or("", |at| {
        let length = info.ramdisk_len as usize;
        // SAFETY: the boot loader put the ramdisk there.
        let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, length) };
        core::str::from_utf8(bytes).unwrap_or("").trim()
    });
    // SAFETY: called once, on the boot loader's stack and page tables.
    unsafe { machine::set_up() };
    if let Some(group) = group.strip_prefix("plugin.") {
        plugin::run(group);
        line!("end");
        exit(0x10)
    }
    if group == "given_up" {
        given_up();
        line!("end");
        exit(0x10)
    }
    let unit = Unit::find();
    line!("pmu {unit:?}");
    match group {
        "counts" => counts::run(&unit),
        "long" => counts::long(&unit),
        "strings" => strings::run(&unit),
        "rings" => rings::run(&unit),
        "overflow" => overflow::run(&unit),
        "many" => overflow::many(&unit),
        "some" => overflow::some(&unit),
        "storm" => storm::run(&unit),
        "once" => once::run(&unit),
        "halted" => halted::nmis(&unit),
        "halted_timer" => halted::timer(&unit),
        "interrupted" => interrupted::run(&unit),
        "stepped" => stepped::run(&unit),
        "debug" => debug::run(&unit),
        "records" => records::run(&unit),
        "refusals" => refusals::run(&unit),
        "nested" => nested::run(&unit),
        other => line!("no group {other}"),
    }
    line!("end");
    exit(0x10)
}

/// Registers that belong to more than the PMU are the processor's where there is no PMU after all.
fn given_up() {
    let (misc_enable, debugctl): (u32, u32) = (0x1a0, 0x1d9);
    let (before, flag) = (pmu::read(misc_enable), 1);
    case("misc_enable", before & flag, flag);
    pmu::write(misc_enable, before & !flag);
    case("misc_enable_written", pmu::read(misc_enable) & flag, 0);
    pmu::write(misc_enable, before);
    case("debugctl", pmu::read(debugctl), 0);
}

/// A result and what it should be.
pub fn case(name: &str, seen: u64, expected: u64) {
    line!("case {name} {seen} {expected}");
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    line!("panic {info}");
    exit(0x11)
}
