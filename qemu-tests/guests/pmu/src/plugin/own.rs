//! What a hypervisor would do: calls the plugin, and takes the counts at each exit, from a page of its own.
//!
//! There is none here: the guest calls functions, and takes exceptions and NMIs, from that page, which the plugin does not
//! count.

use crate::machine::{open_to_execution, physical, set_gate};
use core::arch::global_asm;
use core::mem::offset_of;
use core::ptr::{addr_of_mut, read_volatile, write_volatile};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use plugin_channel::{ANSWER, Command, Limit, Mailbox, Mode, Parts, QUESTION, Records, call};
use pmu_model::qualify::WORDS;

/// The page of the calls, and the mailbox after it.
#[repr(C, align(4096))]
struct Own {
    code: [u8; 4096],
    mailbox: Mailbox,
}

const EMPTY: Own = Own { code: [0; 4096], mailbox: Mailbox::EMPTY };
/// Two of them, as two hypervisors have.
static mut OWN: [Own; 2] = [EMPTY; 2];
/// Which of them is used.
static NUMBER: AtomicU64 = AtomicU64::new(0);

global_asm!(
    ".balign 4096",
    "own_start:",
    // run(function, argument)
    "own_run:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov [rip + own_start + 4096 - 16], rsp",
    "mov rax, [rip + own_start + 4096 - 32]",
    ".quad {enter}",
    "call rax",
    "own_back:",
    "mov rsp, [rip + own_start + 4096 - 16]",
    "lea rax, [rip + own_back]",
    "mov [rip + own_start + 4096 + {rip}], rax",
    "mov qword ptr [rip + own_start + 4096 + {place}], 0",
    ".quad {exit}",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
    "ret",
    // Exceptions: with an error code, or without one.
    ".balign 16",
    "own_fault_with_error:",
    "add rsp, 8",
    "own_fault:",
    "mov qword ptr [rip + own_start + 4096 + {place}], 1",
    "jmp 2f",
    ".balign 16",
    "own_nmi:",
    "mov qword ptr [rip + own_start + 4096 + {place}], 0",
    "2:",
    "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
    "mov rax, [rsp + 72]",
    "mov [rip + own_start + 4096 + {rip}], rax",
    "mov [rip + own_start + 4096 + {rcx}], rcx",
    "mov rax, [rsp + 88]",
    "mov [rip + own_start + 4096 + {rflags}], rax",
    ".quad {exit}",
    "mov rdi, rsp",
    "push rbp",
    "mov rbp, rsp",
    "and rsp, -16",
    "call [rip + own_start + 4096 - 8]",
    "mov rsp, rbp",
    "pop rbp",
    ".quad {enter}",
    "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
    "iretq",
    ".balign 16",
    "own_who:", ".quad {who}", "ret",
    ".balign 16",
    "own_region:", ".quad {region}", "ret",
    ".balign 16",
    "own_mode:", ".quad {mode}", "ret",
    "own_end:",
    who = const u64::from_le_bytes(call(Command::Who)),
    region = const u64::from_le_bytes(call(Command::Region)),
    mode = const u64::from_le_bytes(call(Command::Mode)),
    enter = const u64::from_le_bytes(call(Command::Enter)),
    exit = const u64::from_le_bytes(call(Command::Exit)),
    rip = const offset_of!(Mailbox, rip),
    rflags = const offset_of!(Mailbox, rflags),
    rcx = const offset_of!(Mailbox, rcx),
    place = const offset_of!(Mailbox, place),
);

unsafe extern "C" {
    static own_start: u8;
    static own_end: u8;
    static own_run: u8;
    static own_back: u8;
    static own_fault: u8;
    static own_fault_with_error: u8;
    static own_nmi: u8;
    static own_who: u8;
    static own_region: u8;
    static own_mode: u8;
}

fn base() -> u64 {
    addr_of_mut!(OWN) as u64 + NUMBER.load(Relaxed) * size_of::<Own>() as u64
}

/// The copy of a place in the template.
fn own(template: *const u8) -> u64 {
    base() + (template as u64 - &raw const own_start as u64)
}

fn call_own(template: *const u8) {
    // SAFETY: the copy returns at once.
    let function: extern "sysv64" fn() = unsafe { core::mem::transmute(own(template)) };
    function();
}

pub fn mailbox() -> *mut Mailbox {
    (base() + 4096) as *mut Mailbox
}

macro_rules! put {
    ($field:ident, $value:expr) => {
        // SAFETY: the mailbox is this module's, and the plugin reads it in the calls alone.
        unsafe { write_volatile(&raw mut (*mailbox()).$field, $value) }
    };
}
macro_rules! take {
    ($field:ident) => {
        // SAFETY: as above.
        unsafe { read_volatile(&raw const (*mailbox()).$field) }
    };
}

/// What was counted, over several exits.
#[derive(Clone, Copy)]
pub struct Counted {
    pub counts: [u64; plugin_channel::SLOTS],
    pub starts: u64,
    pub ends: u64,
    pub instructions: u64,
    pub qualified: u64,
    pub exits: u64,
    pub stopped: u64,
    pub lead: u64,
    pub records: Records,
}

const NOTHING: Counted = Counted {
    counts: [0; plugin_channel::SLOTS],
    starts: 0,
    ends: 0,
    instructions: 0,
    qualified: 0,
    exits: 0,
    stopped: 0,
    lead: 0,
    records: Mailbox::EMPTY.records,
};
static mut TOTAL: Counted = NOTHING;

/// Where the guest stood at the last exception or NMI.
pub static STOOD: AtomicU64 = AtomicU64::new(0);
/// What an exception does, by the address at which it happened, on behalf of a test.
pub static mut ON_EXIT: fn(&mut u64) = |_| ();

/// Adds what an exit reported.
fn add() {
    // SAFETY: one processor, and no exception comes here.
    let total = unsafe { &mut *addr_of_mut!(TOTAL) };
    let counts = take!(counts);
    for (sum, count) in total.counts.iter_mut().zip(counts) {
        *sum = sum.wrapping_add(count);
    }
    total.starts = total.starts.wrapping_add(take!(string_starts));
    total.ends += take!(string_ends);
    total.instructions = total.instructions.wrapping_add(take!(instructions));
    total.qualified += take!(qualified_instructions);
    total.stopped += take!(stopped);
    total.lead = take!(lead);
    total.records = take!(records);
    total.exits += 1;
}

extern "sysv64" fn on_exit(saved: *mut u64) {
    add();
    // SAFETY: after the nine registers is what the processor pushed: RIP first.
    let rip = unsafe { &mut *saved.add(9) };
    STOOD.store(*rip, Relaxed);
    put!(limits, [Limit { selection: 0, left: 0 }; plugin_channel::MAX_LIMITS]);
    // SAFETY: one processor.
    unsafe { ON_EXIT(rip) };
}

/// Puts the page in place. Returns whether a plugin is there, and whether it can stop the guest.
pub fn set_up() -> (bool, bool) {
    // SAFETY: symbols of the template, which is in one page; once, on one processor.
    unsafe {
        let bytes = (&raw const own_end).offset_from(&raw const own_start) as usize;
        core::ptr::copy_nonoverlapping(&raw const own_start, base() as *mut u8, bytes);
        write_volatile((base() + 4096 - 8) as *mut u64, on_exit as *const () as u64);
    }
    open_to_execution(base(), 4096);
    let gate = |vector, template| {
        // SAFETY: the copies end with IRET.
        set_gate(vector, unsafe { core::mem::transmute::<u64, extern "C" fn()>(own(template)) });
    };
    gate(0, &raw const own_fault);
    gate(2, &raw const own_nmi);
    gate(6, &raw const own_fault);
    gate(13, &raw const own_fault_with_error);
    gate(14, &raw const own_fault_with_error);
    put!(question, QUESTION);
    call_own(&raw const own_who);
    let found = take!(answer) == ANSWER && take!(version) == plugin_channel::VERSION;
    put!(region_start, physical(base()));
    put!(region_end, physical(base()) + 8192);
    put!(own, physical(base()));
    call_own(&raw const own_region);
    (found, take!(stops) == 1)
}

/// NMIs that make the guest leave go to the processor with this id of its local APIC.
pub fn stop_by(apic_id: u64) {
    put!(apic_id, apic_id);
    call_own(&raw const own_region);
}

/// From now on the page of this number is used: 0 at first.
pub fn use_page(number: u64) {
    NUMBER.store(number, Relaxed);
}

/// What passes the qualifiers that [`mode`] asks for next.
pub fn qualify(words: [u64; WORDS]) {
    put!(qualifiers, words);
}

/// What is counted from now on.
pub fn mode(mode: Mode, parts: Parts) {
    put!(mode, mode.bits());
    put!(parts, parts.bits());
    put!(record_kinds, u64::MAX);
    call_own(&raw const own_mode);
}

/// The stack pointer as the last function was called, in front of what the call pushed.
pub fn stack() -> u64 {
    // SAFETY: the slot into which the copy puts it.
    unsafe { read_volatile((base() + 4096 - 16) as *const u64) }
}

/// Where functions return to.
pub fn back() -> u64 {
    own(&raw const own_back)
}

/// Runs a function with an argument (in RDI), and says what was counted.
pub fn run(function: u64, argument: u64, limits: &[Limit]) -> Counted {
    // SAFETY: one processor.
    unsafe { TOTAL = NOTHING };
    let mut all = [Limit { selection: 0, left: 0 }; plugin_channel::MAX_LIMITS];
    all[..limits.len()].copy_from_slice(limits);
    put!(limits, all);
    // SAFETY: the slot from which the copy takes what it calls.
    unsafe { write_volatile((base() + 4096 - 32) as *mut u64, function) };
    // SAFETY: the copy keeps what the calling convention wants kept.
    let run: extern "sysv64" fn(u64, u64) =
        unsafe { core::mem::transmute(own(&raw const own_run)) };
    run(function, argument);
    add();
    // SAFETY: one processor.
    unsafe { TOTAL }
}
