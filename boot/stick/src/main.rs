//! The UEFI application that starts first, from the stick or over the network: saves and sends the report of the run before, if
//! there is one, and shows it; else makes room for the report of the run that comes, and starts the next boot loader.
//!
//! Whatever goes wrong, the reason is said. A machine on which nothing can be saved measures all the same.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod application;

use application::{Next, home, next, run, volume};
use stick::settings::Settings;
use uefi::prelude::{Status, entry};
use uefi::println;

#[entry]
fn main() -> Status {
    let home = match home::find() {
        Ok(home) => home,
        Err(error) => {
            println!("barecount: nothing can be started: {error}");
            return Status::LOAD_ERROR;
        }
    };
    let settings = volume::settings(home).unwrap_or_else(|error| {
        println!("barecount: nothing is saved: {error}");
        Settings::default()
    });
    let is_kept = settings.save || settings.upload.is_some();
    if is_kept && run(home, &settings) == Next::Leave {
        // What is not a success makes the firmware continue with its next boot option (UEFI specification 3.1.1).
        return Status::NOT_FOUND;
    }
    // It returns only if it failed.
    match next::start(home, &settings.next) {
        Ok(()) => Status::SUCCESS,
        Err(error) => {
            println!("barecount: {} does not start: {error}", settings.next);
            Status::LOAD_ERROR
        }
    }
}
