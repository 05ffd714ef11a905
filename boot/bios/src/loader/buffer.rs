//! Memory that real mode can reach, for what a BIOS call reads and writes.

/// Between the loader's program and its data: see `link.ld`.
const START: usize = 0x2_0000;
/// A segment's worth. It crosses no boundary of 64 KiB, which some disk controllers cannot.
pub const BYTES: usize = 0x1_0000;
/// The segment that it is, for real mode.
pub const SEGMENT: u16 = (START >> 4) as u16;

/// Copies `bytes` to `offset` of the buffer.
///
/// # Panics
/// If they do not fit.
pub fn write(offset: usize, bytes: &[u8]) {
    assert!(offset + bytes.len() <= BYTES);
    let to = (START + offset) as *mut u8;
    // SAFETY: within the buffer, which nothing else is in and no reference points to.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

/// Copies bytes from `offset` of the buffer.
///
/// # Panics
/// If the buffer ends before `to` does.
pub fn read(offset: usize, to: &mut [u8]) {
    assert!(offset + to.len() <= BYTES);
    let from = (START + offset) as *const u8;
    // SAFETY: as in `write`; every byte is initialised memory.
    unsafe { core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
}
