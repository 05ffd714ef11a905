//! A processor with architectural PEBS and nothing else.

use super::*;
use crate::msr::Absent;
use raw_cpuid::CpuIdResult;
use std::collections::BTreeMap;

/// Registers, eight counters and three fixed ones. Every counter that is on counts each instruction.
pub(super) struct Small {
    pub(super) msrs: BTreeMap<u32, u64>,
    /// Counters whose overflow has armed them.
    pub(super) armed: Vec<u32>,
    /// Leaf 0x23.4 EBX.
    pub(super) groups: u32,
    pub(super) interrupts: u64,
}

impl Small {
    pub(super) fn new() -> Self {
        let counters = (0..8).flat_map(|n| (0x1900 + 4 * n..).take(4));
        let fixed = (0..3).flat_map(|n| [0x1980, 0x1982, 0x1983].map(|msr| msr + 4 * n));
        let others = [0x1d9, 0x345, 0x38d, 0x38e, 0x38f, 0x390, 0x391, 0x392, BASE, INDEX, 0x3f6];
        let mut msrs: BTreeMap<u32, u64> =
            counters.chain(fixed).chain(others).map(|msr| (msr, 0)).collect();
        // Format 15, full-width writes.
        msrs.insert(0x345, 0x2f00);
        Self { msrs, armed: Vec::new(), groups: 0x60e6_0378, interrupts: 0 }
    }

    pub(super) fn get(&self, msr: u32) -> u64 {
        self.msrs[&msr]
    }

    /// An instruction retires, the n-th.
    pub(super) fn retire(&mut self, n: u64) {
        let control = self.get(0x38f);
        if self.get(0x38e) & 1 << 59 != 0 {
            return;
        }
        let general =
            (0..8).filter(|i| self.get(0x1901 + 4 * i) & 1 << 22 != 0).map(|i| (i, 0x1900 + 4 * i));
        let fixed = (0..3)
            .filter(|i| self.get(0x38d) >> (4 * i) & 3 != 0)
            .map(|i| (32 + i, 0x1980 + 4 * i));
        let on: Vec<(u32, u32)> =
            general.chain(fixed).filter(|(bit, _)| control >> bit & 1 != 0).collect();
        for (bit, msr) in on {
            let config = self.get(msr + 3);
            if config >> 63 == 0 {
                let next = (self.get(msr) + 1) & WIDTH;
                self.msrs.insert(msr, next);
                continue;
            }
            if let Some(place) = self.armed.iter().position(|one| *one == bit) {
                self.armed.remove(place);
                self.msrs.insert(msr, config & 0xffff_ffff | WIDTH & !0xffff_ffff);
                self.write(n, bit, config);
                continue;
            }
            let next = (self.get(msr) + 1) & WIDTH;
            self.msrs.insert(msr, next);
            if next == 0 {
                self.armed.push(bit);
            }
        }
    }

    /// Writes the record of the n-th instruction, if the buffer is on and has room.
    pub(super) fn write(&mut self, n: u64, bit: u32, config: u64) {
        let index = self.get(INDEX);
        if index >> 32 & 1 == 0 {
            return;
        }
        let mut words = vec![0, 0, 0x1000 + n, 1 << bit, 10 * n, 1 << 16 | 7, 0, 0];
        if config >> 62 & 1 != 0 {
            words.extend([0x5000 + n, 0, 0, 0, 0, 0x21, 0x0012_0000_0034, 0]);
        }
        if config >> 61 & 1 != 0 {
            words.extend([0x202, 0x1001 + n]);
            words.extend((0..16).map(|r| 100 * n + r));
            words.extend([0xdead, 0]);
        }
        // XMM, the upper halves of YMM, masks, the upper halves of ZMM, ZMM16 to ZMM31: each by its own thousands.
        let vectors = [(49, 32), (50, 32), (53, 8), (54, 64), (55, 128)];
        let states = [1, 2, 5, 6, 7];
        let there = |bit: u32| config >> bit & 1 != 0;
        if vectors.iter().any(|(bit, _)| there(*bit)) {
            let all = vectors.iter().zip(states).filter(|((bit, _), _)| there(*bit));
            words.extend([all.map(|(_, state)| 1 << state).sum(), 0]);
        }
        for (group, (bit, count)) in (1..).zip(vectors) {
            if there(bit) {
                words.extend((0..count).map(|word| 1000 * n * group + word));
            }
        }
        if config >> 40 & 3 == 3 {
            words.extend([0, 1, 4, 0, 0, 0]);
            words.extend((0..4).flat_map(|b| [0x2000 + b, 0x3000 + b, b]));
        }
        if config >> 36 & 7 != 0 {
            let allowed: u64 =
                (0..8).filter(|i| self.get(0x1903 + 4 * i) >> 35 & 1 != 0).map(|i| 1 << i).sum();
            words.extend([allowed, 0]);
            words
                .extend((0..8).filter(|i| allowed >> i & 1 != 0).map(|i| self.get(0x1900 + 4 * i)));
        }
        if words.len() % 2 != 0 {
            words.push(0);
        }
        words[0] = (config >> 36 << 36) | (8 * words.len() as u64);
        let size = 4096 << (self.get(BASE) & 0x1f);
        let at = index & 0x7ff_fff0;
        let behind = at + 8 * words.len() as u64;
        if behind > size {
            self.msrs.insert(INDEX, index | 1 << 31);
            return;
        }
        let to = (self.get(BASE) & !0xfff) + at;
        for (place, word) in (0..).zip(words) {
            // SAFETY: the driver's buffer, which is as large as it says.
            unsafe { ((to + 8 * place) as *mut u64).write_volatile(word) };
        }
        self.msrs.insert(INDEX, index & !0x7ff_fff0 | behind);
        if behind >> 4 >= index >> 36 & 0x7f_ffff && self.get(0x38e) >> 54 & 1 == 0 {
            let status = self.get(0x38e);
            self.msrs.insert(0x38e, status | 1 << 54);
            self.interrupts += 1;
        }
    }
}

impl Registers for Small {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = match (leaf, subleaf) {
            (0, _) => [0x23, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
            // Panther Lake: family 6, model 0xCC. PDCM; no debug store.
            (1, _) => [0xc06c0, 0, 1 << 15, 0],
            (7, 0) => [1, 0, 0, 0],
            (7, 1) => [1 << 8, 0, 0, 0],
            (0xa, _) => [0x0830_0806, 0, 7, 0x603],
            (0x23, 0) => [0b11_1011, 3, 0, 0],
            (0x23, 1) => [0xff, 7, 0, 0],
            (0x23, 3) => [0xff, 0, 0, 0],
            (0x23, 4) => [0, self.groups, 0, 0],
            (0x23, 5) => [0x7f, 1, 1, 1],
            _ => [0; 4],
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.msrs.get(&msr.0).copied().ok_or(Absent)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        let reserved = match msr.0 {
            BASE => 0xfe0 | u64::MAX << 52,
            INDEX => 0xf | 0xf << 27 | 7 << 33 | u64::MAX << 59,
            0x1900.. if msr.0 % 4 == 3 => !(u64::from(self.groups) << 32 | 0xffff_ffff | 1 << 63),
            _ => 0,
        };
        if value & reserved != 0 || !self.msrs.contains_key(&msr.0) {
            return Err(Absent);
        }
        match msr.0 {
            0x390 => *self.msrs.get_mut(&0x38e).unwrap() &= !value,
            _ => {
                self.msrs.insert(msr.0, value);
            }
        }
        Ok(())
    }

    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}
