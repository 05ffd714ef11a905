//! Time: the time stamp counter ([`tsc`]) and what its rate is measured against.

mod calibrate;
pub mod hpet;
pub mod pit;
mod pm_timer;
pub mod rtc;
pub mod tsc;

pub use calibrate::{Clock, Source};
pub use pm_timer::{HZ as PM_TIMER_HZ, PmTimer};
