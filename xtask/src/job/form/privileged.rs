//! Forms of ring 0 that change nothing, because they write what is there: each with what it does then. They have a
//! throughput only, as most of them wait for all that is before them.
//!
//! The firmware restores control, debug and model-specific registers after a snippet; CR4.FSGSBASE is one of them.

use super::chain::Made;
use super::registers::Reg;
use super::text::Operand;
use super::{Case, Form, case};
use iced_x86::{Code, Instruction};

/// Registers with names that forms have.
pub const NAMES: [&str; 11] =
    ["cr0", "cr2", "cr3", "cr4", "cr8", "dr0", "dr1", "dr2", "dr3", "dr6", "dr7"];

/// Instructions in a body: an even number, so that SWAPGS is undone.
const COPIES: usize = 8;

/// A group of encodings that are made harmless alike.
#[derive(Debug, Eq, PartialEq)]
pub struct Undone {
    codes: &'static [Code],
    /// What such an instruction does in the snippet.
    pub does: &'static str,
    /// Code before the body: `{}` is the register that the form names. R8 gets what it has.
    init: &'static str,
    /// What stands after each, and its form.
    after: Option<&'static str>,
}

const fn row(codes: &'static [Code], does: &'static str, init: &'static str) -> Undone {
    Undone { codes, does, init, after: None }
}

/// IA32_KERNEL_GS_BASE, which every processor of 64 bits has and nothing reads but SWAPGS (SDM vol. 4, table 2-2).
const GS_BASE_AWAY: &str = "mov ecx, 0xc0000102";
/// CR4.FSGSBASE, bit 16 (SDM vol. 3, 2.5).
const FSGSBASE: &str = "mov rax, cr4\nbts rax, 16\nmov cr4, rax";

static ALL: [Undone; 20] = [
    row(
        &[Code::Mov_r64_cr, Code::Mov_r64_dr, Code::Mov_r32_cr, Code::Mov_r32_dr],
        "reads the register",
        "",
    ),
    row(
        &[Code::Mov_cr_r64],
        "writes what CR0, CR2, CR3, CR4 or CR8 has; of CR3, drops entries of the TLB",
        "mov r8, {}",
    ),
    row(&[Code::Mov_dr_r64], "writes what the debug register has", "mov r8, {}"),
    row(&[Code::Rdmsr], "reads IA32_KERNEL_GS_BASE", GS_BASE_AWAY),
    row(&[Code::Wrmsr], "writes what IA32_KERNEL_GS_BASE has", "mov ecx, 0xc0000102\nrdmsr"),
    row(&[Code::Rdpmc], "reads counter 0", "xor ecx, ecx"),
    row(&[Code::Xgetbv], "reads XCR0", "xor ecx, ecx"),
    row(&[Code::Xsetbv], "writes what XCR0 has", "xor ecx, ecx\nxgetbv"),
    row(&[Code::Cli], "clears IF, which is clear", ""),
    Undone {
        codes: &[Code::Sti],
        does: "sets IF; CLI clears it before an interrupt can come",
        init: "",
        after: Some("cli"),
    },
    row(&[Code::Clts], "clears CR0.TS, which is clear", ""),
    row(&[Code::Invlpg_m], "drops the TLB's entries of the memory at R14", ""),
    row(
        &[Code::Invpcid_r64_m128, Code::Invpcid_r32_m128],
        "drops the TLB's entries of address 0",
        "xor r8d, r8d\nmov [r14], r8\nmov [r14 + 8], r8",
    ),
    row(
        &[Code::Swapgs],
        "exchanges two equal base addresses",
        "mov ecx, 0xc0000101\nrdmsr\nmov ecx, 0xc0000102\nwrmsr",
    ),
    row(&[Code::Lgdt_m1664], "loads the table's address that is there", "sgdt [r14]"),
    row(&[Code::Lidt_m1664], "loads the table's address that is there", "sidt [r14]"),
    row(
        &[Code::Lldt_rm16, Code::Lldt_r32m16, Code::Lldt_r64m16],
        "loads the selector that LDTR has",
        "sldt r8d\nmov [r14], r8w",
    ),
    row(
        &[Code::Lmsw_rm16, Code::Lmsw_r32m16, Code::Lmsw_r64m16],
        "writes what the low bits of CR0 are",
        "smsw r8d\nmov [r14], r8w",
    ),
    row(
        &[Code::Rdfsbase_r32, Code::Rdfsbase_r64, Code::Rdgsbase_r32, Code::Rdgsbase_r64],
        "reads a base address, with CR4.FSGSBASE set",
        FSGSBASE,
    ),
    row(
        &[Code::Wrfsbase_r64, Code::Wrgsbase_r64],
        "writes the base address that is there, with CR4.FSGSBASE set",
        "",
    ),
];

/// How an instruction is made harmless, if it is one of these.
pub fn of(instruction: &Instruction) -> Option<&'static Undone> {
    ALL.iter().find(|one| one.codes.contains(&instruction.code()))
}

/// All that there are, for the guide.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|one| one.does)
}

/// The registers that an operand for control or debug registers can be.
pub fn registers(prefix: &str) -> Vec<Operand> {
    let names = NAMES.iter().filter(|name| name.starts_with(prefix));
    names.map(|name| Operand::Fixed((*name).to_string())).collect()
}

/// Instructions one after the other.
pub fn throughput(form: &Form, undone: &'static Undone) -> Made {
    let own = Reg::general(if form.is_compatibility() { 6 } else { 8 });
    let registers: Vec<Option<Reg>> =
        (0..form.operands.len()).map(|index| form.register(index).map(|_| own)).collect();
    let mut lines = Vec::new();
    for _ in 0..COPIES {
        lines.push(form.with(&registers, form.place()));
        lines.extend(undone.after.map(String::from));
    }
    let named = form.operands.iter().find_map(|one| match one {
        Operand::Fixed(name) => Some(name.as_str()),
        _ => None,
    });
    let mut init = undone.init.replace("{}", named.unwrap_or_default());
    if let Some(base) = form.mnemonic.strip_prefix("wr").filter(|rest| rest.ends_with("base")) {
        init = format!("{FSGSBASE}\nrd{base} r8");
    }
    init = form.in_own_registers(&init);
    init.push('\n');
    let with = undone.after.map(|one| form.beside(one)).into_iter().collect();
    let kind = case::Kind::Throughput { copies: COPIES as u32, with };
    let case = Case { form: form.to_string(), kind, breaking: Vec::new() };
    Made { case, init, body: lines.join("\n") }
}

#[cfg(test)]
mod tests;
