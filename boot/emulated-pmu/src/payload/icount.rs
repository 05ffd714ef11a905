//! Instructions from the TSC.
//!
//! Under QEMU's `-icount shift=N` the TSC advances by 2^N for each instruction that the translator starts. So the
//! guest's instructions are the TSC's advance over its guest run, less the hypervisor's own between the two readings,
//! which is measured here with guests of known length. What the translator counts otherwise than silicon does is
//! measured too, so that another QEMU version shows itself at the launch and not in a count:
//!
//! - An instruction that raises an exception which the translator foresees (an undefined opcode) is counted as if it
//!   had been executed. So is an intercepted INT n. Ones that fault while running are not.
//! - A repeated string instruction is counted once for each iteration, and once more at its end.

use super::hpet::Alarm;
use super::switch::{Registers, enter};
use core::arch::{asm, global_asm};
use emulated_pmu::debug_registers::{DR6_IDLE, DR7_ONE};
use emulated_pmu::vmcb::{Intercepts, Segment, Vmcb, exit};
use handover::Refusal;

/// What to subtract.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calibration {
    /// The shift.
    pub shift: u8,
    /// The hypervisor's instructions in each guest run, the intercepted one not among them.
    pub overhead: u64,
    /// Nanoseconds from the reading of the clock, for the alarm, to the guest's first instruction.
    pub before_entry: u64,
}

impl Calibration {
    /// The guest's instructions in a guest run of `ticks`.
    pub fn instructions(&self, ticks: u64) -> u64 {
        (ticks >> self.shift).saturating_sub(self.overhead)
    }
}

/// Instructions that lie between the two measured lengths.
const DIFFERENCE: u64 = 256;
/// QEMU's bound for the shift.
const MAX_SHIFT: u32 = 10;

/// Measures the shift: two pieces of code that differ in so many NOPs, several times over.
pub fn shift() -> Result<u8, Refusal> {
    let first = difference();
    let shift = (first / DIFFERENCE).trailing_zeros();
    let same = (0..16).all(|_| difference() == first);
    if !same || first == 0 || shift > MAX_SHIFT || first != DIFFERENCE << shift {
        return Err(Refusal::NoIcount);
    }
    Ok(shift as u8)
}

fn difference() -> u64 {
    let (short, long): (u32, u32);
    // SAFETY: reads the TSC and does nothing.
    unsafe {
        asm!(
            "rdtsc", "mov {a:e}, eax", "rdtsc", "sub eax, {a:e}", "mov {short:e}, eax",
            "rdtsc", "mov {a:e}, eax", ".rept {nops}", "nop", ".endr", "rdtsc", "sub eax, {a:e}",
            a = out(reg) _, short = out(reg) short, out("eax") long, out("edx") _, nops = const DIFFERENCE,
            options(nomem, nostack),
        );
    }
    u64::from(long.wrapping_sub(short))
}

/// A port that is intercepted meanwhile: that of the BIOS's progress codes, which nobody reads.
const CALIBRATION_PORT: u16 = 0x80;

// The guests: code that ends in an exit.
global_asm!(
    ".pushsection .text.calibration, \"ax\", @progbits",
    "calibration_call: vmmcall",
    "calibration_nops: .rept 100",
    "nop",
    ".endr",
    "vmmcall",
    "calibration_cpuid: cpuid",
    "calibration_hlt: hlt",
    "calibration_port: in al, {port}",
    "calibration_undefined: ud2",
    "calibration_interrupt: int 0x80",
    "calibration_fault: mov rax, [rdi]",
    "calibration_string: rep lodsb",
    "vmmcall",
    "calibration_sled: .rept 1100",
    "nop",
    ".endr",
    "vmmcall",
    ".popsection",
    port = const CALIBRATION_PORT,
);

unsafe extern "C" {
    static calibration_call: u8;
    static calibration_nops: u8;
    static calibration_cpuid: u8;
    static calibration_hlt: u8;
    static calibration_port: u8;
    static calibration_undefined: u8;
    static calibration_interrupt: u8;
    static calibration_fault: u8;
    static calibration_string: u8;
    static calibration_sled: u8;
}

/// How long the alarm is set in the calibration, in instructions.
const ALARM_INSTRUCTIONS: u64 = 1000;
/// Lengths to try, a nanosecond apart: more than QEMU's HPET takes for a tick.
const ALARM_PHASES: u64 = 20;
/// Iterations of the string instruction.
const ITERATIONS: u64 = 7;
/// An address that is not canonical.
const NOWHERE: u64 = 1 << 63;

/// Measures the overhead, and makes sure that every kind of exit counts as this module says.
///
/// # Safety
/// SVM on, GIF 0, the hypervisor's tables loaded with `cr3`; `vmcb` not in use.
pub unsafe fn calibrate(
    vmcb: &mut Vmcb,
    alarm: &mut Alarm,
    shift: u8,
    cr3: u64,
) -> Result<Calibration, Refusal> {
    let mut instructions =
        |code: *const u8, expected: u64, alarm_ns: u64| -> Result<u64, Refusal> {
            set_up(vmcb, code as u64, cr3);
            let mut registers =
                Registers { rcx: ITERATIONS, rsi: code as u64, rdi: NOWHERE, ..Default::default() };
            // SAFETY: the block describes a guest that executes the code above with our own tables.
            let ticks = unsafe { enter(&raw mut registers, vmcb, alarm_ns) }.ticks;
            if vmcb.exit_code != expected || !ticks.is_multiple_of(1 << shift) {
                super::debug::line(format_args!(
                    "exit {:#x} instead of {expected:#x} after {ticks} ticks",
                    vmcb.exit_code
                ));
                return Err(Refusal::Calibration);
            }
            Ok(ticks >> shift)
        };
    // The first entry warms nothing up under icount, but costs nothing either.
    let overhead = instructions(&raw const calibration_call, exit::VMMCALL, 0)?;
    super::svm::intercept_port(CALIBRATION_PORT, true);
    let expected = [
        (&raw const calibration_call, exit::VMMCALL, 0),
        (&raw const calibration_nops, exit::VMMCALL, 100),
        (&raw const calibration_cpuid, exit::CPUID, 0),
        (&raw const calibration_hlt, exit::HLT, 0),
        (&raw const calibration_port, exit::PORT, 0),
        (&raw const calibration_undefined, exit::EXCEPTION + 6, 1),
        (&raw const calibration_interrupt, exit::INT_N, 1),
        (&raw const calibration_fault, exit::EXCEPTION + 13, 0),
        (&raw const calibration_string, exit::VMMCALL, ITERATIONS + 1),
    ];
    for (code, exit_code, beyond) in expected {
        let counted = instructions(code, exit_code, 0)?;
        if counted != overhead + beyond {
            super::debug::line(format_args!(
                "exit {exit_code:#x} after {} instructions instead of {beyond}",
                counted.wrapping_sub(overhead) as i64
            ));
            return Err(Refusal::Calibration);
        }
    }
    super::svm::intercept_port(CALIBRATION_PORT, false);
    // A guest of many NOPs that the alarm ends: what is missing passed before the entry, but for the rest of a tick,
    // which in one of the phases is nothing.
    let mut before_entry = u64::MAX;
    for phase in 0..ALARM_PHASES {
        let wanted = (ALARM_INSTRUCTIONS << shift) + phase;
        let wanted = alarm.nanoseconds(wanted).ok_or(Refusal::Calibration)?;
        let counted = instructions(&raw const calibration_sled, exit::NMI, wanted)? - overhead;
        super::tables::open(false);
        if !super::tables::take_nmis() || !alarm.stop() || counted >= ALARM_INSTRUCTIONS {
            super::debug::line(format_args!(
                "an alarm after {wanted} ns came after {counted} instructions, 2^{shift} ns each"
            ));
            return Err(Refusal::Calibration);
        }
        before_entry = before_entry.min(wanted.saturating_sub(counted << shift));
    }
    Ok(Calibration { shift, overhead, before_entry })
}

/// A guest like ourselves that starts at `rip`, with every exit on.
fn set_up(vmcb: &mut Vmcb, rip: u64, cr3: u64) {
    let (cr0, cr4, efer): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr4", out(reg) cr0, out(reg) cr4, options(nomem, nostack));
        efer = super::port::read_msr(super::svm::EFER);
    }
    vmcb.set_intercepts(
        Intercepts::VMRUN
            | Intercepts::NMI
            | Intercepts::VMMCALL
            | Intercepts::CPUID
            | Intercepts::HLT
            | Intercepts::PORT
            | Intercepts::INT_N,
    );
    vmcb.exceptions = u32::MAX;
    vmcb.asid = 1;
    (vmcb.cr0, vmcb.cr3, vmcb.cr4, vmcb.efer) = (cr0, cr3, cr4, efer);
    (vmcb.rip, vmcb.rsp, vmcb.rflags, vmcb.rax) = (rip, 0, 2, 0);
    (vmcb.dr6, vmcb.dr7) = (DR6_IDLE, DR7_ONE);
    vmcb.cs = Segment { selector: 8, attributes: 0xa9b, limit: u32::MAX, base: 0 };
    vmcb.ss = Segment { selector: 16, attributes: 0xc93, limit: u32::MAX, base: 0 };
    (vmcb.ds, vmcb.es) = (vmcb.ss, vmcb.ss);
    vmcb.set_event(None);
    (vmcb.int_state, vmcb.cpl) = (0, 0);
}
