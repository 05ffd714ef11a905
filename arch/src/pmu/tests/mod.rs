//! The driver against the register-level model of every processor.

mod adaptive;
mod architectural;
mod capabilities;
mod carry;
mod counting;
mod edges;
mod formats;
mod freeze;
mod ibs_samples;
mod interrupt;
mod owner;
mod precise;
mod records;
mod renew;
mod sampling;
mod status;
mod stop_on_overflow;
mod trial;
mod watchdog;

use super::*;
use pmu_model::{Host, Model, Pmu, Timing};

/// The model out of RESET.
fn machine(model: Model) -> Pmu {
    Pmu::new(model, Host::EXAMPLE, Timing::FLAT)
}

/// The models that have a PMU, each with a driver.
fn machines() -> impl Iterator<Item = (Model, Pmu, Driver)> {
    Model::ALL.into_iter().filter(|&model| model != Model::None).map(|model| {
        let mut pmu = machine(model);
        let driver = Driver::new(find(&mut pmu).expect("a PMU"));
        (model, pmu, driver)
    })
}

/// Instructions retired, everywhere.
const INSTRUCTIONS: Selection = Selection::of(0xc0, 0);
