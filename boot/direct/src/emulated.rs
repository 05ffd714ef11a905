//! Starting the emulated PMU's hypervisor, if one came along: from then on the loader, and the kernel after it, run as
//! its guest.

use crate::memory::{Memory, Region};
use core::fmt::Write;
use core::ptr::{null, null_mut};
use core::slice;
use handover::{Entry, LAUNCH_VERSION, Launch, MAX_PROCESSORS, Other, Refusal, image};
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
    let each = image::bytes_needed(file)?.next_multiple_of(image::ALIGN);
    let cpus = cpus(options);
    let papers = each * cpus as u64;
    let bytes = papers + PAPERS_BYTES;
    let start = from.next_multiple_of(image::ALIGN);
    if each > MAX_BYTES || options.len() > MAX_OPTIONS || !memory.is_free(start, bytes) {
        return Err(Refusal::NoMemory);
    }
    // SAFETY: free memory behind everything that was loaded, mapped one to one.
    let place = unsafe { slice::from_raw_parts_mut(start as *mut u8, bytes as usize) };
    let (images, papers) = place.split_at_mut(papers as usize);
    // The copies for other processors are started when this loader is long gone, so what they read is kept with them.
    let papers = papers.as_mut_ptr().cast::<Papers>();
    // SAFETY: a page's multiple of the memory above, large enough, used for nothing else.
    let papers = unsafe {
        papers.write(Papers::EMPTY);
        &mut *papers
    };
    papers.options[..options.len()].copy_from_slice(options.as_bytes());
    let (line, others) = (papers.options.as_ptr(), papers.others.as_ptr());
    let launch = |processor: usize| Launch {
        version: LAUNCH_VERSION,
        options: line,
        options_len: options.len() as u64,
        // The tables are changed once.
        rsdp: if processor == 0 { rsdp.unwrap_or(0) } else { 0 },
        processor: processor as u64,
        others,
        others_len: if processor == 0 { cpus as u64 - 1 } else { 0 },
        // The kernel takes the others to their copies.
        startup: null_mut(),
    };
    let mut first = 0;
    for (processor, image) in images.chunks_exact_mut(each as usize).enumerate() {
        let entry = image::load(file, image, start + each * processor as u64)?;
        papers.launches[processor] = launch(processor);
        match processor.checked_sub(1) {
            None => first = entry,
            Some(index) => {
                let launch = (&raw const papers.launches[processor]) as u64;
                papers.others[index] = Other { entry, launch };
            }
        }
    }
    // SAFETY: `load` put the program there; this is its entry point.
    let entry: Entry = unsafe { core::mem::transmute(first) };
    match Refusal::from_code(entry(&raw const papers.launches[0])) {
        None => Ok(Region::reserved(start, bytes)),
        Some(refusal) => Err(refusal),
    }
}

/// What the copies of the hypervisor are started with.
#[repr(C)]
struct Papers {
    launches: [Launch; MAX_PROCESSORS],
    others: [Other; MAX_PROCESSORS],
    options: [u8; MAX_OPTIONS],
}

impl Papers {
    const EMPTY: Self = {
        let launch = Launch {
            version: 0,
            options: null(),
            options_len: 0,
            rsdp: 0,
            processor: 0,
            others: null(),
            others_len: 0,
            startup: null_mut(),
        };
        Self {
            launches: [launch; MAX_PROCESSORS],
            others: [Other { entry: 0, launch: 0 }; MAX_PROCESSORS],
            options: [0; MAX_OPTIONS],
        }
    };
}

/// Longest command line.
const MAX_OPTIONS: usize = 4096;
/// Memory for [`Papers`].
const PAPERS_BYTES: u64 = 16 << 10;
const _: () = assert!(size_of::<Papers>() as u64 <= PAPERS_BYTES);

/// The number in the word `cpus=N`. The hypervisor refuses what makes no sense.
fn cpus(options: &str) -> usize {
    let words = options.split_ascii_whitespace().rev();
    let count = words.filter_map(|word| word.strip_prefix("cpus=")).next();
    count.and_then(|count| count.parse().ok()).unwrap_or(1).clamp(1, MAX_PROCESSORS)
}

fn say(refusal: Refusal) {
    let config = Config { baud_rate: BaudRate::Baud115200, ..Config::default() };
    // SAFETY: COM1's port; nothing else uses it before the kernel runs.
    if let Ok(mut uart) = unsafe { Uart16550Tty::new_port(0x3f8, config) } {
        let _ = writeln!(uart, "barecount: no emulated PMU: {refusal}");
    }
}
