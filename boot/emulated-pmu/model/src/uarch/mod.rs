//! A small, deterministic microarchitecture: what decides whether a branch was mispredicted and
//! where an access found its data. It resembles no particular processor.
//!
//! | part | size | policy |
//! | --- | --- | --- |
//! | branch direction | 4096 two-bit counters, by address and 8 bits of history | static until trained |
//! | indirect targets | 1024 entries, direct-mapped | last target, LRU if there are ways |
//! | returns | stack of 16 | wraps |
//! | first-level data cache | 32 KiB, 8 ways, 64-byte lines | LRU, write-allocate |
//! | last-level cache ([`Llc`]) | 2 MiB, 16 ways | LRU, not inclusive; adjacent-line prefetch if wanted |
//! | first-level data TLB | 64 entries, 4 ways, 4 KiB pages | LRU |
//! | second-level TLB | 1536 entries, 12 ways, 4 KiB pages | LRU |
//!
//! The predictor tells addresses apart by their lowest 12 bits alone: partial tags, as processors have them. So it gives
//! the same with linear and with physical addresses. Two users run the model: whoever steps instructions, with
//! [`Core::retire`], and a translator that sees accesses and branches one by one, with [`Core::access`] and
//! [`Core::branch`]; [`StringRun`] makes repeated string instructions the same for both.
//!
//! Caches are addressed by physical address, TLBs by linear page without an address-space tag: the
//! caller flushes them where the guest's TLB would be ([`Core::flush_tlb`], [`Core::invlpg`]).
//! Write-backs and page-walk accesses touch nothing, instruction fetches what [`Parameters`] have for them alone.
//!
//! With [`Parameters`] caches and TLBs are others, and loads take time: [`parameters`] has the list, `Hierarchy` the rules. It
//! takes memory of its own, and with it the feature `hierarchy`.

mod cache;
mod core;
#[cfg(feature = "hierarchy")]
mod delivery;
#[cfg(feature = "hierarchy")]
mod flight;
pub mod forward;
pub mod front_end;
#[cfg(feature = "hierarchy")]
mod hierarchy;
pub mod parameters;
pub mod ports;
mod predictor;
pub mod prefetcher;
pub mod replacement;
mod set_assoc;
mod sink;
#[cfg(feature = "hierarchy")]
mod store;
#[cfg(feature = "hierarchy")]
mod stores;
mod string_run;
mod tlb;
pub mod transfer;
pub mod window;

pub use cache::{Access, AccessKind, LINE_BYTES, Llc, Prefetch};
pub use core::{Core, Parts, Retired};
#[cfg(feature = "hierarchy")]
pub use hierarchy::Hierarchy;
pub use parameters::Parameters;
pub use ports::{PORTS, PortLoads, PortMap, UopClass};
pub use predictor::{Predictor, Resolved};
pub use set_assoc::SetAssoc;
pub use sink::{Sink, Tee};
pub use string_run::{LinePart, StringRun};
pub use tlb::{PAGE_BYTES, Tlb, Translation};
