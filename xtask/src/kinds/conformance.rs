//! Checks of the PMU, and bring-ups. What they report is told by `render::checks`, as no job judges it.

use super::Planned;
use protocol::job::Conformance;

impl Planned for Conformance<'_> {}
