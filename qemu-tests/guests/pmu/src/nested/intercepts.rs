//! Each intercept leads to an exit of the guest's, at its instruction; and without it the instruction is executed.

use super::block::{self, AT_VMMCALL, EXIT, INFO_1, INFO_2, NEXT_RIP, RIP, SHUTDOWN, VECTORS};
use super::{WAYS, Way};
use crate::handlers::{SKIP_THREE, SKIP_TWO, SKIP_TWO_WITH_ERROR};
use crate::line;
use crate::pmu::Unit;

/// What intercepts it.
#[derive(Clone, Copy)]
enum Intercept {
    /// An access to a control register: the bit of the field, which is the exit code.
    Cr(u64),
    /// One to a debug register: the same beyond 0x20.
    Dr(u64),
    /// An exception: its vector.
    Exception(u64),
    /// Vectors 3 and 4: the bit, which is the exit code beyond 0x60.
    Vector(u64),
}

impl Intercept {
    fn code(self) -> u64 {
        match self {
            Self::Cr(bit) => bit,
            Self::Dr(bit) => 0x20 + bit,
            Self::Exception(vector) => 0x40 + vector,
            Self::Vector(bit) => 0x60 + bit,
        }
    }

    fn set(self) {
        match self {
            Self::Cr(bit) => block::add(block::CR, 1 << bit),
            Self::Dr(bit) => block::add(block::DR, 1 << bit),
            Self::Exception(vector) => block::add(block::EXCEPTIONS, 1 << vector),
            Self::Vector(bit) => block::put(VECTORS, block::get(VECTORS) | 1 << bit),
        }
    }
}

struct Case {
    name: &'static str,
    intercept: Intercept,
    /// Code in front of the instruction, and how many instructions that is.
    before: (&'static [u8], u64),
    instruction: &'static [u8],
    /// Instructions that retire where it is not intercepted; `None`: it cannot be executed here.
    free: Option<u64>,
    /// The first exit information.
    info_1: u64,
    /// It is no instruction's exit: the next one's address is not told.
    fault: bool,
}

const NONE: (&[u8], u64) = (&[0x90], 1);

const fn of(name: &'static str, intercept: Intercept, instruction: &'static [u8]) -> Case {
    Case { name, intercept, before: NONE, instruction, free: Some(1), info_1: 0, fault: false }
}

impl Case {
    const fn free(self, free: u64) -> Self {
        Self { free: Some(free), ..self }
    }

    const fn not_executed(self) -> Self {
        Self { free: None, ..self }
    }

    const fn behind(self, code: &'static [u8], instructions: u64) -> Self {
        Self { before: (code, instructions), ..self }
    }

    const fn fault(self, free: u64) -> Self {
        Self { free: Some(free), fault: true, ..self }
    }
}

/// RAX = RSP; PUSH 16, RAX; PUSHFQ; PUSH 8; LEA RAX, \[RIP + 3\]; PUSH RAX: a frame that leads after an IRETQ.
const FRAME: &[u8] =
    &[0x48, 0x89, 0xe0, 0x6a, 0x10, 0x50, 0x9c, 0x6a, 0x08, 0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50];

use Intercept::{Cr, Dr, Exception, Vector};

/// RAX is CR0 where nothing else is said; RDI points to a table register's contents, RSI is 0x1000, where nothing is mapped,
/// and RCX and RDX are 0.
const CASES: [Case; 60] = [
    of("read_cr0", Cr(0), &[0x0f, 0x20, 0xc0]),
    of("smsw", Cr(0), &[0x0f, 0x01, 0xe0]),
    of("read_cr2", Cr(2), &[0x0f, 0x20, 0xd0]),
    of("read_cr3", Cr(3), &[0x0f, 0x20, 0xd8]),
    of("read_cr4", Cr(4), &[0x0f, 0x20, 0xe0]),
    of("read_cr8", Cr(8), &[0x44, 0x0f, 0x20, 0xc0]),
    of("write_cr0", Cr(16), &[0x0f, 0x22, 0xc0]),
    of("lmsw", Cr(16), &[0x0f, 0x01, 0xf0]),
    of("clts", Cr(16), &[0x0f, 0x06]),
    of("write_cr2", Cr(18), &[0x0f, 0x22, 0xd0]),
    of("write_cr3", Cr(19), &[0x0f, 0x22, 0xd8]).behind(&[0x0f, 0x20, 0xd8], 1),
    of("write_cr4", Cr(20), &[0x0f, 0x22, 0xe0]).behind(&[0x0f, 0x20, 0xe0], 1),
    of("write_cr8", Cr(24), &[0x44, 0x0f, 0x22, 0xc0]).behind(&[0x44, 0x0f, 0x20, 0xc0], 1),
    of("read_dr0", Dr(0), &[0x0f, 0x21, 0xc0]),
    of("read_dr7", Dr(7), &[0x0f, 0x21, 0xf8]),
    of("write_dr0", Dr(16), &[0x0f, 0x23, 0xc0]),
    of("write_dr6", Dr(22), &[0x0f, 0x23, 0xf0]).behind(&[0x0f, 0x21, 0xf0], 1),
    of("write_dr7", Dr(23), &[0x0f, 0x23, 0xf8]).behind(&[0x0f, 0x21, 0xf8], 1),
    // DIV ESI; INT3; UD2; RDPMC of no counter; MOV RAX, [RSI].
    of("divide", Exception(0), &[0xf7, 0xf6]).behind(&[0x31, 0xf6], 1).fault(SKIP_TWO),
    of("breakpoint", Exception(3), &[0xcc]).free(2),
    of("undefined", Exception(6), &[0x0f, 0x0b]).fault(SKIP_TWO),
    of("protection", Exception(13), &[0x0f, 0x33])
        .behind(&[0xb9, 99, 0, 0, 0], 1)
        .fault(SKIP_TWO_WITH_ERROR),
    of("page", Exception(14), &[0x48, 0x8b, 0x06]).fault(SKIP_THREE),
    of("read_idtr", Vector(6), &[0x0f, 0x01, 0x0f]),
    of("read_gdtr", Vector(7), &[0x0f, 0x01, 0x07]),
    of("read_ldtr", Vector(8), &[0x0f, 0x00, 0xc0]),
    of("read_tr", Vector(9), &[0x0f, 0x00, 0xc8]),
    of("write_idtr", Vector(10), &[0x0f, 0x01, 0x1f]).behind(&[0x0f, 0x01, 0x0f], 1),
    of("write_gdtr", Vector(11), &[0x0f, 0x01, 0x17]).behind(&[0x0f, 0x01, 0x07], 1),
    of("write_ldtr", Vector(12), &[0x0f, 0x00, 0xd0]).behind(&[0x31, 0xc0], 1),
    of("write_tr", Vector(13), &[0x0f, 0x00, 0xd8]).not_executed(),
    of("rdtsc", Vector(14), &[0x0f, 0x31]),
    of("rdpmc", Vector(15), &[0x0f, 0x33]),
    of("pushf", Vector(16), &[0x9c]),
    of("popf", Vector(17), &[0x9d]).behind(&[0x9c], 1),
    of("cpuid", Vector(18), &[0x0f, 0xa2]),
    of("iret", Vector(20), &[0x48, 0xcf]).behind(FRAME, 7),
    of("int_n", Vector(21), &[0xcd, crate::handlers::BACK]).free(2),
    of("invd", Vector(22), &[0x0f, 0x08]),
    of("pause", Vector(23), &[0xf3, 0x90]),
    of("hlt", Vector(24), &[0xf4]).not_executed(),
    of("invlpg", Vector(25), &[0x0f, 0x01, 0x3f]),
    of("invlpga", Vector(26), &[0x0f, 0x01, 0xdf]),
    of("vmrun", Vector(32), &[0x0f, 0x01, 0xd8]).behind(&[0x31, 0xc0], 1).not_executed(),
    of("vmmcall", Vector(33), &[0x0f, 0x01, 0xd9]).not_executed(),
    of("vmload", Vector(34), &[0x0f, 0x01, 0xda]).behind(&[0x31, 0xc0], 1).not_executed(),
    of("vmsave", Vector(35), &[0x0f, 0x01, 0xdb]).behind(&[0x31, 0xc0], 1).not_executed(),
    of("stgi", Vector(36), &[0x0f, 0x01, 0xdc]),
    of("clgi", Vector(37), &[0x0f, 0x01, 0xdd]).behind(&[0x0f, 0x01, 0xdc], 1).free(1),
    of("rdtscp", Vector(39), &[0x0f, 0x01, 0xf9]),
    of("int1", Vector(40), &[0xf1]).not_executed(),
    of("wbinvd", Vector(41), &[0x0f, 0x09]),
    of("monitor", Vector(42), &[0x0f, 0x01, 0xc8]).behind(&[0x48, 0x89, 0xe0], 1),
    of("mwait", Vector(43), &[0x0f, 0x01, 0xc9]).not_executed(),
    // MOV EAX, 1 in front: x87 alone.
    of("xsetbv", Vector(45), &[0x0f, 0x01, 0xd1]).behind(&[0xb8, 1, 0, 0, 0], 1),
    // As one that is repeated and one that is in an interrupt shadow: MOV SS, EAX in front.
    of("cpuid_behind_ss", Vector(18), &[0x0f, 0xa2]).behind(&[0x8c, 0xd0, 0x8e, 0xd0], 2),
    of("rdtsc_behind_sti", Vector(14), &[0x0f, 0x31]).behind(&[0xfb], 1),
    of("syscall_less_undefined", Exception(6), &[0x0f, 0xff]).fault(SKIP_TWO),
    of("cpuid_again", Vector(18), &[0x0f, 0xa2]),
    of("pushf_again", Vector(16), &[0x66, 0x9c]),
];

/// Where SGDT, SIDT and INVLPG point.
static mut TABLE: [u64; 2] = [0; 2];
/// CR4.OSXSAVE, with which there is XSETBV.
const OSXSAVE: u64 = 1 << 18;

pub fn run(unit: &Unit) {
    for way in WAYS {
        for case in &CASES {
            if !is_there(case.name) {
                continue;
            }
            intercepted(unit, way, case);
            if let Some(free) = case.free {
                executed(unit, way, case, free);
            }
        }
        beside(unit, way);
        selective(unit, way);
        triple_fault(unit, way);
        stepped_itself(unit, way);
        breakpoint_of_its_own(unit, way);
    }
}

fn is_there(name: &str) -> bool {
    let leaf = core::arch::x86_64::__cpuid(1);
    let rdtscp = core::arch::x86_64::__cpuid(0x8000_0001).edx >> 27 & 1 != 0;
    match name {
        "monitor" | "mwait" => leaf.ecx >> 3 & 1 != 0,
        "xsetbv" => leaf.ecx >> 26 & 1 != 0,
        "rdtscp" => rdtscp,
        _ => true,
    }
}

fn prepare(case: &Case) -> (u64, u64) {
    block::prepare(&[case.before.0, case.instruction, &[0x90]]);
    block::set_registers([0, 0, 0, 0x1000, &raw const TABLE as u64]);
    block::put(block::RAX, block::get(block::CR0));
    if case.name == "xsetbv" {
        block::put(block::CR4, block::get(block::CR4) | OSXSAVE);
    }
    let at = block::code() + case.before.0.len() as u64;
    (at, at + case.instruction.len() as u64)
}

fn intercepted(unit: &Unit, way: Way, case: &Case) {
    let (at, next) = prepare(case);
    case.intercept.set();
    let counted = way.run(unit, case.before.1);
    let (way, name) = (way.name, case.name);
    let code = case.intercept.code();
    line!("case {way}.{name}.exit {:#x} {code:#x}", block::get(EXIT));
    line!("case {way}.{name}.rip {} {at}", block::get(RIP));
    let next = if case.fault { 0 } else { next };
    line!("case {way}.{name}.next {} {next}", block::get(NEXT_RIP));
    line!("case {way}.{name}.counted {counted} {}", case.before.1);
    line!("case {way}.{name}.info {} {}", block::get(INFO_1), case.info_1);
    if name == "page" {
        line!("case {way}.{name}.address {} 4096", block::get(INFO_2));
    }
}

fn executed(unit: &Unit, way: Way, case: &Case, free: u64) {
    prepare(case);
    // NOP after it.
    let expected = case.before.1 + free + 1;
    let counted = way.run(unit, expected);
    let (way, name) = (way.name, case.name);
    line!("case {way}.{name}.free.exit {:#x} {AT_VMMCALL:#x}", block::get(EXIT));
    line!("case {way}.{name}.free.counted {counted} {expected}");
}

/// What is not intercepted, although QEMU's processor takes it for what is.
fn beside(unit: &Unit, way: Way) {
    const CASES: [(&str, Intercept, &[u8], u64); 6] = [
        ("read_cr3", Cr(0), &[0x0f, 0x20, 0xd8], 1),
        ("read_cr0", Cr(3), &[0x0f, 0x20, 0xc0], 1),
        ("smsw", Cr(4), &[0x0f, 0x01, 0xe0], 1),
        ("rdtscp", Vector(14), &[0x0f, 0x01, 0xf9], 1),
        ("int_n", Exception(3), &[0xcd, crate::handlers::BACK], 2),
        ("int3", Vector(21), &[0xcc], 2),
    ];
    for (name, intercept, code, retired) in CASES {
        block::prepare(&[code]);
        intercept.set();
        let counted = way.run(unit, retired);
        let way = way.name;
        line!("case {way}.beside.{name}.exit {:#x} {AT_VMMCALL:#x}", block::get(EXIT));
        line!("case {way}.beside.{name}.counted {counted} {retired}");
    }
}

/// A MOV to CR0 is a selective write if more than TS and MP changes.
fn selective(unit: &Unit, way: Way) {
    const MOV_CR0: [u8; 3] = [0x0f, 0x22, 0xc0];
    for (name, change, code) in
        [("ts", 1 << 3, AT_VMMCALL), ("none", 0, AT_VMMCALL), ("wp", 1 << 16, 0x65)]
    {
        block::prepare(&[&MOV_CR0]);
        block::put(block::RAX, block::get(block::CR0) ^ change);
        Vector(5).set();
        let expected = u64::from(code == AT_VMMCALL);
        let counted = way.run(unit, expected);
        let way = way.name;
        line!("case {way}.selective.{name}.exit {:#x} {code:#x}", block::get(EXIT));
        line!("case {way}.selective.{name}.counted {counted} {expected}");
    }
}

/// UD2 without an interrupt table.
fn triple_fault(unit: &Unit, way: Way) {
    block::prepare(&[&[0x90, 0x0f, 0x0b]]);
    block::segment(block::IDTR, 0, 0, 0, 0);
    block::put(VECTORS, block::get(VECTORS) | SHUTDOWN);
    let counted = way.run(unit, 1);
    let way = way.name;
    line!("case {way}.shutdown.exit {:#x} 0x7f", block::get(EXIT));
    line!("case {way}.shutdown.counted {counted} 1");
}

/// RFLAGS.TF in the nested guest, whose guest intercepts #DB.
fn stepped_itself(unit: &Unit, way: Way) {
    const TF: u64 = 1 << 8;
    for (name, code, bytes) in [("nop", &[0x90u8, 0x90][..], 1), ("cpuid", &[0x0f, 0xa2][..], 2)] {
        block::prepare(&[code]);
        block::put(block::RFLAGS, TF | 2);
        Exception(1).set();
        let counted = way.run(unit, 1);
        let way = way.name;
        line!("case {way}.trap.{name}.exit {:#x} 0x41", block::get(EXIT));
        line!("case {way}.trap.{name}.rip {} {}", block::get(RIP), block::code() + bytes);
        line!("case {way}.trap.{name}.dr6 {:#x} 0xffff4ff0", block::get(block::DR6));
        line!("case {way}.trap.{name}.flags {:#x} 0x102", block::get(block::RFLAGS));
        line!("case {way}.trap.{name}.counted {counted} 1");
    }
}

/// A breakpoint of the nested guest's on its second instruction. Behind the exit the guest has none.
fn breakpoint_of_its_own(unit: &Unit, way: Way) {
    use x86_64::registers::debug::{DebugAddressRegister, Dr0, Dr7};
    block::prepare(&[&[0x90, 0x90]]);
    Dr0::write(block::code() + 1);
    block::put(block::DR7, 0x401);
    Exception(1).set();
    let counted = way.run(unit, 1);
    let way = way.name;
    line!("case {way}.breakpoint.exit {:#x} 0x41", block::get(EXIT));
    line!("case {way}.breakpoint.rip {} {}", block::get(RIP), block::code() + 1);
    line!("case {way}.breakpoint.dr6 {:#x} 0xffff0ff1", block::get(block::DR6));
    line!("case {way}.breakpoint.dr7 {:#x} 0x401", block::get(block::DR7));
    line!("case {way}.breakpoint.guests_dr7 {:#x} 0x400", Dr7::read_raw());
    line!("case {way}.breakpoint.counted {counted} 1");
}
