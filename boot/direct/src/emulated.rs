//! Starting the emulated PMU's hypervisor, if one came along: from then on the loader, and the kernel after it, run as
//! its guest.

use crate::memory::{Memory, Region};
use core::fmt::Write;
use core::slice;
use handover::{Entry, LAUNCH_VERSION, Launch, Refusal, image};
use uart_16550::{BaudRate, Config, Uart16550Tty};

/// More than any hypervisor here needs: a damaged file must not ask for all memory.
const MAX_BYTES: u64 = 64 << 20;

/// Loads the hypervisor's `file` into free memory from `from` on and starts it. Returns the memory that it keeps.
///
/// If it refuses, that is said on the serial line, and the guest boots without a PMU.
pub fn launch(
    file: &[u8],
    options: &str,
    rsdp: Option<u64>,
    from: u64,
    memory: &Memory,
) -> Option<Region> {
    match try_launch(file, options, rsdp, from, memory) {
        Ok(region) => Some(region),
        Err(refusal) => {
            say(refusal);
            None
        }
    }
}

fn try_launch(
    file: &[u8],
    options: &str,
    rsdp: Option<u64>,
    from: u64,
    memory: &Memory,
) -> Result<Region, Refusal> {
    let bytes = image::bytes_needed(file)?;
    let start = from.next_multiple_of(image::ALIGN);
    if bytes > MAX_BYTES || !memory.is_free(start, bytes) {
        return Err(Refusal::NoMemory);
    }
    // SAFETY: free memory behind everything that was loaded, mapped one to one.
    let place = unsafe { slice::from_raw_parts_mut(start as *mut u8, bytes as usize) };
    let entry = image::load(file, place, start)?;
    let launch = Launch {
        version: LAUNCH_VERSION,
        options: options.as_ptr(),
        options_len: options.len() as u64,
        rsdp: rsdp.unwrap_or(0),
    };
    // SAFETY: `load` put the program there; this is its entry point.
    let entry: Entry = unsafe { core::mem::transmute(entry) };
    match Refusal::from_code(entry(&raw const launch)) {
        None => Ok(Region::reserved(start, bytes.next_multiple_of(4096))),
        Some(refusal) => Err(refusal),
    }
}

fn say(refusal: Refusal) {
    let config = Config { baud_rate: BaudRate::Baud115200, ..Config::default() };
    // SAFETY: COM1's port; nothing else uses it before the kernel runs.
    if let Ok(mut uart) = unsafe { Uart16550Tty::new_port(0x3f8, config) } {
        let _ = writeln!(uart, "barecount: no emulated PMU: {refusal}");
    }
}
