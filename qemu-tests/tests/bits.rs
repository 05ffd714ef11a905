//! 32-bit code (compatibility mode) beside 64-bit code: counted alike, told apart, and refused where it cannot be.

mod code;
mod snippets;
mod tasks;

use pmu_model::Model;
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
use xtask::machine::Given;

/// With and without a global control, Intel's and AMD's.
const MODELS: [Model; 4] = [Model::Core2, Model::Skylake, Model::Zen2, Model::Zen4];

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}
