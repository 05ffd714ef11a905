//! Why something of the uncore is not counted.

use super::discovery::TableError;
use super::register::Register;
use crate::pci::devices::Address;
use thiserror::Error;

/// Why there is none of the uncore's counters.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NoUncore {
    /// The maker is not Intel.
    #[error("only counters of the uncore of Intel's processors are known")]
    OtherMaker,
    /// Nothing is known of the model.
    #[error("no counters of the uncore are known of family {family:#x}, model {model:#x}")]
    Unknown {
        /// Its family.
        family: u32,
        /// Its model.
        model: u32,
    },
    /// Nothing counts them here.
    #[error(
        "counters of the uncore are read around [[snippet]], [[processors]], [[count]] and [[run]] only"
    )]
    NotHere,
}

/// Why an event of the uncore is not counted.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    /// The model has no such unit.
    #[error("model {0:#x} has no such unit, or none that is known")]
    NoUnit(u32),
    /// The control has no such bits.
    #[error("its control has no bits {0:#x}")]
    Bits(u64),
    /// The unit has no filter.
    #[error("the unit has no filter")]
    NoFilter,
    /// A register does not hold what is written to it.
    #[error("no unit answers: {0} does not hold what is written to it, as under a hypervisor")]
    Absent(Register),
    /// A counter that should move does not.
    #[error("the clock does not move: {0}")]
    Still(Register),
    /// A write raises #GP, or nothing takes it.
    #[error("{0} does not take {1:#x}")]
    Faults(Register, u64),
    /// PCI functions cannot be reached.
    #[error("the counters are in PCI functions, which cannot be reached here")]
    NoDevices,
    /// There is no such function, or not in this package.
    #[error("no unit answers: this package has no PCI function 8086:{0:04x} with its counters")]
    NoDevice(u16),
    /// The host bridge does not have the units' registers in memory.
    #[error(
        "no unit answers: {0}, register {1:#x}, has no address of the memory controllers' registers, as under a hypervisor"
    )]
    NotMapped(Address, u16),
    /// The functions that have the packages' numbers do not say which is whose.
    #[error("the PCI functions 8086:{0:04x} do not say which package's they are")]
    Packages(u16),
    /// No function names a table.
    #[error("no unit answers: no PCI function has the uncore's discovery table")]
    NoTable,
    /// Whose the tables are is not known.
    #[error("{tables} discovery tables for {packages} packages: which is whose is not known")]
    Tables {
        /// How many tables.
        tables: u32,
        /// How many packages.
        packages: u32,
    },
    /// A table lists nothing.
    #[error("the uncore's discovery table at memory {0:#x} lists nothing: {1}")]
    Table(u64, TableError),
    /// There is no such unit in it.
    #[error("the uncore's discovery table lists no unit of type {0}")]
    NotListed(u16),
    /// What it lists is no function of Intel's.
    #[error("the uncore's discovery table lists {0}, where no function of Intel's is")]
    NoFunction(Register),
    /// A unit has fewer counters than there should be.
    #[error("the unit at {0} has {1} counters")]
    Counters(Register, u8),
}
