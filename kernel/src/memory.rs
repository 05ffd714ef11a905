//! Filling the memory that an item asks for.

use crate::random::Random;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use protocol::job::memory::{Chase, Fill, Memory, Order};

/// Words from one word of progress to the next: 1 MiB.
const TOLD_WORDS: usize = 1 << 17;
/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Gives `words`, which are the mapped memory of `memory` whatever they held, the content that it asks for. `told` hears now
/// and then how many bytes are done.
pub fn fill(words: &mut [u64], memory: &Memory, told: &mut dyn FnMut(u64)) {
    let bytes = memory.bytes as usize;
    match &memory.fill {
        Fill::Zero => in_parts(words, told, |_, part| part.fill(0)),
        Fill::Pattern(pattern) => {
            // Repeated so often that it is whole words.
            let mut whole: Vec<u8> = Vec::new();
            (0..WORD).for_each(|_| whole.extend_from_slice(pattern));
            let whole = whole.as_chunks::<WORD>().0;
            in_parts(words, told, |first, part| {
                for (index, word) in part.iter_mut().enumerate() {
                    *word = u64::from_le_bytes(whole[(first + index) % whole.len()]);
                }
            });
            end_at(words, bytes);
        }
        Fill::Bytes(content) => in_parts(words, told, |first, part| {
            let rest = content.get(first * WORD..).unwrap_or_default();
            for (index, word) in part.iter_mut().enumerate() {
                let mut eight = [0; WORD];
                let from = rest.get(index * WORD..).unwrap_or_default();
                let count = from.len().min(WORD);
                eight[..count].copy_from_slice(&from[..count]);
                *word = u64::from_le_bytes(eight);
            }
        }),
        Fill::Chase(order) => {
            in_parts(words, told, |_, part| part.fill(0));
            chase(words, memory.at, bytes / order.stride as usize, order, told);
        }
    }
}

/// Calls `each` with parts of `words`, and with the number of each part's first word.
fn in_parts(words: &mut [u64], told: &mut dyn FnMut(u64), each: impl Fn(usize, &mut [u64])) {
    for (part, number) in words.chunks_mut(TOLD_WORDS).zip(0..) {
        let first: usize = number * TOLD_WORDS;
        each(first, part);
        told((first * WORD) as u64);
    }
}

/// Makes everything from byte `bytes` on zero.
fn end_at(words: &mut [u64], bytes: usize) {
    let (whole, part) = (bytes / WORD, bytes % WORD);
    if let Some(word) = words.get_mut(whole) {
        *word &= (1 << (8 * part)) - 1;
    }
    words.iter_mut().skip(whole + 1).for_each(|word| *word = 0);
}

/// Makes `count` elements, the first one at address `at`, one cycle.
fn chase(words: &mut [u64], at: u64, count: usize, order: &Chase, told: &mut dyn FnMut(u64)) {
    let step = order.stride as usize / WORD;
    let address = |element: usize| at + element as u64 * u64::from(order.stride);
    for element in 0..count {
        let next = match order.order {
            // Each leads to itself until the draw.
            Order::Random => element,
            Order::Forward => (element + 1) % count,
            Order::Backward => (element + count - 1) % count,
        };
        words[element * step] = address(next);
    }
    if order.order != Order::Random {
        return;
    }
    // Sattolo: like a shuffle, but each is exchanged with one before it, never with itself; so the cycles of one element that
    // there were become one.
    let mut random = Random::new(order.seed);
    for element in (1..count).rev() {
        let other = random.below(element as u64) as usize;
        words.swap(element * step, other * step);
        if element.is_multiple_of(TOLD_WORDS) {
            told((count - element) as u64 * u64::from(order.stride));
        }
    }
}

/// What the report says of memory that was made.
#[must_use]
pub fn note(memory: &Memory) -> String {
    let mapped = memory.mapped();
    let bytes = mapped.end - mapped.start;
    let pages = bytes / memory.page_size.bytes();
    let fill = match &memory.fill {
        Fill::Zero => String::from("zero"),
        Fill::Pattern(pattern) => format!("a pattern of {} bytes", pattern.len()),
        Fill::Bytes(bytes) => format!("a file of {} bytes", bytes.len()),
        Fill::Chase(Chase { stride, order, seed }) => {
            let elements = memory.bytes / u64::from(*stride);
            let order = match order {
                Order::Random => format!("in the random order of seed {seed}"),
                Order::Forward => String::from("forward"),
                Order::Backward => String::from("backward"),
            };
            format!("a chase of {elements} elements {stride} bytes apart, {order}")
        }
    };
    let page = memory.page_size.name();
    format!("{} bytes at {:#x}, pages of {page}: {pages}; {fill}", memory.bytes, memory.at)
}

#[cfg(test)]
mod tests;
