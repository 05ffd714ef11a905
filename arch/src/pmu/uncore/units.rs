//! The registers of all units of a kind: where they may be, or where they were found.

use super::discovery::{self, Unit};
use super::layout::{Bridge, Kind, Place};
use super::packages::Ubox;
use super::register::Register;
use super::{Placed, Refusal};
use crate::pci::devices::{Address, Size, functions, intel};
use crate::pmu::access::Registers;
use alloc::vec::Vec;

/// What counts an event in a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// The unit's own control.
    pub own: Option<Register>,
    /// The counter's control.
    pub control: Register,
    /// The counter.
    pub counter: Register,
    /// The first register, from which filters are counted; of MSRs only.
    pub base: u32,
    /// The counter's width in bits.
    pub width: u8,
}

impl Pair {
    /// The bits of the counter.
    pub fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }
}

/// Ice Lake's memory controllers have their registers in memory, at an address that a function of this id has in two parts (Linux,
/// `snr_uncore_mmio_map`): bits 51:23 for all, and 22:12 for each of four controllers.
const CHANNELS_DEVICE: u16 = 0x3451;
const BASE: (u16, u32) = (0xd0, 0x1fff_ffff);
const CONTROLLERS: (u16, u32) = (0xd8, 0x7ff);
/// The first channel's own control, and so far apart is the second one's (`SNR_IMC_MMIO_PMON_BOX_CTL`, `SNR_IMC_MMIO_OFFSET`).
const CHANNELS: [u64; 2] = [0x2_2800, 0x2_6800];

impl Placed {
    /// The registers for it in all units.
    pub(super) fn pairs(&self, registers: &mut dyn Registers) -> Result<Vec<Pair>, Refusal> {
        match &self.kind.place {
            Place::Msrs(_) => Ok(self.msrs()),
            Place::Functions(ids, apart, ubox) => {
                let own = own_functions(ubox, registers)?;
                let found = own.iter().filter(|(at, id)| is_one(ids, at, *id));
                let pairs: Vec<Pair> = found.map(|(at, _)| self.config(*at, *apart)).collect();
                if pairs.is_empty() { Err(Refusal::NoDevice(ids[0].0)) } else { Ok(pairs) }
            }
            Place::Channels(ubox) => self.channels(ubox, registers),
            Place::Bridge(bridge) => {
                let base = bridge.base(registers)?;
                let units = (0..bridge.most).map(|number| base + number * bridge.apart);
                Ok(units.map(|unit| self.in_memory(unit)).collect())
            }
            Place::Listed(kind) => {
                let mut found = discovery::listed(registers)?;
                found.retain(|unit| unit.kind == *kind);
                let first = found.first().ok_or(Refusal::NotListed(*kind))?.own;
                let is_there = |unit: &Unit| match (unit.own, registers.devices()) {
                    (Register::Config(at, ..), Some(devices)) => intel(devices, at).is_some(),
                    _ => true,
                };
                found.retain(is_there);
                match found.is_empty() {
                    true => Err(Refusal::NoFunction(first)),
                    false => found.iter().map(|unit| self.listed(unit)).collect(),
                }
            }
        }
    }

    fn msrs(&self) -> Vec<Pair> {
        let &Kind { control, counter, own, width, .. } = self.kind;
        let pair = |base| {
            let at = |offset| Register::Msr(base + offset + u32::from(self.counter));
            let own = own.map(|offset| Register::Msr(base + offset));
            Pair { own, control: at(control), counter: at(counter), base, width }
        };
        self.kind.bases().map(pair).collect()
    }

    fn config(&self, at: Address, apart: u16) -> Pair {
        let &Kind { control, counter, own, width, .. } = self.kind;
        let size = if apart == 4 { Size::Dword } else { Size::Qword };
        let number = u16::from(self.counter);
        Pair {
            own: own.map(|offset| Register::Config(at, offset as u16, Size::Dword)),
            control: Register::Config(at, control as u16 + number * apart, size),
            counter: Register::Config(at, counter as u16 + number * 8, Size::Qword),
            base: 0,
            width,
        }
    }

    fn channels(&self, ubox: &Ubox, registers: &mut dyn Registers) -> Result<Vec<Pair>, Refusal> {
        let own = own_functions(ubox, registers)?;
        let devices = registers.devices().ok_or(Refusal::NoDevices)?;
        let found = own.iter().find(|(_, id)| *id == CHANNELS_DEVICE);
        let &(at, _) = found.ok_or(Refusal::NoDevice(CHANNELS_DEVICE))?;
        let mut field = |(offset, mask): (u16, u32)| match devices.config(at, offset) {
            None | Some(0 | u32::MAX) => None,
            Some(value) => Some(u64::from(value & mask)).filter(|value| *value != 0),
        };
        let first = field(BASE).ok_or(Refusal::NoDevice(CHANNELS_DEVICE))? << 23;
        let (offset, mask) = CONTROLLERS;
        let controllers = (0..4).filter_map(|number| field((offset + 4 * number, mask)));
        let bases =
            controllers.flat_map(|part| CHANNELS.map(|channel| (first | part << 12) + channel));
        let pairs: Vec<Pair> = bases.map(|base| self.in_memory(base)).collect();
        if pairs.is_empty() { Err(Refusal::NoDevice(CHANNELS_DEVICE)) } else { Ok(pairs) }
    }

    /// Registers in memory: controls of 32 bits, counters of 64.
    fn in_memory(&self, base: u64) -> Pair {
        let &Kind { control, counter, own, width, .. } = self.kind;
        let number = u64::from(self.counter);
        let at = |offset: u32| base + u64::from(offset);
        Pair {
            own: own.map(|offset| Register::Memory(at(offset), Size::Dword)),
            control: Register::Memory(at(control) + 4 * number, Size::Dword),
            counter: Register::Memory(at(counter) + 8 * number, Size::Qword),
            base: 0,
            width,
        }
    }

    /// What enables all units, if something does, with its value.
    pub(super) fn global(
        &self,
        registers: &mut dyn Registers,
    ) -> Result<Option<(Register, u64)>, Refusal> {
        let Place::Bridge(bridge) = self.kind.place else {
            return Ok(self.kind.global.map(|(msr, value)| (Register::Msr(msr), value)));
        };
        let last = bridge.base(registers)? + (bridge.most - 1) * bridge.apart;
        let (offset, value) = bridge.global;
        let register = Register::Memory(last + offset, Size::Dword);
        // Where the last one is not there, the first counts without.
        let is_there = register.read(registers).is_some_and(|found| found != u64::from(u32::MAX));
        Ok(is_there.then_some((register, value)))
    }

    fn listed(&self, unit: &Unit) -> Result<Pair, Refusal> {
        if self.counter >= unit.counters {
            return Err(Refusal::Counters(unit.own, unit.counters));
        }
        let [control, counter] = unit.pair(self.counter);
        Ok(Pair { own: Some(unit.own), control, counter, base: 0, width: unit.width })
    }
}

impl Bridge {
    /// Where the first unit's registers are.
    fn base(&self, registers: &mut dyn Registers) -> Result<u64, Refusal> {
        let host = Address { segment: 0, bus: 0, device: 0, function: 0 };
        let devices = registers.devices().ok_or(Refusal::NoDevices)?;
        let absent = Refusal::NotMapped(host, self.register);
        intel(devices, host).ok_or(absent)?;
        let [low, high] = [0, 4].map(|half| devices.config(host, self.register + half));
        let (low, high) = (low.ok_or(absent)?, high.ok_or(absent)?);
        match low & 1 != 0 && low != u32::MAX {
            true => Ok((u64::from(high) << 32 | u64::from(low & !0xfff)) + self.first),
            false => Err(absent),
        }
    }
}

/// Intel's functions of this processor's package.
fn own_functions(
    ubox: &Ubox,
    registers: &mut dyn Registers,
) -> Result<Vec<(Address, u16)>, Refusal> {
    let devices = registers.devices().ok_or(Refusal::NoDevices)?;
    let all = functions(devices);
    let is_own = ubox.own(&all, registers)?;
    Ok(all.into_iter().filter(|(at, _)| is_own(*at)).collect())
}

/// Whether a function is one of these ids, at a place where it may be.
fn is_one(ids: &[(u16, &[(u8, u8)])], at: &Address, id: u16) -> bool {
    ids.iter().any(|(known, places)| {
        *known == id && (places.is_empty() || places.contains(&(at.device, at.function)))
    })
}
