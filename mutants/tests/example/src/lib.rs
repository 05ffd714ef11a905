//! What the test of schemata plants mistakes in: `../list.json` is cargo-mutants' list of them.
#![cfg_attr(not(test), no_std)]

extern crate alloc;
use alloc::vec::Vec;

/// Without a default.
#[derive(Debug, PartialEq)]
pub struct Kind(u8);

/// The test knows both branches, but no value at which they meet.
pub fn kind(n: u32) -> Kind {
    match n {
        0 => Kind(1),
        n if n > 9 && n % 2 == 0 => Kind(2),
        _ => Kind(!0),
    }
}

/// No test calls it.
pub fn unused(a: u32, b: u32) -> u32 {
    a - b
}

const fn twice(n: usize) -> usize {
    n * 2
}

/// Its length is computed while the compiler runs.
pub static TABLE: [u8; twice(3)] = [0; 6];

/// Of a type without a name.
pub fn evens(n: u32) -> impl Iterator<Item = u32> {
    (0..n).filter(|i| i % 2 == 0)
}

/// Its replacement needs `vec!`, which a crate without the standard library lacks.
pub fn digits(n: u32) -> Vec<u32> {
    let mut rest = n;
    let mut out = Vec::new();
    while let Some(digit) = (rest > 0).then_some(rest % 10)
        && out.len() < 10
    {
        out.push(digit);
        rest /= 10;
    }
    out
}

/// Of references: those to replacements would be `&mut`, which is another type.
pub fn large(list: &[u32]) -> impl Iterator<Item = &u32> {
    list.iter().filter(|n| **n > 9)
}

/// Read where code runs, by a test as well.
const LIMIT: u32 = 1 << 4;

/// Read by the compiler too.
const WIDTH: usize = 1 + 1;

/// What is read of both.
pub fn wide(n: u32) -> [bool; WIDTH] {
    [n > LIMIT; WIDTH]
}

/// A guard at the first arm would keep `one` borrowed in the second.
pub fn first(one: &mut Result<u32, Vec<u32>>) -> Option<&mut u32> {
    match one {
        Ok(only) => Some(only),
        _ => one.as_mut().err().and_then(|list| list.first_mut()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        assert_eq!([kind(0), kind(12), kind(13), kind(8)], [Kind(1), Kind(2), Kind(255), Kind(255)]);
    }

    #[test]
    fn tables() {
        assert_eq!(TABLE.len(), 6);
        assert_eq!(evens(5).count(), 3);
        assert_eq!(large(&[9, 10, 11]).count(), 2);
    }

    #[test]
    fn constants() {
        assert_eq!((wide(LIMIT + 1), wide(16)), ([true; 2], [false; 2]));
    }

    #[test]
    fn lists() {
        assert_eq!((first(&mut Ok(7)), first(&mut Err(vec![8]))), (Some(&mut 7), Some(&mut 8)));
        assert_eq!(digits(120), [0, 2, 1]);
    }
}
