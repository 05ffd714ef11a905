//! Branch records, wherever a model keeps them.

use super::{pmu, read, write};
use pmu_model::{Branch, BranchKind, Model, Pmu, Ring};

pub fn branch(from: u64, to: u64, kind: BranchKind) -> Branch {
    Branch { from, to, kind, taken: true, mispredicted: false, ring: Ring::User, cycles: 7 }
}

/// Where a model keeps its records.
pub struct Stack {
    pub entries: u32,
    pub from: u32,
    pub to: u32,
    pub stride: u32,
    /// LBR_TOS, if there is one; else the newest record is the first.
    pub top: Option<u32>,
    pub on: (u32, u64),
    /// Bits of TO in addition to the address.
    pub to_flags: u64,
}

pub fn stack(model: Model) -> Stack {
    let legacy = |entries, from, to| Stack {
        entries,
        from,
        to,
        stride: 1,
        top: Some(0x1C9),
        on: (0x1D9, 1),
        to_flags: 0,
    };
    match model {
        Model::Core2 => legacy(4, 0x40, 0x60),
        Model::Nehalem | Model::Haswell => legacy(16, 0x680, 0x6C0),
        Model::Skylake | Model::IceLake => legacy(32, 0x680, 0x6C0),
        Model::SapphireRapids
        | Model::ArrowLake
        | Model::GoldenCove
        | Model::Gracemont
        | Model::CougarCove => Stack {
            entries: 32,
            from: 0x1500,
            to: 0x1600,
            stride: 1,
            top: None,
            on: (0x14CE, 0x7F_0007),
            to_flags: 0,
        },
        Model::Zen4 => Stack {
            entries: 16,
            from: 0xC001_0300,
            to: 0xC001_0301,
            stride: 2,
            top: None,
            on: (0xC000_010F, 0x40),
            to_flags: 1 << 63,
        },
        _ => Stack {
            entries: 1,
            from: 0x1DB,
            to: 0x1DC,
            stride: 1,
            top: None,
            on: (0x1D9, 1),
            to_flags: 0,
        },
    }
}

/// The records, newest first.
pub fn records(pmu: &mut Pmu, model: Model) -> Vec<(u64, u64)> {
    let stack = stack(model);
    let top = stack.top.map(|msr| read(pmu, msr) as u32);
    (0..stack.entries)
        .map(|age| {
            let n = top.map_or(age, |top| (top + stack.entries - age) % stack.entries);
            (read(pmu, stack.from + n * stack.stride), read(pmu, stack.to + n * stack.stride))
        })
        .collect()
}

pub fn recording(model: Model) -> Pmu {
    let mut pmu = pmu(model);
    let (msr, value) = stack(model).on;
    write(&mut pmu, msr, value);
    assert!(pmu.needs().branch_records, "{model:?}");
    pmu
}
