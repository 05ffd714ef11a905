//! Which package this processor is in, and whose a PCI bus is: what is counted is the package's own.

use super::Refusal;
use crate::cpu::topology::Topology;
use crate::pci::devices::{Address, Devices};
use crate::pmu::access::{Registers, leaves};
use alloc::vec::Vec;

/// The packages of the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Packages {
    /// How many there are.
    pub all: u32,
    /// The place of this processor's among them, in the order of their ids.
    pub own: u32,
}

impl Packages {
    /// By the APIC ids that the machine lists; without a list there is one.
    pub fn read(registers: &mut dyn Registers) -> Result<Self, Refusal> {
        let topology = Topology::read(&leaves(registers));
        let listed = registers.devices().ok_or(Refusal::NoDevices)?.apic_ids();
        let own = topology.apic_id;
        let ids = listed.into_iter().chain([own]);
        let mut packages: Vec<u32> = ids.map(|id| id >> topology.package_bits).collect();
        packages.sort_unstable();
        packages.dedup();
        let place = packages.iter().position(|id| *id == own >> topology.package_bits);
        Ok(Self { all: packages.len() as u32, own: place.unwrap_or_default() as u32 })
    }
}

/// A package's device that has the numbers of the packages (Linux, `snbep_pci2phy_map_init`).
#[derive(Debug)]
pub(super) struct Ubox {
    /// Its device id.
    pub id: u16,
    /// CPUNODEID: bits 2:0 are the number of its node.
    pub node: u16,
    /// GIDNIDMAP: three bits for each package, the number of its node.
    pub map: u16,
    /// The buses up to its own are the package's, otherwise those from its own on.
    pub is_last: bool,
}

impl Ubox {
    /// Whose functions are those of this processor's package. Without a second package all are.
    pub fn own(
        &self,
        functions: &[(Address, u16)],
        registers: &mut dyn Registers,
    ) -> Result<impl Fn(Address) -> bool + use<>, Refusal> {
        let topology = Topology::read(&leaves(registers));
        let id = topology.apic_id >> topology.package_bits;
        let devices = registers.devices().ok_or(Refusal::NoDevices)?;
        let found = functions.iter().filter(|(_, id)| *id == self.id);
        let mut owners: Vec<(Address, Option<u32>)> =
            found.map(|(at, _)| (*at, self.package(devices, *at))).collect();
        owners.sort_unstable();
        match owners.len() {
            0 => return Err(Refusal::NoDevice(self.id)),
            1 => owners[0].1 = Some(id),
            _ => {}
        }
        let of = |package| owners.iter().filter(|(_, owner)| *owner == package).count();
        if of(Some(id)) != 1 || of(None) != 0 {
            return Err(Refusal::Packages(self.id));
        }
        let (is_last, alone) = (self.is_last, owners.len() == 1);
        Ok(move |at: Address| {
            let mut same = owners.iter().filter(|(owner, _)| owner.segment == at.segment);
            let owner = match is_last {
                true => same.find(|(owner, _)| at.bus <= owner.bus),
                false => same.rfind(|(owner, _)| owner.bus <= at.bus),
            };
            alone || owner.is_some_and(|(_, owner)| *owner == Some(id))
        })
    }

    /// The package's id.
    fn package(&self, devices: &mut dyn Devices, at: Address) -> Option<u32> {
        let node = devices.config(at, self.node)? & 7;
        let map = devices.config(at, self.map)?;
        (0..8).find(|package| map >> (3 * package) & 7 == node)
    }
}
