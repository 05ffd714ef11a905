//! Switches five-level paging on, as firmware of some machines does, and starts `\EFI\BOOT\NEXT.EFI`.
#![no_std]
#![no_main]

use uefi::prelude::{Status, entry};
use uefi::{cstr16, println};
use uefi_start::levels::{self, Switch};

#[entry]
fn main() -> Status {
    if let Err(error) = run() {
        println!("five-levels: {error}");
    }
    Status::LOAD_ERROR
}

fn run() -> Result<(), uefi_start::StartError> {
    match Switch::prepare() {
        // SAFETY: applications run in ring 0 with memory mapped one to one; the test's processor has five levels.
        Ok(switch) => unsafe { switch.to_five() },
        Err(error) => println!("five-levels: {error}"),
    }
    println!("five-levels: CR4.LA57 is {}", u8::from(levels::is_on()));
    let next = uefi_start::load(uefi_start::own_device()?, cstr16!("\\EFI\\BOOT\\NEXT.EFI"))?;
    uefi_start::start(next)
}
