//! How fast data are moved: the processors that do it.

use super::super::cores::patience::Patience;
use super::super::counters::Counters;
use super::super::per_cpu::BOOT;
use super::super::probe::Machine;
use super::super::reset;
use super::timed::{self, Clock};
use super::{clock, cpuid, moves};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::cpu;
use arch::memory::{cache, layout};
use arch::pmu::Capabilities;
use arch::smp;
use arch::time::tsc;
use core::sync::atomic::{AtomicUsize, Ordering};
use facts::bandwidth::{Effort, Mover, Stream, WARM, measure as measured};
use facts::cores::MOST;
use protocol::record::{BandwidthFacts, MemoryFacts};
use raw_cpuid::CpuIdReader as _;

/// 4 MiB take a tenth of a millisecond in the first level, some thousand times what is around the loop.
const AT_ONCE: Effort = Effort { samples: 7, moved: 4 << 20, most: u64::MAX };
/// Where instructions are the clock each sample is like the other, and bytes cost the host's time.
const IN_TURN: Effort = Effort { samples: 2, moved: 64 << 10, most: 8 << 20 };

/// Measures in so many bytes at a physical address.
pub fn measure(
    (start, bytes): (u64, u64),
    machine: &Machine,
    (counters, clock): (&mut Counters, Clock),
    found: &MemoryFacts,
) -> BandwidthFacts {
    let in_turn = machine.runs_in_turn();
    let alike = machine.kinds.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let mut moving = Moving {
        counters,
        clock,
        each: Each {
            area: Area { at: layout::PHYSICAL + start, bytes, width: width(machine.extended) },
            // Counters of another kind of core may be others.
            pmu: machine.pmu.as_ref().ok().filter(|_| alike && clock != Clock::Tsc).cloned(),
        },
        hz: machine.clock.hz,
        in_turn,
        sharers: sharers(&cpuid::answers()),
    };
    smp::halting(|| measured(&mut moving, found))
}

/// Bytes of the widest registers that can be used. `components` as in XCR0: AVX is bit 2, AVX-512 bits 5 to 7 (SDM vol. 1, 13.1).
fn width(components: u64) -> u32 {
    const AVX: u64 = 1 << 2;
    const AVX_512: u64 = 7 << 5;
    const HAS_AVX: u32 = 1 << 28;
    const HAS_AVX_512F: u32 = 1 << 16;
    let cpuid = cpu::native();
    let avx = components & AVX != 0 && cpuid.cpuid1(1).ecx & HAS_AVX != 0;
    // Leaf 7 EBX bit 16.
    let wide = cpu::has_leaf(&cpuid, 7) && cpuid.cpuid2(7, 0).ebx & HAS_AVX_512F != 0;
    match (avx, wide && components & AVX_512 == AVX_512) {
        (true, true) => 64,
        (true, false) => 32,
        // Every x86-64 processor has SSE2, and the firmware switches it on.
        (false, _) => 16,
    }
}

/// How many share the data cache of each level, from the first on: EAX bits 25:14 of leaf 4 and 0x8000001D, less one; type 1 is data, 3
/// unified (SDM vol. 2, CPUID; AMD APM vol. 3, appendix E).
fn sharers(answers: &[[u32; 6]]) -> Vec<(u32, u32)> {
    let of = |&[leaf, _, a, ..]: &[u32; 6]| {
        let is_data = matches!(leaf, 4 | 0x8000_001d) && matches!(a & 0x1f, 1 | 3);
        is_data.then_some((a >> 5 & 7, (a >> 14 & 0xfff) + 1))
    };
    answers.iter().filter_map(of).collect()
}

/// Empties the caches of this processor.
fn empty() {
    // SAFETY: ring 0; what is written back stays what it is.
    unsafe { cache::write_back_all() };
}

/// The memory, for all processors.
#[derive(Clone, Copy)]
struct Area {
    at: u64,
    bytes: u64,
    /// Bytes of the registers.
    width: u32,
}

impl Area {
    fn run(self, stream: &Stream) {
        let (at, bytes) = (self.at + stream.at, stream.bytes);
        debug_assert!(stream.at + bytes <= self.bytes);
        // SAFETY: within the item's memory, which every processor has mapped; nobody needs its content. Vector registers hold nothing of
        // the firmware, and those of this width are switched on.
        unsafe { moves::run(stream.by, self.width, at, bytes, stream.passes) };
    }

    /// What a run takes on this processor: cycles, and ticks of the TSC.
    fn timed(self, counters: &mut Counters, clock: Clock, stream: &Stream) -> [u64; 2] {
        let Counters { registers, driver, .. } = counters;
        if let Some(driver) = driver.as_mut() {
            let _ = driver.start(registers);
        }
        // SAFETY: ring 0; the counter is the one that was chosen.
        let read = || unsafe { (timed::now(Clock::Tsc), timed::now(clock)) };
        let begun = read();
        self.run(stream);
        let ended = read();
        if let Some(driver) = driver.as_mut() {
            let _ = driver.stop(registers);
        }
        [ended.1.wrapping_sub(begun.1), ended.0.wrapping_sub(begun.0)]
    }
}

/// The processors.
struct Moving<'a> {
    counters: &'a mut Counters,
    clock: Clock,
    each: Each,
    hz: u64,
    in_turn: bool,
    /// Level, and how many share its cache.
    sharers: Vec<(u32, u32)>,
}

/// What each processor has.
struct Each {
    area: Area,
    /// What it counts cycles with.
    pmu: Option<Capabilities>,
}

impl Each {
    /// What further passes take on this processor, while others move data too. `meet` waits for them,
    /// the first and the second time; `goes_on`: they are not done.
    fn further(
        &self,
        (stream, further): (&Stream, u32),
        meet: impl Fn(usize) -> bool,
        goes_on: impl Fn() -> bool,
    ) -> Option<[u64; 2]> {
        // SAFETY: ring 0, on the processor whose counters they are; nothing else uses them now.
        let mut counters = unsafe { Counters::new(self.pmu.clone()) };
        let (clock, _) = clock(&mut counters);
        let many = Stream { passes: stream.passes + further, ..*stream };
        let area = self.area;
        empty();
        // What others empty is shared.
        if !meet(1) {
            return None;
        }
        // Timed as the others are, so that what is around the loop is not in empty caches either.
        area.timed(&mut counters, clock, &Stream { passes: WARM, ..*stream });
        if !meet(2) {
            return None;
        }
        let few = area.timed(&mut counters, clock, stream);
        let many = area.timed(&mut counters, clock, &many);
        while goes_on() {
            // Who is done would leave more to the others.
            area.run(stream);
        }
        if let Some(driver) = &mut counters.driver {
            let _ = driver.reset(&mut counters.registers);
        }
        Some([0, 1].map(|clock| many[clock].saturating_sub(few[clock])))
    }
}

impl Mover for Moving<'_> {
    fn bytes(&self) -> u64 {
        self.each.area.bytes
    }

    fn width(&self) -> u32 {
        self.each.area.width
    }

    fn hz(&self) -> u64 {
        self.hz
    }

    fn effort(&self) -> Effort {
        if self.in_turn { IN_TURN } else { AT_ONCE }
    }

    fn processors(&self) -> usize {
        smp::count()
    }

    fn in_turn(&self) -> bool {
        self.in_turn
    }

    fn sharers(&self, level: u32) -> u32 {
        let own = self.sharers.iter().find(|(of, _)| *of == level);
        own.map_or(1, |(_, sharers)| *sharers)
    }

    fn empty(&mut self) {
        empty();
    }

    fn alone(&mut self, stream: &Stream) -> [u64; 2] {
        self.each.area.timed(self.counters, self.clock, stream)
    }

    fn together(
        &mut self,
        stream: &Stream,
        apart: u64,
        further: u32,
    ) -> Result<Vec<[u64; 2]>, String> {
        let (each, count) = (&self.each, smp::count().min(MOST));
        let of = |place: usize| Stream { at: stream.at + place as u64 * apart, ..*stream };
        if self.in_turn {
            // Who runs alone for a turn would wait for those that have none.
            let one = |place: usize| {
                each.further((&of(place), further), |_| true, || false).unwrap_or_default()
            };
            let on = |place: usize| smp::on_some(|it| it == place, one).expect(BOOT);
            return Ok((0..count).flat_map(|place| on(place).into_iter().flatten()).collect());
        }
        let hz = self.hz;
        let patience = Patience::new(hz, false);
        let (ready, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |place: usize| {
            let meet = |times: usize| {
                ready.fetch_add(1, Ordering::AcqRel);
                patience.wait(|| ready.load(Ordering::Acquire) >= times * count)
            };
            let begun = tsc::now();
            let own = core::cell::Cell::new(false);
            let goes_on = || {
                if !own.replace(true) {
                    done.fetch_add(1, Ordering::AcqRel);
                }
                let is_late = tsc::now().wrapping_sub(begun) > 60 * hz;
                done.load(Ordering::Acquire) < count && !is_late
            };
            each.further((&of(place), further), meet, goes_on)
        };
        let all = smp::on_some(|place| place < count, work).expect(BOOT);
        let all: Option<Vec<_>> = all.into_iter().flatten().collect();
        let ms = patience.ticks * 1000 / hz.max(1);
        all.ok_or_else(|| format!("one of {count} did not come within {ms} ms"))
    }

    fn beat(&mut self) {
        reset::reload(tsc::now(), self.hz);
    }
}
