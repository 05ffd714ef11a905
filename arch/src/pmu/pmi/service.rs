//! The handler in Rust: for what the assembly does not do, and its reference.

use super::ControlBlock;
use super::block::{Sample, Slot};
use super::edges;
use super::handling::Around;
use super::throttle::Pace;
use super::timer::{TIMER_BIT, TIMER_SLOT};
use crate::pmu::data_source::Datum;
use crate::pmu::driver::Write;
use crate::pmu::numbers;
use crate::pmu::pebs::{BufferIndex, Port, Taken};
use crate::pmu::registers::GlobalStatus;

/// The PEBS buffer's bits of the status.
const BUFFER: u64 = GlobalStatus::BUFFER.union(GlobalStatus::RECORDS).bits();

impl<R: Raw> Port for &mut R {
    fn index(&mut self) -> BufferIndex {
        BufferIndex(self.rdmsr(numbers::PEBS_INDEX.0))
    }

    fn set_index(&mut self, index: BufferIndex) {
        self.wrmsr(numbers::PEBS_INDEX.0, index.0);
    }
}

/// The instructions of the handler. Registers are known to exist, so nothing can fail.
pub trait Raw {
    /// RDMSR.
    fn rdmsr(&mut self, msr: u32) -> u64;
    /// WRMSR.
    fn wrmsr(&mut self, msr: u32, value: u64);
    /// Clears LVTPC's mask bit.
    fn unmask(&mut self);
    /// Sets LVTPC's mask bit for good.
    fn mask(&mut self) {}
    /// Sets the mask bit of an entry of the extended local vector table for good.
    fn mask_extended(&mut self, _entry: u8) {}
    /// End of interrupt.
    fn end(&mut self);
    /// RDTSC.
    fn tsc(&mut self) -> u64;
    /// Doubles the interval of the timer that samples.
    fn slow_timer(&mut self) {}
}

/// General registers that a sample may have.
pub const REGISTERS: usize = 16;

/// The interrupted code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interrupted {
    /// Its next instruction.
    pub rip: u64,
    /// Its CS.
    pub cs: u64,
    /// Its general registers, in the order of their encoding.
    pub registers: [u64; REGISTERS],
}

/// Most rounds of one interrupt: counters with a period shorter than the handler would keep it for ever.
const MAX_ROUNDS: u32 = 100;

/// So many more interrupts without an overflow than with one, and no more are let in: a PMU, or whoever emulates it, that does
/// not stop interrupting leaves the interrupted code no time. Where the APIC does not mask LVTPC at delivery (AMD), each overflow
/// during the handler of another one leaves an interrupt that finds nothing, so their number alone says little.
pub const MOST_SPURIOUS: u64 = 1_000;

impl ControlBlock {
    /// Whether interrupts came so often without an overflow that they were masked.
    #[must_use]
    pub const fn storms(&self) -> bool {
        self.spurious >= MOST_SPURIOUS.saturating_add(self.pmis)
    }
}

/// Handles one PMI: stops the counters, if that is asked for, and lets them go on at the end.
#[inline]
pub fn service(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let around = Around::of_overflow(block);
    put_all(raw, around.before());
    handle(block, raw, from);
    if !block.stopped && !block.is_closed_at(from.rip) {
        put_all(raw, around.after());
    }
}

/// The part of [`service`] between the writes that stop the counters and those that let them continue.
#[inline]
pub(super) fn handle(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let mut found = overflows(block, raw);
    if found == 0 {
        block.spurious += 1;
        match block.storms() {
            false => raw.unmask(),
            true => raw.mask(),
        }
    } else {
        block.pmis += 1;
    }
    let mut rounds = 0;
    while found != 0 && rounds < MAX_ROUNDS {
        if block.clear != 0 {
            raw.wrmsr(block.clear, found);
        }
        reload(block, raw, found);
        if found & BUFFER != 0 {
            drain(block, raw, from);
        }
        if found & !BUFFER != 0 {
            edges::take(block, raw, from, found & !BUFFER);
            note(block, raw, from, found & !BUFFER, None, Datum::default());
        }
        raw.unmask();
        rounds += 1;
        found = overflows(block, raw);
        block.back_to_back += u64::from(found != 0);
    }
    if block.nmi == 0 {
        raw.end();
    }
    if block.stopped {
        put_all(raw, block.gate.off());
    }
}

/// Stops the counters because other code than what is sampled continues, at `from`. What had overflowed by then is handled
/// at once: its interrupt, which waits while interrupts are off, would only come in what continues next. It is a spurious
/// one then.
#[inline]
pub fn pause(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    put_all(raw, block.gate.off());
    if let Some([_, off]) = block.recording() {
        put_all(raw, &[off]);
    }
    block.shut = 1;
    super::ibs::pause(block, raw, from);
    drain(block, raw, from);
    if overflows(block, raw) == 0 {
        return;
    }
    handle(block, raw, from);
    // A streamlined freeze ends here; a legacy one when the counters are started again.
    if block.resume.msr != 0 && block.resume.msr == block.clear {
        put_all(raw, &[block.resume]);
    }
}

/// Lets the counters continue that [`pause`] stopped, unless a full log has stopped them for good.
#[inline]
pub fn resume(block: &mut ControlBlock, raw: &mut impl Raw) {
    block.shut = 0;
    super::records_by_task::switch(block, raw);
    if let (Some([on, _]), false) = (block.recording(), block.stopped) {
        put_all(raw, &[on]);
    }
    if !block.stopped {
        put_all(raw, block.gate.on());
        super::ibs::resume(block, raw);
    }
}

/// Handles one tick of the timer that samples. Where the handler of overflows is kept out of the counts, this one is as
/// well, by stopping all counters.
#[inline]
pub fn tick(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let around = Around::of_tick(block);
    put_all(raw, around.before());
    handle_tick(block, raw, from);
    if !block.stopped && !block.is_closed_at(from.rip) {
        put_all(raw, around.after());
    }
}

/// The part of [`tick`] between the writes.
#[inline]
pub(super) fn handle_tick(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    if note_tick(block, raw, from) {
        raw.slow_timer();
    }
    raw.end();
    if block.stopped {
        put_all(raw, block.gate.off());
    }
}

/// Notes a tick as a sample. Says whether ticks come late, so that the interval is to be doubled.
#[inline]
pub fn note_tick(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) -> bool {
    block.slots[TIMER_SLOT].overflows += 1;
    let now = raw.tsc();
    let late = block.times.add(now, from.rip);
    note(block, raw, from, TIMER_BIT, None, Datum::default());
    late
}

pub(super) fn put_all(raw: &mut impl Raw, writes: &[Write]) {
    for &write in writes {
        if write.msr != 0 {
            raw.wrmsr(write.msr, write.value);
        }
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
        if slot.is_reloaded() && raw.rdmsr(slot.look_at) & block.top == 0 {
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
        // The overflow stands for as many periods as it was long.
        slot.throttled += (1 << slot.running) - 1;
        slot.running = slot.level;
        if slot.reload != 0 {
            raw.wrmsr(slot.reload, slot.preset);
        } else if slot.is_reloaded() {
            // What was counted since, of a counter that stands.
            let value = raw.rdmsr(slot.look_at);
            let next = slot.next(value);
            raw.wrmsr(slot.look_at, next);
        }
    }
}

/// Takes the PEBS records out, if there are any: each is noted as a sample of its own. Records do not state their ring. It
/// is that of `from`, the code that ran until now, but for addresses of the upper half, which is the kernel's.
#[inline]
pub fn drain(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted) {
    let Some(mut records) = block.records.take() else { return };
    while records.fetch(&mut *raw) {
        records.run(|taken| note_record(block, raw, from, taken));
    }
    block.records = Some(records);
}

/// Notes a record as an overflow of its counters.
#[inline]
fn note_record(
    block: &mut ControlBlock,
    raw: &mut impl Raw,
    from: &Interrupted,
    taken: &Taken<'_>,
) {
    let &Taken { ref record, counters, branches, .. } = taken;
    let mut left = counters;
    while left != 0 {
        block.slots[left.trailing_zeros() as usize].overflows += 1;
        left &= left - 1;
    }
    let cs = if record.ip >> 63 == 0 { from.cs } else { 0 };
    let registers = record.registers.unwrap_or(from.registers);
    let place = Interrupted { rip: record.ip, cs, registers };
    let datum = block.datum(record.access.as_ref(), counters);
    edges::take_recorded(block, &place, counters, branches);
    let cursor = block.cursor;
    note(block, raw, &place, counters, record.tsc, datum);
    block.keep_groups(cursor, taken);
    block.note_retired(cursor, taken);
}

/// Everything that is told of the overflows of `status`: at `tsc`, or now; with a data access.
#[inline]
pub(super) fn note(
    block: &mut ControlBlock,
    raw: &mut impl Raw,
    from: &Interrupted,
    status: u64,
    tsc: Option<u64>,
    datum: Datum,
) {
    let task = block.task;
    block.count_access(&datum, status);
    let data = datum.address;
    if let Some(histogram) = block.data.as_mut().filter(|_| data != 0) {
        let mut left = status;
        while left != 0 {
            histogram.count(data, task, from.cs as u16, left.trailing_zeros() as u8);
            left &= left - 1;
        }
    }
    if let Some(histogram) = &mut block.histogram {
        let mut left = status;
        while left != 0 {
            histogram.count(from.rip, task, from.cs as u16, left.trailing_zeros() as u8);
            left &= left - 1;
        }
    }
    if block.end != 0 {
        let tsc = tsc.unwrap_or_else(|| raw.tsc());
        log(block, from, status, tsc, datum);
    }
    if block.throttle.limits() {
        let pace = block.throttle.judge(raw.tsc());
        pace_slots(block, pace);
    }
    if let Some(notify) = block.notify {
        notify(from.rip, status);
    }
}

/// Longer or shorter periods of all counters.
#[inline]
fn pace_slots(block: &mut ControlBlock, pace: Pace) {
    let change = match pace {
        Pace::Right => return,
        Pace::Fast => Slot::double,
        Pace::Slow => Slot::halve,
    };
    let mut changed = false;
    for slot in &mut block.slots {
        changed |= change(slot);
    }
    let times = match pace {
        Pace::Slow => &mut block.throttle.eased,
        _ => &mut block.throttle.raised,
    };
    *times += u32::from(changed);
}

#[inline]
fn log(block: &mut ControlBlock, from: &Interrupted, status: u64, tsc: u64, datum: Datum) {
    if block.cursor >= block.end {
        block.dropped += 1;
        let mut left = status;
        while left != 0 {
            block.slots[left.trailing_zeros() as usize].dropped += 1;
            left &= left - 1;
        }
        return;
    }
    let (task, cs) = (block.task, from.cs as u16);
    let one = Sample { rip: from.rip, status, tsc, task, cs, retire_latency: 0 };
    // SAFETY: `log_to` took the log as a slice of samples, and the cursor lies within it; `registers_to` made sure that
    // there are registers for each sample, `data_to` that there is an address.
    unsafe {
        (block.cursor as *mut Sample).write(one);
        let index = (block.cursor - block.start) as usize / size_of::<Sample>();
        if !block.data_log.is_null() {
            block.data_log.add(index).write(datum);
        }
        if !block.registers.is_null() {
            block.registers.add(index).write(from.registers);
        }
    }
    block.cursor += size_of::<Sample>() as u64;
    if block.stops_when_full && block.cursor >= block.end {
        block.stopped = true;
    }
}
