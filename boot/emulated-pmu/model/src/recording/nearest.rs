//! Which model is nearest to a recorded processor.
//!
//! Models by family and model: the headings of SDM volume 4, chapter 2, and Linux, `arch/x86/include/asm/intel-family.h`; AMD's
//! by their PPRs' titles. Where a microarchitecture has no model here, the version of the PMU decides.

use super::{Leaves, Unfit};
use crate::model::Model;

/// A model, and whether the processor is of its microarchitecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    pub model: Model,
    pub own: bool,
}

/// Leaf 0 EBX of AMD and Hygon.
const AMD: [u32; 2] = [0x6874_7541, 0x6F67_7948];
/// Leaf 0 EBX of Intel.
pub(super) const INTEL: u32 = 0x756E_6547;
/// Leaf 7 EDX: architectural LBRs.
const ARCH_LBR: u32 = 1 << 19;
/// Leaf 0x1A EAX\[31:24\]: an efficient core.
const ATOM: u32 = 0x20;

pub(super) fn of(leaves: &Leaves) -> Result<Nearest, Unfit> {
    if leaves.answer(1, 0)[0] == 0 {
        return Err(Unfit::NoSignature);
    }
    let (family, model) = leaves.family_and_model();
    let vendor = leaves.answer(0, 0)[1];
    if AMD.contains(&vendor) {
        return amd(leaves, family, model);
    }
    let version = leaves.of(0xA, 0)[0] & 0xFF;
    if version == 0 {
        return Err(Unfit::NoPmu);
    }
    let efficient = leaves.of(0x1A, 0)[0] >> 24 == ATOM;
    let own = match (vendor == INTEL && family == 6, efficient) {
        (false, _) => None,
        (true, false) => own(model),
        (true, true) => own_efficient(model),
    };
    Ok(match own {
        Some(model) => Nearest { model, own: true },
        None => {
            let records = leaves.of(7, 0)[3] & ARCH_LBR != 0;
            let model = match super::shape::announces_records(leaves) {
                true => Model::CougarCove,
                false => by_version(version, model, records),
            };
            Nearest { model, own: false }
        }
    })
}

/// The model of the microarchitecture that the performance cores of family 6 have.
fn own(model: u32) -> Option<Model> {
    Some(match model {
        0x0F | 0x16 | 0x17 | 0x1D => Model::Core2,
        0x1A | 0x1E | 0x1F | 0x2E => Model::Nehalem,
        0x3C | 0x3F | 0x45 | 0x46 => Model::Haswell,
        0x4E | 0x5E | 0x55 | 0x8E | 0x9E | 0xA5 | 0xA6 => Model::Skylake,
        // Rocket Lake is Ice Lake's core in another process, with the same table.
        0x6A | 0x6C | 0x7D | 0x7E | 0x9D | 0xA7 => Model::IceLake,
        0x8F | 0xCF => Model::SapphireRapids,
        // Alder Lake and Raptor Lake.
        0x97 | 0x9A | 0xB7 | 0xBA | 0xBF => Model::GoldenCove,
        0xBD | 0xC5 | 0xC6 => Model::ArrowLake,
        // Panther Lake, and those that have its table.
        0xCC | 0xD5 | 0xE5 => Model::CougarCove,
        _ => return None,
    })
}

/// The same of the efficient cores: Alder Lake's, also alone (06_BE), and Raptor Lake's.
fn own_efficient(model: u32) -> Option<Model> {
    matches!(model, 0x97 | 0x9A | 0xB7 | 0xBA | 0xBE | 0xBF).then_some(Model::Gracemont)
}

fn by_version(version: u32, model: u32, arch_lbr: bool) -> Model {
    match version {
        0..=2 => Model::Core2,
        // Westmere, and Bonnell with Saltwell: without full-width writes.
        3 if matches!(model, 0x25 | 0x2C | 0x2F | 0x1C | 0x26 | 0x27 | 0x35 | 0x36) => {
            Model::Nehalem
        }
        3 => Model::Haswell,
        4 => Model::Skylake,
        5 if arch_lbr => Model::SapphireRapids,
        5 => Model::IceLake,
        _ => Model::ArrowLake,
    }
}

fn amd(leaves: &Leaves, family: u32, model: u32) -> Result<Nearest, Unfit> {
    if family < 0xF {
        return Err(Unfit::NoPmu);
    }
    let extended = leaves.of(0x8000_0001, 0)[2] & 1 << 23 != 0;
    let v2 = leaves.of(0x8000_0022, 0)[0] & 1 != 0;
    let zen2 = matches!(model, 0x30..=0x4F | 0x60..=0x7F | 0x84 | 0x90..=0xAF);
    let zen4 = matches!(model, 0x10..=0x1F | 0x60..=0x7F | 0xA0..=0xAF);
    Ok(match (extended, v2) {
        (_, true) => Nearest { model: Model::Zen4, own: family == 0x19 && zen4 },
        (true, false) => Nearest { model: Model::Zen2, own: family == 0x17 && zen2 },
        (false, false) => Nearest { model: Model::K10, own: family == 0x10 },
    })
}
