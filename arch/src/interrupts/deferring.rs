//! Ways into the kernel and out of it that no counter of ring 0 sees more of than their ends.
//!
//! While a processor has a [`Deferred`], everything by which a task comes to the kernel stops the counters after the same few
//! instructions, and starts them again before the same few: exceptions by the stubs here, the vectors of tasks by entries of
//! their own (`crate::task`). So what counters of ring 0 see of the kernel is the same each time.

use super::dispatch;
use super::idt::{reset_entry, set_entry};
use crate::pmu::Deferred;
use crate::smp;
use crate::trap::{TrapFrame, exception};
use core::arch::{global_asm, naked_asm};
use core::sync::atomic::Ordering;
use spin::Mutex;

/// Processors that have one: they share the interrupt table. Not asked by the handlers.
static IN_USE: Mutex<usize> = Mutex::new(0);

/// From the registers to what says whose they are: behind them.
pub(crate) const PROCESSOR: usize = size_of::<TrapFrame>();

/// Stops the counters, with the registers at RDI. R12 has the [`Deferred`] then, or 0; RAX, RBX, RCX, RDX and R13 are changed.
macro_rules! close {
    () => {
        concat!(
            "mov r12, [rdi + {processor}]\n",
            "mov r12, [r12 + {deferred}]\n",
            "test r12, r12\n",
            "jz 3f\n",
            "mov r13d, [r12 + {offs}]\n",
            "test r13d, r13d\n",
            "jz 3f\n",
            "lea rbx, [r12 + {off}]\n",
            "2:\n",
            "mov ecx, [rbx]\n",
            "mov eax, [rbx + 8]\n",
            "mov edx, [rbx + 12]\n",
            "wrmsr\n",
            "add rbx, 16\n",
            "dec r13d\n",
            "jnz 2b\n",
            "xor eax, eax\n",
            "cmp dword ptr [r12 + {ons}], 0\n",
            "setne al\n",
            "add [r12 + {closed}], rax\n",
            "3:"
        )
    };
}
pub(crate) use close;

/// Starts them again, with R12 as after [`close`]. RAX, RBX, RCX, RDX and R13 are changed.
macro_rules! open {
    () => {
        concat!(
            "test r12, r12\n",
            "jz 5f\n",
            "mov r13d, [r12 + {ons}]\n",
            "test r13d, r13d\n",
            "jz 5f\n",
            "lea rbx, [r12 + {on}]\n",
            "4:\n",
            "mov ecx, [rbx]\n",
            "mov eax, [rbx + 8]\n",
            "mov edx, [rbx + 12]\n",
            "wrmsr\n",
            "add rbx, 16\n",
            "dec r13d\n",
            "jnz 4b\n",
            "5:"
        )
    };
}
pub(crate) use open;

// As the stubs of `super::stubs`, each four instructions long. What pushes no error code has a NOP in place of the branch.
global_asm!(
    ".pushsection .text.barecount_deferring, \"ax\", @progbits",
    ".balign 16",
    ".global barecount_deferring",
    "barecount_deferring:",
    ".set vector, 0",
    ".rept 32",
    ".balign 16",
    ".if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30)",
    "push 0",
    "nop",
    ".else",
    "test spl, 8",
    "jz 2f",
    "push -1",
    "2:",
    ".endif",
    "push vector",
    "jmp {common}",
    ".set vector, vector + 1",
    ".endr",
    ".popsection",
    common = sym common,
);

unsafe extern "C" {
    static barecount_deferring: u8;
}

/// As `super::stubs::common`.
#[unsafe(naked)]
extern "C" fn common() {
    naked_asm!(
        "push rax", "push rbx", "push rcx", "push rdx", "push rsi", "push rdi", "push rbp",
        "push r8", "push r9", "push r10", "push r11", "push r12", "push r13", "push r14", "push r15",
        "cld",
        "mov rdi, rsp",
        close!(),
        "call {dispatch}",
        open!(),
        "pop r15", "pop r14", "pop r13", "pop r12", "pop r11", "pop r10", "pop r9", "pop r8",
        "pop rbp", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rbx", "pop rax",
        "add rsp, 16",
        "iretq",
        dispatch = sym dispatch,
        processor = const PROCESSOR,
        deferred = const smp::Processor::DEFERRED,
        offs = const Deferred::OFFS,
        off = const Deferred::OFF,
        ons = const Deferred::ONS,
        on = const Deferred::ON,
        closed = const Deferred::CLOSED,
    )
}

/// Exceptions that tasks raise. NMI, double fault and machine check come from elsewhere, and go the common way.
fn vectors() -> impl Iterator<Item = u8> {
    let others = [exception::NMI, exception::DOUBLE_FAULT, exception::MACHINE_CHECK];
    (0..32).filter(move |&vector| !others.contains(&exception::Exception(vector)))
}

/// Whether some processor has one.
pub(crate) fn in_use() -> bool {
    *IN_USE.lock() > 0
}

/// This processor's ways in and out stop and start its counters as `deferred` says, until [`uninstall`].
///
/// # Safety
/// Ring 0 with interrupts off, interrupt table loaded; nothing is installed here, and no tasks run on any processor. The writes
/// must be good for this processor, and `deferred` must stay where it is; between interrupts, its owner alone uses it.
pub unsafe fn install(deferred: *mut Deferred) {
    let mut users = IN_USE.lock();
    smp::this().deferred.store(deferred, Ordering::Relaxed);
    for vector in vectors().filter(|_| *users == 0) {
        let stub = (&raw const barecount_deferring) as u64 + 16 * u64::from(vector);
        // SAFETY: the caller's promise; the stub does what the common one does.
        unsafe { set_entry(vector, stub) };
    }
    *users += 1;
}

/// Takes it away again.
///
/// # Safety
/// Ring 0 with interrupts off, on the processor that had it installed, and no tasks run on any.
pub unsafe fn uninstall() {
    let mut users = IN_USE.lock();
    smp::this().deferred.store(core::ptr::null_mut(), Ordering::Relaxed);
    *users -= 1;
    for vector in vectors().filter(|_| *users == 0) {
        // SAFETY: the caller's promise.
        unsafe { reset_entry(vector) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    fn decoded(at: u64, most: usize) -> Vec<Mnemonic> {
        // SAFETY: code of this program, longer than what is looked at.
        let code = unsafe { core::slice::from_raw_parts(at as *const u8, most) };
        let decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        decoder.into_iter().map(|one| one.mnemonic()).collect()
    }

    /// Each stub has room for its instructions, and four of them run: behind an error code's three the branch is taken.
    #[test]
    fn m14_stubs_are_of_one_length_in_instructions() {
        use Mnemonic::{Je, Jmp, Nop, Push, Test};
        for vector in 0..32u8 {
            let at = (&raw const barecount_deferring) as u64 + 16 * u64::from(vector);
            let with = exception::Exception(vector).has_error_code();
            let expected: &[Mnemonic] =
                if with { &[Test, Je, Push, Push, Jmp] } else { &[Push, Nop, Push, Jmp] };
            assert_eq!(&decoded(at, 16)[..expected.len()], expected, "{vector}");
        }
    }

    /// From the stub to the write that stops: 4, 15 PUSHes, CLD, MOV, and the 8 and 4 of `close`; from the write that starts:
    /// ADD, DEC, JNZ, 15 POPs, ADD and IRETQ.
    #[test]
    fn m14_the_ends_of_the_common_way_are_as_long_as_the_tasks() {
        use Mnemonic::{Iretq, Wrmsr};
        let ends = |at: u64| {
            let all = decoded(at, 400);
            let first = all.iter().position(|one| *one == Wrmsr).unwrap();
            let last = all[first + 1..].iter().position(|one| *one == Wrmsr).unwrap() + first + 1;
            let out = all[last..].iter().position(|one| *one == Iretq).unwrap();
            [first + 1, out]
        };
        let own = ends(common as *const () as u64);
        assert_eq!(own, [15 + 2 + 8 + 4, 3 + 15 + 2]);
        for (vector, entry) in crate::task::deferring_entries() {
            // PUSH, NOP, PUSH, NOP in place of the stub.
            assert_eq!(ends(entry), [own[0] + 4, own[1]], "{vector:#x}");
        }
    }
}
