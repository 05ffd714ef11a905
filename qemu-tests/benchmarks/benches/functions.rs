//! Thirty functions.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use barecount::{Arena, bench, black_box};
use benchmarks::{hashing, numbers, sorting, text};

barecount::main!();

#[global_allocator]
static HEAP: Arena<{ 1 << 20 }> = Arena::new();

const BYTES: &[u8; 94] =
    b"It is a truth universally acknowledged, that a function must be in want of a count of its own.";

/// Numbers in no order.
fn mixed(n: u32) -> Vec<u32> {
    (0..n).map(|i| i.wrapping_mul(2_654_435_761) >> 20).collect()
}

fn matrix() -> [[f64; 6]; 6] {
    core::array::from_fn(|y| core::array::from_fn(|x| (x * 7 + y) as f64))
}

bench! {
    fn sum() { hashing::sum(black_box(BYTES)) }
    fn fnv32() { hashing::fnv32(black_box(BYTES)) }
    fn fnv64() { hashing::fnv64(black_box(BYTES)) }
    fn crc32() { hashing::crc32(black_box(BYTES)) }
    fn adler32() { hashing::adler32(black_box(BYTES)) }
    fn pearson() { hashing::pearson(black_box(BYTES)) }
    fn longest_run() { hashing::longest_run(black_box(BYTES)) }
    fn fibonacci() { numbers::fibonacci(black_box(12)) }
    fn gcd() { numbers::gcd(black_box(832_040), black_box(1_346_269)) }
    fn is_prime() { numbers::is_prime(black_box(10_007)) }
    fn power() { numbers::power(black_box(3), black_box(1_000_003), black_box(998_244_353)) }
    fn whole_root() { numbers::whole_root(black_box(1_000_000_007)) }
    fn collatz() { numbers::collatz(black_box(27)) }
    fn bits() { numbers::bits(black_box(0x0123_4567_89ab_cdef)) }
    fn root() { numbers::root(black_box(2.0)) }
    fn sine() { numbers::sine(black_box(1.0)) }
    fn dot(input: [f64; 32] = core::array::from_fn(|i| i as f64)) { numbers::dot(input, input) }
    fn multiply(out: [[f64; 6]; 6] = matrix()) {
        numbers::multiply(&black_box(*out), &black_box(*out), out);
    }
    fn mandelbrot() { numbers::mandelbrot(black_box(-0.75), black_box(0.1)) }
    fn insertion(input: Vec<u32> = mixed(50)) { sorting::insertion(input) }
    fn bubble(input: Vec<u32> = mixed(50)) { sorting::bubble(input) }
    fn selection(input: Vec<u32> = mixed(50)) { sorting::selection(input) }
    fn heap(input: Vec<u32> = mixed(50)) { sorting::heap(input) }
    fn search(input: Vec<u32> = (0..1000).collect()) { sorting::search(input, black_box(77)) }
    fn reverse(input: Vec<u32> = mixed(50)) { sorting::reverse(input) }
    fn fenwick(input: Vec<u32> = mixed(50)) { sorting::fenwick(input, black_box(37)) }
    fn parse() { text::parse(black_box("18446744073709551615")) }
    fn format(out: String = String::new()) { text::format(black_box(12_345_678_901), out) }
    fn rot13(input: [u8; 94] = *BYTES) { text::rot13(input) }
    fn distance() { text::distance(black_box(b"measurement"), black_box(b"measured events")) }
}
