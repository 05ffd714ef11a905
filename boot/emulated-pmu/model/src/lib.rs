//! A register-level model of the x86 performance monitoring unit (PMU).
//!
//! It answers CPUID, RDMSR, WRMSR and RDPMC as a chosen processor would ([`Model`]), and counts
//! what it is told has happened ([`Pmu::advance`]). It knows nothing of hypervisors: a hypervisor
//! presents it to its guest, and a driver's host tests use it as the machine.
//!
//! ```
//! use pmu_model::{Delta, Host, Model, Pmu, Ring, RingMask, Timing};
//!
//! let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::DEFAULT);
//! // Instructions retired, in both rings, with an interrupt at overflow, which is 1,000 events away.
//! pmu.write_msr(0x4C1, (1 << 48) - 1_000)?;
//! pmu.write_msr(0x186, 0x53_00C0)?;
//! assert_eq!(pmu.until_overflow(RingMask::BOTH), Some(1_000));
//! assert!(!pmu.advance(&Delta::bulk(Ring::User, 999)).pmi);
//! assert!(pmu.advance(&Delta::bulk(Ring::Kernel, 1)).pmi);
//! assert_eq!(pmu.read_msr(0x38E)?, 1);
//! # Ok::<(), pmu_model::MsrError>(())
//! ```
//!
//! # How a caller runs it
//!
//! 1. [`Pmu::needs`] says whether bulk reports will do or instructions must be stepped, and what
//!    must be seen of each; [`Pmu::until_overflow`] how far to run. Both change with a write
//!    ([`Effects::replan`]) and with a PMI.
//! 2. Run, and report with [`Pmu::advance`]. When stepping, [`uarch::Core::retire`] turns an
//!    instruction's branch and data accesses into a [`Delta`]; [`Pmu::record_branch`] comes before
//!    it.
//!    Somebody who counts occurrences at full speed reports [`Delta::counted`], never beyond [`Pmu::limits`], and not
//!    while [`Needs::unspread`] names a counter.
//! 3. [`Outcome::pmi`] requests an interrupt through LVTPC.
//!
//! # What is the processor's, and what is chosen here
//!
//! [`choices`] lists every point at which the model had to choose.
//!
//! The crate allocates nothing (but for `hierarchy`, which is for the host), holds no floating-point number, and is `no_std`.
//!
//! `docs/architecture/emulated-pmu.md` tells the way of one counted instruction through its parts.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

#[cfg(any(test, feature = "hierarchy"))]
extern crate alloc;

mod bits;
mod branch;
mod cpuid;
mod delta;
mod error;
pub mod events;
mod host;
mod lbr;
mod metrics;
pub mod mixture;
pub mod model;
pub mod msr;
mod mutation;
mod occurrence;
mod pmu;
pub mod qualify;
pub mod recording;
mod registers;
mod ring;
mod selection;
mod selector;
mod timing;
pub mod uarch;
mod world;

#[doc = include_str!("../CHOICES.md")]
pub mod choices {}

pub use branch::{Branch, BranchKind};
pub use cpuid::CpuidResult;
pub use delta::Delta;
pub use error::{Fault, MsrError};
pub use host::Host;
pub use mixture::Mixture;
pub use model::Model;
#[cfg(feature = "mutations")]
pub use mutation::Mutation;
pub use occurrence::{Bulk, OCCURRENCES, Occurrence};
pub use pmu::{
    Effects, GuestMemory, Limit, Needs, Outcome, PageSize, Pmu, Retirement, Sampled, Silence,
    Unknown, rdpmc_allowed,
};
pub use qualify::Qualifiers;
pub use recording::Recording;
pub use ring::{Ring, RingMask};
pub use selection::Selection;
pub use selector::{Selector, Threshold, bits as selector_bits};
pub use timing::{Ratio, Timing};
pub use world::World;
