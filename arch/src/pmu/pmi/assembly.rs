//! The handlers themselves: interrupted code to interrupted code, without a call. With a status register: [`Handlers`]; without
//! one: [`searching_entry`].

mod handlers;

pub(super) use handlers::Handlers;

use super::block::offset;
use super::service::MOST_SPURIOUS;
use crate::apic::Register;
use core::arch::naked_asm;

/// Instructions of an interrupt's end that a counter sees which was frozen or stopped until then: five POPs and IRETQ.
pub(super) const TAIL: u64 = 6;
/// What a counter sees of an interrupt that stops it by software: [`TAIL`], and ten instructions up to the WRMSR that
/// stops it, which the preset overwrites in a counter that has overflowed.
pub(super) const STOPPED: u64 = TAIL + 10;

/// The same for [`searching_entry`], which stops `count` counters one by one: seven instructions for each before the own
/// one at the beginning, and for each after it at the end. So what a counter sees does not depend on its place.
pub(super) const fn stopped_one_by_one(count: u64) -> u64 {
    16 + 7 * (count - 1) + 11
}

/// Where the pointer to the processor's block is, from the stack pointer after five pushes: the processor has pushed five
/// words below it ([`crate::smp::Processor`]).
const TOP: usize = 80;

/// LVT bit 16 (SDM vol. 3, 10.5.1).
const LVT_MASK: u32 = 1 << 16;

/// Without a status register, on AMD: looks at the top bit of each counter that is reloaded. A preset has it set, an
/// overflow clears it.
#[unsafe(naked)]
pub(super) extern "C" fn searching_entry() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "mov rdi, [rsp + {above}]",
        "mov r8d, [rdi + {stops}]",
        "test r8d, r8d",
        "jz 31f", // 11
        // Stop each counter.
        "lea rsi, [rdi + {off}]",
        "30: mov ecx, [rsi]",
        "mov eax, [rsi + 8]",
        "mov edx, [rsi + 12]",
        "wrmsr",
        "add rsi, 16",
        "dec r8d",
        "jnz 30b",
        "31: xor r9d, r9d",
        "mov rsi, [rdi + {mask}]",
        "test rsi, rsi",
        "jz 8f", // 15
        "2: bsf r8, rsi",
        "lea rax, [rsi - 1]",
        "and rsi, rax",
        "shl r8d, 6",
        "add r8, rdi",
        "mov ecx, [r8 + {look_at}]",
        "rdmsr",
        "test edx, [rdi + {top}]",
        "jnz 3f", // 24
        "cmp dword ptr [r8 + {reload}], 0",
        "je 34f",
        "mov eax, [r8 + {preset}]",
        "mov edx, [r8 + {preset} + 4]",
        "35: wrmsr",
        "inc qword ptr [r8 + {overflows}]",
        // The slot's number is the counter's bit.
        "sub r8, rdi",
        "shr r8d, 6",
        "bts r9, r8",
        "3: test rsi, rsi",
        "jnz 2b", // 35
        "test r9, r9",
        "jz 8f",
        "inc qword ptr [rdi + {pmis}]",
        "cmp qword ptr [rdi + {end}], 0",
        "jne 9f", // 40
        // Some hypervisors mask LVTPC at delivery, as Intel's APIC does and AMD's does not (KVM from a16eb25b09c0 to 49ff3b4aec51).
        "5: mov rsi, [rdi + {apic}]",
        "mov eax, [rdi + {lvt}]",
        "test rsi, rsi",
        "jz 6f",
        "mov [rsi + {lvtpc}], eax",
        "cmp dword ptr [rdi + {nmi}], 0",
        "jne 7f",
        "mov dword ptr [rsi + {eoi}], 0", // 48
        "7: mov r8d, [rdi + {stops}]",
        "test r8d, r8d",
        "jz 33f", // 51
        // Unless the gate is closed.
        "cmp dword ptr [rdi + {shut}], 0",
        "jne 33f",
        "mov rax, [rsp + 56]",
        "sub rax, [rdi + {closed}]",
        "cmp rax, [rdi + {closed} + 8]",
        "jb 33f",
        // Let each counter continue.
        "lea rsi, [rdi + {on}]",
        "32: mov ecx, [rsi]",
        "mov eax, [rsi + 8]",
        "mov edx, [rsi + 12]",
        "wrmsr",
        "add rsi, 16",
        "dec r8d",
        "jnz 32b",
        "33: pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "iretq", // 59
        "6: mov ecx, {x2apic} + ({lvtpc} >> 4)",
        "xor edx, edx",
        "wrmsr",
        "cmp dword ptr [rdi + {nmi}], 0",
        "jne 7b",
        "mov ecx, {x2apic} + ({eoi} >> 4)",
        "xor eax, eax",
        "wrmsr",
        "jmp 7b",
        // Of a counter that stands, what it has counted since the overflow as well (`Slot::next`).
        "34: shl rdx, 32",
        "or rax, rdx",
        "add rax, [r8 + {owed}]",
        "mov edx, [r8 + {carry}]",
        "cmp rax, rdx",
        "cmovb rdx, rax",
        "sub rax, rdx",
        "mov [r8 + {owed}], rax",
        "add rdx, [r8 + {preset}]",
        "mov eax, edx",
        "shr rdx, 32",
        "jmp 35b",
        "8: inc qword ptr [rdi + {spurious}]",
        "mov rax, [rdi + {pmis}]",
        "add rax, {most}",
        "cmp [rdi + {spurious}], rax",
        "jb 5b",
        // It does not stop: LVTPC is written with its mask bit from now on.
        "or dword ptr [rdi + {lvt}], {mask_bit}",
        "jmp 5b",
        // A sample, if there is room.
        "9: mov rcx, [rdi + {cursor}]",
        "cmp rcx, [rdi + {end}]",
        "jae 24f",
        "mov rax, [rsp + 56]",
        "mov [rcx], rax",
        "mov [rcx + 8], r9",
        "rdtsc",
        "mov [rcx + 16], eax",
        "mov [rcx + 20], edx",
        "mov eax, [rsp + 64]",
        "mov edx, [rdi + {task}]",
        "mov [rcx + 24], edx",
        "mov [rcx + 28], eax",
        "add qword ptr [rdi + {cursor}], 32",
        "jmp 5b",
        "24: inc qword ptr [rdi + {dropped}]",
        "27: bsf rdx, r9",
        "lea rcx, [r9 - 1]",
        "and r9, rcx",
        "shl edx, 6",
        "inc qword ptr [rdi + rdx + {unsampled}]",
        "test r9, r9",
        "jnz 27b",
        "jmp 5b",
        above = const TOP + 16,
        stops = const offset::STOPS,
        off = const offset::OFF,
        on = const offset::ON,
        shut = const offset::SHUT,
        closed = const offset::CLOSED,
        mask = const offset::MASK,
        top = const offset::TOP_HIGH,
        reload = const offset::RELOAD,
        carry = const offset::CARRY,
        owed = const offset::OWED,
        apic = const offset::APIC,
        nmi = const offset::NMI,
        lvt = const offset::LVT,
        pmis = const offset::PMIS,
        spurious = const offset::SPURIOUS,
        dropped = const offset::DROPPED,
        unsampled = const offset::UNSAMPLED,
        task = const offset::TASK,
        cursor = const offset::CURSOR,
        end = const offset::END,
        look_at = const offset::LOOK_AT,
        preset = const offset::PRESET,
        overflows = const offset::OVERFLOWS,
        lvtpc = const Register::LvtPmc as u32,
        most = const MOST_SPURIOUS,
        mask_bit = const LVT_MASK,
        eoi = const Register::EndOfInterrupt as u32,
        x2apic = const 0x800,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted in the assembly by hand: five POPs and IRETQ; ten before the write that stops.
    #[test]
    fn an_interrupt_costs_its_instructions_by_how_counters_stop() {
        assert_eq!((TAIL, STOPPED), (6, 16));
        assert_eq!([1, 2, 4].map(stopped_one_by_one), [27, 34, 48]);
        // SDM vol. 3, figure 10-8.
        assert_eq!(LVT_MASK, 0x1_0000);
    }
}
