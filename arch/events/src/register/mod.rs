//! The registers that events end up in: the event select and the control of fixed counters.

mod fixed;
mod select;

pub use fixed::FixedControl;
pub use select::{EventSelect, ReservedBits};
