//! Offsets for the assembly.

use super::{ControlBlock, Gate, Sample, Slot};
use core::mem::offset_of;

pub const STATUS: usize = offset_of!(ControlBlock, status);
pub const CLEAR: usize = offset_of!(ControlBlock, clear);
pub const MASK: usize = offset_of!(ControlBlock, mask);
pub const FOUND: usize = offset_of!(ControlBlock, found);
pub const RESUME: usize = offset_of!(ControlBlock, resume);
pub const STOP: usize = offset_of!(ControlBlock, stop);
pub const APIC: usize = offset_of!(ControlBlock, apic);
pub const LVT: usize = offset_of!(ControlBlock, lvt);
pub const NMI: usize = offset_of!(ControlBlock, nmi);
pub const PMIS: usize = offset_of!(ControlBlock, pmis);
pub const SPURIOUS: usize = offset_of!(ControlBlock, spurious);
pub const BACK_TO_BACK: usize = offset_of!(ControlBlock, back_to_back);
pub const DROPPED: usize = offset_of!(ControlBlock, dropped);
pub const CURSOR: usize = offset_of!(ControlBlock, cursor);
pub const END: usize = offset_of!(ControlBlock, end);
pub const TASK: usize = offset_of!(ControlBlock, task);
pub const STOPS: usize = offset_of!(ControlBlock, stops);
pub const SHUT: usize = offset_of!(ControlBlock, shut);
pub const CLOSED: usize = offset_of!(ControlBlock, closed);
pub const ON: usize = offset_of!(ControlBlock, gate) + Gate::ON;
pub const OFF: usize = offset_of!(ControlBlock, gate) + Gate::OFF;
pub const UNSAMPLED: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, dropped);
/// Its upper half: counters without a status register have 48 bits.
pub const TOP_HIGH: usize = offset_of!(ControlBlock, top) + 4;
pub const RELOAD: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, reload);
pub const PRESET: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, preset);
pub const LOOK_AT: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, look_at);
pub const CARRY: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, carry);
pub const OWED: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, owed);
pub const OVERFLOWS: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, overflows);
/// A slot is 2^6 bytes, which the assembly shifts by.
const _: () = assert!(size_of::<Slot>() == 64);
/// The assembly writes samples.
const _: () = assert!(size_of::<Sample>() == 32 && offset_of!(Sample, task) == 24);
/// CS with its upper half, which is 0, and so the latency.
const _: () = assert!(offset_of!(Sample, cs) == 28 && offset_of!(Sample, retire_latency) == 30);
