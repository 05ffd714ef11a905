//! A fact sheet's parts; of caches and TLBs the machine on which loads are timed.

mod bandwidth;
mod cpuid;
mod moves;
mod pipeline;
mod timed;

use super::counters::Counters;
use super::probe::Machine;
use super::{cores, noise, reset};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::cpu::Hypervisor;
use arch::memory::user::UserPages;
use arch::memory::{Frames, Space, layout, physical};
use arch::pmu::driver::Layout;
use arch::pmu::{Counter, Selection};
use arch::time::tsc;
use core::ops::Range;
use facts::{Flush, LARGE, Probe, Run};
use kernel::memory::fill;
use protocol::job::control::{MemoryType, PageSize};
use protocol::job::memory::{Chase, Fill, Order};
use protocol::job::{Facts, Memory};
use protocol::record::{FactsResult, FactsTimer, MemoryFacts, Verdict};
use timed::Clock;
use x86_64::structures::paging::PageTableFlags;
use x86_64::{PhysAddr, VirtAddr};

/// Bytes of the pages in which the item has its memory.
const LARGE_PAGE: u64 = 2 << 20;
/// Where the same memory is in pages of 4 KiB: the upper half of what items can ask for.
const SMALL: u64 = layout::HIGH_REQUESTED.start + (1 << 38);
/// Tries of what hits of the first level take.
const TRIES: u32 = 6;
/// Most loads of a walk that are measured.
const MOST_OF_WALK: u64 = 1 << 14;

/// What the parts need of the firmware.
pub struct Place<'a> {
    pub machine: &'a Machine,
    /// The item's memory.
    pub ranges: &'a [Range<u64>],
    pub space: &'a mut Space,
    pub frames: &'a mut Frames,
    pub counters: &'a mut Counters,
    /// What runs in ring 3.
    pub user: &'a UserPages,
    /// Whether system management interrupts are counted.
    pub counts_smis: bool,
}

/// Measures what the item has asked for.
///
/// # Errors
/// The memory is not in one piece, or cannot be mapped; interrupts that are to be raised cannot be.
pub fn measure(item: &Facts, place: Place) -> Result<FactsResult, String> {
    let Place { machine, ranges, space, frames, counters, user, counts_smis } = place;
    let second = machine.clock.hz;
    let has = item.parts;
    // What asks for something that cannot be had fails before minutes have gone by.
    let noise = has.noise.then(|| noise::measure(&item.watch, machine, counts_smis, user));
    let noise = noise.transpose()?;
    let (clock, timer) = clock(counters);
    let memory = has
        .memory
        .then(|| measure_memory(item.bytes, ranges, (space, frames), (counters, clock, second)));
    let memory = memory.transpose()?;
    let bandwidth = memory.as_ref().map(|found| {
        let (_, start) = own_memory(item.bytes, ranges)?;
        let facts = bandwidth::measure((start, item.bytes), machine, (counters, clock), found);
        Ok::<_, String>(Box::new(facts))
    });
    let bandwidth = bandwidth.transpose()?;
    let guest = machine.hypervisor.is_some_and(|one| one != Hypervisor::Tcg);
    let core =
        has.core.then(|| pipeline::measure((space, frames), (counters, clock, second), guest));
    let core = core.transpose()?.map(Box::new);
    if let Some(driver) = &mut counters.driver {
        let _ = driver.reset(&mut counters.registers);
    }
    Ok(FactsResult {
        item: 0,
        name: String::new(),
        verdict: Verdict::default(),
        misses: Vec::new(),
        timer,
        bytes: item.bytes,
        memory,
        bandwidth,
        core,
        cores: has.cores.then(|| cores::measure(machine.clock, machine.runs_in_turn())),
        noise,
        cpuid: if has.memory || has.cores { cpuid::answers() } else { Vec::new() },
        uncounted: Vec::new(),
        restored: Vec::new(),
        emulated: machine.emulated.is_some(),
        tsc: [0; 2],
    })
}

/// What caches and TLBs are.
fn measure_memory(
    bytes: u64,
    ranges: &[Range<u64>],
    (space, frames): (&mut Space, &mut Frames),
    (counters, clock, second): (&mut Counters, Clock, u64),
) -> Result<MemoryFacts, String> {
    let start = own_memory(bytes, ranges)?;
    let to = PhysAddr::new(start.1);
    let flags = PageTableFlags::PRESENT | PageTableFlags::WRITABLE | PageTableFlags::NO_EXECUTE;
    let small = SMALL..SMALL + bytes;
    let mapped = space.map_range(frames, VirtAddr::new(SMALL), to, bytes, flags);
    let measured = mapped.map_err(|error| error.to_string()).map(|()| {
        let floors = BTreeMap::new();
        facts::measure(&mut Timed { counters, clock, large: start.0, bytes, floors, second })
    });
    space.remove(&small, frames);
    // SAFETY: ring 0.
    unsafe { arch::memory::cache::flush_tlb() };
    measured
}

/// The linear and physical address of the item's memory.
fn own_memory(bytes: u64, ranges: &[Range<u64>]) -> Result<(u64, u64), String> {
    let own = ranges.iter().find(|range| range.end - range.start == bytes);
    let range = own.ok_or("the item has no memory of its size")?;
    // The caller has no other page tables in use.
    contiguous(range, bytes)
        .ok_or_else(|| format!("no {bytes} bytes of the memory are physically contiguous"))
}

/// The linear and physical address of so many contiguous bytes of mapped memory.
fn contiguous(range: &Range<u64>, bytes: u64) -> Option<(u64, u64)> {
    let mut run: Option<(u64, u64)> = None;
    for at in range.clone().step_by(LARGE_PAGE as usize) {
        // SAFETY: ring 0, on the firmware's own page tables; nobody else is in them.
        let to = unsafe { physical(at) }?;
        run = run.filter(|(first, start)| at - first == to.wrapping_sub(*start)).or(Some((at, to)));
        let (first, start) = run?;
        if at + LARGE_PAGE - first >= bytes {
            return Some((first, start));
        }
    }
    None
}

/// A counter of core cycles that counts, or the TSC.
fn clock(counters: &mut Counters) -> (Clock, FactsTimer) {
    if let Some(driver) = &mut counters.driver {
        let code = if driver.capabilities().is_intel() { 0x3c } else { 0x76 };
        let able = |one: &Counter| one.bit() & u64::from(driver.capabilities().cycles) != 0;
        let general = driver.capabilities().generals().find(able);
        let fixed = Some(Counter::Fixed(1)).filter(|one| driver.capabilities().has(*one));
        for counter in [fixed, general].into_iter().flatten() {
            let registers = &mut counters.registers;
            let programmed = driver.reset(registers).is_ok()
                && driver.program(registers, counter, &Selection::of(code, 0)).is_ok()
                && driver.write(registers, counter, 0).is_ok()
                && driver.start(registers).is_ok();
            for turn in 0..1000 {
                core::hint::black_box(turn);
            }
            let stopped = driver.stop(registers).is_ok();
            let counts = driver.read(registers, counter).is_ok_and(|count| count >= 100);
            if programmed && stopped && counts {
                return (Clock::Counter(Layout::rdpmc_index(counter)), FactsTimer::CoreCycles);
            }
        }
    }
    (Clock::Tsc, FactsTimer::Tsc)
}

/// The machine, with the memory of the item.
struct Timed<'a> {
    counters: &'a mut Counters,
    clock: Clock,
    /// Its first byte, in large pages.
    large: u64,
    bytes: u64,
    /// What so many hits of the first level take, with all that is around them.
    floors: BTreeMap<u64, u64>,
    /// Ticks of the TSC in a second.
    second: u64,
}

impl Timed<'_> {
    fn address(&self, place: u64) -> u64 {
        match place & LARGE {
            0 => SMALL + place,
            _ => self.large + (place & !LARGE),
        }
    }

    /// Writes a pointer.
    fn lead(&self, place: u64, to: u64) {
        let at = self.address(place) as *mut u64;
        // SAFETY: within the item's memory, which is mapped in both ways; nothing else uses it.
        unsafe { at.write_unaligned(to) };
    }

    /// Follows pointers from `start` on while the counter counts: the cycles of `count` loads behind `skip` of them.
    fn follow(&mut self, start: u64, (skip, count): (u64, u64), flush: Flush) -> u64 {
        let Counters { registers, driver, .. } = &mut *self.counters;
        if let Some(driver) = driver {
            let _ = driver.start(registers);
        }
        // SAFETY: ring 0, interrupts off; all pointers lead into the item's memory.
        let cycles = unsafe { timed::follow(self.clock, start, (skip, count), flush) };
        if let Some(driver) = driver {
            let _ = driver.stop(registers);
        }
        cycles
    }

    /// What `count` hits of the first level take.
    fn floor(&mut self, count: u64) -> u64 {
        if let Some(floor) = self.floors.get(&count) {
            return *floor;
        }
        // A pointer to itself, in a large page.
        let at = self.address(LARGE);
        self.lead(LARGE, at);
        let one = |machine: &mut Self| machine.follow(at, (64, count), Flush::Nothing);
        let floor = (0..TRIES).map(|_| one(self)).min().unwrap_or(0);
        self.floors.insert(count, floor);
        floor
    }
}

impl Probe for Timed<'_> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn large_page(&self) -> u64 {
        LARGE_PAGE
    }

    fn cycles(&mut self, run: &Run<'_>) -> u64 {
        let (Some(first), skip) = (run.places.first(), run.skip as u64) else { return 0 };
        let count = run.places.len() as u64 - skip;
        let floor = self.floor(count);
        for pair in run.places.windows(2) {
            self.lead(pair[0], self.address(pair[1]));
        }
        if let Some(last) = run.places.last() {
            self.lead(*last, self.address(*first));
        }
        let start = self.address(*first);
        let least = (0..run.tries).map(|_| self.follow(start, (skip, count), run.flush)).min();
        least.unwrap_or(0).saturating_sub(floor)
    }

    fn hit_tenths(&mut self) -> u64 {
        let (few, many) = (timed::BLOCK, 9 * timed::BLOCK);
        let more = self.floor(many).saturating_sub(self.floor(few));
        // Turns of the loop take a cycle or two each where nothing runs beside the loads.
        (more * 10 + (many - few) / 2) / (many - few)
    }

    fn walk_tenths(&mut self, bytes: u64, line: u64) -> u64 {
        let count = bytes / line;
        let chase = Chase { stride: line as u32, order: Order::Random, seed: 1 };
        let memory = Memory {
            name: "facts".into(),
            at: self.large,
            bytes,
            page_size: PageSize::Large,
            memory_type: MemoryType::WriteBack,
            fill: Fill::Chase(chase),
            items: Vec::new(),
        };
        // SAFETY: the item's memory, which nothing else uses.
        let words = unsafe {
            core::slice::from_raw_parts_mut(self.large as *mut u64, (bytes / 8) as usize)
        };
        fill(words, &memory, &mut |_| self.beat());
        let measured = count.min(MOST_OF_WALK);
        let floor = {
            // The walk's first pointer is put back after it.
            let (at, first) = (self.address(LARGE), words[0]);
            self.floors.remove(&measured);
            let floor = self.floor(measured);
            self.lead(LARGE, first);
            debug_assert_eq!(at, self.large);
            floor
        };
        let walked = self.follow(self.large, (count, measured), Flush::Nothing);
        walked.saturating_sub(floor) * 10 / measured
    }

    fn beat(&mut self) {
        reset::reload(tsc::now(), self.second);
    }
}
