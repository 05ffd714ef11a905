//! The local APIC, in whichever mode the machine offers: x2APIC where it can, xAPIC else.

mod command;
mod found;
mod lvt;
mod mode;
mod registers;
mod timer;

pub use command::{OutOfReach, send, send_init, send_nmi, send_startup};
pub use found::found_id;
pub use registers::{Mode, Register};
pub use timer::{Timer, timer_hz};

use crate::cpu::native;
use crate::msr;
use crate::vectors::SPURIOUS_VECTOR;
use core::sync::atomic::{AtomicU32, Ordering};
use raw_cpuid::CpuIdReader as _;
use thiserror::Error;
use x86_64::instructions::port::Port;

/// IA32_APIC_BASE bits: SDM vol. 3, 10.4.4 and 10.12.1.
const X2APIC_ENABLE: u64 = 1 << 10;
const APIC_ENABLE: u64 = 1 << 11;
/// SVR bit 8: software enable.
const SVR_ENABLE: u32 = 1 << 8;
/// LVT bit 16.
const LVT_MASK: u32 = 1 << 16;

/// The bits of the [`Mode`] that `Apic::enable` chose; 0: none.
static MODE: AtomicU32 = AtomicU32::new(0);

/// What does not work.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum ApicError {
    /// Leaf 1 EDX bit 9 is clear.
    #[error("the processor has no local APIC")]
    Absent,
    /// An interrupt that the APIC was told to send to itself did not arrive.
    #[error("an interrupt that the local APIC sent to itself did not arrive")]
    SelfTest,
}

/// The local APIC of this processor, enabled, with every local interrupt masked but the SMIs of the machine's firmware.
pub struct Apic {
    registers: registers::Registers,
    /// LVTPC as it was found.
    performance_lvt: u32,
}

impl Apic {
    /// Enables the local APIC, in x2APIC mode if there is that and it does not stay in xAPIC mode by `keeps_xapic`. Masks everything that
    /// it and the two 8259 could send, but for SMIs of the machine's firmware. Whether it delivers,
    /// [`crate::interrupts::enable_apic`] finds out.
    ///
    /// # Errors
    /// There is none.
    ///
    /// # Safety
    /// Ring 0, physical memory mapped, interrupts off.
    pub(crate) unsafe fn enable(keeps_xapic: bool) -> Result<Self, ApicError> {
        let leaf = native().cpuid1(1);
        if leaf.edx & 1 << 9 == 0 {
            return Err(ApicError::Absent);
        }
        mask_8259();
        // SAFETY: the processor has the register.
        let registers = unsafe {
            let base = msr::read(msr::IA32_APIC_BASE);
            let x2apic = leaf.ecx & 1 << 21 != 0 && takes_x2apic(base, keeps_xapic);
            msr::write(msr::IA32_APIC_BASE, base | APIC_ENABLE);
            if x2apic {
                msr::write(msr::IA32_APIC_BASE, base | APIC_ENABLE | X2APIC_ENABLE);
            }
            registers::Registers::new(if x2apic { Mode::X2Apic } else { Mode::XApic }, base)
        };
        MODE.store(registers.mode().bits() as u32, Ordering::Relaxed);
        let mut apic = Self { registers, performance_lvt: registers.read(Register::LvtPmc) };
        lvt::mask_all(&mut apic.registers);
        apic.registers.write(Register::SpuriousVector, SVR_ENABLE | u32::from(SPURIOUS_VECTOR));
        lvt::keep_thermal(&mut apic.registers);
        Ok(apic)
    }

    /// How the registers are reached.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.registers.mode()
    }

    /// This processor's APIC id.
    #[must_use]
    pub fn id(&self) -> u32 {
        id_of(&self.registers)
    }

    /// What stood in LVTPC before everything was masked, to be restored at the end.
    #[must_use]
    pub fn found_performance_lvt(&self) -> u32 {
        self.performance_lvt
    }

    /// Sends an interrupt to this processor itself.
    pub(crate) fn send_to_self(&mut self, vector: u8) {
        /// ICR: destination shorthand "self", fixed delivery (SDM vol. 3, 10.6.1).
        const TO_SELF: u32 = 0b01 << 18;
        self.registers.write_icr(0, TO_SELF | u32::from(vector));
    }
}

/// Whether x2APIC mode is chosen where there is one. A firmware that already chose it is not sent back: that would need a way through
/// the disabled state.
fn takes_x2apic(base: u64, keeps_xapic: bool) -> bool {
    base & X2APIC_ENABLE != 0 || !keeps_xapic
}

/// The registers in the mode that `Apic::enable` chose; `None` before, and if code of ring 0 has changed the mode: in another one
/// x2APIC's registers raise #GP.
// Within each access, as a call of its own would take as many instructions again.
#[inline(always)]
fn ready() -> Option<registers::Registers> {
    let chosen = MODE.load(Ordering::Relaxed);
    if chosen == 0 {
        return None;
    }
    // SAFETY: a mode was chosen, so the processor has an APIC; and physical memory is mapped.
    unsafe {
        let base = msr::read(msr::IA32_APIC_BASE);
        if base as u32 & mode::BITS as u32 != chosen {
            return None;
        }
        let is_xapic = chosen == Mode::XApic.bits() as u32;
        let mode = if is_xapic { Mode::XApic } else { Mode::X2Apic };
        Some(registers::Registers::new(mode, base))
    }
}

/// The same, but a mode that code of ring 0 has changed is put back. `None` then if the processor does not take it.
fn registers() -> Option<registers::Registers> {
    ready().or_else(put_back)
}

/// The way back to the chosen mode, if one was chosen. By itself, so that nothing has to be kept across a call where all is well.
#[cold]
#[inline(never)]
fn put_back() -> Option<registers::Registers> {
    let mode = mode()?;
    // SAFETY: as for `ready`; the mode is one that the processor has taken.
    unsafe { mode::put_back(msr::read(msr::IA32_APIC_BASE), mode) }
}

/// The mode in use; `None` before `Apic::enable`.
#[must_use]
pub fn mode() -> Option<Mode> {
    match MODE.load(Ordering::Relaxed) {
        0 => None,
        bits if bits == Mode::XApic.bits() as u32 => Some(Mode::XApic),
        _ => Some(Mode::X2Apic),
    }
}

/// Puts this processor's APIC back in the mode that is in use, if foreign code has changed it: any access does.
pub(crate) fn put_back_mode() {
    let _ = registers();
}

/// Tells the local APIC that the interrupt was handled. For handlers of fixed vectors; an NMI gets none.
// An APIC in another mode is reset on the way back, and then nothing is in service.
#[inline]
pub fn end_of_interrupt() {
    if let Some(mut registers) = ready() {
        registers.write(Register::EndOfInterrupt, 0);
    }
}

/// Reads a register of this processor's APIC; 0 if it is not in use.
#[must_use]
pub fn read(register: Register) -> u32 {
    #[cold]
    #[inline(never)]
    fn after_all(register: Register) -> u32 {
        put_back().map_or(0, |registers| registers.read(register))
    }
    match ready() {
        Some(registers) => registers.read(register),
        None => after_all(register),
    }
}

/// Writes a register of this processor's APIC, if it is in use.
pub fn write(register: Register, value: u32) {
    #[cold]
    #[inline(never)]
    fn after_all(register: Register, value: u32) {
        if let Some(mut registers) = put_back() {
            registers.write(register, value);
        }
    }
    match ready() {
        Some(mut registers) => registers.write(register, value),
        None => after_all(register, value),
    }
}

/// Writes an entry of AMD's extended local vector table, 0 to 3, of this processor's APIC. Returns what it holds then; 0 if the
/// APIC is not in use.
pub fn write_extended(entry: u8, value: u32) -> u32 {
    registers().map_or(0, |mut registers| registers.write_extended(entry, value))
}

/// Whether this processor's APIC has an entry of AMD's extended local vector table: one that holds what is written. It is masked
/// then.
#[must_use]
pub fn has_extended(entry: u8) -> bool {
    /// A vector that nobody else has, masked.
    const PROBE: u32 = LVT_MASK | 0xe2;
    let holds = write_extended(entry, PROBE) == PROBE;
    write_extended(entry, LVT_MASK);
    holds
}

/// Whether this processor's APIC waits for the end of interrupt of `vector`.
#[must_use]
pub fn is_in_service(vector: u8) -> bool {
    let bits = registers().map_or(0, |registers| registers.in_service(u32::from(vector) / 32));
    bits & 1 << (vector % 32) != 0
}

/// This processor's APIC id; 0 if the APIC is not in use.
#[must_use]
pub fn id() -> u32 {
    registers().map_or(0, |registers| id_of(&registers))
}

fn id_of(registers: &registers::Registers) -> u32 {
    let id = registers.read(Register::Id);
    if registers.mode() == Mode::X2Apic { id } else { id >> 24 }
}

/// Address of the APIC's page; `None` in x2APIC mode.
#[must_use]
pub fn page() -> Option<u64> {
    registers().and_then(|registers| registers.page())
}

/// Masks all lines of both 8259 (Intel 8259A data sheet, OCW1). Returns whether they were masked already.
pub(crate) fn mask_8259() -> bool {
    let mut ports = [0x21, 0xa1].map(Port::<u8>::new);
    // SAFETY: ports of the PC's interrupt controllers; a machine without them ignores the writes, and reads all ones.
    unsafe {
        let masked = ports.iter_mut().all(|port| port.read() == 0xff);
        if !masked {
            ports.iter_mut().for_each(|port| port.write(0xff));
        }
        masked
    }
}

/// Whether there is an LVT entry for the thermal sensor: see `lvt`.
pub(crate) fn has_thermal() -> bool {
    read(Register::Version) >> 16 & 0xff >= 5
}
