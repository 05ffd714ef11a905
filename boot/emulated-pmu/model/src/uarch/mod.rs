//! A small, deterministic microarchitecture: what decides whether a branch was mispredicted and
//! where an access found its data. It resembles no particular processor.
//!
//! | part | size | policy |
//! | --- | --- | --- |
//! | branch direction | 4096 two-bit counters, by address and 8 bits of history | static until trained |
//! | indirect targets | 1024 entries, direct-mapped | last target |
//! | returns | stack of 16 | wraps |
//! | first-level data cache | 32 KiB, 8 ways, 64-byte lines | LRU, write-allocate |
//! | last-level cache ([`Llc`]) | 2 MiB, 16 ways | LRU, not inclusive; adjacent-line prefetch if wanted |
//! | first-level data TLB | 64 entries, 4 ways, 4 KiB pages | LRU |
//! | second-level TLB | 1536 entries, 12 ways, 4 KiB pages | LRU |
//!
//! Caches are addressed by physical address, TLBs by linear page without an address-space tag: the
//! caller flushes them where the guest's TLB would be ([`Core::flush_tlb`], [`Core::invlpg`]).
//! Instruction fetches, write-backs and page-walk accesses touch nothing.

mod cache;
mod core;
mod predictor;
mod set_assoc;
mod tlb;

pub use cache::{Access, AccessKind, LINE_BYTES, Llc, Prefetch};
pub use core::{Core, Retired};
pub use predictor::Predictor;
pub use set_assoc::SetAssoc;
pub use tlb::{PAGE_BYTES, Tlb, Translation};
