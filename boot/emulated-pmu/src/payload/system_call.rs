//! SYSCALL, SYSRET, SYSENTER and SYSEXIT in software, while they are withheld from the processor or the guest is stepped: AMD APM vol.
//! 3, SDM vol. 2. Without EFER.SCE the first two raise #UD, and without a segment in SYSENTER_CS the others #GP.

use super::guest::{Guest, IF, RF};
use super::port::{read_msr, write_msr};
use emulated_pmu::step::{self, Kind};
use emulated_pmu::vmcb::Segment;
use iced_x86::{Instruction, Mnemonic};
use pmu_model::Ring;
use pmu_model::model::Vendor;

const STAR: u32 = 0xc000_0081;
const LSTAR: u32 = 0xc000_0082;
const CSTAR: u32 = 0xc000_0083;
const SFMASK: u32 = 0xc000_0084;
/// SYSENTER_CS, which is intercepted as it may be withheld, SYSENTER_ESP and SYSENTER_EIP: SDM vol. 3, 5.8.7.
pub const SYSENTER_CS: u32 = 0x174;
const SYSENTER_ESP: u32 = 0x175;
const SYSENTER_EIP: u32 = 0x176;

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

/// Whether bits 63 to 48 are copies of bit 47: SDM vol. 1, 3.3.7.1.
fn is_canonical(address: u64) -> bool {
    (address as i64) << 16 >> 16 == address as i64
}

fn msr(number: u32) -> u64 {
    // SAFETY: every x86-64 processor has the registers; the guest's values are live in them.
    unsafe { read_msr(number) }
}

/// Executes `instruction` if it is one of the two and raises no exception.
pub fn emulate(guest: &mut Guest, instruction: &Instruction) -> bool {
    let by_segment = is_by_segment(instruction);
    match step::kind(instruction) {
        Kind::SystemCall if by_segment => enter(guest),
        Kind::SystemReturn(wide) if by_segment => exit(guest, wide),
        Kind::SystemCall => call(guest, instruction.len() as u64),
        Kind::SystemReturn(wide) => give_back(guest, wide),
        _ => false,
    }
}

/// Whether it is SYSENTER or SYSEXIT.
fn is_by_segment(instruction: &Instruction) -> bool {
    let mnemonic = instruction.mnemonic();
    matches!(mnemonic, Mnemonic::Sysenter | Mnemonic::Sysexit | Mnemonic::Sysexitq)
}

/// Whether the translator knows only while it executes the instruction that this raises #UD: SYSCALL or SYSRET, unless it is no instruction
/// at all, as on Intel's processors outside 64-bit mode. SYSENTER is none on AMD's in long mode.
pub fn is_refused_late(guest: &Guest, instruction: &Instruction) -> bool {
    matches!(step::kind(instruction), Kind::SystemCall | Kind::SystemReturn(_))
        && !is_by_segment(instruction)
        && !(guest.on_intel && guest.code_bits() != 64)
}

/// Runs the guest while SYSENTER and SYSEXIT raise #GP, if `withheld`. AMD's processors do not have them in long mode.
pub fn without_segment<T>(
    guest: &mut Guest,
    withheld: bool,
    run: impl FnOnce(&mut Guest) -> T,
) -> T {
    let own = if withheld && guest.on_intel && guest.is_long_mode() { msr(SYSENTER_CS) } else { 0 };
    if own == 0 {
        return run(guest);
    }
    // SAFETY: every x86-64 processor has the register; the hypervisor does not use it, and the guest gets its own back.
    unsafe { write_msr(SYSENTER_CS, 0) };
    let result = run(guest);
    // SAFETY: as above.
    unsafe { write_msr(SYSENTER_CS, own) };
    result
}

/// SYSENTER. False if it raises #GP.
fn enter(guest: &mut Guest) -> bool {
    let selector = msr(SYSENTER_CS) as u16 & !3;
    if selector == 0 || !guest.on_intel || !guest.is_long_mode() {
        return false;
    }
    guest.vmcb.rflags &= !(IF | RF);
    (guest.vmcb.rip, guest.vmcb.rsp) = (msr(SYSENTER_EIP), msr(SYSENTER_ESP));
    guest.vmcb.cs = flat(selector, CODE_64);
    guest.vmcb.ss = flat(selector.wrapping_add(8), DATA);
    guest.vmcb.cpl = 0;
    guest.vmcb.int_state &= !1;
    true
}

/// SYSEXIT, to 64-bit code if `wide`. False if it raises #GP.
fn exit(guest: &mut Guest, wide: bool) -> bool {
    let selector = msr(SYSENTER_CS) as u16 & !3;
    let (rip, rsp) = (guest.registers.rdx, guest.registers.rcx);
    let leads_somewhere = !wide || is_canonical(rip) && is_canonical(rsp);
    let is_there = selector != 0 && guest.on_intel && guest.is_long_mode();
    if !is_there || guest.ring() == Ring::User || !leads_somewhere {
        return false;
    }
    let (code, attributes, mask) =
        if wide { (32, CODE_64, u64::MAX) } else { (16, CODE_32, u64::from(u32::MAX)) };
    let selector = selector.wrapping_add(code) | 3;
    (guest.vmcb.rip, guest.vmcb.rsp) = (rip & mask, rsp & mask);
    guest.vmcb.cs = flat(selector, attributes | DPL_3);
    guest.vmcb.ss = flat(selector.wrapping_add(8), DATA | DPL_3);
    guest.vmcb.cpl = 3;
    guest.vmcb.int_state &= !1;
    true
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
    let leads_somewhere = !wide || is_canonical(guest.registers.rcx);
    if !guest.sce || !guest.is_long_mode() || guest.ring() == Ring::User || !leads_somewhere {
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
