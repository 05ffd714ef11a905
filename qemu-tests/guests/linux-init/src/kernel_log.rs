//! What the kernel said of its PMU driver: syslog(2) needs no file system.

use crate::console::say;
use syscalls::{Sysno, syscall};

/// SYSLOG_ACTION_READ_ALL.
const READ_ALL: u32 = 3;
/// Room for the last part of the kernel's ring buffer. Debian's has 128 KiB; a boot fills about 30.
const BYTES: usize = 128 << 10;
/// Parts of the lines that matter: the driver's, those of what uses it, and complaints about time.
const PARTS: [&str; 12] = [
    "Performance Events",
    "PMU",
    "... ",
    "perf",
    "NMI watchdog",
    "interrupt took",
    "hrtimer",
    "unstable",
    "stall",
    "lockup",
    "clocksource",
    "irq loop",
];

/// What a line of a warning, or of worse, begins with: KERN_EMERG to KERN_WARNING.
const WARNINGS: [&str; 5] = ["<0>", "<1>", "<2>", "<3>", "<4>"];

fn read(buffer: &mut [u8; BYTES]) -> &str {
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let read = unsafe { syscall!(Sysno::syslog, READ_ALL, buffer.as_mut_ptr(), BYTES) };
    core::str::from_utf8(&buffer[..read.unwrap_or(0)]).unwrap_or_default()
}

/// Shows what it says of NMIs.
pub fn show_nmis() {
    let mut buffer = [0u8; BYTES];
    for line in read(&mut buffer).lines().filter(|line| line.contains("NMI ")) {
        say!("nmi: {line}");
    }
}

/// Shows them.
pub fn show() {
    // Far below the 8 MiB that the kernel gives a program's stack.
    let mut buffer = [0u8; BYTES];
    let text = read(&mut buffer);
    for line in text.lines().filter(|line| PARTS.iter().any(|part| line.contains(part))) {
        say!("dmesg: {line}");
    }
    for line in text.lines().filter(|line| WARNINGS.iter().any(|level| line.starts_with(level))) {
        say!("warning: {line}");
    }
}
