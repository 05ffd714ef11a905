//! A machine with packages, PCI functions and device memory, register by register: it holds, counts, ignores writes, and keeps a list of
//! what was written where.

use crate::msr::{Absent, Msr};
use crate::pci::devices::{Address, Devices, Size};
use crate::pci::segments::Segment;
use crate::pmu::access::Registers;
use alloc::collections::BTreeMap;
use raw_cpuid::CpuIdResult;

/// Bits of the APIC id within a package.
const PACKAGE_BITS: u32 = 6;

/// A function: what its registers hold, by offset. Others read 0 and ignore writes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Function {
    pub registers: BTreeMap<u16, u32>,
    /// Registers that ignore writes.
    pub fixed: Vec<u16>,
}

#[derive(Clone, Debug)]
pub struct Model {
    pub signature: u32,
    /// The package that runs this, and how many there are.
    pub package: u32,
    pub packages: u32,
    pub functions: BTreeMap<Address, Function>,
    /// Registers in memory of 32 bits, by address. What is not there reads all ones.
    pub memory: BTreeMap<u64, u32>,
    /// Memory whose writes are lost.
    pub deaf: Vec<u64>,
    /// Memory that is cached.
    pub cached: Option<u64>,
    pub msrs: BTreeMap<u32, u64>,
    /// Whether devices can be reached, and registers from 0x100 on.
    pub reaches: bool,
    pub extended: bool,
    /// What was written, in its order, as text.
    pub writes: Vec<String>,
    /// Moves with each read of this register's lower half, by so much.
    pub moves: Option<(Address, u16, u64)>,
}

pub fn at(bus: u8, device: u8, function: u8) -> Address {
    Address { segment: 0, bus, device, function }
}

impl Model {
    pub fn new(signature: u32) -> Self {
        Self {
            signature,
            package: 0,
            packages: 1,
            functions: BTreeMap::new(),
            memory: BTreeMap::new(),
            deaf: Vec::new(),
            cached: None,
            msrs: BTreeMap::new(),
            reaches: true,
            extended: true,
            writes: Vec::new(),
            moves: None,
        }
    }

    /// Adds a function of Intel's with this device id and registers, which hold something else than 0.
    pub fn add(&mut self, place: Address, id: u16, registers: impl IntoIterator<Item = u16>) {
        self.add_of(place, 0x8086, id, registers);
    }

    pub fn add_of(
        &mut self,
        place: Address,
        vendor: u16,
        id: u16,
        registers: impl IntoIterator<Item = u16>,
    ) {
        let function = self.functions.entry(place).or_default();
        function.registers.insert(0, u32::from(id) << 16 | u32::from(vendor));
        function.fixed.push(0);
        function
            .registers
            .extend(registers.into_iter().map(|offset| (offset, 0x10 | u32::from(offset))));
        // A device is found by its function 0, which says that there are more.
        let first = Address { function: 0, ..place };
        let first = self.functions.entry(first).or_default();
        first.registers.entry(0).or_insert(0x1111_8086);
        first.registers.insert(0xc, 1 << 23);
        first.fixed.extend([0, 0xc]);
    }

    pub fn set(&mut self, place: Address, offset: u16, value: u32) {
        self.functions.get_mut(&place).unwrap().registers.insert(offset, value);
    }

    pub fn get(&self, place: Address, offset: u16) -> u64 {
        let registers = &self.functions[&place].registers;
        let half = |offset| u64::from(registers.get(&offset).copied().unwrap_or_default());
        half(offset) | half(offset + 4) << 32
    }

    /// Counts in a counter of 48 bits.
    pub fn count(&mut self, place: Address, offset: u16, events: u64) {
        let value = self.get(place, offset).wrapping_add(events) & ((1 << 48) - 1);
        self.set(place, offset, value as u32);
        self.set(place, offset + 4, (value >> 32) as u32);
    }

    /// Registers in memory that hold something else than 0.
    pub fn add_memory(&mut self, from: u64, bytes: u64) {
        self.memory.extend((from..from + bytes).step_by(4).map(|at| (at, 0x20)));
    }

    pub fn word(&self, at: u64) -> u64 {
        let half = |at| u64::from(self.memory.get(&at).copied().unwrap_or(u32::MAX));
        half(at) | half(at + 4) << 32
    }

    pub fn set_word(&mut self, at: u64, value: u64) {
        self.memory.extend([(at, value as u32), (at + 4, (value >> 32) as u32)]);
    }

    pub fn count_memory(&mut self, at: u64, events: u64) {
        self.set_word(at, self.word(at).wrapping_add(events) & ((1 << 48) - 1));
    }

    /// Everything that can be written.
    pub fn held(&self) -> (BTreeMap<Address, Function>, BTreeMap<u64, u32>, BTreeMap<u32, u64>) {
        (self.functions.clone(), self.memory.clone(), self.msrs.clone())
    }
}

impl Devices for Model {
    fn segments(&self) -> Vec<Segment> {
        Vec::from([Segment { number: 0, first: 0, last: 255, base: None }])
    }

    fn apic_ids(&self) -> Vec<u32> {
        (0..self.packages)
            .flat_map(|one| [one << PACKAGE_BITS, (one << PACKAGE_BITS) + 1])
            .collect()
    }

    fn config(&mut self, at: Address, offset: u16) -> Option<u32> {
        assert!(offset.is_multiple_of(4) && offset < 0x1000, "{at}: {offset:#x}");
        if offset >= 0x100 && !self.extended {
            return None;
        }
        if let Some((moving, register, by)) = self.moves
            && (moving, register) == (at, offset)
        {
            self.count(at, register, by);
        }
        let Some(function) = self.functions.get(&at) else { return Some(u32::MAX) };
        Some(function.registers.get(&offset).copied().unwrap_or_default())
    }

    fn set_config(&mut self, at: Address, offset: u16, value: u32) -> bool {
        self.writes.push(format!("{at} {offset:#x}={value:#x}"));
        if offset >= 0x100 && !self.extended {
            return false;
        }
        let function = self.functions.get_mut(&at).expect("a function that was found");
        if !function.fixed.contains(&offset)
            && let Some(held) = function.registers.get_mut(&offset)
        {
            *held = value;
        }
        true
    }

    fn memory(&mut self, at: u64, size: Size) -> Option<u64> {
        let bytes = if size == Size::Dword { 4 } else { 8 };
        assert_eq!(at % bytes, 0, "{at:#x}");
        if self.cached == Some(at) {
            return None;
        }
        let word = self.word(at);
        Some(if size == Size::Dword { word & 0xffff_ffff } else { word })
    }

    fn set_memory(&mut self, at: u64, size: Size, value: u64) -> bool {
        self.writes.push(format!("{at:#x}={value:#x}"));
        if self.cached == Some(at) {
            return false;
        }
        let halves = [(at, value as u32), (at + 4, (value >> 32) as u32)];
        for (at, half) in halves.into_iter().take(if size == Size::Dword { 1 } else { 2 }) {
            if !self.deaf.contains(&at)
                && let Some(held) = self.memory.get_mut(&at)
            {
                *held = half;
            }
        }
        true
    }
}

impl Registers for Model {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let id = self.package << PACKAGE_BITS | 1;
        let [eax, ebx, ecx, edx] = match (leaf, subleaf) {
            (0, _) => [0xb, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
            (1, _) => [self.signature, 0, 0, 0],
            (0xb, 0) => [1, 2, 0x100, id],
            (0xb, 1) => [PACKAGE_BITS, 64, 0x201, id],
            (0xb, _) => [0, 0, 0, id],
            _ => [0; 4],
        };
        CpuIdResult { eax, ebx, ecx, edx }
    }

    fn rdmsr(&mut self, Msr(msr): Msr) -> Result<u64, Absent> {
        self.msrs.get(&msr).copied().ok_or(Absent)
    }

    fn wrmsr(&mut self, Msr(msr): Msr, value: u64) -> Result<(), Absent> {
        self.writes.push(format!("{msr:#x}={value:#x}"));
        *self.msrs.get_mut(&msr).ok_or(Absent)? = value;
        Ok(())
    }

    fn rdpmc(&mut self, _: u32) -> Result<u64, Absent> {
        Err(Absent)
    }

    fn devices(&mut self) -> Option<&mut dyn Devices> {
        if self.reaches { Some(self) } else { None }
    }
}
