//! Faults in the middle of a block: what faulted counts when it has come through.

use super::own::ON_EXIT;
use super::{Test, area, page};
use crate::machine::entry;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pmu_model::Occurrence::{self, *};
use x86_64::VirtAddr;
use x86_64::instructions::tlb;
use x86_64::registers::control::Cr2;

/// Each function's own.
const RET: (Occurrence, u64) = (Return, 1);

static FAULTS: AtomicU64 = AtomicU64::new(0);

fn present(linear: u64, is: bool) {
    let entry = entry(linear);
    // SAFETY: the entry of a page that is this group's.
    unsafe { *entry = *entry & !1 | u64::from(is) };
    tlb::flush(VirtAddr::new(linear));
}

/// Brings the page in.
fn on_page_fault(_: &mut u64) {
    FAULTS.fetch_add(1, Relaxed);
    present(Cr2::read_raw(), true);
}

/// Skips UD2 or DIV ESI.
fn skip(rip: &mut u64) {
    FAULTS.fetch_add(1, Relaxed);
    *rip += 2;
}

fn faulting(test: &Test, faults: u64) {
    for number in 0..4 {
        present(page(number), false);
    }
    // SAFETY: one processor.
    unsafe { ON_EXIT = on_page_fault };
    FAULTS.store(0, Relaxed);
    test.run();
    crate::line!("case {}.faults {} {faults}", test.name, FAULTS.load(Relaxed));
}

pub fn run() {
    faulting(&Test::new("load", &[RET, (Load, 1 + 3)], 6).with(page(0)).at(load), 1);
    faulting(&Test::new("store", &[RET, (Load, 1 + 1), (Store, 2)], 6).with(page(0)).at(store), 1);
    faulting(
        &Test::new("change", &[RET, (Load, 1), (LoadStore, 2), (Locked, 1)], 4)
            .with(page(0))
            .at(change),
        2,
    );
    // Source and destination fault, one after the other.
    faulting(&Test::new("move", &[RET, (Load, 1 + 2), (Store, 1)], 5).with(page(0)).at(moves), 2);
    // The address of a call, at the end of a block.
    // SAFETY: this group's page, which is there.
    unsafe { *(page(1) as *mut u64) = back as *const () as u64 };
    faulting(
        &Test::new("call", &[(Return, 2), (Load, 2 + 1), (Store, 1), (IndirectCall, 1)], 4)
            .with(page(1))
            .at(calls),
        1,
    );
    // 80 bytes from 40 before a page's end: the faulting iteration starts twice, and counts once.
    faulting(
        &Test::new("repeated", &[RET, (Load, 1), (Store, 2)], 5)
            .strings(11, 1)
            .with(page(0) + 4096 - 40)
            .at(repeated),
        2,
    );
    // An area of 512 bytes across two pages, in the middle and at the end of a block.
    faulting(
        &Test::new("wide", &[RET, (Load, 1), (Store, 2), (RelativeJump, 1)], 5)
            .with(page(0) + 4096 - 16)
            .at(wide),
        2,
    );
    // SAFETY: one processor.
    unsafe { ON_EXIT = skip };
    Test::new("undefined", &[RET, (Load, 1 + 1), (Store, 1)], 4).with(area(0)).at(undefined).run();
    Test::new("divide", &[RET, (Load, 1 + 1), (Store, 1)], 5).with(area(0)).at(divide).run();
}

#[unsafe(naked)]
extern "C" fn load() {
    naked_asm!("nop", "mov rax, [rip]", "mov rax, [rdi]", "nop", "add rax, [rdi]", "ret")
}

#[unsafe(naked)]
extern "C" fn store() {
    naked_asm!("nop", "mov rax, [rip]", "mov [rdi], rax", "nop", "mov [rdi], rax", "ret")
}

#[unsafe(naked)]
extern "C" fn change() {
    naked_asm!("inc qword ptr [rdi]", "nop", "lock inc qword ptr [rdi + 4096]", "ret")
}

#[unsafe(naked)]
extern "C" fn moves() {
    naked_asm!("lea rsi, [rdi + 4096]", "cld", "movsb", "mov rax, [rsi]", "ret")
}

#[unsafe(naked)]
extern "C" fn calls() {
    naked_asm!("nop", "call [rdi]", "ret")
}

#[unsafe(naked)]
extern "C" fn back() {
    naked_asm!("ret")
}

#[unsafe(naked)]
extern "C" fn repeated() {
    naked_asm!("mov ecx, 10", "xor eax, eax", "rep stosq", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn wide() {
    naked_asm!("fxsave64 [rdi]", "nop", "jmp 2f", "2: fxsave64 [rdi]", "ret")
}

#[unsafe(naked)]
extern "C" fn undefined() {
    naked_asm!("mov rax, [rdi]", "ud2", "mov [rdi], rax", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn divide() {
    naked_asm!("mov rax, [rdi]", "xor esi, esi", "div esi", "mov [rdi], rax", "nop", "ret")
}
