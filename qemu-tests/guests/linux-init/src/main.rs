//! The first and only program of a Linux system in memory: asks the kernel's perf driver for instruction counts of
//! code whose length is known, tells them on the console, and switches the machine off.
//!
//! Each count is one line, `perf: NAME: instructions:u = COUNTED expected EXPECTED`, with other events in the place of
//! instructions where these are meant (`count: `), and each sampled run one as well (`sampled: `). What the kernel itself
//! said of the PMU comes before and after, each line with `dmesg: ` in front. On several processors it counts on each
//! ([`processors`]) instead.
//!
//! The program is freestanding: there is no C library on the system, and one would execute instructions that nobody
//! has counted.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

mod console;
mod counted;
mod kernel_log;
mod perf;
mod processors;
mod runs;
mod samples;

use console::say;
use core::ffi::CStr;
use core::panic::PanicInfo;
use perf::{Counter, Event, How};
use syscalls::{Errno, Sysno, syscall};

/// Iterations of the counted loops, two instructions each.
const LOOPS: [u64; 3] = [1_000, 1_000_000, 50_000_000];

/// Counted in ring 3 alone.
const USER: How = How { user: true, on_exec: false, period: 0, frequency: 0, precise: 0 };

/// Called by [`counted::_start`] if this is the first program.
extern "sysv64" fn main() -> ! {
    kernel_log::show();
    match processors::count() {
        0 | 1 => one_processor(),
        count => {
            processors::all(count);
            kernel_log::show();
            processors::backtraces();
            power_off()
        }
    }
    kernel_log::show();
    power_off()
}

fn one_processor() {
    for iterations in LOOPS {
        tell("loop", own_region(iterations), counted::region_instructions(iterations));
    }
    tell("program", another_program(), counted::PROGRAM_INSTRUCTIONS);
    runs::all();
}

/// Makes the folder and mounts a file system of this kind there.
fn mounted(folder: &CStr, kind: &CStr) -> Result<(), Errno> {
    let (folder, kind) = (folder.as_ptr(), kind.as_ptr());
    // SAFETY: texts that end with a null byte.
    unsafe {
        let _ = syscall!(Sysno::mkdir, folder, 0o755);
        syscall!(Sysno::mount, folder, folder, kind, 0, 0)?;
    }
    Ok(())
}

/// Writes `text` to a file that is there.
fn write_file(file: &CStr, text: &CStr) -> Result<(), Errno> {
    const WRITE_ONLY: u32 = 1;
    // SAFETY: texts that end with a null byte.
    unsafe {
        let opened = syscall!(Sysno::open, file.as_ptr(), WRITE_ONLY)?;
        syscall!(Sysno::write, opened, text.as_ptr(), text.count_bytes())?;
    }
    Ok(())
}

fn tell(name: &str, counted: Result<u64, Errno>, expected: u64) {
    match counted {
        Ok(counted) => say!("perf: {name}: instructions:u = {counted} expected {expected}"),
        Err(error) => say!("perf: {name}: {error}"),
    }
}

/// A region of this program, between the system calls that switch the counter on and off.
fn own_region(iterations: u64) -> Result<u64, Errno> {
    let counter = Counter::of_this_task(Event::INSTRUCTIONS, USER)?;
    counted::region(counter.descriptor(), iterations);
    counter.read()
}

/// A whole program, as `perf stat` does it: the counter starts when the child executes the program.
fn another_program() -> Result<u64, Errno> {
    let [count] = runs::program(counted::PROGRAM_NAME, [Event::INSTRUCTIONS], USER)?;
    Ok(count)
}

/// reboot(2): two magic numbers, then the command.
fn power_off() -> ! {
    const MAGIC: (u32, u32) = (0xfee1_dead, 0x2812_1969);
    const POWER_OFF: u32 = 0x4321_fedc;
    console::drain();
    loop {
        // SAFETY: nothing is mounted and no file is open that could be lost.
        let _ = unsafe { syscall!(Sysno::reboot, MAGIC.0, MAGIC.1, POWER_OFF, 0) };
    }
}

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    say!("{info}");
    power_off()
}
