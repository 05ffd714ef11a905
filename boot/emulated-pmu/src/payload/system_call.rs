//! SYSCALL and SYSRET in software, while EFER.SCE is withheld from the processor or the guest is stepped. AMD APM vol. 3.

use super::guest::{Guest, RF};
use super::port::read_msr;
use emulated_pmu::step::{self, Kind};
use emulated_pmu::vmcb::Segment;
use iced_x86::Instruction;
use pmu_model::Ring;
use pmu_model::model::Vendor;

const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const CSTAR: u32 = 0xc000_0083;
const SFMASK: u32 = 0xc000_0084;

/// Attributes of flat segments: present, code or data, accessed; bit 9 of code: 64-bit.
const CODE_64: u16 = 0xa9b;
const CODE_32: u16 = 0xc9b;
const DATA: u16 = 0xc93;
const DPL_3: u16 = 3 << 5;
/// RFLAGS that SYSRET takes from R11: all but RF, VM and the reserved ones.
const RETURNED_FLAGS: u64 = 0x003c_7fd7;
const FLAGS_ONE: u64 = 2;

fn flat(selector: u16, attributes: u16) -> Segment {
    Segment { selector, attributes, limit: u32::MAX, base: 0 }
}

fn msr(number: u32) -> u64 {
    // SAFETY: every x86-64 processor has the four registers; the guest's values are live in them.
    unsafe { read_msr(number) }
}

/// Executes `instruction` if it is one of the two and raises no exception.
pub fn emulate(guest: &mut Guest, instruction: &Instruction) -> bool {
    match step::kind(instruction) {
        Kind::SystemCall => call(guest, instruction.len() as u64),
        Kind::SystemReturn(wide) => give_back(guest, wide),
        _ => false,
    }
}

/// SYSCALL of `bytes` bytes. False if it raises #UD.
fn call(guest: &mut Guest, bytes: u64) -> bool {
    let is_64_bit = guest.code_bits() == 64;
    // Intel's has no SYSCALL outside 64-bit mode, and legacy mode is not emulated.
    let has_compatible = guest.vendor == Some(Vendor::Amd) && guest.is_long_mode();
    if !guest.sce || !(is_64_bit || has_compatible) {
        return false;
    }
    let star = msr(STAR);
    let selector = (star >> 32) as u16 & !3;
    let flags = guest.vmcb.rflags;
    guest.registers.rcx = guest.vmcb.rip + bytes;
    guest.registers.r11 = flags & !RF;
    guest.vmcb.rip = msr(if is_64_bit { LSTAR } else { CSTAR });
    guest.vmcb.rflags = flags & !(msr(SFMASK) | RF) | FLAGS_ONE;
    guest.vmcb.cs = flat(selector, CODE_64);
    guest.vmcb.ss = flat(selector + 8, DATA);
    guest.vmcb.cpl = 0;
    guest.vmcb.int_state &= !1;
    true
}

/// SYSRET, to 64-bit code if `wide`. False if it raises an exception.
fn give_back(guest: &mut Guest, wide: bool) -> bool {
    let is_canonical =
        !wide || (guest.registers.rcx as i64) << 16 >> 16 == guest.registers.rcx as i64;
    if !guest.sce || !guest.is_long_mode() || guest.ring() == Ring::User || !is_canonical {
        return false;
    }
    let star = msr(STAR);
    let base = (star >> 48) as u16 | 3;
    guest.vmcb.rip = if wide { guest.registers.rcx } else { guest.registers.rcx & 0xffff_ffff };
    guest.vmcb.rflags = guest.registers.r11 & RETURNED_FLAGS | FLAGS_ONE;
    guest.vmcb.cs = if wide {
        flat(base.wrapping_add(16), CODE_64 | DPL_3)
    } else {
        flat(base, CODE_32 | DPL_3)
    };
    guest.vmcb.ss = flat(base.wrapping_add(8), DATA | DPL_3);
    guest.vmcb.cpl = 3;
    guest.vmcb.int_state &= !1;
    true
}
