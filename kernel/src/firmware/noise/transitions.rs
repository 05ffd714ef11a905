//! What transitions between rings, and to and from handlers, cost.

use arch::interrupts::{reset_entry, set_entry};
use arch::memory::user::UserPages;
use arch::msr::{self, Msr};
use arch::pmu::workload::Ring3Code;
use arch::ring3;
use arch::trap::exception;
use arch::vectors::USER_VECTOR;
use core::arch::{asm, naked_asm};

/// Turns of a loop in ring 3: the way there and back is in both of two runs, and goes out with their difference.
const TURNS: u64 = 64;
/// RFLAGS in ring 3: the bit that is always 1. Interrupts are off.
const FLAGS: u64 = 1 << 1;
/// IA32_EFER, and its bit that lets SYSCALL be (SDM vol. 3, 2.2.1).
const EFER: Msr = Msr(0xc000_0080);
const SCE: u64 = 1;
/// IA32_STAR, IA32_LSTAR, IA32_FMASK: AMD APM vol. 2, 6.1.1.
const STAR: Msr = Msr(0xc000_0081);
const LSTAR: Msr = Msr(0xc000_0082);
const FMASK: Msr = Msr(0xc000_0084);
/// SYSCALL takes CS from bits 47:32, and SS 8 above; SYSRET takes SS 8 above bits 63:48, and CS 16 above. These are the segments of
/// `arch::descriptors`.
const SEGMENTS: u64 = 0x13 << 48 | 0x08 << 32;

/// Goes back at once.
#[unsafe(naked)]
extern "sysv64" fn from_interrupt() {
    naked_asm!("iretq")
}

/// Goes back after UD2, of two bytes.
#[unsafe(naked)]
extern "sysv64" fn from_undefined() {
    naked_asm!("add qword ptr [rsp], 2", "iretq")
}

/// Drops the error code, and goes back after the load, of seven bytes (`workload::fault_bytes`).
#[unsafe(naked)]
extern "sysv64" fn from_fault() {
    naked_asm!("add rsp, 8", "add qword ptr [rsp], 7", "iretq")
}

/// Goes back to ring 3 at once, on its stack.
#[unsafe(naked)]
extern "sysv64" fn from_system_call() {
    naked_asm!("sysretq")
}

/// Takes the name of a transition, how often a loop of it turns, and the loop.
pub type Loops<'a> = dyn FnMut(&str, u64, &mut dyn FnMut(u64)) + 'a;

/// Names each transition and makes it: those of ring 0 once, and those of ring 3 in loops.
pub fn each(user: &UserPages, one: &mut dyn FnMut(&str, &mut dyn FnMut()), many: &mut Loops) {
    // SAFETY: ring 0 with interrupts off, the others halted; the handlers end in IRETQ and change nothing but where they return, and
    // the stubs come back after each.
    unsafe {
        set_entry(USER_VECTOR, from_interrupt as *const () as u64);
        one("int", &mut || asm!("int 0x81", options(nostack)));
        many("int_ring_3", TURNS, &mut |turns| enter(user, Ring3Code::Interrupts, turns));
        reset_entry(USER_VECTOR);
        set_entry(exception::INVALID_OPCODE.0, from_undefined as *const () as u64);
        one("ud2", &mut || asm!("ud2", options(nostack)));
        reset_entry(exception::INVALID_OPCODE.0);
        // Its handler takes the error code away, which is why an entry past the stubs will do.
        set_entry(exception::PAGE_FAULT.0, from_fault as *const () as u64);
        many("page_fault_ring_3", TURNS, &mut |turns| enter(user, Ring3Code::Faults, turns));
        reset_entry(exception::PAGE_FAULT.0);
    }
    system_calls(user, many);
}

fn system_calls(user: &UserPages, many: &mut Loops) {
    let all = [EFER, STAR, LSTAR, FMASK];
    // SAFETY: ring 0; every 64-bit processor has the registers, and they get back what they held.
    unsafe {
        let before = all.map(|msr| msr::read(msr));
        msr::write(STAR, SEGMENTS);
        msr::write(LSTAR, from_system_call as *const () as u64);
        msr::write(FMASK, 0);
        msr::write(EFER, before[0] | SCE);
        many("syscall", TURNS, &mut |turns| enter(user, Ring3Code::SystemCalls, turns));
        for (msr, value) in all.into_iter().zip(before).rev() {
            msr::write(msr, value);
        }
    }
}

fn enter(user: &UserPages, piece: Ring3Code, turns: u64) {
    // SAFETY: the pages are mapped for ring 3 and hold the piece; what it raises has a handler.
    unsafe { ring3::enter(user.code() + piece.offset(), user.stack(), FLAGS, turns) };
}
