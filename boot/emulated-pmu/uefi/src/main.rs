//! The UEFI application: starts the hypervisor, then the next boot loader as its guest.
//!
//! Firmware starts it under the name of the boot loader whose place it took, or by a boot entry of its own. Whatever
//! happens to the hypervisor, the next boot loader is started: a machine on which no PMU can be emulated boots
//! without one, and is told why.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod application;

use application::{files, hypervisor, next};
use boot_entry::Entry;
use uefi::prelude::{Status, entry};
use uefi::println;

#[entry]
fn main() -> Status {
    let entry = files::read_entry().unwrap_or_else(|error| {
        println!("barecount: no emulated PMU: {error}");
        Entry::default()
    });
    let mut slowed = None;
    if let Some(options) = &entry.pmu {
        match hypervisor::start(&entry.hypervisor, options) {
            Ok(()) => {
                println!("barecount: emulated PMU: {options}");
                slowed = uefi_start::timer::slow();
            }
            Err(error) => println!("barecount: no emulated PMU: {error}"),
        }
    }
    // It returns only if it failed.
    let ended = next::start(&entry);
    drop(slowed);
    match ended {
        Ok(()) => Status::SUCCESS,
        Err(error) => {
            println!("barecount: {} does not start: {error}", entry.next);
            Status::LOAD_ERROR
        }
    }
}
