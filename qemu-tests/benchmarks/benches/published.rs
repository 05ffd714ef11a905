//! Functions of published crates: hashing, compression, sorting, formatting, parsing, floating point, copies.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use barecount::{Arena, bench, black_box};
use core::fmt::Write;
use core::hash::Hasher;
use unicode_segmentation::UnicodeSegmentation;
use winnow::Parser;
use winnow::ascii::{dec_uint, space0};
use winnow::combinator::separated;

barecount::main!();

#[global_allocator]
static HEAP: Arena<{ 4 << 20 }> = Arena::new();

const TEXT: &str = "Pack my box with five dozen liquor jugs; the quick brown fox jumps over the lazy dog. \
                    Pack my box with five dozen liquor jugs; the quick brown fox jumps over the lazy dog.";

fn text() -> Vec<u8> {
    TEXT.as_bytes().to_vec()
}

fn hash(mut hasher: impl Hasher, bytes: &[u8]) -> u64 {
    hasher.write(bytes);
    hasher.finish()
}

fn numbers(n: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(7);
    core::iter::repeat_with(|| random.u64(..)).take(n).collect()
}

/// Numbers between commas.
fn list(text: &mut &str) -> Option<Vec<u32>> {
    let comma = (space0::<_, winnow::error::ContextError>, ',', space0);
    separated(1.., dec_uint::<_, u32, _>, comma).parse_next(text).ok()
}

/// `rep movsb`.
fn copy_by_string_instruction(to: &mut [u8], from: &[u8]) {
    let bytes = to.len().min(from.len());
    // SAFETY: both are as long, and neither overlaps the other.
    unsafe {
        core::arch::asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to.as_mut_ptr() => _,
            inout("rsi") from.as_ptr() => _, options(nostack, preserves_flags));
    }
}

/// The same in a loop that no compiler takes for a copy.
fn copy_by_loop(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *black_box(from);
    }
}

bench! {
    fn adler2(input: Vec<u8> = text()) { adler2::adler32_slice(input) }
    fn crc(input: Vec<u8> = text()) { crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(input) }
    fn fnv(input: Vec<u8> = text()) { hash(fnv::FnvHasher::default(), input) }
    fn siphash(input: Vec<u8> = text()) {
        hash(siphasher::sip::SipHasher13::new_with_keys(black_box(1), 2), input)
    }
    fn xxhash64(input: Vec<u8> = text()) { twox_hash::XxHash64::oneshot(black_box(1), input) }
    fn compress(input: Vec<u8> = text()) { miniz_oxide::deflate::compress_to_vec(input, 6) }
    fn decompress(input: Vec<u8> = miniz_oxide::deflate::compress_to_vec(TEXT.as_bytes(), 6)) {
        miniz_oxide::inflate::decompress_to_vec(input).map_or(0, |bytes| bytes.len())
    }
    fn sort_unstable(input: Vec<u64> = numbers(200)) { input.sort_unstable() }
    fn sort_stable(input: Vec<u64> = numbers(200)) { input.sort() }
    fn random_numbers() { fastrand::Rng::with_seed(black_box(1)).u64(..1000) }
    fn hash_map(input: hashbrown::HashMap<u64, u64, core::hash::BuildHasherDefault<fnv::FnvHasher>> =
        hashbrown::HashMap::default())
    {
        for key in 0..black_box(64) {
            let _ = input.insert(key, key * key);
        }
        input.get(&black_box(7)).copied()
    }
    fn binary_heap(input: heapless::binary_heap::BinaryHeap<u64, heapless::binary_heap::Max, 64> =
        heapless::binary_heap::BinaryHeap::new())
    {
        for number in 0..black_box(50_u64) {
            let _ = input.push(number * 37 % 51);
        }
        input.pop()
    }
    fn itoa(out: itoa::Buffer = itoa::Buffer::new()) { out.format(black_box(1_234_567_890_123_u64)).len() }
    fn ryu(out: ryu::Buffer = ryu::Buffer::new()) { out.format(black_box(1.234_567e-89)).len() }
    fn core_format(out: String = String::with_capacity(64)) {
        let _ = write!(out, "{:.3} {:>12}", black_box(2.5_f64), black_box(99_u8));
    }
    fn core_parse() { black_box("-12.345e6").parse::<f64>() }
    fn postcard(out: [u8; 64] = [0; 64]) {
        postcard::to_slice(&(black_box(300_u32), "name", [1_u8, 2, 3]), out).map_or(0, |bytes| bytes.len())
    }
    fn winnow() { list(&mut black_box("1, 22, 333, 4444")) }
    fn words() { black_box(TEXT).unicode_words().count() }
    fn memchr(input: Vec<u8> = text()) { memchr::memchr(black_box(b'z'), input) }
    fn memmem() { memchr::memmem::find(black_box(TEXT.as_bytes()), b"lazy") }
    fn sine() { libm::sin(black_box(1.25)) }
    fn exponential() { libm::exp(black_box(-3.5)) }
    fn power() { libm::pow(black_box(2.5), black_box(1.7)) }
    fn gamma() { libm::tgamma(black_box(4.5)) }
    fn memcpy_with_rep(to: [u8; 200] = [0; 200]) { copy_by_string_instruction(to, black_box(&[7; 200])) }
    fn memcpy_without_rep(to: [u8; 200] = [0; 200]) { copy_by_loop(to, black_box(&[7; 200])) }
}
