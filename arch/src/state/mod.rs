//! What foreign code of ring 0 can change so that the next call would find another machine.
//!
//! `Core` is compared after each call: what the firmware itself cannot continue without. [`Baseline`] is compared after
//! each item of a job: the rest of the registers. Only what differs is written, since each of these writes costs a VM exit or a TLB
//! flush; and what was written is remembered for [`take_restored`]. [`Tables`] are compared there as well: what the processor
//! reads from memory. [`mod@image`] is a sum over the firmware's code.
//!
//! Not looked at: the firmware's data and heap; devices other than the local APIC and the masks of the 8259s; variable and
//! fixed MTRRs; the PMU and LVTPC, which each item programs again; pending interrupts.

mod baseline;
mod core_state;
pub mod image;
mod tables;

pub use baseline::Baseline;
pub(crate) use baseline::note_apic_base;
pub(crate) use core_state::{Core, no_breakpoints};
pub use tables::Tables;
pub(crate) use tables::{differs, note_page_table};

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// Names of what was restored, in the manuals' terms. The position is the bit in [`RESTORED`].
const NAMES: [&str; 54] = [
    "CR0",
    "CR3",
    "CR4",
    "CR8",
    "XCR0",
    "GDTR",
    "IDTR",
    "LDTR",
    "TR",
    "DS",
    "ES",
    "SS",
    "FS",
    "GS",
    "DR7",
    "DR0",
    "DR1",
    "DR2",
    "DR3",
    "DR6",
    "LVT timer",
    "LVT LINT0",
    "LVT LINT1",
    "LVT error",
    "SVR",
    "APIC timer", // 26 so far, then those of `baseline::MSRS`.
    "IA32_TSC_ADJUST",
    "IA32_APIC_BASE",
    "IA32_MISC_ENABLE",
    "IA32_SYSENTER_CS",
    "IA32_SYSENTER_ESP",
    "IA32_SYSENTER_EIP",
    "IA32_DEBUGCTL",
    "IA32_PAT",
    "IA32_MTRR_DEF_TYPE",
    "IA32_EFER",
    "IA32_STAR",
    "IA32_LSTAR",
    "IA32_CSTAR",
    "IA32_FMASK",
    "IA32_FS_BASE",
    "IA32_GS_BASE",
    "IA32_KERNEL_GS_BASE",
    "IA32_TSC_AUX",
    "IA32_SPEC_CTRL",
    "IA32_XSS", // Those of `baseline::MSRS` end here.
    "LVT thermal",
    "APIC timer divide",
    "8259 masks",
    "IDT",
    "GDT",
    "TSS",
    "interrupt stacks",
    "page tables",
];
/// Position of the first MSR in [`NAMES`].
const FIRST_MSR: usize = 26;
/// Position of the first one after the MSRs.
const FIRST_OTHER: usize = 46;
/// Position of the first table in memory.
const FIRST_TABLE: usize = 49;
/// Bits of those without which the firmware itself cannot continue: CR0, CR3, CR4, GDTR, IDTR, and the tables. Who changed one of
/// them may have changed more.
const VITAL: u64 = 0b0110_0111 | !0 << FIRST_TABLE;

/// Bits of [`NAMES`].
static RESTORED: AtomicU64 = AtomicU64::new(0);

/// Notes that something was restored.
fn note(index: usize) {
    RESTORED.fetch_or(1 << index, Ordering::Relaxed);
}

/// Whether something was restored since [`take_restored`] that the firmware cannot continue without: reason enough to look at
/// its code ([`image::sum`]).
#[must_use]
pub fn is_broken() -> bool {
    RESTORED.load(Ordering::Relaxed) & VITAL != 0
}

/// Names of what was restored since the last call.
#[must_use]
pub fn take_restored() -> Vec<&'static str> {
    let bits = RESTORED.swap(0, Ordering::Relaxed);
    // After nearly every item there is nothing.
    if bits == 0 {
        return Vec::new();
    }
    NAMES.iter().enumerate().filter(|&(index, _)| bits & 1 << index != 0).map(|(_, &n)| n).collect()
}
