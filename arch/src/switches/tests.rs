use super::*;
use crate::msr::Absent;
use raw_cpuid::CpuIdResult;
use std::collections::BTreeMap;

/// A processor of some leaves and registers.
struct Made {
    leaves: Vec<(u32, [u32; 4])>,
    registers: BTreeMap<u32, u64>,
    /// Writes are taken and forgotten.
    swallows: bool,
    /// Writes raise #GP.
    refuses: bool,
}

impl Registers for Made {
    fn cpuid(&self, leaf: u32, _: u32) -> CpuIdResult {
        let found = self.leaves.iter().find(|(number, _)| *number == leaf);
        let [eax, ebx, ecx, edx] = found.map_or([0; 4], |&(_, values)| values);
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        self.registers.get(&msr.0).copied().ok_or(Absent)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        if self.refuses || !self.registers.contains_key(&msr.0) {
            return Err(Absent);
        }
        if !self.swallows {
            self.registers.insert(msr.0, value);
        }
        Ok(())
    }

    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }
}

fn made(vendor: &[u8; 12], signature: u32, registers: &[(u32, u64)]) -> Made {
    let word = |at: usize| u32::from_le_bytes(vendor[at..at + 4].try_into().unwrap());
    let leaves = vec![
        (0, [0x16, word(0), word(8), word(4)]),
        (1, [signature, 0, 1 << 7, 0]),
        (6, [0, 0, 1, 0]),
        (0x8000_0000, [0x8000_0021, 0, 0, 0]),
        (0x8000_0007, [0, 0, 0, 1 << 9]),
    ];
    let registers = registers.iter().copied().collect();
    Made { leaves, registers, swallows: false, refuses: false }
}

fn skylake(registers: &[(u32, u64)]) -> Made {
    made(b"GenuineIntel", 0x506e3, registers)
}

/// Family 10h, and Zen 4 (family 19h, model 11h).
fn amd(signature: u32, registers: &[(u32, u64)]) -> Made {
    made(b"AuthenticAMD", signature, registers)
}

#[test]
fn n5_each_processor_has_its_register_and_gets_its_value_back() {
    let zen_4 = || {
        let mut zen_4 = amd(0xa1_0f11, &[(0xc000_0108, 0), (0xc001_0015, 0x10)]);
        zen_4.leaves.push((0x8000_0021, [1 << 13, 0, 0, 0]));
        zen_4
    };
    type Switch = fn(&mut Switches, &mut dyn Registers) -> Result<String, String>;
    let prefetchers: Switch = Switches::prefetchers_off;
    let turbo: Switch = Switches::turbo_off;
    let clock: Switch = |switches, registers| switches.frequency(registers, 2200);
    for (mut machine, switch, msr, value) in [
        (skylake(&[(0x1a4, 0x10)]), prefetchers, 0x1a4, 0x1f),
        (made(b"GenuineIntel", 0x6f6, &[(0x1a0, 1)]), prefetchers, 0x1a0, 0xa0_0008_0201),
        (amd(0x10_0f42, &[(0xc001_1022, 4)]), prefetchers, 0xc001_1022, 0x2004),
        (zen_4(), prefetchers, 0xc000_0108, 0x2f),
        (zen_4(), turbo, 0xc001_0015, 0x200_0010),
        (skylake(&[(0x1a0, 1)]), turbo, 0x1a0, 0x40_0000_0001),
        (skylake(&[(0x199, 0x1_0800)]), clock, 0x199, 0x1_1600),
    ] {
        let before = machine.registers.clone();
        let mut switches = Switches::default();
        let note = switch(&mut switches, &mut machine).unwrap();
        assert!(note.contains(&format!("{msr:#x}")), "{note}");
        assert_eq!(machine.registers[&msr], value, "{note}");
        switches.restore(&mut machine);
        assert_eq!(machine.registers, before);
    }
}

#[test]
fn n5_with_hwp_the_clock_is_requested_there_and_within_its_levels() {
    let mut machine =
        skylake(&[(0x199, 0), (0x770, 1), (0x771, 0x0806_1024), (0x774, 0x8000_2404)]);
    machine.leaves[2].1[0] = 1 << 7;
    let mut switches = Switches::default();
    switches.frequency(&mut machine, 2200).unwrap();
    assert_eq!((machine.registers[&0x774], machine.registers[&0x199]), (0x8016_1616, 0));
    let error = switches.frequency(&mut machine, 3700).unwrap_err();
    assert!(error.contains("8 to 36, not 37"), "{error}");
}

#[test]
fn c7_what_is_not_available_says_why() {
    let reason = |mut machine: Made| {
        let mut switches = Switches::default();
        let error = switches.prefetchers_off(&mut machine).unwrap_err();
        assert!(switches.saved.is_empty());
        error
    };
    assert_eq!(reason(skylake(&[])), "there is no MSR 0x1a4");
    let swallows = Made { swallows: true, ..skylake(&[(0x1a4, 0)]) };
    assert_eq!(reason(swallows), "MSR 0x1a4 does not keep 0xf, it reads 0x0");
    let refuses = Made { refuses: true, ..skylake(&[(0x1a4, 0)]) };
    assert_eq!(reason(refuses), "MSR 0x1a4 refuses 0xf");
    assert!(reason(amd(0x80_0f11, &[])).contains("documented"));
    let mut machine = skylake(&[(0x199, 0)]);
    let error = Switches::default().frequency(&mut machine, 2250).unwrap_err();
    assert!(error.contains("2250 MHz"), "{error}");
}

#[test]
fn i10_the_ratio_of_the_clocks_is_that_of_their_advance() {
    let mut machine = skylake(&[(0xe7, 1000), (0xe8, 500)]);
    let before = Clocks::read(&mut machine).unwrap();
    machine.registers.extend([(0xe7, 2000), (0xe8, 2000)]);
    let now = Clocks::read(&mut machine).unwrap();
    assert_eq!((now.ratio_since(before), now.ratio_since(now)), (Some(1.5), None));
    machine.leaves[2].1[2] = 0;
    assert_eq!(Clocks::read(&mut machine), None);
}
