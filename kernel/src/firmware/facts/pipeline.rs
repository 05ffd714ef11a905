//! What the core is: the machine that runs the programs which tell it.

use super::super::counters::Counters;
use super::super::reset;
use super::timed::{self, Clock};
use alloc::string::{String, ToString};
use arch::cpu;
use arch::memory::space::CODE;
use arch::memory::{Frames, Region, Space, layout};
use arch::msr::{self, Msr};
use arch::pmu::driver::Layout;
use arch::pmu::{Counter, Selection};
use arch::time::tsc;
use facts::pipeline::code::{self, Emitted, Program};
use facts::pipeline::{self, CodeProbe};
use protocol::record::PipelineFacts;
use raw_cpuid::CpuIdReader as _;
use x86_64::VirtAddr;

/// Bytes for the programs: five jumps fit at distances up to 64 KiB.
const BYTES: u32 = 512 << 10;
const _: () = assert!(BYTES >= code::LEAST_BYTES, "programs would not fit");
/// Where they run: behind the memory of the largest sheet.
const AT: u64 = layout::HIGH_REQUESTED.start + (3 << 37);

/// Instructions retired, on processors of both makers (Intel SDM vol. 3, architectural events; AMD PPR, PMCx0C0).
const RETIRED: u16 = 0xc0;

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

/// Where a program is entered, and what is called before.
type Places = (u32, Option<u32>);

impl Programs<'_> {
    /// Writes a program's code and data.
    fn write(&mut self, program: &Program<'_>) -> Places {
        let Emitted { pieces, entry, before } = code::emit(program, BYTES);
        for (at, bytes) in pieces {
            debug_assert!(at as usize + bytes.len() <= BYTES as usize);
            let to = (self.view + u64::from(at)) as *mut u8;
            // SAFETY: within the memory, which nobody else has; none of it runs now.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        (entry, before)
    }

    /// Runs it once: what a counter, or the TSC, has counted.
    fn run(&mut self, clock: Clock, (entry, before): Places) -> u64 {
        let Counters { registers, driver, .. } = &mut *self.counters;
        // Code that was written through other addresses is fetched anew after an instruction that serialises (SDM vol. 3, 9.1.3).
        core::hint::black_box(cpu::native().cpuid2(0, 0));
        if let Some(driver) = driver.as_mut() {
            let _ = driver.start(registers);
        }
        // SAFETY: ring 0, interrupts off; the code was just written.
        let counted = unsafe {
            timed::call(
                clock,
                before.map(|before| AT + u64::from(before)),
                AT + u64::from(entry),
                self.view + u64::from(code::data(BYTES)),
            )
        };
        if let Some(driver) = driver.as_mut() {
            let _ = driver.stop(registers);
        }
        counted
    }
}

impl CodeProbe for Programs<'_> {
    fn bytes(&self) -> u32 {
        BYTES
    }

    fn cycles(&mut self, program: &Program<'_>, tries: u32) -> u64 {
        let places = self.write(program);
        (0..tries).map(|_| self.run(self.clock, places)).min().unwrap_or(0)
    }

    fn retiring(&mut self, program: &Program<'_>, at_least: u8) -> Result<u64, &'static str> {
        let Counters { registers, driver, .. } = &mut *self.counters;
        let driver = driver.as_mut().ok_or("there is no PMU")?;
        // The clock may be the first general counter.
        let is_other = |one: &Counter| self.clock != Clock::Counter(Layout::rdpmc_index(*one));
        let general = driver.capabilities().generals().find(is_other);
        let counter = general.ok_or("the only general counter is the clock")?;
        let selection = Selection { cmask: at_least, ..Selection::of(RETIRED, 0) };
        let programmed = driver.program(registers, counter, &selection).is_ok()
            && driver.write(registers, counter, 0).is_ok();
        if !programmed {
            return Err("a counter of retired instructions cannot be programmed");
        }
        let places = self.write(program);
        let cycles = self.run(Clock::Counter(Layout::rdpmc_index(counter)), places);
        let Counters { registers, driver, .. } = &mut *self.counters;
        if let Some(driver) = driver {
            let _ = driver.release(registers, counter);
        }
        Ok(cycles)
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
