//! The library against the register-level model of every processor.

mod bench;
mod virtual_counters;

use super::*;
use arch::pmu::pmi::ControlBlock;
use arch::pmu::{Counter, Driver, Freeze, FreezeKind, Selection};
use bench::Bench;
use pmu_model::{Model, Ring};
use proptest::prelude::*;

/// Instructions retired, everywhere.
const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);
