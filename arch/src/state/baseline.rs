//! What is compared after each item.

use super::{FIRST_MSR, FIRST_OTHER, note};
use crate::apic::{self, Register};
use crate::cpu::native;
use crate::msr::{self, IA32_APIC_BASE, Msr};
use core::arch::asm;
use raw_cpuid::CpuIdReader as _;
use x86_64::registers::xcontrol::{XCr0, XCr0Flags};

// Positions in `NAMES`.
const XCR0: usize = 4;
const DR0: usize = 15;
const DR6: usize = 19;
const FIRST_LVT: usize = 20;
const SVR: usize = 24;
const APIC_TIMER: usize = 25;
/// The second of [`MSRS`].
const APIC_BASE: usize = FIRST_MSR + 1;
const LVT_THERMAL: usize = FIRST_OTHER;
const DIVIDE: usize = FIRST_OTHER + 1;
const MASKS_8259: usize = FIRST_OTHER + 2;

/// Registers that snippets of ring 0 can write and later ones could feel; in the order of their names. Intel SDM vol. 4,
/// table 2-2; AMD APM vol. 2, appendix A. What a processor does not have is left out.
const MSRS: [u32; FIRST_OTHER - FIRST_MSR] = [
    0x3b, // first, as the clock of everything else
    0x1b,
    0x1a0,
    0x174,
    0x175,
    0x176,
    0x1d9,
    0x277,
    0x2ff,
    0xc000_0080,
    0xc000_0081,
    0xc000_0082,
    0xc000_0083,
    0xc000_0084,
    0xc000_0100,
    0xc000_0101,
    0xc000_0102,
    0xc000_0103,
    0x48,
    0xda0,
];

/// LVTPC is not among them: it belongs to whoever counts.
const LVTS: [Register; 4] =
    [Register::LvtTimer, Register::LvtLint0, Register::LvtLint1, Register::LvtError];

/// DR6 when nothing happened (SDM vol. 3, figure 17-1).
const DR6_IDLE: u64 = 0xffff_0ff0;

/// The registers as a job finds them.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The components that are on; 0: there is no XSAVE.
    xcr0: u64,
    /// Bytes that they take.
    xsave_bytes: u32,
    msrs: [Option<u64>; MSRS.len()],
    lvts: [u32; LVTS.len()],
    spurious: u32,
    /// Absent where the local APIC has no such entry.
    thermal: Option<u32>,
    divide: u32,
}

impl Baseline {
    /// Reads them. `components`: what [`crate::cpu::features::enable`] returned.
    ///
    /// # Safety
    /// Ring 0, interrupt table loaded.
    #[must_use]
    pub unsafe fn take(components: u64) -> Self {
        Self {
            xcr0: components,
            xsave_bytes: xsave_bytes(components),
            // SAFETY: the caller's promise; reading these has no effect.
            msrs: MSRS.map(|number| unsafe { msr::try_read(Msr(number)) }.ok()),
            lvts: LVTS.map(apic::read),
            spurious: apic::read(Register::SpuriousVector),
            thermal: apic::has_thermal().then(|| apic::read(Register::LvtThermal)),
            divide: apic::read(Register::TimerDivide),
        }
    }

    /// Puts back what differs.
    ///
    /// # Safety
    /// As for [`Baseline::take`], on the same processor.
    pub unsafe fn restore(&self) {
        // XGETBV would say whether XCR0 differs, but not every hypervisor emulates it. So it is written in any case, and
        // mentioned if the components took another size.
        if self.xcr0 != 0 {
            if xsave_bytes(self.xcr0) != self.xsave_bytes {
                note(XCR0);
            }
            // SAFETY: the value that the processor took at the start; `Core` has restored CR4.
            unsafe { XCr0::write_raw(self.xcr0 | XCr0Flags::X87.bits()) };
        }
        let wanted = MSRS.iter().zip(&self.msrs).enumerate();
        for (index, (&number, value)) in wanted {
            let Some(value) = *value else { continue };
            // SAFETY: the register exists and had that value.
            unsafe {
                if msr::try_read(Msr(number)) != Ok(value) {
                    if number == IA32_APIC_BASE.0 {
                        // Not every mode is reached in one step; what is left then, as the page, is.
                        apic::put_back_mode();
                    }
                    let _ = msr::try_write(Msr(number), value);
                    note(FIRST_MSR + index);
                }
            }
        }
        // Before the entries: without it none of them takes its mask off.
        put(Register::SpuriousVector, self.spurious, SVR);
        for (index, (&entry, &value)) in LVTS.iter().zip(&self.lvts).enumerate() {
            put(entry, value, FIRST_LVT + index);
        }
        if let Some(thermal) = self.thermal {
            put(Register::LvtThermal, thermal, LVT_THERMAL);
        }
        put(Register::TimerDivide, self.divide, DIVIDE);
        if apic::read(Register::TimerInitialCount) != 0 {
            apic::write(Register::TimerInitialCount, 0);
            note(APIC_TIMER);
        }
        if !apic::mask_8259() {
            note(MASKS_8259);
        }
        debug_addresses();
    }
}

/// Notes that the mode of the local APIC was put back.
pub(crate) fn note_apic_base() {
    note(APIC_BASE);
}

/// Bytes of the components that are on now: CPUID leaf 0xD, EBX.
fn xsave_bytes(components: u64) -> u32 {
    if components == 0 { 0 } else { native().cpuid2(0xd, 0).ebx }
}

fn put(register: Register, value: u32, name: usize) {
    if apic::read(register) != value {
        apic::write(register, value);
        note(name);
    }
}

/// DR0 to DR3 to 0, DR6 to idle. [`super::Core`] has switched breakpoints off already.
fn debug_addresses() {
    macro_rules! put {
        ($register:literal, $wanted:expr, $name:expr) => {{
            let now: u64;
            // SAFETY: without enabled breakpoints these have no effect.
            unsafe {
                asm!(concat!("mov {}, ", $register), out(reg) now, options(nomem, nostack, preserves_flags));
                if now != $wanted {
                    asm!(concat!("mov ", $register, ", {}"), in(reg) $wanted, options(nomem, nostack, preserves_flags));
                    note($name);
                }
            }
        }};
    }
    put!("dr0", 0u64, DR0);
    put!("dr1", 0u64, DR0 + 1);
    put!("dr2", 0u64, DR0 + 2);
    put!("dr3", 0u64, DR0 + 3);
    put!("dr6", DR6_IDLE, DR6);
}

#[cfg(test)]
mod tests {
    use super::super::NAMES;
    use super::*;

    #[test]
    fn x1_names_stand_where_the_positions_say() {
        let named = |index: usize| NAMES[index];
        assert_eq!([named(DR0), named(DR6), named(FIRST_LVT)], ["DR0", "DR6", "LVT timer"]);
        assert_eq!([named(SVR), named(APIC_TIMER)], ["SVR", "APIC timer"]);
        let msr = |number| MSRS.iter().position(|&one| one == number).unwrap() + FIRST_MSR;
        assert_eq!((named(msr(0x277)), named(APIC_BASE)), ("IA32_PAT", "IA32_APIC_BASE"));
        assert_eq!(msr(0x1b), APIC_BASE);
        assert_eq!(named(msr(0xc000_0080)), "IA32_EFER");
        assert_eq!(named(msr(0xc000_0103)), "IA32_TSC_AUX");
        assert_eq!([named(msr(0x48)), named(msr(0xda0))], ["IA32_SPEC_CTRL", "IA32_XSS"]);
        let others = [LVT_THERMAL, DIVIDE, MASKS_8259].map(named);
        assert_eq!(others, ["LVT thermal", "APIC timer divide", "8259 masks"]);
        note(DR0);
        note(msr(0x2ff));
        assert_eq!(super::super::take_restored(), ["DR0", "IA32_MTRR_DEF_TYPE"]);
        assert_eq!(super::super::take_restored(), [""; 0]);
    }
}
