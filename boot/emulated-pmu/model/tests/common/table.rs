//! The registers of every model, written by hand: value after RESET, and which bits can be written.
#![allow(dead_code, reason = "each test file takes what it needs")]

use pmu_model::Model;

/// What a reserved bit does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserved {
    /// #GP, and nothing changes.
    Faults,
    /// The bit is dropped.
    Drops,
}

#[derive(Debug)]
pub struct Register {
    pub msr: u32,
    pub reset: u64,
    pub writable: u64,
    pub reserved: Reserved,
}

/// Registers that need a test of their own: legacy counters, addresses, read-only registers ...
#[derive(Default)]
pub struct Table {
    pub plain: Vec<Register>,
    pub special: Vec<u32>,
}

impl Table {
    fn faulting(&mut self, msr: u32, reset: u64, writable: u64) {
        self.plain.push(Register { msr, reset, writable, reserved: Reserved::Faults });
    }

    fn dropping(&mut self, msr: u32, reset: u64, writable: u64) {
        self.plain.push(Register { msr, reset, writable, reserved: Reserved::Drops });
    }

    /// Event selectors, legacy counters, fixed counters and global control of Intel.
    fn intel(&mut self, counters: u32, selector: u64, fixed: u32, width: u32) {
        for n in 0..counters {
            self.faulting(0x186 + n, 0, selector);
            self.special.push(0xC1 + n);
        }
        for n in 0..fixed {
            self.faulting(0x309 + n, 0, (1 << width) - 1);
        }
        // GLOBAL_STATUS, GLOBAL_OVF_CTRL, PERF_CAPABILITIES, MISC_ENABLE; LER and copies of the
        // newest.
        self.special.extend([0x38E, 0x390, 0x345, 0x1A0, 0x1DD, 0x1DE]);
    }

    /// Instruction-based sampling: bits of the fetch and the op control that can be written, and whether there are the
    /// branch's target and the fetch's extended control.
    fn ibs(&mut self, fetch: u64, op: u64, further: bool) {
        self.dropping(0xC001_1030, 0, fetch);
        self.dropping(0xC001_1033, 0, op);
        let data = [1, 2, 4, 5, 6, 7, 8, 9].into_iter().chain([0xB, 0xC].repeat(further.into()));
        for n in data {
            self.dropping(0xC001_1030 + n, 0, u64::MAX);
        }
        self.special.push(0xC001_103A);
    }

    /// Energy: the unit and what counts, all read-only.
    fn energy(&mut self, domains: &[u32]) {
        self.special.push(0x606);
        self.special.extend(domains);
    }

    fn full_width(&mut self, counters: u32) {
        for n in 0..counters {
            self.faulting(0x4C1 + n, 0, (1 << 48) - 1);
        }
    }

    fn legacy_lbr(&mut self, entries: u32, from: u32, to: u32) {
        self.special.extend(from..from + entries);
        self.special.extend(to..to + entries);
        self.special.extend([0x1C9, 0x1DB, 0x1DC]);
    }

    fn arch_lbr(&mut self) {
        self.faulting(0x14CE, 0, 0x7F_000F);
        for n in 0..32 {
            self.faulting(0x1200 + n, 0, 0xFF00_0000_0000_FFFF);
            self.special.extend([0x1500 + n, 0x1600 + n]);
        }
        self.special.extend([0x14CF, 0x1E0]);
    }

    fn amd(&mut self, selectors: &[u32]) {
        for msr in selectors {
            self.dropping(*msr, 0, 0xF_FFDF_FFFF);
        }
    }
}

pub fn table(model: Model) -> Table {
    let mut table = Table::default();
    match model {
        Model::None => {}
        Model::Core2 => {
            table.intel(2, 0xFFDF_FFFF, 3, 40);
            table.faulting(0x3F1, 0, 1);
            table.special.push(0x600);
            table.faulting(0x38D, 0, 0xBBB);
            table.faulting(0x38F, 0x3, 0x7_0000_0003);
            table.faulting(0x1D9, 0, 0x5803);
            table.legacy_lbr(4, 0x40, 0x60);
        }
        Model::Nehalem => {
            table.intel(4, 0xFFFF_FFFF, 3, 48);
            table.faulting(0x38D, 0, 0xFFF);
            table.faulting(0x38F, 0xF, 0x7_0000_000F);
            table.faulting(0x1D9, 0, 0x7803);
            table.faulting(0x1C8, 0, 0x1FF);
            table.faulting(0x1A6, 0, 0xFFFF);
            table.faulting(0x3F1, 0, 0xF_0000_000F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.legacy_lbr(16, 0x680, 0x6C0);
        }
        Model::Haswell => {
            table.energy(&[0x611, 0x619, 0x639, 0x641]);
            table.intel(4, 0xFFF7_FFFF, 3, 48);
            table.full_width(4);
            table.faulting(0x38D, 0, 0xFFF);
            table.faulting(0x38F, 0xF, 0x7_0000_000F);
            table.faulting(0x1D9, 0, 0x7803);
            table.faulting(0x1C8, 0, 0x3FF);
            table.faulting(0x1A6, 0, 0x3F_FFFF_8FFF);
            table.faulting(0x1A7, 0, 0x3F_FFFF_8FFF);
            table.faulting(0x3F1, 0, 0xF_0000_000F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.legacy_lbr(16, 0x680, 0x6C0);
        }
        Model::Skylake => {
            table.energy(&[0x611, 0x619, 0x639, 0x641, 0x64D]);
            table.intel(8, 0xFFF7_FFFF, 3, 48);
            table.full_width(8);
            table.faulting(0x38D, 0, 0xFFF);
            table.faulting(0x38F, 0xFF, 0x7_0000_00FF);
            table.special.extend([0x391, 0x392]);
            table.faulting(0x1D9, 0, 0x5803);
            table.faulting(0x1C8, 0, 0x3FF);
            table.faulting(0x1A6, 0, 0x3F_FFFF_8FFF);
            table.faulting(0x1A7, 0, 0x3F_FFFF_8FFF);
            table.faulting(0x3F1, 0, 0xF_0000_000F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.faulting(0x3F7, 0, 0x7F_FF17);
            table.legacy_lbr(32, 0x680, 0x6C0);
            for n in 0..32 {
                table.faulting(0xDC0 + n, 0, 0xE000_0000_0000_FFFF);
            }
            table.faulting(0x394, 0, 0x50_0000);
            table.faulting(0x395, 0, (1 << 48) - 1);
            for n in 0..2 {
                table.faulting(0x3B0 + n, 0, (1 << 44) - 1);
                table.faulting(0x3B2 + n, 0, 0x1FD4_FFFF);
            }
            table.faulting(0xE01, 0, 0xE000_001F);
        }
        Model::IceLake => {
            table.energy(&[0x611, 0x619, 0x639, 0x641, 0x64D]);
            table.intel(8, 0x4_FFD7_FFFF, 4, 48);
            table.full_width(8);
            table.faulting(0x38D, 0, 0x1111_0000_BBBB);
            table.faulting(0x38F, 0xFF, 0x1_000F_0000_00FF);
            table.special.extend([0x391, 0x392]);
            table.faulting(0x329, 0, 0xFFFF_FFFF);
            table.faulting(0x1D9, 0, 0x5803);
            table.faulting(0x1C8, 0, 0x3FF);
            table.faulting(0x1A6, 0, 0x3F_FFFF_BFFF);
            table.faulting(0x1A7, 0, 0x3F_FFFF_BFFF);
            table.faulting(0x3F1, 0, 0xF_0000_00FF);
            table.faulting(0x3F2, 0, 0xFF00_000F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.faulting(0x3F7, 0, 0x7F_FF17);
            table.legacy_lbr(32, 0x680, 0x6C0);
            for n in 0..32 {
                table.faulting(0xDC0 + n, 0, 0xE000_0000_0000_FFFF);
            }
        }
        Model::SapphireRapids | Model::GoldenCove => {
            table.energy(&[0x611, 0x619, 0x639, 0x64D]);
            if model == Model::GoldenCove {
                table.special.push(0x641);
            }
            table.intel(8, 0x4_FFD7_FFFF, 4, 48);
            table.full_width(8);
            table.faulting(0x38D, 0, 0x1111_0000_BBBB);
            table.faulting(0x38F, 0xFF, 0x1_000F_0000_00FF);
            table.special.extend([0x391, 0x392, 0x1D9]);
            table.faulting(0x329, 0, u64::MAX);
            table.faulting(0x1A6, 0, 0x3F_FFFF_FFFF);
            table.faulting(0x1A7, 0, 0x3F_FFFF_FFFF);
            table.faulting(0x3F1, 0, 0xF_0000_00FF);
            table.faulting(0x3F2, 0, 0xFF00_000F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.faulting(0x3F7, 0, 0x7F_FF1F);
            table.arch_lbr();
        }
        Model::ArrowLake => {
            table.energy(&[0x611, 0x619, 0x639, 0x641, 0x64D]);
            table.intel(10, 0xFF14_FFD7_FFFF, 4, 48);
            table.full_width(10);
            table.faulting(0x38D, 0, 0x1111_0000_BBBB);
            table.faulting(0x38F, 0x3FF, 0x1_000F_0000_03FF);
            table.special.extend([0x391, 0x392, 0x1D9]);
            table.faulting(0x329, 0, u64::MAX);
            table.faulting(0x1A6, 0, 0xFFF_FFFF_FFFF);
            table.faulting(0x1A7, 0, 0xFFF_FFFF_FFFF);
            table.faulting(0x3F1, 0, 0xF_0000_03FF);
            table.faulting(0x3F2, 0, 0xF_03FF_FF00_003F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.faulting(0x3F7, 0, 0x7F_FF1F);
            table.arch_lbr();
            for n in 0..10 {
                table.faulting(0x1900 + 4 * n, 0, (1 << 48) - 1);
                table.faulting(0x1901 + 4 * n, 0, 0xFF14_FFD7_FFFF);
            }
            for n in 0..4 {
                table.faulting(0x1980 + 4 * n, 0, (1 << 48) - 1);
            }
        }
        Model::CougarCove => {
            table.energy(&[0x611, 0x619, 0x639, 0x641, 0x64D]);
            table.intel(10, 0xFF10_FFD7_FFFF, 4, 48);
            table.full_width(10);
            table.faulting(0x38D, 0, 0xBBBB);
            table.faulting(0x38F, 0x3FF, 0x1_000F_0000_03FF);
            table.special.extend([0x391, 0x392, 0x1D9]);
            table.faulting(0x329, 0, u64::MAX);
            table.faulting(0x1A6, 0, 0xFFF_FFFF_FFFF);
            table.faulting(0x1A7, 0, 0xFFF_FFFF_FFFF);
            table.faulting(0x3F4, 0, 0x000F_FFFF_FFFF_F00F);
            table.faulting(0x3F5, 0, 0x07FF_FFF1_87FF_FFF0);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.faulting(0x3F7, 0, 0x7F_FF1F);
            table.arch_lbr();
            for n in 0..10 {
                table.faulting(0x1900 + 4 * n, 0, (1 << 48) - 1);
                table.faulting(0x1901 + 4 * n, 0, 0xFF10_FFD7_FFFF);
                table.faulting(0x1903 + 4 * n, 0, 0xE006_0378_FFFF_FFFF);
            }
            for n in 0..4 {
                table.faulting(0x1980 + 4 * n, 0, (1 << 48) - 1);
                table.faulting(0x1983 + 4 * n, 0, 0xE006_0378_FFFF_FFFF);
            }
        }
        Model::Gracemont => {
            table.energy(&[0x611, 0x619, 0x639, 0x641, 0x64D]);
            table.intel(6, 0x4_FFD7_FFFF, 3, 48);
            table.full_width(6);
            table.faulting(0x38D, 0, 0x111_0000_0BBB);
            table.faulting(0x38F, 0x3F, 0x7_0000_003F);
            table.special.extend([0x391, 0x392, 0x1D9]);
            table.faulting(0x1A6, 0, 0x3F_FFFF_FFFF);
            table.faulting(0x1A7, 0, 0x3F_FFFF_FFFF);
            table.faulting(0x3F1, 0, 0x7_0000_003F);
            table.faulting(0x3F2, 0, 0xFF00_000F);
            table.special.push(0x600);
            table.faulting(0x3F6, 0, 0xFFFF);
            table.arch_lbr();
        }
        Model::K10 => {
            table.amd(&[0xC001_0000, 0xC001_0001, 0xC001_0002, 0xC001_0003]);
            for n in 4..8 {
                table.dropping(0xC001_0000 + n, 0, (1 << 48) - 1);
            }
            table.special.extend([0x1D9, 0x1DB, 0x1DC, 0x1DD, 0x1DE]);
            table.ibs(0x0203_0000_FFFF_FFFF, 0x000F_FFFF_000E_FFFF, false);
        }
        Model::Zen2 | Model::Zen4 => {
            table.special.extend([0xC001_0299, 0xC001_029A, 0xC001_029B]);
            table.amd(&[0xC001_0000, 0xC001_0001, 0xC001_0002, 0xC001_0003]);
            for n in 0..6 {
                table.amd(&[0xC001_0200 + 2 * n]);
                table.dropping(0xC001_0201 + 2 * n, 0, (1 << 48) - 1);
            }
            for n in 4..8 {
                table.dropping(0xC001_0000 + n, 0, (1 << 48) - 1);
            }
            table.special.extend([0x1D9, 0x1DB, 0x1DC, 0x1DD, 0x1DE, 0xC000_00E9, 0xC001_0015]);
            let only_misses = [1 << 59, 1 << 16].map(|bit| u64::from(model == Model::Zen4) * bit);
            table.ibs(
                0x0203_0000_FFFF_FFFF | only_misses[0],
                0x07FF_FFFF_07FE_FFFF | only_misses[1],
                true,
            );
            if model == Model::Zen4 {
                table.dropping(0xC000_0301, 0x3F, 0x3F);
                table.special.extend([0xC000_0300, 0xC000_0302, 0xC000_0303]);
                table.dropping(0xC000_010E, 0, 0x1FF);
                table.dropping(0xC000_010F, 0, 0x40);
                for n in 0..16 {
                    table.dropping(0xC001_0300 + 2 * n, 0, 0x83FF_FFFF_FFFF_FFFF);
                    table.dropping(0xC001_0301 + 2 * n, 0, 0xC3FF_FFFF_FFFF_FFFF);
                }
            }
        }
    }
    table
}
