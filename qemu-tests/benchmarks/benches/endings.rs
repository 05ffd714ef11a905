//! Programs that go wrong, or far; each between two that do neither.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use barecount::{Arena, bench, black_box};
use core::sync::atomic::{AtomicU64, Ordering};

barecount::main!();

const HEAP_BYTES: usize = 1 << 20;
#[global_allocator]
static HEAP: Arena<HEAP_BYTES> = Arena::new();

/// 64 MiB in lines of the cache.
const LINES: usize = 64 << 20 >> 6;
#[repr(align(64))]
struct Line(AtomicU64);
static LONG: [Line; LINES] = [const { Line(AtomicU64::new(0)) }; LINES];

fn walk() -> u64 {
    LONG.iter().map(|line| line.0.fetch_add(1, Ordering::Relaxed)).sum()
}

/// Copies, fills and comparisons of memory against loops over bytes.
fn check_memory() {
    let mut bytes: Vec<u8> = (0..100).collect();
    for (from, to, count) in
        [(0, 10, 50), (10, 0, 50), (3, 3, 9), (0, 50, 50), (0, 1, 99), (5, 4, 0)]
    {
        let expected: Vec<u8> = (0..100)
            .map(|i| if (to..to + count).contains(&i) { bytes[i - to + from] } else { bytes[i] })
            .collect();
        bytes.copy_within(black_box(from..from + count), to);
        assert!(bytes.iter().eq(expected.iter()), "from {from} to {to}, {count} bytes");
    }
    bytes[10..black_box(20)].fill(7);
    assert!((10..20).all(|i| bytes[i] == 7) && bytes[20] != 7 && bytes[9] != 7);
    let (a, b) = (black_box([1_u8, 2, 3, 200]), black_box([1_u8, 2, 3, 4]));
    assert!(a[..] > b[..] && b[..] < a[..] && a[..3] == b[..3] && a != b);
}

bench! {
    fn a_memory() { check_memory() }
    fn b_walks() { walk() }
    fn c_allocates(map: BTreeMap<u64, Vec<u8>> = BTreeMap::new()) {
        for key in 0..black_box(40) {
            map.insert(key * 7 % 41, alloc::vec![0; 100]);
        }
    }
    fn d_panics() { assert_eq!(black_box(6) * 7, 41, "the answer") }
    fn e_plain() { black_box(1_u64) + 1 }
    fn f_exhausts() { Vec::<u8>::with_capacity(black_box(2 << 20)) }
    fn g_plain() { black_box(2_u64) + 1 }
    fn h_never_ends() { while black_box(true) {} }
    fn i_plain() { black_box(3_u64) + 1 }
    fn j_recurses() { recurse(black_box(1 << 40)) }
    fn k_plain() { black_box(4_u64) + 1 }
}

fn recurse(n: u64) -> u64 {
    if black_box(n) == 0 { 0 } else { recurse(n - 1) + black_box(n) }
}
