//! Ring 3: what each ring's filter counts across SYSCALL, INT n, exceptions and interrupts.

use crate::case;
use crate::handlers::*;
use crate::machine::{KERNEL_CODE, RING_3_STACK, USER_CODE, USER_DATA, apic_write, open_to_ring_3};
use crate::pmu::{INSTRUCTIONS, KERNEL, USER, Unit, read, write};
use core::arch::{global_asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering};

global_asm!(
    ".pushsection .text.ring3, \"ax\"",
    ".balign 4096",
    ".globl ring_3_code",
    "ring_3_code:",
    "ring_3_loop: mov ecx, 1000",
    "2: dec ecx", "jnz 2b", "int {leave}",
    "ring_3_calls: mov r8d, 10",
    "2: syscall", "dec r8d", "jnz 2b", "int {leave}",
    "ring_3_enters: mov r8d, 10",
    "2: lea rdx, [rip + 3f]", "mov rcx, rsp", "sysenter", "3: dec r8d", "jnz 2b", "int {leave}",
    "ring_3_interrupts: mov ecx, 10",
    "2: int {back}", "int3", "dec ecx", "jnz 2b", "int {leave}",
    "ring_3_faults: mov ecx, 10", "mov esi, 0x1000",
    "2: ud2", "mov rax, [rsi]", "wrmsr", "dec ecx", "jnz 2b", "int {leave}",
    "ring_3_long: mov ecx, 200000",
    "2: dec ecx", "jnz 2b", "int {leave}",
    ".balign 4096",
    ".popsection",
    leave = const LEAVE,
    back = const BACK,
);

unsafe extern "C" {
    static ring_3_code: u8;
    static ring_3_loop: u8;
    static ring_3_calls: u8;
    static ring_3_enters: u8;
    static ring_3_interrupts: u8;
    static ring_3_faults: u8;
    static ring_3_long: u8;
}

static CODE: AtomicU64 = AtomicU64::new(0);
static STACK: AtomicU64 = AtomicU64::new(0);
static FLAGS: AtomicU64 = AtomicU64::new(2);
static SEGMENT: AtomicU64 = AtomicU64::new(USER_CODE);

/// Goes to ring 3 and comes back by `int LEAVE`.
#[unsafe(naked)]
pub extern "C" fn visit() {
    naked_asm!(
        "lea rax, [rip + 2f]",
        "push rax",
        "mov [rip + {back}], rsp",
        "push {data}",
        "push qword ptr [rip + {stack}]",
        "push qword ptr [rip + {flags}]",
        "push qword ptr [rip + {code}]",
        "push qword ptr [rip + {rip}]",
        "iretq",
        "2: ret",
        back = sym RETURN_STACK,
        stack = sym STACK,
        flags = sym FLAGS,
        rip = sym CODE,
        data = const USER_DATA,
        code = sym SEGMENT,
    )
}
/// `visit`, and the handler of LEAVE.
pub const VISIT: u64 = 10 + 2;

/// Lets `visit` go to `code`, with the stack's top at `stack`.
pub fn send_to(code: u64, stack: u64) {
    send_to_segment(code, stack, USER_CODE);
}

/// The same with a code segment other than the 64-bit one.
pub fn send_to_segment(code: u64, stack: u64, segment: u64) {
    SEGMENT.store(segment, Ordering::Relaxed);
    CODE.store(code, Ordering::Relaxed);
    STACK.store(stack, Ordering::Relaxed);
}

pub fn run(unit: &Unit) {
    let (start, stack) = (&raw const ring_3_code as u64, &raw const RING_3_STACK as u64);
    open_to_ring_3(start, 4096);
    open_to_ring_3(stack, 16 << 10);
    STACK.store(stack + (16 << 10), Ordering::Relaxed);
    let codes = [
        ("loop", &raw const ring_3_loop as u64, 2 + 2000, 0),
        ("system_calls", &raw const ring_3_calls as u64, 2 + 30, 10),
        ("software_interrupts", &raw const ring_3_interrupts as u64, 2 + 40, 20),
        (
            "faults",
            &raw const ring_3_faults as u64,
            3 + 20,
            10 * (SKIP_TWO + SKIP_THREE + SKIP_TWO_WITH_ERROR),
        ),
        ("long", &raw const ring_3_long as u64, 2 + 400_000, 0),
    ];
    for (name, code, user, kernel) in codes {
        CODE.store(code, Ordering::Relaxed);
        each_filter(unit, name, user, kernel + VISIT);
    }
    if unit.intel {
        enters(unit);
    }
    timer(unit);
}

/// SYSENTER and SYSEXIT, which only Intel's processors have in long mode (AMD APM vol. 3, SYSENTER).
fn enters(unit: &Unit) {
    const SYSENTER_CS: u32 = 0x174;
    const SYSENTER_EIP: u32 = 0x176;
    /// SYSEXIT takes its segments from above this one. Nothing returns to them by their selectors.
    const SEGMENT: u64 = KERNEL_CODE;
    #[unsafe(naked)]
    extern "C" fn exits() {
        naked_asm!("rex64 sysexit")
    }
    CODE.store(&raw const ring_3_enters as u64, Ordering::Relaxed);
    write(SYSENTER_EIP, exits as *const () as u64);
    write(SYSENTER_CS, SEGMENT);
    each_filter(unit, "fast_system_calls", 2 + 50, 10 + VISIT);
    case("fast_system_calls_segment", read(SYSENTER_CS), SEGMENT);
    // Without a segment it raises #GP.
    write(SYSENTER_CS, 0);
    let skipped = SKIP_TWO_WITH_ERROR;
    each_filter(unit, "refused_system_calls", 2 + 40, 10 * skipped + VISIT);
}

fn each_filter(unit: &Unit, name: &str, user: u64, kernel: u64) {
    let filters =
        [("user", USER, user), ("kernel", KERNEL, kernel), ("both", USER | KERNEL, user + kernel)];
    for (filter, bits, expected) in filters {
        case_named(name, filter, unit.over(INSTRUCTIONS | bits, visit), expected);
    }
}

fn case_named(name: &str, filter: &str, seen: u64, expected: u64) {
    crate::line!("case {name}.{filter} {seen} {expected}");
}

/// A device interrupt somewhere in ring 3.
fn timer(unit: &Unit) {
    const LVT_TIMER: u64 = 0x320;
    const INITIAL_COUNT: u64 = 0x380;
    CODE.store(&raw const ring_3_long as u64, Ordering::Relaxed);
    FLAGS.store(0x202, Ordering::Relaxed);
    // Bus clock by 1; nanoseconds here, so some 10,000 instructions from now.
    apic_write(0x3e0, 0b1011);
    apic_write(LVT_TIMER, u32::from(DEVICE));
    let filters = [
        ("user", USER, 2 + 400_000),
        ("kernel", KERNEL, VISIT + DEVICE_INSTRUCTIONS),
        ("both", USER | KERNEL, 2 + 400_000 + VISIT + DEVICE_INSTRUCTIONS),
    ];
    for (filter, bits, expected) in filters {
        apic_write(INITIAL_COUNT, 300_000);
        case_named("interrupted", filter, unit.over(INSTRUCTIONS | bits, visit), expected);
    }
}
