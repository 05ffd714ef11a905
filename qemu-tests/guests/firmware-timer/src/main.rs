//! Says after what time the firmware's timer interrupts, executes instructions meanwhile, and switches the machine off.
#![no_std]
#![no_main]

use core::arch::asm;
use uefi::prelude::{Status, entry};
use uefi::println;
use uefi::runtime::{ResetType, reset};

/// Instructions.
const LOOP: u64 = 1 << 28;

#[entry]
fn main() -> Status {
    match uefi_start::timer::period() {
        Some(period) => println!("firmware-timer: {period} units of 100 ns"),
        None => println!("firmware-timer: no timer"),
    }
    // SAFETY: two instructions, so many times; registers alone change.
    unsafe {
        asm!("2: dec {0}", "jnz 2b", inout(reg) LOOP / 2 => _, options(nomem, nostack));
    }
    reset(ResetType::SHUTDOWN, Status::SUCCESS, None)
}
