//! What is refused: instructions without EFER.SVME, registers' reserved bits, and blocks that do not hold together.

use super::block::{self, AT_INVALID, AT_VMMCALL, EXIT};
use super::{EFER, SAVE_AREA, SVME};
use crate::handlers::SKIP_TWO;
use crate::machine::{physical, set_gate};
use crate::pmu::{INSTRUCTIONS, KERNEL, Unit};
use crate::{case, line};
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use x86_64::registers::model_specific::Msr;

static UNDEFINED: AtomicU64 = AtomicU64::new(0);
static PROTECTED: AtomicU64 = AtomicU64::new(0);
const VM_CR: u32 = 0xc001_0114;

/// Goes over three bytes.
#[unsafe(naked)]
extern "C" fn on_undefined() {
    naked_asm!(
        "inc qword ptr [rip + {count}]", "add qword ptr [rsp], 3", "iretq",
        count = sym UNDEFINED,
    )
}

/// Drops the error code, and goes over as many bytes as RBX says.
#[unsafe(naked)]
extern "C" fn on_protection() {
    naked_asm!(
        "inc qword ptr [rip + {count}]", "add rsp, 8", "add [rsp], rbx", "iretq",
        count = sym PROTECTED,
    )
}

/// Instructions of that.
const PROTECTION: u64 = 4;

/// The handlers that the other groups have.
#[unsafe(naked)]
extern "C" fn skip_two() {
    naked_asm!("add qword ptr [rsp], 2", "iretq")
}

#[unsafe(naked)]
extern "C" fn skip_two_with_error() {
    naked_asm!("add rsp, 8", "add qword ptr [rsp], 2", "iretq")
}

fn with_own_handlers(run: impl FnOnce()) {
    set_gate(6, on_undefined);
    set_gate(13, on_protection);
    run();
    set_gate(6, skip_two);
    set_gate(13, skip_two_with_error);
}

/// How many #UD and #GP the instructions raise with `address` in RAX.
fn raised(address: u64) -> (u64, u64) {
    let before = (UNDEFINED.load(Relaxed), PROTECTED.load(Relaxed));
    // SAFETY: each raises an exception, whose handler goes over it.
    unsafe {
        asm!(
            "push rbx", "mov ebx, 3",
            "vmrun rax", "vmload rax", "vmsave rax",
            "pop rbx",
            in("rax") address,
        );
    }
    (UNDEFINED.load(Relaxed) - before.0, PROTECTED.load(Relaxed) - before.1)
}

/// Whether WRMSR raises #GP.
fn is_refused(msr: u32, value: u64) -> bool {
    let before = PROTECTED.load(Relaxed);
    // SAFETY: the value is one that is refused, or written back by the caller.
    unsafe {
        asm!(
            "push rbx", "mov ebx, 2", "wrmsr", "pop rbx",
            in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32,
        );
    }
    PROTECTED.load(Relaxed) != before
}

/// While EFER.SVME is clear.
pub fn before(unit: &Unit) {
    with_own_handlers(|| {
        case("refusals.without_svme", raised(0x1000).0, 3);
        let before = UNDEFINED.load(Relaxed);
        // SAFETY: as above.
        unsafe {
            asm!("stgi", "clgi", "invlpga rax, ecx", ".byte 0x0f, 0x01, 0xd9", in("rax") 0, in("rcx") 0);
        };
        case("refusals.without_svme.others", UNDEFINED.load(Relaxed) - before, 4);
    });
    #[unsafe(naked)]
    extern "C" fn two() {
        naked_asm!(".byte 0x0f, 0x0b", "nop", "ret")
    }
    case("refusals.undefined.counted", unit.over(INSTRUCTIONS | KERNEL, two), 2 + SKIP_TWO);
}

/// While it is set.
pub fn run(unit: &Unit) {
    with_own_handlers(|| {
        // Not at a page; beyond the physical addresses.
        for address in [0x1008, 1 << 52] {
            let (undefined, protected) = raised(address);
            line!("case refusals.address.{address:#x} {undefined}.{protected} 0.3");
        }
        registers();
    });
    with_own_handlers(|| {
        let seen = unit.over(INSTRUCTIONS | KERNEL, refused_vmrun);
        case("refusals.vmrun.counted", seen, 5 + PROTECTION);
    });
    blocks(unit);
}

/// VMRUN of no page raises #GP, and is not counted.
#[unsafe(naked)]
extern "C" fn refused_vmrun() {
    naked_asm!("push rbx", "mov ebx, 3", "mov eax, 8", "vmrun rax", "pop rbx", "ret")
}

fn registers() {
    // SAFETY: read-only, or written back.
    unsafe {
        let efer = Msr::new(EFER).read();
        case("refusals.efer.svme", efer & SVME, SVME);
        case("refusals.efer.reserved", is_refused(EFER, efer | 1 << 20).into(), 1);
        case("refusals.vm_cr", Msr::new(VM_CR).read(), 0);
        // SVMDIS while SVME is set; reserved bits.
        case("refusals.vm_cr.disable", is_refused(VM_CR, 1 << 4).into(), 1);
        case("refusals.vm_cr.reserved", is_refused(VM_CR, 1 << 5).into(), 1);
        let area = Msr::new(SAVE_AREA).read();
        case("refusals.save_area", area, block::save_area());
        case("refusals.save_area.unaligned", is_refused(SAVE_AREA, area + 8).into(), 1);
        case("refusals.save_area.beyond", is_refused(SAVE_AREA, 1 << 52).into(), 1);
        // With SVMDIS set, and SVME clear, SVME cannot be set.
        Msr::new(EFER).write(efer & !SVME);
        case("refusals.efer.clear", Msr::new(EFER).read() & SVME, 0);
        case("refusals.vm_cr.may_disable", is_refused(VM_CR, 1 << 4).into(), 0);
        case("refusals.efer.disabled", is_refused(EFER, efer).into(), 1);
        Msr::new(VM_CR).write(0);
        case("refusals.efer.enabled", is_refused(EFER, efer).into(), 0);
    }
}

/// Blocks that VMRUN refuses: the exit is -1, nothing of the nested guest runs, and the global interrupt flag is clear.
fn blocks(unit: &Unit) {
    type Change = fn();
    let changes: [(&str, Change, u64); 9] = [
        ("good", || (), AT_VMMCALL),
        ("asid", || block::put(block::ASID, 0), AT_INVALID),
        ("vmrun", || block::put(block::VECTORS, block::VMMCALL), AT_INVALID),
        ("svme", || block::put(block::EFER, block::get(block::EFER) & !SVME), AT_INVALID),
        ("cr0", || block::put(block::CR0, block::get(block::CR0) | 1 << 29), AT_INVALID),
        ("cr4", || block::put(block::CR4, block::get(block::CR4) | 1 << 31), AT_INVALID),
        ("dr7", || block::put(block::DR7, 1 << 32), AT_INVALID),
        ("event", || block::put(block::INJECT, 1 << 31 | 1 << 8), AT_INVALID),
        ("map", || block::put(block::MSR_MAP, 1 << 51), AT_INVALID),
    ];
    for (name, change, expected) in changes {
        block::prepare(&[&[0x90]]);
        change();
        unit.program(INSTRUCTIONS | KERNEL | super::GUEST_ONLY, 0);
        crate::pmu::write(unit.select, INSTRUCTIONS | KERNEL | super::GUEST_ONLY | 1 << 22);
        block::enter();
        crate::pmu::write(unit.select, 0);
        line!("case refusals.block.{name} {:#x} {expected:#x}", block::get(EXIT));
        let ran = u64::from(expected == AT_VMMCALL);
        line!("case refusals.block.{name}.counted {} {ran}", unit.read());
    }
    vmload();
    stepped_vmrun();
}

/// VMSAVE and VMLOAD exchange what VMRUN does not.
fn vmload() {
    const FS_BASE: u32 = 0xc000_0100;
    const SFMASK: u32 = 0xc000_0084;
    block::prepare(&[]);
    let block = physical(block::code() & !0xfff);
    // SAFETY: a page of this module's, which holds code that no longer runs; the registers are put back.
    unsafe {
        let (fs, mask) = (Msr::new(FS_BASE).read(), Msr::new(SFMASK).read());
        Msr::new(FS_BASE).write(0x1234_5000);
        asm!("vmsave rax", in("rax") block);
        Msr::new(FS_BASE).write(fs);
        Msr::new(SFMASK).write(0x4700);
        asm!("vmload rax", in("rax") block);
        case("refusals.vmload.fs", Msr::new(FS_BASE).read(), 0x1234_5000);
        case("refusals.vmload.mask", Msr::new(SFMASK).read(), mask);
        Msr::new(FS_BASE).write(fs);
    }
}

static TRAPS: AtomicU64 = AtomicU64::new(0);
static TRAPPED_AT: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn on_trap() {
    naked_asm!(
        "push rax",
        "mov rax, [rsp + 8]", "mov [rip + {at}], rax",
        "and qword ptr [rsp + 24], ~0x100",
        "inc qword ptr [rip + {count}]",
        "pop rax", "iretq",
        count = sym TRAPS, at = sym TRAPPED_AT,
    )
}

/// A guest that steps itself over VMRUN is stopped after the exit.
fn stepped_vmrun() {
    block::prepare(&[&[0x90]]);
    set_gate(1, on_trap);
    let behind: u64;
    // SAFETY: the nested guest changes none of the registers.
    unsafe {
        asm!(
            "lea {behind}, [rip + 2f]",
            "mov rax, {block}",
            "clgi",
            "pushfq", "or qword ptr [rsp], 0x100", "popfq",
            "vmrun rax",
            "2: nop",
            "stgi",
            block = in(reg) block::ADDRESS.load(Relaxed), behind = out(reg) behind, out("rax") _,
        );
    }
    set_gate(1, crate::debug::on_debug);
    case("refusals.trap.count", TRAPS.load(Relaxed), 1);
    case("refusals.trap.rip", TRAPPED_AT.load(Relaxed), behind);
    case("refusals.trap.exit", block::get(EXIT), AT_VMMCALL);
}
