//! A program's run: counting starts right in front of it and stops right after it.

use crate::counting::{RUNNING, each, read};
use crate::{apic, pmi};
use alloc::vec::Vec;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use program_format::layout::{slot, slot_address};
use program_format::{Program, Write};

/// RSP of whoever called `enter`.
pub static RUNNER_STACK: AtomicU64 = AtomicU64::new(0);
/// The writes that stop counting, and how many.
static STOP: AtomicU64 = AtomicU64::new(0);
static STOPS: AtomicU64 = AtomicU64::new(0);
/// RAX to R15 in the order of their numbers, and the flags, as the program left them.
static REGISTERS: [AtomicU64; 17] = [const { AtomicU64::new(0) }; 17];
/// What ended the program before its end: vector, the stack's two top words, CR2.
static ABANDONED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// What was seen of a program.
pub struct Seen {
    /// The counters, in the program's order.
    pub counts: Vec<u64>,
    /// RAX to R15 in the order of their numbers, and the flags.
    pub registers: [u64; 17],
    /// Vector, the stack's two top words and CR2, if it did not come to its end.
    pub abandoned: Option<[u64; 4]>,
    /// Device interrupts.
    pub devices: u64,
    /// The further registers.
    pub records: Vec<u64>,
}

/// Runs a program whose memory is ready.
pub fn run(program: &Program) -> Seen {
    let pmu = &program.pmu;
    pmi::reset(pmu);
    apic::reset();
    reset_vectors();
    for store in &ABANDONED {
        store.store(0, Relaxed);
    }
    let [start, stop] = &pmu.flush;
    each(&pmu.set_up);
    counted(start, stop, flush as *const () as u64, program.stack);
    each(&pmu.set_up);
    apic::set_lvtpc(pmu.lvtpc);
    counted(&pmu.start, &pmu.stop, program.entry, program.stack);
    // The boot loader's handlers are gone, so a timer that has not rung must not.
    apic::reset();
    let devices = slot_address(slot::DEVICES) as *const u64;
    let abandoned = ABANDONED.each_ref().map(|word| word.load(Relaxed));
    Seen {
        counts: pmu.counters.iter().map(|&register| read(register)).collect(),
        registers: REGISTERS.each_ref().map(|register| register.load(Relaxed)),
        abandoned: (abandoned[0] != 0).then_some(abandoned),
        // SAFETY: the page of slots is mapped.
        devices: unsafe { devices.read_volatile() },
        records: pmu.records.iter().map(|&register| read(register)).collect(),
    }
}

/// Executes `code` between the writes that start and those that stop.
fn counted(start: &[Write], stop: &[Write], code: u64, stack: u64) {
    STOP.store(stop.as_ptr() as u64, Relaxed);
    STOPS.store(stop.len() as u64, Relaxed);
    RUNNING.store(1, Relaxed);
    let exit = slot_address(slot::EXIT) as *mut u64;
    // SAFETY: the page of slots is mapped; the code ends at the exit, as every program does, and `enter` restores what a
    // caller relies on.
    unsafe {
        exit.write_volatile(finished as *const () as u64);
        enter(start.as_ptr(), start.len() as u64, code, stack);
    }
}

/// # Safety
/// The code ends with a jump to the address in the exit's slot.
#[unsafe(naked)]
unsafe extern "sysv64" fn enter(start: *const Write, count: u64, code: u64, stack: u64) {
    naked_asm!(
        "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
        "mov [rip + {runner}], rsp",
        "mov r8, rdx",
        "mov rsp, rcx",
        "test rsi, rsi",
        "jz 3f",
        "2: mov rcx, [rdi]",
        "mov eax, [rdi + 8]",
        "mov edx, [rdi + 12]",
        "wrmsr",
        "add rdi, 16",
        "dec rsi",
        "jnz 2b",
        "3: push r8",
        "xor eax, eax", "xor ecx, ecx", "xor edx, edx", "xor ebx, ebx", "xor ebp, ebp", "xor esi, esi", "xor edi, edi",
        "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d", "xor r13d, r13d",
        "xor r14d, r14d", "xor r15d, r15d",
        "sti",
        "ret",
        runner = sym RUNNER_STACK,
    )
}

/// Where a program ends.
#[unsafe(naked)]
extern "C" fn finished() {
    naked_asm!(
        "mov [rip + {registers}], rax",
        "mov [rip + {registers} + 8], rcx",
        "mov [rip + {registers} + 16], rdx",
        "mov [rip + {registers} + 24], rbx",
        "mov [rip + {registers} + 32], rsp",
        "mov [rip + {registers} + 40], rbp",
        "mov [rip + {registers} + 48], rsi",
        "mov [rip + {registers} + 56], rdi",
        "mov [rip + {registers} + 64], r8",
        "mov [rip + {registers} + 72], r9",
        "mov [rip + {registers} + 80], r10",
        "mov [rip + {registers} + 88], r11",
        "mov [rip + {registers} + 96], r12",
        "mov [rip + {registers} + 104], r13",
        "mov [rip + {registers} + 112], r14",
        "mov [rip + {registers} + 120], r15",
        "mov rsp, [rip + {runner}]",
        "pushfq",
        "pop [rip + {registers} + 128]",
        "jmp {stopped}",
        registers = sym REGISTERS, runner = sym RUNNER_STACK, stopped = sym stopped,
    )
}

/// Stops counting and returns from `enter`.
#[unsafe(naked)]
pub extern "C" fn stopped() {
    naked_asm!(
        "mov rsp, [rip + {runner}]",
        "mov qword ptr [rip + {running}], 0",
        "mov rdi, [rip + {stop}]",
        "mov rsi, [rip + {stops}]",
        "test rsi, rsi",
        "jz 3f",
        "2: mov rcx, [rdi]",
        "mov eax, [rdi + 8]",
        "mov edx, [rdi + 12]",
        "wrmsr",
        "add rdi, 16",
        "dec rsi",
        "jnz 2b",
        "3: sti",
        "nop",
        "cli",
        "cld",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
        "ret",
        runner = sym RUNNER_STACK, running = sym RUNNING, stop = sym STOP, stops = sym STOPS,
    )
}

/// Notes why a program does not come to its end.
pub extern "sysv64" fn abandon(vector: u64, top: u64, next: u64, cr2: u64) {
    for (word, value) in ABANDONED.iter().zip([vector, top, next, cr2]) {
        word.store(value, Relaxed);
    }
}

/// A program of ours: empties caches and TLBs, under the eyes of a counter that has them look.
#[unsafe(naked)]
extern "C" fn flush() {
    naked_asm!("wbinvd", "mov rax, cr3", "mov cr3, rax", "jmp [{exit}]", exit = const slot_address(slot::EXIT))
}

/// x87, SSE and AVX as after RESET.
fn reset_vectors() {
    #[repr(C, align(64))]
    struct Area([u8; 1024]);
    // A header of zeros: every part has its initial state. SDM vol. 1, 13.6.
    static INITIAL: Area = Area([0; 1024]);
    // SAFETY: the kernel itself holds nothing in these registers, and the area is larger than what three parts take.
    unsafe {
        core::arch::asm!("xrstor [{}]", in(reg) INITIAL.0.as_ptr(), in("eax") 7, in("edx") 0);
        core::arch::asm!("ldmxcsr [{}]", in(reg) &0x1f80u32);
    }
}
