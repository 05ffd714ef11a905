//! Starting the emulated PMU's hypervisor, if one came along: from then on the loader, and the kernel after it, run as
//! its guest.

use crate::memory::{Memory, Region};
use core::ptr::null_mut;
use core::slice;
use handover::startup::{END, PAGE_SHIFT};
use handover::{Entry, LAUNCH_VERSION, Launch, MAX_PROCESSORS, Refusal, Startup, image};

/// More than any hypervisor here needs: a damaged file must not request all memory.
const MAX_BYTES: u64 = 64 << 20;

/// Loads the hypervisor's `file` into free memory from `from` on, a copy for each processor, and starts it. Takes the memory that
/// it keeps out of `memory`, and returns where the rest begins.
///
/// If it refuses, that is said on the serial line, and the guest boots without a PMU.
pub fn launch(
    file: &[u8],
    options: &str,
    rsdp: Option<u64>,
    from: u64,
    memory: &mut Memory,
) -> u64 {
    match try_launch(file, options, rsdp, from, memory) {
        Ok(kept) => {
            let end = kept[0].end();
            kept.into_iter().for_each(|region| memory.reserve(region));
            end
        }
        Err(refusal) => {
            say(refusal);
            from
        }
    }
}

fn try_launch(
    file: &[u8],
    options: &str,
    rsdp: Option<u64>,
    from: u64,
    memory: &Memory,
) -> Result<[Region; 2], Refusal> {
    let each = image::bytes_needed(file)?.next_multiple_of(image::ALIGN);
    let cpus = cpus(options);
    let arguments = each * cpus as u64;
    let bytes = arguments + ARGUMENTS_BYTES;
    let start = from.next_multiple_of(image::ALIGN);
    if each > MAX_BYTES || options.len() > MAX_OPTIONS || !memory.is_free(start, bytes) {
        return Err(Refusal::NoMemory);
    }
    let page = memory.last_page_below(END).ok_or(Refusal::NoMemory)?;
    // QEMU numbers the cores of one socket, which is what `-smp N` makes, from 0 on.
    let apic_ids: [u64; MAX_PROCESSORS] = core::array::from_fn(|processor| processor as u64);
    let startup = Startup::new(page, &apic_ids[..cpus]).ok_or(Refusal::NoMemory)?;
    // SAFETY: free memory after everything that was loaded, mapped one to one.
    let place = unsafe { slice::from_raw_parts_mut(start as *mut u8, bytes as usize) };
    let (images, arguments) = place.split_at_mut(arguments as usize);
    // The copies for other processors are started when this loader is long gone, so what they read is kept with them.
    let arguments = arguments.as_mut_ptr().cast::<StartArguments>();
    let mut line = [0; MAX_OPTIONS];
    line[..options.len()].copy_from_slice(options.as_bytes());
    // SAFETY: a page's multiple of the memory above, large enough, used for nothing else.
    let (line, startup) = unsafe {
        (&raw mut (*arguments).options).write(line);
        (&raw mut (*arguments).startup).write(startup);
        ((&raw const (*arguments).options).cast(), &raw mut (*arguments).startup)
    };
    let launch = |processor: usize| Launch {
        version: LAUNCH_VERSION,
        options: line,
        options_len: options.len() as u64,
        rsdp: rsdp.unwrap_or(0),
        processor: processor as u64,
        startup: if cpus > 1 { startup } else { null_mut() },
    };
    // The first comes last: it makes this program its guest.
    for (processor, image) in images.chunks_exact_mut(each as usize).enumerate().rev() {
        let entry = image::load(file, image, start + each * processor as u64)?;
        // SAFETY: within the array.
        let launched = unsafe {
            let place = &raw mut (*arguments).launches[processor];
            place.write(launch(processor));
            place.cast_const()
        };
        // SAFETY: `load` put the program there; this is its entry point.
        let entry: Entry = unsafe { core::mem::transmute(entry) };
        Refusal::from_code(entry(launched)).map_or(Ok(()), Err)?;
    }
    Ok([Region::reserved(start, bytes), Region::reserved(page, 1 << PAGE_SHIFT)])
}

/// What the copies of the hypervisor are started with.
#[repr(C)]
struct StartArguments {
    launches: [Launch; MAX_PROCESSORS],
    startup: Startup,
    options: [u8; MAX_OPTIONS],
}

/// Longest command line.
const MAX_OPTIONS: usize = 4096;
/// Memory for [`StartArguments`].
const ARGUMENTS_BYTES: u64 = 16 << 10;
const _: () = assert!(size_of::<StartArguments>() as u64 <= ARGUMENTS_BYTES);

/// The number in the word `cpus=N`. The hypervisor refuses what makes no sense.
fn cpus(options: &str) -> usize {
    let words = options.split_ascii_whitespace().rev();
    let count = words.filter_map(|word| word.strip_prefix("cpus=")).next();
    count.and_then(|count| count.parse().ok()).unwrap_or(1).clamp(1, MAX_PROCESSORS)
}

fn say(refusal: Refusal) {
    // SAFETY: nothing else uses COM1 before the kernel runs.
    unsafe { loader_serial::say(format_args!("barecount: no emulated PMU: {refusal}\n")) };
}
