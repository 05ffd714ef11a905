//! Something to do, in a mode by its bits: to see what the plugin costs.

use super::{code, own, set};
use crate::line;
use plugin_channel::{Mode, Parts};

const WORDS: usize = 1 << 13;
static mut HEAP: [u32; WORDS] = [0; WORDS];

pub fn run(mode: &str) {
    let bits = mode.parse().unwrap_or(0);
    let mode = Mode::from_bits_truncate(bits);
    let mut parts = Parts::empty();
    parts.set(Parts::MEMORY, mode.contains(Mode::MEMORY));
    parts.set(Parts::PREDICTOR, mode.contains(Mode::PREDICTOR));
    parts.set(Parts::RECORDS, mode.contains(Mode::RECORDS));
    set(mode, parts, 0);
    let counted = own::run(work as *const () as u64, code(0), &[]);
    line!("counted {} {}", counted.counts.iter().sum::<u64>(), counted.instructions);
}

/// Heap sort of pseudo-random words, again and again.
#[allow(static_mut_refs, reason = "one processor")]
extern "C" fn work() {
    // SAFETY: one processor.
    let heap = unsafe { &mut HEAP };
    let mut state = 1_u32;
    for _ in 0..150 {
        for word in heap.iter_mut() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *word = state >> 8;
        }
        for start in (0..WORDS / 2).rev() {
            sift(heap, start);
        }
        for end in (1..WORDS).rev() {
            heap.swap(0, end);
            sift(&mut heap[..end], 0);
        }
    }
    assert!(heap.is_sorted());
}

#[inline(never)]
fn sift(heap: &mut [u32], mut at: usize) {
    loop {
        let mut child = 2 * at + 1;
        if child >= heap.len() {
            return;
        }
        if child + 1 < heap.len() && heap[child] < heap[child + 1] {
            child += 1;
        }
        if heap[at] >= heap[child] {
            return;
        }
        heap.swap(at, child);
        at = child;
    }
}
