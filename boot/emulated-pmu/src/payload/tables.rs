//! The hypervisor's own page tables, descriptors and stack. They map all memory one to one, so that the guest's
//! physical addresses are pointers here.

use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the stack on which the loop runs.
pub const STACK_BYTES: usize = 64 << 10;

#[repr(C, align(4096))]
struct Page([u64; 512]);

#[repr(C, align(4096))]
pub struct Stack([u8; STACK_BYTES]);

static mut LEVEL_4: Page = Page([0; 512]);
static mut LEVEL_3: Page = Page([0; 512]);
static mut IDT: Page = Page([0; 512]);
pub static mut STACK: Stack = Stack([0; STACK_BYTES]);
/// Null, 64-bit code, data.
static mut GDT: [u64; 3] = [0, 0x0020_9a00_0000_0000, 0x0000_9200_0000_0000];

/// Non-maskable interrupts that arrived while the hypervisor had its door open for them.
static NMIS: AtomicU64 = AtomicU64::new(0);

const TABLE: u64 = 0b11;
/// Present, writable, a page of 1 GiB.
const GIANT: u64 = 0b1000_0011;
const CODE: u16 = 8;
const DATA: u16 = 16;

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// Fills the tables. Returns the value for CR3.
///
/// # Safety
/// Called once, while one processor runs, one to one mapped.
pub unsafe fn build() -> u64 {
    // SAFETY: nobody else uses the statics yet.
    unsafe {
        LEVEL_4.0[0] = (&raw const LEVEL_3) as u64 | TABLE;
        for gib in 0..512 {
            LEVEL_3.0[gib] = (gib as u64) << 30 | GIANT;
        }
        // Vectors 2 (NMI) and all others, which stop the hypervisor.
        for vector in 0..32 {
            let handler =
                if vector == 2 { on_nmi as *const () } else { on_exception as *const () } as u64;
            IDT.0[2 * vector] = handler & 0xffff
                | u64::from(CODE) << 16
                | 0x8e00 << 32
                | (handler >> 16 & 0xffff) << 48;
            IDT.0[2 * vector + 1] = handler >> 32;
        }
    }
    (&raw const LEVEL_4) as u64
}

/// Loads descriptors and page tables.
///
/// # Safety
/// After [`build`], on the hypervisor's stack, with interrupts off.
pub unsafe fn load(cr3: u64) {
    let gdt = Pointer { limit: 23, base: (&raw const GDT) as u64 };
    let idt = Pointer { limit: 0xfff, base: (&raw const IDT) as u64 };
    // SAFETY: the tables map this code and stack one to one, as the loader's did; the descriptors are those of a
    // flat 64-bit ring 0.
    unsafe {
        asm!(
            "lgdt [{gdt}]",
            "lidt [{idt}]",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            "mov ds, {data:e}",
            "mov es, {data:e}",
            "mov ss, {data:e}",
            "mov cr3, {cr3}",
            gdt = in(reg) &raw const gdt,
            idt = in(reg) &raw const idt,
            code = const CODE as i32,
            data = in(reg) u64::from(DATA),
            scratch = out(reg) _,
            cr3 = in(reg) cr3,
        );
    }
}

/// Lets a pending NMI in. Returns whether there was one.
pub fn take_nmi() -> bool {
    let before = NMIS.load(Ordering::Relaxed);
    // SAFETY: the IDT has a handler for it; IF is 0, so nothing else comes in.
    unsafe { asm!("stgi", "nop", "clgi", options(nostack)) };
    NMIS.load(Ordering::Relaxed) != before
}

#[unsafe(naked)]
extern "C" fn on_nmi() {
    naked_asm!("lock inc qword ptr [rip + {count}]", "iretq", count = sym NMIS)
}

#[unsafe(naked)]
extern "C" fn on_exception() {
    naked_asm!("mov rdi, rsp", "and rsp, -16", "call {report}", "ud2", report = sym report)
}

extern "sysv64" fn report(frame: *const [u64; 3]) -> ! {
    // SAFETY: the words that the processor pushed; with an error code the address is the second.
    let frame = unsafe { *frame };
    panic!("an exception in the hypervisor; on its stack: {frame:#x?}")
}
