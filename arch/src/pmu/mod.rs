//! The performance monitoring unit: which one CPUID announces ([`enumerate()`]), and whether its registers
//! really hold a value (`probe`).

mod enumerate;
mod probe;

pub use enumerate::{Architecture, Enumeration, enumerate};
pub use probe::{Missing, find};
