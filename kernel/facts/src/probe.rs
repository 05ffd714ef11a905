//! What measuring takes of a machine.

/// In a place: it is reached through large pages, and not through those of 4 KiB. The memory is the same.
pub const LARGE: u64 = 1 << 63;

/// What is emptied before the first load.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flush {
    /// Nothing.
    Nothing,
    /// The caches.
    Caches,
    /// The TLBs.
    Tlbs,
    /// Both.
    Both,
}

/// Loads, each of which leads to the next.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What is emptied before.
    pub flush: Flush,
    /// Where they load from, in bytes from the start of the memory; [`LARGE`] says through which pages. Eight bytes lie there, and
    /// no two places have bytes in common.
    pub places: &'a [u64],
    /// How many of the first ones are not measured.
    pub skip: usize,
    /// How often it is run: the quickest counts.
    pub tries: u32,
}

/// A machine on which loads can be timed, with physically contiguous memory that is mapped in pages of 4 KiB and in large ones.
pub trait Probe {
    /// Bytes of that memory: a power of two.
    fn bytes(&self) -> u64;

    /// Bytes of the large pages.
    fn large_page(&self) -> u64;

    /// Cycles that the measured loads of a run take beyond as many hits of the first level and of its TLB.
    fn cycles(&mut self, run: &Run<'_>) -> u64;

    /// Tenths of a cycle that a hit of the first level takes.
    fn hit_tenths(&mut self) -> u64;

    /// Tenths of a cycle that a load takes beyond a hit of the first level, the mean of a walk in random order through all lines of
    /// the first `bytes` bytes, in large pages, each of `line` bytes. A walk has gone before.
    fn walk_tenths(&mut self, bytes: u64, line: u64) -> u64;

    /// Work has gone on; whoever waits may be informed.
    fn beat(&mut self) {}
}
