//! The benchmarks. `cargo xtask run --crate .` measures them on the bare machine; `cargo test` runs each once.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use barecount::{Arena, bench, black_box};
use example::{choose, fnv1a, insertion_sort, square_root};

barecount::main!();

/// The heap: as large as you say, and empty at the start.
#[global_allocator]
static HEAP: Arena<{ 1 << 20 }> = Arena::new();

bench! {
    // Through black_box, or the compiler would calculate it.
    fn binomial() { choose(black_box(30), black_box(15)) }

    fn root() { square_root(black_box(2.0)) }

    // One benchmark for each value, which arrives in a register.
    fn binomial_of(n: u64 in [10, 20, 40]) { choose(n, n / 2) }

    // Made before each run and dropped after it, unmeasured.
    fn hash(n: usize in [16, 1024], bytes: Vec<u8> = (0..n).map(|i| i as u8).collect()) {
        fnv1a(bytes)
    }

    fn sort(n: u64 in [16, 64], numbers: Vec<u64> = (0..n).rev().collect()) {
        insertion_sort(numbers);
    }

    // The allocator is measured as well.
    fn allocate(n: usize in [1, 100]) { Vec::<u64>::with_capacity(n) }
}
