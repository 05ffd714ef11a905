//! Code in unusual places: modified while it runs, across pages, under two addresses, and of 32 bits.

use super::{Test, code, page};
use crate::machine::{KERNEL_CODE, KERNEL_CODE_32};
use core::arch::naked_asm;
use pmu_model::Occurrence::{self, *};

/// Puts a function's bytes, up to its mark, at an address.
fn put(function: unsafe extern "C" fn(), at: u64) -> u64 {
    let from = function as *const () as *const u8;
    let mark = [0x0f_u8, 0x0b, 0x0f, 0x0b];
    // SAFETY: the function ends with the mark; the place is this group's.
    unsafe {
        let bytes = (0..).find(|&n| core::slice::from_raw_parts(from.add(n), 4) == mark);
        core::ptr::copy(from, at as *mut u8, bytes.unwrap_or(0));
    }
    at
}

fn at(mut test: Test, address: u64) -> Test {
    test.function = address;
    test
}

pub fn run() {
    modified();
    crossing();
    aliases();
    same_offset();
    ambiguous();
    code_32();
}

fn modified() {
    let counts: &[_] =
        &[(Load, 1 + 10), (Store, 20), (JccTakenBackward, 9), (JccNotTaken, 1), (Return, 1)];
    let at_start = put(modifies, code(0));
    let test = Test::new("modifies", counts, 2 + 10 * 6).fell_back(1).with(page(0));
    at(test, at_start).run();
    // The store is the last instruction of its block, and a call's own.
    let counts: &[_] = &[(Load, 2), (Store, 2), (RelativeCall, 1), (Return, 2), (RelativeJump, 1)];
    let test = Test::new("pushes", counts, 8).with(page(0));
    at(test, put(pushes, code(0))).run();
    // The elements go over the four NOPs of the block: QEMU starts the first one twice.
    let counts: &[_] = &[(Load, 1), (Store, 1), (Return, 1)];
    let test = Test::new("fills", counts, 9).strings(5, 1);
    at(test, put(fills, code(0))).run();
    // An area over its own block, whose first bytes alone have been executed.
    let counts: &[_] = &[(Load, 1), (Store, 1), (Return, 1), (RelativeJump, 2)];
    let test = Test::new("saves", counts, 6);
    at(test, put(saves, code(0))).run();
}

/// The counts of [`crosses`], and its instructions.
const CROSSES: &[(Occurrence, u64)] =
    &[(Load, 1 + 10), (JccTakenForward, 5), (JccNotTaken, 6), (JccTakenBackward, 9), (Return, 1)];
const CROSSES_INSTRUCTIONS: u64 = 10 * 5 + 5 + 2;

fn crossing() {
    // Each offset of the code's at the end of the page once: in a jump, after one, in a load.
    for back in 0..48 {
        let start = put(crosses, code(0) + 4096 - back);
        let test = Test::new("crossing", CROSSES, CROSSES_INSTRUCTIONS).fell_back(1);
        at(test.with(page(0)), start).run();
    }
}

/// Where nothing else is: a second address of the code's page, in the lower half.
const ALIAS: u64 = 0x40_0000;

fn aliases() {
    put(crosses, code(0) + 0x100);
    // SAFETY: the table of the lower half is made once, for this page.
    unsafe { crate::machine::map_low(ALIAS, crate::machine::physical(code(0))) };
    for (name, base) in [("first", code(0)), ("second", ALIAS), ("first_again", code(0))] {
        let test = Test::new(name, CROSSES, CROSSES_INSTRUCTIONS).fell_back(1).with(page(0));
        at(test, base + 0x100).run();
    }
}

/// Branches to the offset in another page that they have themselves: QEMU, too, would continue there if their stores changed their own
/// block.
fn same_offset() {
    let place = |function, mark: &[u8], offset| {
        let start = put(function, code(0) + offset);
        // SAFETY: this group's pages; the function holds the instruction.
        unsafe {
            let bytes = core::slice::from_raw_parts(start as *const u8, 64);
            let at = bytes.windows(mark.len()).position(|bytes| bytes == mark);
            let target = start + at.unwrap_or(0) as u64 + 4096;
            *(target as *mut u8) = 0xc3;
            (start, target)
        }
    };
    for (name, function, mark, kind) in [
        ("far_indirect_call", calls as unsafe extern "C" fn(), [0xff, 0xd7], IndirectCall),
        ("far_relative_call", calls_relative, [0xe8, 0xfb], RelativeCall),
    ] {
        let (start, target) = place(function, &mark, 0x400);
        let counts: &[_] = match kind {
            IndirectCall => &[(Load, 2), (Store, 1), (IndirectCall, 1), (Return, 2)],
            _ => &[(Load, 2), (Store, 1), (RelativeCall, 1), (Return, 2)],
        };
        at(Test::new(name, counts, 3).with(target), start).run();
    }
    let (start, target) = place(returns, &[0x48, 0xcf], 0x500);
    let counts: &[_] = &[(Load, 5 + 1), (Store, 5), (FarBranch, 1), (Return, 1)];
    at(Test::new("interrupt_return", counts, 9).with(target), start).run();
}

/// A jump over one page exactly: its target and what follows it differ in their pages alone.
fn ambiguous() {
    let start = code(0) + 0x200;
    let bytes = |compare: u8| {
        // MOV EAX, 1; CMP AL, n; JZ +4096; RET.
        [0xb8, 1, 0, 0, 0, 0x3c, compare, 0x0f, 0x84, 0, 0x10, 0, 0, 0xc3]
    };
    for (compare, counted) in [(1, JccTakenForward), (2, JccNotTaken)] {
        let code = bytes(compare);
        // SAFETY: this group's pages.
        unsafe {
            core::ptr::copy(code.as_ptr(), start as *mut u8, code.len());
            *((start + 13 + 4096) as *mut u8) = 0xc3;
        }
        let taken: &[_] = &[(Load, 1), (JccTakenForward, 1), (Return, 1)];
        let fell: &[_] = &[(Load, 1), (JccNotTaken, 1), (Return, 1)];
        let counts = if counted == JccNotTaken { fell } else { taken };
        at(Test::new("ambiguous", counts, 4), start).run();
    }
}

fn code_32() {
    let bytes = [
        0xb9, 5, 0, 0, 0,    // mov ecx, 5
        0x40, // inc eax
        0x50, // push eax
        0x58, // pop eax
        0x49, // dec ecx
        0x75, 0xfa, // jnz, to inc
        0xa1, 0, 0, 0x40, 0,    // mov eax, [ALIAS]
        0xcb, // retf
    ];
    // SAFETY: this group's page.
    unsafe { core::ptr::copy(bytes.as_ptr(), (code(0) + 0x300) as *mut u8, bytes.len()) };
    let counts: &[_] = &[
        (FarBranch, 2),
        (IndirectJump, 1),
        (JccTakenBackward, 4),
        (JccNotTaken, 1),
        (Return, 1),
        // Two of each far return.
        (Load, 2 + 2 + 5 + 1 + 1),
        (Store, 4 + 2 + 5),
    ];
    let test = Test::new("code32", counts, 13 + 1 + 25 + 2 + 1 + 2).fell_back(1);
    test.with(ALIAS + 0x300).at(to_32).run();
}

#[unsafe(naked)]
extern "C" fn modifies() {
    naked_asm!(
        "mov ecx, 10",
        "2: mov rax, [rdi]",
        "mov byte ptr [rip + 3f + 3], cl",
        "3: mov byte ptr [rdi + 8], 1",
        "nop",
        "dec ecx",
        "jnz 2b",
        "ret",
        "ud2",
        "ud2",
    )
}

#[unsafe(naked)]
extern "C" fn pushes() {
    // The stack lies on the code: the call's return address goes over the block's first instructions.
    naked_asm!(
        "mov rax, rsp",
        "jmp 2f",
        ".balign 8",
        "nop",
        ".balign 8",
        "2: lea rsp, [rip + 2b + 8]",
        "mov qword ptr [rdi], 0",
        "call 3f",
        "mov rsp, rax",
        "ret",
        "3: ret",
        "ud2",
        "ud2",
    )
}

#[unsafe(naked)]
extern "C" fn fills() {
    naked_asm!(
        "lea rdi, [rip + 2f]",
        "mov ecx, 4",
        "mov al, 0x90",
        "2: .byte 0x90, 0x90, 0x90, 0x90",
        "rep stosb",
        "ret",
        "ud2",
        "ud2",
    )
}

#[unsafe(naked)]
extern "C" fn saves() {
    naked_asm!(
        "jmp 2f",
        ".balign 64",
        "2: lea rax, [rip + 2b]",
        "nop",
        "fxsave64 [rax - 512 + 16]",
        "jmp 3f",
        "3: ret",
        "ud2",
        "ud2",
    )
}

#[unsafe(naked)]
extern "C" fn calls() {
    naked_asm!("call rdi", "ret", "ud2", "ud2")
}

#[unsafe(naked)]
extern "C" fn calls_relative() {
    // A call over 4096 bytes less those of itself: to its own offset in the next page.
    naked_asm!(".byte 0xe8, 0xfb, 0x0f, 0, 0", "ret", "ud2", "ud2")
}

#[unsafe(naked)]
extern "C" fn returns() {
    naked_asm!(
        "mov r8d, ss",
        "mov rcx, rsp",
        "push r8",
        "push rcx",
        "pushfq",
        "push {code}",
        "push rdi",
        "iretq",
        "ud2",
        "ud2",
        code = const KERNEL_CODE,
    )
}

#[unsafe(naked)]
extern "C" fn crosses() {
    naked_asm!(
        "mov ecx, 10",
        "2: test ecx, 1",
        "jz 3f",
        "nop",
        "3: mov rax, [rdi + 0x40]",
        "dec ecx",
        "jnz 2b",
        "ret",
        "ud2",
        "ud2",
    )
}

/// A far return to 32-bit code on a stack of the lower half, and back.
#[unsafe(naked)]
extern "C" fn to_32() {
    naked_asm!(
        "mov r8, rsp",
        "lea rsp, [rdi + 0x800]",
        // Where the far return of the 32-bit code leads: a selector and an offset of 32 bits each.
        "lea rax, [rdi + 0x40]",
        "mov dword ptr [rsp - 4], {code}",
        "mov [rsp - 8], eax",
        "sub rsp, 8",
        "mov byte ptr [rdi + 0x40], 0x41",
        "mov dword ptr [rdi + 0x41], 0x00c3e1ff",
        "lea rax, [rip + 2f]",
        "mov r9, rax",
        "push {code32}",
        "push rdi",
        "retfq",
        "2: mov rsp, r8",
        "ret",
        code = const KERNEL_CODE,
        code32 = const KERNEL_CODE_32,
    )
}
