//! What several tests use.
#![allow(dead_code, reason = "each test file takes what it needs")]

pub mod arch_pebs;
pub mod ibs;
pub mod lbr;
pub mod pebs;
pub mod table;

use pmu_model::{Delta, Fault, Host, Model, MsrError, Pmu, Ring, Timing};

pub const EN: u64 = 1 << 22;
pub const INT: u64 = 1 << 20;
pub const USR: u64 = 1 << 16;
pub const OS: u64 = 1 << 17;
pub const EDGE: u64 = 1 << 18;
pub const INV: u64 = 1 << 23;

/// Models that have counters.
pub fn with_counters() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|model| *model != Model::None)
}

pub fn pmu(model: Model) -> Pmu {
    Pmu::new(model, Host::EXAMPLE, Timing::DEFAULT)
}

pub fn read(pmu: &mut Pmu, msr: u32) -> u64 {
    pmu.read_msr(msr).unwrap_or_else(|error| panic!("reading {msr:#x}: {error}"))
}

pub fn write(pmu: &mut Pmu, msr: u32, value: u64) {
    pmu.write_msr(msr, value).unwrap_or_else(|error| panic!("writing {msr:#x}: {error}"));
}

/// The fault of an access that has to raise #GP.
#[track_caller]
pub fn fault<T: std::fmt::Debug>(result: Result<T, MsrError>) -> Fault {
    match result {
        Err(MsrError::GeneralProtection(fault)) => fault,
        other => panic!("#GP expected, got {other:?}"),
    }
}

pub fn user(instructions: u64) -> Delta {
    Delta::bulk(Ring::User, instructions)
}

pub fn kernel(instructions: u64) -> Delta {
    Delta::bulk(Ring::Kernel, instructions)
}

/// The registers of counter n: its selector, and the counter in the form that takes all bits if
/// there is one.
#[derive(Clone, Copy)]
pub struct Counter {
    pub selector: u32,
    pub counter: u32,
}

pub fn counter(model: Model, n: u32) -> Counter {
    match model {
        Model::K10 => Counter { selector: 0xC001_0000 + n, counter: 0xC001_0004 + n },
        Model::Zen2 | Model::Zen4 => {
            Counter { selector: 0xC001_0200 + 2 * n, counter: 0xC001_0201 + 2 * n }
        }
        Model::Core2 | Model::Nehalem => Counter { selector: 0x186 + n, counter: 0xC1 + n },
        _ => Counter { selector: 0x186 + n, counter: 0x4C1 + n },
    }
}

/// Retired instructions.
pub const INSTRUCTIONS: u64 = 0xC0;

/// Core cycles.
pub fn cycles(model: Model) -> u64 {
    match model {
        Model::K10 | Model::Zen2 | Model::Zen4 => 0x76,
        _ => 0x3C,
    }
}

/// All retired branches.
pub fn branches(model: Model) -> u64 {
    match model {
        Model::K10 | Model::Zen2 | Model::Zen4 => 0xC2,
        _ => 0xC4,
    }
}

pub fn width(model: Model) -> u32 {
    if model == Model::Core2 { 40 } else { 48 }
}

pub fn counters(model: Model) -> u32 {
    match model {
        Model::None => 0,
        Model::Core2 => 2,
        Model::Nehalem | Model::Haswell | Model::K10 => 4,
        Model::Zen2 | Model::Zen4 | Model::Gracemont => 6,
        Model::Skylake | Model::IceLake | Model::SapphireRapids | Model::GoldenCove => 8,
        Model::ArrowLake | Model::CougarCove => 10,
    }
}

pub fn fixed_counters(model: Model) -> u32 {
    match model {
        Model::None | Model::K10 | Model::Zen2 | Model::Zen4 => 0,
        Model::Core2 | Model::Nehalem | Model::Haswell | Model::Skylake | Model::Gracemont => 3,
        Model::IceLake
        | Model::SapphireRapids
        | Model::ArrowLake
        | Model::GoldenCove
        | Model::CougarCove => 4,
    }
}

/// The global status register and the one that clears it, where they exist.
pub fn global_status(model: Model) -> Option<(u32, u32)> {
    match model {
        Model::None | Model::K10 | Model::Zen2 => None,
        Model::Zen4 => Some((0xC000_0300, 0xC000_0302)),
        _ => Some((0x38E, 0x390)),
    }
}

/// Sets a counter to wrap after `events` more; a legacy counter takes at most 2^31.
pub fn arm(pmu: &mut Pmu, model: Model, n: u32, events: u64) {
    let value = (1u64 << width(model)) - events;
    write(pmu, counter(model, n).counter, value);
}
