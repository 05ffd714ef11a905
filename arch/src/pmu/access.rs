//! The way to the PMU's registers.
//!
//! Everything in the driver goes through [`Registers`], so that the same code runs on the processor ([`Machine`])
//! and, in host tests, on a model of it.

use crate::cpu::{Cpuid, native};
use crate::interrupts::fixup;
use crate::msr::{self, Absent, Msr};
use crate::pci::devices::Devices;
use crate::pci::native::Native;
use core::arch::asm;
use raw_cpuid::{CpuIdReader as _, CpuIdResult};

/// Four instructions, each of which may fault but CPUID.
pub trait Registers {
    /// CPUID.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult;

    /// RDMSR.
    ///
    /// # Errors
    /// It raised an exception.
    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent>;

    /// WRMSR.
    ///
    /// # Errors
    /// It raised an exception; nothing has changed.
    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent>;

    /// RDPMC in ring 0, with `index` in ECX.
    ///
    /// # Errors
    /// It raised an exception.
    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent>;

    /// Registers of the machine's devices, of which some belong to the package. `None`: they cannot be reached.
    fn devices(&mut self) -> Option<&mut dyn Devices> {
        None
    }

    /// RDPMC of a counter that was read so before on this processor: no exception to guard against.
    fn rdpmc_again(&mut self, counter: Readable) -> u64 {
        self.rdpmc(counter.0).unwrap_or_default()
    }
}

/// A counter that RDPMC has read: see [`super::Driver::readable`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Readable(pub(super) u32);

/// CPUID of `registers` in the form that `raw_cpuid` and [`crate::cpu`] read.
pub fn leaves(registers: &dyn Registers) -> impl Cpuid + '_ {
    move |leaf, subleaf| registers.cpuid(leaf, subleaf)
}

/// The processor that runs this.
#[derive(Debug)]
pub struct Machine {
    devices: Native,
}

impl Machine {
    /// Access to this processor's PMU.
    ///
    /// # Safety
    /// Ring 0, interrupt table loaded. The PMU must be the holder's alone, and so must be what it is told to do: no
    /// counter may be given an interrupt that nobody handles.
    #[must_use]
    pub const unsafe fn new() -> Self {
        // SAFETY: ring 0; of the devices' registers those of the PMU alone are written.
        Self { devices: unsafe { Native::new() } }
    }
}

impl Registers for Machine {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        native().cpuid2(leaf, subleaf)
    }

    fn rdmsr(&mut self, msr: Msr) -> Result<u64, Absent> {
        // SAFETY: guarded. Reading a register of the PMU changes nothing.
        unsafe { msr::try_read(msr) }
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) -> Result<(), Absent> {
        // SAFETY: guarded. The maker of this value promised that the PMU is ours; its registers change no memory.
        unsafe { msr::try_write(msr, value) }
    }

    fn rdpmc(&mut self, index: u32) -> Result<u64, Absent> {
        let (low, high, failed): (u32, u32, u32);
        // SAFETY: if RDPMC faults, the handler continues at label 3, and the code there sets the flag.
        unsafe {
            asm!(
                "2: rdpmc",
                "xor ecx, ecx",
                "jmp 4f",
                "3: mov ecx, 1",
                "4:",
                fixup!("2b", "3b"),
                inout("ecx") index => failed, out("eax") low, out("edx") high,
                options(nostack),
            );
        }
        if failed == 0 { Ok(u64::from(high) << 32 | u64::from(low)) } else { Err(Absent) }
    }

    fn devices(&mut self) -> Option<&mut dyn Devices> {
        Some(&mut self.devices)
    }

    #[inline]
    fn rdpmc_again(&mut self, Readable(index): Readable) -> u64 {
        // RDPMC clears the upper halves of both.
        let (low, high): (u64, u64);
        // SAFETY: reads a counter, and touches no memory. There is no `Readable` but of an index that RDPMC took.
        unsafe {
            asm!("rdpmc", in("ecx") index, out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags));
        }
        high << 32 | low
    }
}
