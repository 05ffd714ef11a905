//! Time: the time stamp counter ([`tsc`]) and what its rate is measured against.

mod calibrate;
mod pit;
mod pm_timer;
pub mod tsc;

pub use calibrate::{Clock, Source};
pub use pm_timer::PmTimer;
