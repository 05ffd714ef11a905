//! The performance monitoring unit.
//!
//! - [`find`]: is there one, and what can it do ([`Capabilities`], with [`errata`]). [`trial`]: what of it really works.
//! - [`Ownership`]: taking it over and giving it back.
//! - [`Driver`]: programming, reading, starting and stopping counters, by one interface on every model.
//! - [`lbr`]: branch records. [`ibs`]: AMD's instruction-based sampling. [`pmi`]: the interrupt at overflow. [`rdpmc`]:
//!   reading above ring 0. [`stop_on_overflow`]: all counters stop at an overflow. [`energy`]: RAPL. [`uncore`]: counters of the package.
//! - [`window`] and [`workload`]: code with known counts between two writes of the [`Gate`].
//!
//! Everything reaches the registers through [`Registers`]: the processor, or a model of it in host tests.

mod access;
mod capabilities;
pub mod data_source;
mod deferred;
pub mod driver;
mod emulated;
pub mod energy;
pub mod errata;
pub mod ibs;
pub mod inventory;
pub mod lbr;
#[cfg(feature = "model")]
pub mod model;
pub mod numbers;
mod ownership;
pub mod pebs;
pub mod pmi;
mod probe;
pub mod qualifiers;
pub mod rdpmc;
pub mod registers;
pub mod stop_on_overflow;
pub mod trial;
pub mod uncore;
pub mod window;
pub mod workload;

pub use access::{Machine, Readable, Registers, leaves};
pub use capabilities::{
    Architecture, Capabilities, Counter, Fault, FreezeKind, LbrKind, Unfrozen, Wrong,
};
pub use deferred::Deferred;
pub use driver::{Driver, Freeze, Gate, PmuError, Rings, Selection};
pub use emulated::Emulated;
pub use ownership::{Conflict, Ownership};
pub use probe::{Missing, find};

#[cfg(test)]
mod tests;
