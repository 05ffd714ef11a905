//! The hypervisor's own page tables, descriptors and stack. They map all memory one to one, so that the guest's
//! physical addresses are pointers here.

use core::arch::{asm, global_asm, naked_asm};
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
/// The last device interrupt that arrived so, or [`NONE`].
static VECTOR: AtomicU64 = AtomicU64::new(NONE);
const NONE: u64 = u64::MAX;
/// Vectors below belong to exceptions.
const FIRST_DEVICE: usize = 32;

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
        // NMI, the exceptions, which stop the hypervisor, and the devices.
        for vector in 0..256 {
            let handler = match vector {
                2 => on_nmi as *const () as u64,
                0..FIRST_DEVICE => on_exception as *const () as u64,
                _ => (&raw const device_stubs) as u64 + 16 * (vector - FIRST_DEVICE) as u64,
            };
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

/// Lets a pending NMI in, and with `interrupts` a device interrupt, as the guest would have, so that the interrupt
/// controller regards it as being served.
pub fn open(interrupts: bool) {
    // SAFETY: the IDT has a handler for every vector. That of a device leaves with interrupts off, so there is one at
    // most.
    unsafe {
        if interrupts {
            asm!("stgi", "sti", "nop", "nop", "cli", "clgi", options(nostack));
        } else {
            asm!("stgi", "nop", "clgi", options(nostack));
        }
    }
}

/// Waits for an NMI, or with `interrupts` also for a device interrupt.
pub fn wait(interrupts: bool) {
    // SAFETY: as above. GIF is set before HLT, and nothing can come between STI and HLT.
    unsafe {
        if interrupts {
            asm!("stgi", "sti", "hlt", "cli", "clgi", options(nostack));
        } else {
            asm!("stgi", "hlt", "clgi", options(nostack));
        }
    }
}

// The same, without missing an NMI that waits when the door opens. EDI: 0x200 to let device interrupts in.
global_asm!(
    ".pushsection .text.sleep, \"ax\", @progbits",
    "sleep_until_nmi:",
    "stgi",
    "hlt_is_next:",
    "test edi, edi",
    "jz 2f",
    "sti",
    "2: hlt",
    "hlt_is_done:",
    "cli",
    "clgi",
    "ret",
    ".popsection",
);

unsafe extern "sysv64" {
    fn sleep_until_nmi(interrupts: u32);
}

/// As [`wait`], but an NMI that has come before ends it at once.
pub fn sleep(interrupts: bool) {
    // SAFETY: as in `wait`.
    unsafe { sleep_until_nmi(interrupts.into()) };
}

/// Whether a device interrupt came in that nobody has taken.
pub fn has_vector() -> bool {
    VECTOR.load(Ordering::Relaxed) != NONE
}

/// The vector of the device interrupt that came in since the last time, if one did.
pub fn take_vector() -> Option<u8> {
    u8::try_from(VECTOR.swap(NONE, Ordering::Relaxed)).ok()
}

/// Whether an NMI came in since the last time.
pub fn take_nmis() -> bool {
    NMIS.swap(0, Ordering::Relaxed) != 0
}

// One entry point for each vector of a device: notes the vector and returns with interrupts off.
global_asm!(
    ".pushsection .text.device_stubs, \"ax\", @progbits",
    ".balign 16",
    "device_stubs:",
    ".set vector, {first}",
    ".rept 256 - {first}",
    ".balign 16",
    "push vector",
    "jmp {common}",
    ".set vector, vector + 1",
    ".endr",
    ".popsection",
    first = const FIRST_DEVICE,
    common = sym on_device,
);

unsafe extern "C" {
    static device_stubs: u8;
}

#[unsafe(naked)]
extern "C" fn on_device() {
    naked_asm!(
        "pop qword ptr [rip + {vector}]",
        // IF in the frame's RFLAGS.
        "and qword ptr [rsp + 16], ~0x200",
        "iretq",
        vector = sym VECTOR,
    )
}

#[unsafe(naked)]
extern "C" fn on_nmi() {
    naked_asm!(
        "lock inc qword ptr [rip + {count}]",
        // Between STGI and HLT: HLT would wait for the next one.
        "push rax",
        "lea rax, [rip + hlt_is_next]",
        "cmp [rsp + 8], rax",
        "jb 2f",
        "lea rax, [rip + hlt_is_done]",
        "cmp [rsp + 8], rax",
        "jae 2f",
        "mov [rsp + 8], rax",
        "2: pop rax",
        "iretq",
        count = sym NMIS,
    )
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
