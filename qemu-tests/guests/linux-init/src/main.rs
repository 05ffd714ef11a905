//! The first and only program of a Linux system in memory: asks the kernel's perf driver for instruction counts of
//! code whose length is known, tells them on the console, and switches the machine off.
//!
//! Each count is one line, `perf: NAME: instructions:u = COUNTED expected EXPECTED`. What the kernel itself said of the
//! PMU comes before, each line with `dmesg: ` in front.
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

use console::say;
use core::panic::PanicInfo;
use perf::Counter;
use syscalls::{Errno, Sysno, syscall};

/// Iterations of the counted loops, two instructions each.
const LOOPS: [u64; 3] = [1_000, 1_000_000, 50_000_000];

/// Called by [`counted::_start`] if this is the first program.
extern "sysv64" fn main() -> ! {
    kernel_log::show();
    for iterations in LOOPS {
        tell("loop", own_region(iterations), counted::region_instructions(iterations));
    }
    tell("program", another_program(), counted::PROGRAM_INSTRUCTIONS);
    power_off()
}

fn tell(name: &str, counted: Result<u64, Errno>, expected: u64) {
    match counted {
        Ok(counted) => say!("perf: {name}: instructions:u = {counted} expected {expected}"),
        Err(error) => say!("perf: {name}: {error}"),
    }
}

/// A region of this program, between the system calls that switch the counter on and off.
fn own_region(iterations: u64) -> Result<u64, Errno> {
    let counter = Counter::of_this_task()?;
    counted::region(counter.descriptor(), iterations);
    counter.read()
}

/// A whole program, as `perf stat` does it: the counter starts when the child executes the program.
fn another_program() -> Result<u64, Errno> {
    let (mut pipe, mut status) = ([0i32; 2], 0i32);
    // SAFETY: the kernel writes two descriptors.
    unsafe { syscall!(Sysno::pipe2, &raw mut pipe, 0) }?;
    // SAFETY: this program has one thread, and the child does no more than wait and execute another.
    let child = unsafe { syscall!(Sysno::fork) }?;
    if child == 0 {
        start_counted_program(pipe[0]);
    }
    let counter = Counter::of_program_in(child)?;
    // SAFETY: reads one byte; the child waits for it.
    unsafe { syscall!(Sysno::write, pipe[1], c"x".as_ptr(), 1) }?;
    // SAFETY: the kernel writes a status.
    unsafe { syscall!(Sysno::wait4, child, &raw mut status, 0, 0) }?;
    if status == 0 { counter.read() } else { Err(Errno::ECHILD) }
}

/// In the child: waits until the counter is there.
fn start_counted_program(pipe: i32) -> ! {
    let mut byte = 0u8;
    let arguments = [counted::PROGRAM_NAME.as_ptr(), core::ptr::null()];
    // SAFETY: reads one byte into a variable; the argument list ends with a null pointer. Neither call's failure needs
    // handling beyond the status with which the child ends.
    unsafe {
        let _ = syscall!(Sysno::read, pipe, &raw mut byte, 1);
        let _ = syscall!(Sysno::execve, c"/init".as_ptr(), arguments.as_ptr(), 0);
        let _ = syscall!(Sysno::exit, 1);
    }
    unreachable!("exit does not return")
}

/// reboot(2): two magic numbers, then the command.
fn power_off() -> ! {
    const MAGIC: (u32, u32) = (0xfee1_dead, 0x2812_1969);
    const POWER_OFF: u32 = 0x4321_fedc;
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
