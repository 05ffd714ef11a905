//! Instructions in flight: the rules are those of [`window`](super::window).

use super::window::{Step, WindowShape};
use crate::bits::bits_of;
use alloc::collections::VecDeque;

/// Kinds of instructions of which only so many are in the window.
const KINDS: usize = 4;

/// The window.
#[derive(Clone, Debug)]
pub(super) struct Window {
    shape: WindowShape,
    now: u64,
    /// Instructions, those that write a general register, or a vector register, and loads that have begun.
    begun: [u64; KINDS],
    /// What has not left: how many had begun before it, and when it is done. What takes a cycle is not in it.
    inside: VecDeque<([u64; KINDS], u64)>,
    /// When what waits for registers starts; some of it may have.
    waiting: VecDeque<u64>,
    /// When registers are ready.
    ready: [u64; 16],
    /// When all is done.
    done: u64,
    /// The instruction that began last: what had begun before it, when it started, what it writes.
    last: ([u64; KINDS], u64, u16),
}

impl Window {
    pub const fn new(shape: WindowShape) -> Self {
        Self {
            shape,
            now: 0,
            begun: [0; KINDS],
            inside: VecDeque::new(),
            waiting: VecDeque::new(),
            ready: [0; 16],
            done: 0,
            last: ([0; KINDS], 0, 0),
        }
    }

    pub const fn is_there(&self) -> bool {
        self.shape.rob > 0
    }

    /// Time passes in which nothing begins.
    pub const fn pass(&mut self, cycles: u32) {
        self.now += cycles as u64;
    }

    /// An instruction begins: the cycles that it waits for that.
    pub fn begin(&mut self, step: Step) -> u32 {
        let before = self.now;
        if step.waits {
            self.now = self.now.max(self.done);
        }
        let kinds = [true, step.writes != 0, step.vector, step.loads];
        let WindowShape { rob, registers, vectors, loads, .. } = self.shape;
        let limits = [rob, registers, vectors, loads];
        while let Some((counts, done)) = self.inside.front().copied() {
            let is_full = |kind: usize| {
                let inside = self.begun[kind] - counts[kind];
                kinds[kind] && limits[kind] > 0 && inside >= u64::from(limits[kind])
            };
            if done > self.now && !(0..KINDS).any(is_full) {
                break;
            }
            self.now = self.now.max(done);
            self.inside.pop_front();
        }
        let scheduler = usize::from(self.shape.scheduler);
        if step.reads != 0 && scheduler > 0 && self.waiting.len() >= scheduler {
            self.waiting.retain(|start| *start > self.now);
            if self.waiting.len() >= scheduler {
                self.now = self.waiting.iter().copied().min().unwrap_or(0).max(self.now);
            }
        }
        let counts = self.begun;
        (0..KINDS).for_each(|kind| self.begun[kind] += u64::from(kinds[kind]));
        let start = bits_of(step.reads.into())
            .map(|register| self.ready[register])
            .fold(self.now, u64::max);
        if start > self.now && scheduler > 0 {
            self.waiting.push_back(start);
        }
        self.last = (counts, start, step.writes);
        let waited = self.now - before;
        self.now += 1;
        self.finish(start + 1);
        waited.try_into().unwrap_or(u32::MAX)
    }

    /// The instruction that began last loads, in so many cycles.
    pub fn load(&mut self, cycles: u32) {
        let done = self.last.1 + u64::from(cycles);
        self.finish(done);
    }

    /// The instruction that began last is not done before this.
    fn finish(&mut self, done: u64) {
        let (counts, _, writes) = self.last;
        for register in bits_of(writes.into()) {
            self.ready[register] = done;
        }
        self.done = self.done.max(done);
        if done > self.now {
            match self.inside.back_mut().filter(|last| last.0 == counts) {
                Some(own) => own.1 = own.1.max(done),
                None => self.inside.push_back((counts, done)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: Step = Step { reads: 0, writes: 0, vector: false, loads: false, waits: false };
    const FENCE: Step = Step { waits: true, ..NOP };
    /// Loads of other registers, and what reads the first one's.
    const FIRST: Step = Step { reads: 1, writes: 1, loads: true, ..NOP };
    const SECOND: Step = Step { reads: 2, writes: 2, ..FIRST };
    const USE: Step = Step { reads: 1, writes: 4, ..NOP };

    /// Cycles of two loads of 1000 cycles with others between, and of the fence after them.
    fn cycles(shape: WindowShape, between: &[Step], second: Step) -> u64 {
        let mut window = Window::new(shape);
        let (mut waited, mut count) = (0, 0);
        for step in [FIRST].iter().chain(between).chain([&second, &FENCE]) {
            waited += u64::from(window.begin(*step));
            count += 1;
            if step.loads {
                window.load(if step.reads & 3 != 0 { 1000 } else { 4 });
            }
        }
        waited + count
    }

    #[test]
    fn d1_two_loads_overlap_if_the_reorder_buffer_has_both() {
        let shape = WindowShape { rob: 32, ..WindowShape::NONE };
        assert_eq!(cycles(shape, &[], SECOND), 1 + 1000 + 1);
        assert_eq!(cycles(shape, &[NOP; 30], SECOND), 31 + 1000 + 1);
        // The second load begins when the first is done.
        assert_eq!(cycles(shape, &[NOP; 31], SECOND), 1000 + 1000 + 1);
        assert_eq!(cycles(shape, &[NOP; 41], SECOND), 1000 + 10 + 1000 + 1);
        // One that waits for the first never overlaps.
        for between in [0, 30, 31] {
            assert_eq!(cycles(shape, &[NOP].repeat(between), FIRST), 2000 + 1, "{between}");
        }
    }

    #[test]
    fn d1_two_loads_overlap_while_there_are_registers_places_for_loads_and_for_those_that_wait() {
        let (whole, far) = (1000 + 1, 2000 + 1);
        let registers = WindowShape { rob: 64, registers: 20, ..WindowShape::NONE };
        let write = Step { writes: 4, ..NOP };
        assert_eq!(cycles(registers, &[write; 18], SECOND), 19 + whole);
        assert_eq!(cycles(registers, &[write; 19], SECOND), far);
        assert_eq!(cycles(registers, &[NOP; 40], SECOND), 41 + whole);
        // The loads write no vector register.
        let vectors = WindowShape { rob: 64, vectors: 20, ..WindowShape::NONE };
        let vector = Step { vector: true, ..NOP };
        assert_eq!(cycles(vectors, &[vector; 20], SECOND), 21 + whole);
        assert_eq!(cycles(vectors, &[write; 40], SECOND), 41 + whole);
        let loads = WindowShape { rob: 64, loads: 20, ..WindowShape::NONE };
        let load = Step { reads: 1 << 6, writes: 4, loads: true, ..NOP };
        assert_eq!(cycles(loads, &[load; 18], SECOND), 19 + whole);
        assert_eq!(cycles(loads, &[load; 19], SECOND), far);
        assert_eq!(cycles(loads, &[write; 40], SECOND), 41 + whole);
        let scheduler = WindowShape { rob: 64, scheduler: 20, ..WindowShape::NONE };
        assert_eq!(cycles(scheduler, &[USE; 19], SECOND), 20 + whole);
        assert_eq!(cycles(scheduler, &[USE; 20], SECOND), far);
        assert_eq!(cycles(scheduler, &[write; 40], SECOND), 41 + whole);
    }
}
