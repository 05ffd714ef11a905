//! What a processor refuses: writes to control registers, gates that are absent, system calls of compatibility mode. Each
//! while nothing is counted, while one ring is, while both are, and while the guest is stepped for its branches.

use crate::handlers::{LEAVE, SKIP_TWO};
use crate::line;
use crate::machine::{RING_3_STACK, USER_CODE_32, map_low, open_to_ring_3, physical, set_gate};
use crate::pmu::{AROUND, INSTRUCTIONS, KERNEL, USER, Unit, write};
use crate::rings;
use core::arch::{asm, global_asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use x86_64::registers::model_specific::Msr;

/// The exception that was noted last, and how many there were.
static ERROR: AtomicU64 = AtomicU64::new(0);
static RIP: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Bytes of the instruction that faults.
static BYTES: AtomicU64 = AtomicU64::new(0);
/// What goes into the control register.
static VALUE: AtomicU64 = AtomicU64::new(0);

/// 11: notes the exception and goes over the instruction.
#[unsafe(naked)]
extern "C" fn note_with_error() {
    naked_asm!(
        "push rax",
        "mov rax, [rsp + 8]", "mov [rip + {error}], rax",
        "mov rax, [rsp + 16]", "mov [rip + {at}], rax",
        "inc qword ptr [rip + {count}]",
        "mov rax, [rip + {bytes}]", "add [rsp + 16], rax",
        "pop rax", "add rsp, 8", "iretq",
        error = sym ERROR, at = sym RIP, count = sym COUNT, bytes = sym BYTES,
    )
}
const HANDLER: u64 = 11;

/// A gate that nothing has.
const ABSENT: u8 = 0xa5;
/// Where 32-bit code lies.
const LOW: u64 = 0x4000_0000;
const CSTAR: u32 = 0xc000_0083;

global_asm!(
    ".pushsection .text.refusals, \"ax\"",
    // 2 where the write is refused, else 3.
    "write_cr0: mov rax, [rip + {value}]", "write_cr0_at: mov cr0, rax", "ret",
    "write_cr3: mov rax, [rip + {value}]", "write_cr3_at: mov cr3, rax", "ret",
    "write_cr4: mov rax, [rip + {value}]", "write_cr4_at: mov cr4, rax", "ret",
    // 2
    "kernel_absent: nop", "kernel_absent_at: int {absent}", "ret",
    ".balign 4096",
    // 3
    "user_absent: nop", "user_absent_at: int {absent}", "nop", "int {leave}",
    ".balign 4096",
    ".popsection",
    value = sym VALUE, absent = const ABSENT, leave = const LEAVE,
);

unsafe extern "C" {
    static write_cr0: u8;
    static write_cr0_at: u8;
    static write_cr3: u8;
    static write_cr3_at: u8;
    static write_cr4: u8;
    static write_cr4_at: u8;
    static kernel_absent: u8;
    static kernel_absent_at: u8;
    static user_absent: u8;
    static user_absent_at: u8;
}

macro_rules! at {
    ($label:ident) => {
        &raw const $label as u64
    };
}

/// What is counted meanwhile.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// Rings; none: nothing is counted.
    rings: u64,
    /// Branches are counted beside, so that the guest is stepped.
    steps: bool,
}

const WAYS: [Way; 5] = [
    Way { name: "idle", rings: 0, steps: false },
    Way { name: "user", rings: USER, steps: false },
    Way { name: "kernel", rings: KERNEL, steps: false },
    Way { name: "both", rings: USER | KERNEL, steps: false },
    Way { name: "stepped", rings: USER | KERNEL, steps: true },
];

/// Runs `code`. Returns the instructions that were counted in it.
fn run_counted(unit: &Unit, way: Way, code: u64) -> u64 {
    let (select, counter, event) = unit.branches();
    // SAFETY: one of the functions of this file, or `visit`; they keep to the convention.
    let function: unsafe extern "C" fn() = unsafe { core::mem::transmute(code as *const ()) };
    if way.rings == 0 {
        // SAFETY: as above.
        unsafe { function() };
        return 0;
    }
    if way.steps {
        write(counter, 0);
        write(select, event | way.rings | 1 << 22);
    }
    let seen = unit.over_raw(INSTRUCTIONS | way.rings, function, u64::from(way.steps) << 1);
    write(select, 0);
    let around = if way.rings & KERNEL != 0 { AROUND } else { 0 };
    seen - around
}

/// Runs `code` in each way. `error`: of the exception that is expected at `fault`, if one is.
fn each(unit: &Unit, name: &str, code: u64, fault: Option<(u64, u64)>, [user, kernel]: [u64; 2]) {
    for way in WAYS {
        for cell in [&ERROR, &RIP, &COUNT] {
            cell.store(0, Relaxed);
        }
        let seen = run_counted(unit, way, code);
        let share = |ring: u64, count: u64| if way.rings & ring != 0 { count } else { 0 };
        let expected = share(USER, user) + share(KERNEL, kernel);
        line!("case {name}.{}.count {seen} {expected}", way.name);
        line!(
            "case {name}.{}.faults {} {}",
            way.name,
            COUNT.load(Relaxed),
            u64::from(fault.is_some())
        );
        let (at, error) = fault.unwrap_or_default();
        line!("case {name}.{}.rip {:#x} {at:#x}", way.name, RIP.load(Relaxed));
        line!("case {name}.{}.error {:#x} {error:#x}", way.name, ERROR.load(Relaxed));
    }
}

pub fn run(unit: &Unit) {
    set_gate(13, note_with_error);
    control_registers(unit);
    absent_gates(unit);
    compatibility_mode(unit);
}

fn control_registers(unit: &Unit) {
    let (cr0, cr3, cr4): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr3", "mov {}, cr4", out(reg) cr0, out(reg) cr3, out(reg) cr4);
    }
    BYTES.store(3, Relaxed);
    let registers = [
        (at!(write_cr0), at!(write_cr0_at)),
        (at!(write_cr3), at!(write_cr3_at)),
        (at!(write_cr4), at!(write_cr4_at)),
    ];
    // SDM vol. 2, MOV to control registers: what raises #GP(0), and neighbours that do not.
    let cases = [
        ("cr0_nw", 0, cr0 | 1 << 29, true),
        ("cr0_nw_cd", 0, cr0 | 3 << 29, false),
        ("cr0_same", 0, cr0, false),
        ("cr0_pg", 0, cr0 & !(1 << 31), true),
        ("cr0_pe", 0, cr0 & !1, true),
        ("cr0_upper", 0, cr0 | 1 << 32, true),
        ("cr3_51", 1, cr3 | 1 << 51, true),
        ("cr3_same", 1, cr3, false),
        ("cr4_15", 2, cr4 | 1 << 15, true),
        ("cr4_63", 2, cr4 | 1 << 63, true),
        ("cr4_vmxe", 2, cr4 | 1 << 13, true),
        ("cr4_pae", 2, cr4 & !(1 << 5), true),
        ("cr4_la57", 2, cr4 ^ 1 << 12, true),
        ("cr4_pge", 2, cr4 ^ 1 << 7, false),
        ("cr4_same", 2, cr4, false),
    ];
    for (name, register, value, refused) in cases {
        VALUE.store(value, Relaxed);
        let (code, at) = registers[register];
        let count = if refused { 2 + HANDLER } else { 3 };
        each(unit, name, code, refused.then_some((at, 0)), [0, count]);
        let (now_0, now_3, now_4): (u64, u64, u64);
        // SAFETY: reads registers, and restores the first and the last.
        unsafe {
            asm!("mov {}, cr0", "mov {}, cr3", "mov {}, cr4", out(reg) now_0, out(reg) now_3, out(reg) now_4);
            asm!("mov cr0, {}", "mov cr4, {}", in(reg) cr0, in(reg) cr4);
        }
        let now = [now_0, now_3, now_4][register];
        let expected = if refused { [cr0, cr3, cr4][register] } else { value };
        line!("case {name}.value {now:#x} {expected:#x}");
    }
}

/// INT n through a gate that is not present raises #NP with the gate's index, and bit 1 as it is one of the interrupt table
/// (SDM vol. 3, 7.13). The instruction has not retired, and the frame points to it.
fn absent_gates(unit: &Unit) {
    set_gate(11, note_with_error);
    crate::machine::remove_gate(ABSENT);
    BYTES.store(2, Relaxed);
    let error = u64::from(ABSENT) << 3 | 2;
    each(
        unit,
        "np_kernel",
        at!(kernel_absent),
        Some((at!(kernel_absent_at), error)),
        [0, 2 + HANDLER],
    );
    let (start, stack) = (at!(user_absent), (&raw const RING_3_STACK) as u64);
    open_to_ring_3(start, 4096);
    open_to_ring_3(stack, 16 << 10);
    rings::send_to(start, stack + (16 << 10));
    let visit = rings::visit as *const () as u64;
    let counts = [3, rings::VISIT + HANDLER];
    each(unit, "np_user", visit, Some((at!(user_absent_at), error)), counts);
}

/// SYSCALL in compatibility mode raises #UD on Intel (SDM vol. 2), and goes to CSTAR on AMD.
fn compatibility_mode(unit: &Unit) {
    // SYSCALL, NOP, INT.
    static CODE: [u8; 5] = [0x0f, 0x05, 0x90, 0xcd, LEAVE];
    #[unsafe(naked)]
    extern "C" fn on_compatible_call() {
        naked_asm!("sysret")
    }
    #[repr(C, align(4096))]
    struct Page([u8; 4096]);
    static mut PAGE: Page = Page([0; 4096]);
    // SAFETY: nothing else touches the page; CSTAR exists on every x86-64 processor.
    unsafe {
        let page = (&raw mut PAGE).cast::<u8>();
        page.copy_from_nonoverlapping(CODE.as_ptr(), CODE.len());
        map_low(LOW, physical(page as u64));
        Msr::new(CSTAR).write(on_compatible_call as *const () as u64);
    }
    rings::send_to_segment(LOW, LOW + 4096, USER_CODE_32);
    let visit = rings::visit as *const () as u64;
    // NOP and INT; on AMD SYSCALL too, whose handler is SYSRET; on Intel the handler of #UD.
    let counts = if unit.intel { [2, rings::VISIT + SKIP_TWO] } else { [3, rings::VISIT + 1] };
    each(unit, "compatible_syscall", visit, None, counts);
}
