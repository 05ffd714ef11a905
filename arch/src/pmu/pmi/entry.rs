//! The way in and out on this processor.

use super::block::offset;
use super::{ControlBlock, Raw, service};
use crate::apic::{self, Register};
use crate::interrupts::{self, TrapFrame, exception};
use crate::msr::{self, Msr};
use crate::time::tsc;
use core::arch::naked_asm;

/// Vector of the PMI, if it comes as a fixed interrupt.
pub const VECTOR: u8 = 0xe0;
/// LVT delivery mode NMI: bits 10:8 (SDM vol. 3, 10.5.1).
const MODE_NMI: u32 = 0b100 << 8;
/// LVT mask bit.
const MASK: u32 = 1 << 16;

/// How the interrupt comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// As vector [`VECTOR`], when interrupts are on.
    Fixed,
    /// As NMI, always.
    Nmi,
}

/// The boot processor's block. Other processors will need one each, found through GS.
static mut BLOCK: ControlBlock = ControlBlock::EMPTY;

/// The block that the handler uses. To be changed only while LVTPC is masked; counts may be read at any time.
#[must_use]
pub fn block() -> *mut ControlBlock {
    &raw mut BLOCK
}

/// Takes `new` as the block and lets PMIs come.
///
/// # Safety
/// Ring 0, interrupt table loaded, APIC on. The block has to fit what is programmed; a log that it names has to live
/// until [`uninstall`].
pub unsafe fn install(mut new: ControlBlock, delivery: Delivery) {
    let vector = match delivery {
        Delivery::Fixed => VECTOR,
        Delivery::Nmi => exception::NMI.0,
    };
    new.lvt = match delivery {
        Delivery::Fixed => u32::from(VECTOR),
        Delivery::Nmi => MODE_NMI,
    };
    new.nmi = u32::from(delivery == Delivery::Nmi);
    new.apic = apic::page().unwrap_or(0);
    let (status, stops, lvt) = (new.status, new.stop.msr != 0, new.lvt);
    // SAFETY: LVTPC is masked by `uninstall` or since boot, so no handler runs; the entries leave the interrupted
    // code as it was.
    unsafe {
        uninstall();
        block().write(new);
        match (status, stops) {
            (0, _) => interrupts::set_handler(vector, Some(on_pmi)),
            (_, true) => interrupts::set_entry(vector, stopping_entry as *const () as u64),
            (_, false) => interrupts::set_entry(vector, entry as *const () as u64),
        }
    }
    apic::write(Register::LvtPmc, lvt);
}

/// Masks LVTPC and gives both vectors back.
///
/// # Safety
/// Ring 0, interrupt table loaded.
pub unsafe fn uninstall() {
    apic::write(Register::LvtPmc, MASK);
    for vector in [VECTOR, exception::NMI.0] {
        interrupts::set_handler(vector, None);
        // SAFETY: the vector's own stub.
        unsafe { interrupts::reset_entry(vector) };
    }
}

/// Without a status register: through the common stub.
fn on_pmi(frame: &mut TrapFrame) {
    // SAFETY: this handler and whoever holds LVTPC masked never run at the same time.
    let block = unsafe { &mut *block() };
    let lvt = block.lvt;
    service(block, &mut Processor { lvt }, frame.rip);
}

struct Processor {
    lvt: u32,
}

impl Raw for Processor {
    #[inline]
    fn rdmsr(&mut self, msr: u32) -> u64 {
        // SAFETY: the block names registers that the driver has used before.
        unsafe { msr::read(Msr(msr)) }
    }

    #[inline]
    fn wrmsr(&mut self, msr: u32, value: u64) {
        // SAFETY: as above, with values that the driver made.
        unsafe { msr::write(Msr(msr), value) };
    }

    fn unmask(&mut self) {
        apic::write(Register::LvtPmc, self.lvt);
    }

    fn end(&mut self) {
        apic::end_of_interrupt();
    }

    #[inline]
    fn tsc(&mut self) -> u64 {
        tsc::now()
    }
}

/// As [`entry`], but stops the counters first.
#[unsafe(naked)]
extern "C" fn stopping_entry() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "lea rdi, [rip + {block}]",
        "mov ecx, [rdi + {stop}]",
        "mov eax, [rdi + {stop} + 8]",
        "mov edx, [rdi + {stop} + 12]",
        "wrmsr",
        "jmp {entry} + {skip}",
        block = sym BLOCK,
        entry = sym entry,
        stop = const offset::STOP,
        skip = const ENTRY_BYTES,
    )
}

/// Bytes of the first six instructions of [`entry`]: five pushes of one byte, and a LEA of seven.
const ENTRY_BYTES: usize = 12;

/// With a status register. The steps are those of the module; the numbers in the margin count the instructions of an
/// overflow of one counter that is reloaded, fixed vector, xAPIC.
#[unsafe(naked)]
extern "C" fn entry() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "lea rdi, [rip + {block}]", // 6
        "mov ecx, [rdi + {status}]",
        "rdmsr",
        "shl rdx, 32",
        "or rax, rdx",
        "and rax, [rdi + {mask}]",
        "jz 8f", // 12
        "inc qword ptr [rdi + {pmis}]",
        "2: mov rsi, rax",
        "mov rdx, rax",
        "shr rdx, 32",
        "mov ecx, [rdi + {clear}]",
        "wrmsr", // 18
        "cmp qword ptr [rdi + {end}], 0",
        "jne 9f", // 20
        // Each overflow, from the lowest bit up.
        "3: bsf rdx, rsi",
        "lea rax, [rsi - 1]",
        "and rsi, rax",
        "shl edx, 5",
        "add rdx, rdi",
        "inc qword ptr [rdx + {overflows}]",
        "mov ecx, [rdx + {reload}]",
        "test ecx, ecx",
        "jz 4f", // 29
        "mov eax, [rdx + {preset}]",
        "mov edx, [rdx + {preset} + 4]",
        "wrmsr",
        "4: test rsi, rsi",
        "jnz 3b", // 34
        "mov ecx, [rdi + {resume}]",
        "test ecx, ecx",
        "jnz 20f", // 37
        "5: mov rsi, [rdi + {apic}]",
        "test rsi, rsi",
        "jz 21f",
        "mov eax, [rdi + {lvt}]",
        "mov [rsi + {lvtpc}], eax", // 42
        "6: mov ecx, [rdi + {status}]",
        "rdmsr",
        "shl rdx, 32",
        "or rax, rdx",
        "and rax, [rdi + {mask}]",
        "jnz 22f", // 48
        "25: cmp dword ptr [rdi + {nmi}], 0",
        "jne 7f",
        "test rsi, rsi",
        "jz 23f",
        "mov dword ptr [rsi + {eoi}], 0", // 53
        "7: pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "iretq", // 59
        "8: inc qword ptr [rdi + {spurious}]",
        "mov ecx, [rdi + {resume}]",
        "test ecx, ecx",
        "jz 5b",
        // Go on counting.
        "20: mov eax, [rdi + {resume} + 8]",
        "mov edx, [rdi + {resume} + 12]",
        "wrmsr",
        "jmp 5b",
        // A sample, if there is room.
        "9: mov rcx, [rdi + {cursor}]",
        "cmp rcx, [rdi + {end}]",
        "jae 24f",
        "mov rax, [rsp + 40]",
        "mov [rcx], rax",
        "mov [rcx + 8], rsi",
        "rdtsc",
        "mov [rcx + 16], eax",
        "mov [rcx + 20], edx",
        "add qword ptr [rdi + {cursor}], 24",
        "jmp 3b",
        "24: inc qword ptr [rdi + {dropped}]",
        "jmp 3b",
        // Unmask in x2APIC mode.
        "21: mov ecx, {x2apic} + ({lvtpc} >> 4)",
        "mov eax, [rdi + {lvt}]",
        "xor edx, edx",
        "wrmsr",
        "jmp 6b",
        // Another overflow meanwhile. Every 128th time the interrupt ends all the same, so that a period shorter than
        // this path does not keep the processor here for ever.
        "22: inc qword ptr [rdi + {back_to_back}]",
        "test byte ptr [rdi + {back_to_back}], 127",
        "jnz 2b",
        "jmp 25b",
        // End of interrupt in x2APIC mode.
        "23: mov ecx, {x2apic} + ({eoi} >> 4)",
        "xor eax, eax",
        "xor edx, edx",
        "wrmsr",
        "jmp 7b",
        block = sym BLOCK,
        status = const offset::STATUS,
        clear = const offset::CLEAR,
        mask = const offset::MASK,
        resume = const offset::RESUME,
        apic = const offset::APIC,
        lvt = const offset::LVT,
        nmi = const offset::NMI,
        pmis = const offset::PMIS,
        spurious = const offset::SPURIOUS,
        back_to_back = const offset::BACK_TO_BACK,
        dropped = const offset::DROPPED,
        cursor = const offset::CURSOR,
        end = const offset::END,
        reload = const offset::RELOAD,
        preset = const offset::PRESET,
        overflows = const offset::OVERFLOWS,
        lvtpc = const Register::LvtPmc as u32,
        eoi = const Register::EndOfInterrupt as u32,
        x2apic = const 0x800,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stopping_entry_joins_behind_the_first_six_instructions() {
        // SAFETY: the entry's code, which is longer than that.
        let code = unsafe { core::slice::from_raw_parts(entry as *const u8, ENTRY_BYTES + 2) };
        assert_eq!(code[..5], [0x50, 0x51, 0x52, 0x56, 0x57]);
        // lea rdi, [rip + disp32]; mov ecx, [rdi + ...]
        assert_eq!((&code[5..8], code[ENTRY_BYTES]), (&[0x48, 0x8d, 0x3d][..], 0x8b));
    }
}
