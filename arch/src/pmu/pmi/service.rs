//! The handler in Rust: for processors without a status register, and the reference for the assembly.

use super::ControlBlock;
use super::block::Sample;
use crate::pmu::driver::Write;

/// The instructions of the handler. Registers are known to exist, so nothing can fail.
pub trait Raw {
    /// RDMSR.
    fn rdmsr(&mut self, msr: u32) -> u64;
    /// WRMSR.
    fn wrmsr(&mut self, msr: u32, value: u64);
    /// Clears LVTPC's mask bit.
    fn unmask(&mut self);
    /// End of interrupt.
    fn end(&mut self);
    /// RDTSC.
    fn tsc(&mut self) -> u64;
}

/// Most rounds of one interrupt: counters with a period shorter than the handler would keep it for ever.
const MAX_ROUNDS: u32 = 100;

/// Handles one PMI that came at `rip`.
#[inline]
pub fn service(block: &mut ControlBlock, raw: &mut impl Raw, rip: u64) {
    put(raw, block.stop);
    let mut found = overflows(block, raw);
    if found == 0 {
        block.spurious += 1;
    } else {
        block.pmis += 1;
    }
    let mut rounds = 0;
    while found != 0 && rounds < MAX_ROUNDS {
        if block.clear != 0 {
            raw.wrmsr(block.clear, found);
        }
        reload(block, raw, found);
        sample(block, raw, rip, found);
        put(raw, block.resume);
        raw.unmask();
        rounds += 1;
        found = overflows(block, raw);
        block.back_to_back += u64::from(found != 0);
    }
    if rounds == 0 {
        put(raw, block.resume);
        raw.unmask();
    }
    if block.nmi == 0 {
        raw.end();
    }
}

#[inline]
fn put(raw: &mut impl Raw, write: Write) {
    if write.msr != 0 {
        raw.wrmsr(write.msr, write.value);
    }
}

/// The counters that overflowed.
#[inline]
fn overflows(block: &ControlBlock, raw: &mut impl Raw) -> u64 {
    if block.status != 0 {
        return raw.rdmsr(block.status) & block.mask;
    }
    let (mut left, mut found) = (block.mask, 0);
    while left != 0 {
        let index = left.trailing_zeros() as usize;
        left &= left - 1;
        let slot = &block.slots[index & 63];
        // Only a counter that is reloaded starts with its top bit set; the others say nothing.
        if slot.reload != 0 && raw.rdmsr(slot.look_at) & block.top == 0 {
            found |= 1 << index;
        }
    }
    found
}

#[inline]
fn reload(block: &mut ControlBlock, raw: &mut impl Raw, mut found: u64) {
    while found != 0 {
        let index = found.trailing_zeros() as usize;
        found &= found - 1;
        let slot = &mut block.slots[index & 63];
        slot.overflows += 1;
        if slot.reload != 0 {
            raw.wrmsr(slot.reload, slot.preset);
        }
    }
}

#[inline]
fn sample(block: &mut ControlBlock, raw: &mut impl Raw, rip: u64, status: u64) {
    if block.end == 0 {
        return;
    }
    if block.cursor >= block.end {
        block.dropped += 1;
        return;
    }
    let one = Sample { rip, status, tsc: raw.tsc() };
    // SAFETY: `log_to` took the log as a slice of samples, and the cursor lies within it.
    unsafe { (block.cursor as *mut Sample).write(one) };
    block.cursor += size_of::<Sample>() as u64;
}
