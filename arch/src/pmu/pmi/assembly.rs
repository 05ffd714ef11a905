//! The handlers themselves: interrupted code to interrupted code, without a call.

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
/// one at the beginning, and for each behind it at the end. So what a counter sees does not depend on its place.
pub(super) const fn stopped_one_by_one(count: u64) -> u64 {
    16 + 7 * (count - 1) + 11
}

/// As [`entry`], but stops the counters first.
#[unsafe(naked)]
pub(super) extern "C" fn stopping_entry() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rdi, [rsp + {top}]",
        "mov ecx, [rdi + {stop}]",
        "mov eax, [rdi + {stop} + 8]",
        "mov edx, [rdi + {stop} + 12]",
        "wrmsr",
        "jmp {entry} + {skip}",
        top = const TOP,
        entry = sym entry,
        stop = const offset::STOP,
        skip = const ENTRY_BYTES,
    )
}

/// Where the pointer to the processor's block is, from the stack pointer behind five pushes: the processor has pushed five
/// words below it ([`crate::smp::Processor`]).
const TOP: usize = 80;

/// Bytes of the first six instructions of [`entry`]: five pushes of one byte, and a MOV of five.
const ENTRY_BYTES: usize = 10;

/// With a status register. The steps are those of the module; the numbers in the margin count the instructions of an
/// overflow of one counter that is reloaded, fixed vector, xAPIC.
#[unsafe(naked)]
pub(super) extern "C" fn entry() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rdi, [rsp + {top}]", // 6
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
        "shl edx, 6",
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
        "5: mov rsi, [rdi + {apic}]",
        "test rsi, rsi",
        "jz 21f",
        "mov eax, [rdi + {lvt}]",
        "mov [rsi + {lvtpc}], eax", // 39
        "6: mov ecx, [rdi + {status}]",
        "rdmsr",
        "shl rdx, 32",
        "or rax, rdx",
        "and rax, [rdi + {mask}]",
        "jnz 22f", // 45
        "25: cmp dword ptr [rdi + {nmi}], 0",
        "jne 7f",
        "test rsi, rsi",
        "jz 23f",
        "mov dword ptr [rsi + {eoi}], 0", // 50
        // Go on counting. What follows is all of the handler that counters see which were frozen.
        "7: mov ecx, [rdi + {resume}]",
        "test ecx, ecx",
        "jz 26f", // 53
        // Unless the gate is closed.
        "cmp dword ptr [rdi + {shut}], 0",
        "jne 26f",
        "mov rax, [rsp + 40]",
        "sub rax, [rdi + {closed}]",
        "cmp rax, [rdi + {closed} + 8]",
        "jb 26f",
        "mov eax, [rdi + {resume} + 8]",
        "mov edx, [rdi + {resume} + 12]",
        "wrmsr",
        "26: pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "iretq", // 59
        "8: inc qword ptr [rdi + {spurious}]",
        "cmp qword ptr [rdi + {spurious}], {most}",
        "jb 5b",
        // It does not stop: LVTPC is written with its mask bit from now on.
        "or dword ptr [rdi + {lvt}], {mask_bit}",
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
        "mov eax, [rsp + 48]",
        "mov edx, [rdi + {task}]",
        "mov [rcx + 24], edx",
        "mov [rcx + 28], eax",
        "add qword ptr [rdi + {cursor}], 32",
        "jmp 3b",
        "24: inc qword ptr [rdi + {dropped}]",
        "mov rax, rsi",
        "27: bsf rdx, rax",
        "lea rcx, [rax - 1]",
        "and rax, rcx",
        "shl edx, 6",
        "inc qword ptr [rdi + rdx + {unsampled}]",
        "test rax, rax",
        "jnz 27b",
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
        top = const TOP,
        status = const offset::STATUS,
        clear = const offset::CLEAR,
        mask = const offset::MASK,
        resume = const offset::RESUME,
        shut = const offset::SHUT,
        closed = const offset::CLOSED,
        apic = const offset::APIC,
        lvt = const offset::LVT,
        nmi = const offset::NMI,
        pmis = const offset::PMIS,
        spurious = const offset::SPURIOUS,
        back_to_back = const offset::BACK_TO_BACK,
        dropped = const offset::DROPPED,
        unsampled = const offset::UNSAMPLED,
        task = const offset::TASK,
        cursor = const offset::CURSOR,
        end = const offset::END,
        reload = const offset::RELOAD,
        preset = const offset::PRESET,
        overflows = const offset::OVERFLOWS,
        lvtpc = const Register::LvtPmc as u32,
        eoi = const Register::EndOfInterrupt as u32,
        x2apic = const 0x800,
        most = const MOST_SPURIOUS,
        mask_bit = const LVT_MASK,
    )
}

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
        "mov ecx, [r8 + {reload}]",
        "rdmsr",
        "mov eax, [rdi + {top}]",
        "bt edx, eax",
        "jc 3f", // 25
        "mov eax, [r8 + {preset}]",
        "mov edx, [r8 + {preset} + 4]",
        "wrmsr",
        "inc qword ptr [r8 + {overflows}]",
        // The slot's number is the counter's bit.
        "sub r8, rdi",
        "shr r8d, 6",
        "bts r9, r8",
        "3: test rsi, rsi",
        "jnz 2b", // 34
        "test r9, r9",
        "jz 8f",
        "inc qword ptr [rdi + {pmis}]",
        "cmp qword ptr [rdi + {end}], 0",
        "jne 9f", // 39
        "5: cmp dword ptr [rdi + {nmi}], 0",
        "jne 7f",
        "mov rsi, [rdi + {apic}]",
        "test rsi, rsi",
        "jz 6f",
        "mov dword ptr [rsi + {eoi}], 0", // 45
        "7: mov r8d, [rdi + {stops}]",
        "test r8d, r8d",
        "jz 33f", // 48
        // Unless the gate is closed.
        "cmp dword ptr [rdi + {shut}], 0",
        "jne 33f",
        "mov rax, [rsp + 56]",
        "sub rax, [rdi + {closed}]",
        "cmp rax, [rdi + {closed} + 8]",
        "jb 33f",
        // Let each counter go on.
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
        "iretq", // 56
        "6: mov ecx, {x2apic} + ({eoi} >> 4)",
        "xor eax, eax",
        "xor edx, edx",
        "wrmsr",
        "jmp 7b",
        "8: inc qword ptr [rdi + {spurious}]",
        "cmp qword ptr [rdi + {spurious}], {most}",
        "jb 5b",
        // It does not stop: LVTPC is masked.
        "mov rsi, [rdi + {apic}]",
        "test rsi, rsi",
        "jz 34f",
        "mov dword ptr [rsi + {lvtpc}], {mask_bit}",
        "jmp 5b",
        "34: mov ecx, {x2apic} + ({lvtpc} >> 4)",
        "mov eax, {mask_bit}",
        "xor edx, edx",
        "wrmsr",
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
        top = const offset::TOP_IN_EDX,
        apic = const offset::APIC,
        nmi = const offset::NMI,
        pmis = const offset::PMIS,
        spurious = const offset::SPURIOUS,
        dropped = const offset::DROPPED,
        unsampled = const offset::UNSAMPLED,
        task = const offset::TASK,
        cursor = const offset::CURSOR,
        end = const offset::END,
        reload = const offset::RELOAD,
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

    #[test]
    fn the_stopping_entry_joins_behind_the_first_six_instructions() {
        // SAFETY: the entry's code, which is longer than that.
        let code = unsafe { core::slice::from_raw_parts(entry as *const u8, ENTRY_BYTES + 2) };
        assert_eq!(code[..5], [0x50, 0x51, 0x52, 0x56, 0x57]);
        // mov rdi, [rsp + disp8]; mov ecx, [rdi + ...]
        assert_eq!((&code[5..10], code[ENTRY_BYTES]), (&[0x48, 0x8b, 0x7c, 0x24, 80][..], 0x8b));
    }
}
