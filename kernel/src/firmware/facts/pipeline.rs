//! What the core is: the machine that runs the programs which tell it.

use super::super::counters::Counters;
use super::super::reset;
use super::timed::{self, Clock};
use alloc::string::{String, ToString};
use arch::cpu;
use arch::memory::space::CODE;
use arch::memory::{Frames, Region, Space, layout};
use arch::msr::{self, Msr};
use arch::time::tsc;
use facts::pipeline::code::{self, Emitted, Program};
use facts::pipeline::{self, CodeProbe};
use protocol::record::PipelineFacts;
use raw_cpuid::CpuIdReader as _;
use x86_64::VirtAddr;

/// Bytes for the programs: five jumps fit at distances up to 64 KiB.
const BYTES: u32 = 512 << 10;
/// Where they run: behind the memory of the largest sheet.
const AT: u64 = layout::HIGH_REQUESTED.start + (3 << 37);

/// Measures; `guest`: a hypervisor is beneath that is not barecount's.
///
/// # Errors
/// There is no memory for the programs, or it cannot be mapped.
pub fn measure(
    (space, frames): (&mut Space, &mut Frames),
    (counters, clock, second): (&mut Counters, Clock, u64),
    guest: bool,
) -> Result<PipelineFacts, String> {
    let bytes = u64::from(BYTES);
    let memory = frames.allocate(bytes, bytes).map_err(|error| error.to_string())?;
    let mapped = space.map_range(frames, VirtAddr::new(AT), memory, bytes, CODE);
    let measured = mapped.map_err(|error| error.to_string()).map(|()| {
        let view = layout::PHYSICAL + memory.as_u64();
        pipeline::measure(&mut Programs { counters, clock, view, second, guest })
    });
    space.remove(&(AT..AT + bytes), frames);
    // SAFETY: ring 0.
    unsafe { arch::memory::cache::flush_tlb() };
    let start = memory.as_u64();
    frames.free(Region { start, end: start + bytes });
    measured
}

/// The machine, with memory for programs.
struct Programs<'a> {
    counters: &'a mut Counters,
    clock: Clock,
    /// Where the memory can be written; it runs at [`AT`].
    view: u64,
    /// Ticks of the TSC in a second.
    second: u64,
    /// A hypervisor is beneath that is not barecount's.
    guest: bool,
}

impl CodeProbe for Programs<'_> {
    fn bytes(&self) -> u32 {
        BYTES
    }

    fn cycles(&mut self, program: &Program<'_>, tries: u32) -> u64 {
        let Emitted { pieces, entry, before } = code::emit(program, BYTES);
        for (at, bytes) in pieces {
            debug_assert!(at as usize + bytes.len() <= BYTES as usize);
            let to = (self.view + u64::from(at)) as *mut u8;
            // SAFETY: within the memory, which nobody else has; none of it runs now.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        let Counters { registers, driver, .. } = &mut *self.counters;
        let mut once = || {
            // Code that was written through other addresses is fetched anew behind an instruction that serialises (SDM vol. 3,
            // 9.1.3).
            core::hint::black_box(cpu::native().cpuid2(0, 0));
            if let Some(driver) = driver.as_mut() {
                let _ = driver.start(registers);
            }
            // SAFETY: ring 0, interrupts off; the code was just written.
            let cycles = unsafe {
                timed::call(
                    self.clock,
                    before.map(|before| AT + u64::from(before)),
                    AT + u64::from(entry),
                    self.view + u64::from(code::data(BYTES)),
                )
            };
            if let Some(driver) = driver.as_mut() {
                let _ = driver.stop(registers);
            }
            cycles
        };
        (0..tries).map(|_| once()).min().unwrap_or(0)
    }

    fn has_avx(&self) -> bool {
        // OSXSAVE and AVX: the firmware has enabled all that XCR0 can name.
        const BOTH: u32 = 1 << 27 | 1 << 28;
        cpu::native().cpuid1(1).ecx & BOTH == BOTH
    }

    fn splits_locks(&self) -> bool {
        // MSR_TEST_CTRL, bit 29: split locks raise #AC. A hypervisor that detects them may stop its guest.
        const TEST_CTRL: Msr = Msr(0x33);
        // SAFETY: ring 0; reading it has no effect.
        let detects = unsafe { msr::try_read(TEST_CTRL) }.is_ok_and(|value| value & 1 << 29 != 0);
        !self.guest && !detects
    }

    fn counts_core_cycles(&self) -> bool {
        self.clock != Clock::Tsc
    }

    fn beat(&mut self) {
        reset::reload(tsc::now(), self.second);
    }
}
