//! The handlers for processors with a status register: one for each way to the local APIC, delivery, and thing to do about the
//! counters, so that none of it is asked in the interrupt.

use super::{LVT_MASK, TOP};
use crate::apic::Register;
use crate::pmu::pmi::block::offset;
use crate::pmu::pmi::service::MOST_SPURIOUS;
use crate::pmu::pmi::{ControlBlock, Delivery};
use core::arch::naked_asm;

/// The handlers of one way to the local APIC and one delivery.
#[derive(Clone, Copy)]
pub(in crate::pmu::pmi) struct Handlers {
    /// Leaves the counters as it finds them.
    counting: Handler,
    /// Lets frozen counters continue at its end.
    resuming: Handler,
    /// Stops the counters, and joins `resuming` after its [`ENTRY_BYTES`].
    stopping: extern "C" fn(),
}

/// One of them.
#[derive(Clone, Copy)]
struct Handler {
    entry: extern "C" fn(),
    /// Where it continues when it has found an overflow: without a log, and with one.
    found: [*const u8; 2],
}

impl Handlers {
    /// Where the APIC has a page, or is reached by MSRs.
    pub fn of(has_page: bool, delivery: Delivery) -> Self {
        match (has_page, delivery) {
            (true, Delivery::Fixed) => xapic::handlers(),
            (true, Delivery::Nmi) => xapic_nmi::handlers(),
            (false, Delivery::Fixed) => x2apic::handlers(),
            (false, Delivery::Nmi) => x2apic_nmi::handlers(),
        }
    }

    /// The address for the interrupt table, and where the handler continues that has found an overflow of `block`.
    pub fn addresses(self, block: &ControlBlock) -> [u64; 2] {
        let stops = block.stop.msr != 0;
        let handler = if stops || block.resume.msr != 0 { self.resuming } else { self.counting };
        let entry = if stops { self.stopping } else { handler.entry };
        let found = handler.found[usize::from(block.end != 0)];
        [entry as *const () as u64, found as u64]
    }
}

/// Bytes of the first six instructions of a handler: five pushes of one byte, and a MOV of five.
const ENTRY_BYTES: usize = 10;

/// The steps are those of [`crate::pmu::pmi`]; the numbers in the margin count the instructions of an overflow of one counter
/// that is reloaded, without a log, where the APIC has a page and no counter was frozen.
macro_rules! handler {
    ($name:ident, $each:ident, $sample:ident, unmask: [$($unmask:literal),*],
     end: [$($end:literal),*], resume: [$($resume:literal),*]) => {
        unsafe extern "C" {
            static $each: u8;
            static $sample: u8;
        }

        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                // What not all of them have a use for.
                "# {apic} {lvtpc} {eoi} {x2apic} {resume} {shut} {closed}",
                "push rax",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "mov rdi, [rsp + {top}]", // 6
                "2: mov ecx, [rdi + {status}]",
                "rdmsr",
                "and eax, [rdi + {mask}]",
                "and edx, [rdi + {mask} + 4]",
                // Of a spurious interrupt it changes nothing.
                "mov ecx, [rdi + {clear}]",
                "wrmsr", // 12
                "shl rdx, 32",
                "or rdx, rax",
                "jz 8f",
                "mov rsi, rdx",
                "inc qword ptr [rdi + {pmis}]",
                "jmp [rdi + {found}]", // 18
                // Within the reach of JECXZ.
                "28: jmp 29f",
                // A sample, if there is room.
                concat!(".global ", stringify!($sample)),
                concat!(stringify!($sample), ":"),
                "mov rcx, [rdi + {cursor}]",
                "cmp rcx, [rdi + {end}]",
                "jae 24f",
                "mov rax, [rsp + 40]",
                "mov [rcx], rax",
                "mov [rcx + 8], rsi",
                "rdtsc",
                "mov [rcx + 16], eax",
                "mov [rcx + 20], edx",
                "mov eax, [rsp + 48]",
                "mov edx, [rdi + {task}]",
                "mov [rcx + 24], edx",
                "mov [rcx + 28], eax",
                "add qword ptr [rdi + {cursor}], 32",
                // Each overflow, from the lowest bit up.
                concat!(".global ", stringify!($each)),
                concat!(stringify!($each), ":"),
                "3: bsf rdx, rsi",
                "btr rsi, rdx",
                "shl edx, 6",
                "inc qword ptr [rdi + rdx + {overflows}]",
                "mov ecx, [rdi + rdx + {reload}]",
                "jecxz 28b", // 24
                "mov eax, [rdi + rdx + {preset}]",
                "mov edx, [rdi + rdx + {preset} + 4]",
                "wrmsr",
                "4: test rsi, rsi",
                "jnz 3b", // 29
                "5:",
                $($unmask,)* // 32
                "mov ecx, [rdi + {status}]",
                "rdmsr",
                "and eax, [rdi + {mask}]",
                "and edx, [rdi + {mask} + 4]",
                "or eax, edx",
                "jnz 22f", // 38
                "25:",
                $($end,)* // 39
                // Go on counting. What follows the last write is all of the handler that counters see which were frozen.
                $($resume,)*
                "26: pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop rax",
                "iretq", // 45
                "8: inc qword ptr [rdi + {spurious}]",
                "mov rax, [rdi + {pmis}]",
                "add rax, {most}",
                "cmp [rdi + {spurious}], rax",
                "jb 5b",
                // It does not stop: LVTPC is written with its mask bit from now on.
                "or dword ptr [rdi + {lvt}], {mask_bit}",
                "jmp 5b",
                // A counter that is not reloaded; or one that stands, which gets what it has counted since the overflow as well
                // (`Slot::next`).
                "29: mov ecx, [rdi + rdx + {look_at}]",
                "cmp qword ptr [rdi + rdx + {preset}], 0",
                "je 4b",
                "add rdi, rdx",
                "rdmsr",
                "shl rdx, 32",
                "or rax, rdx",
                "add rax, [rdi + {owed}]",
                "mov edx, [rdi + {carry}]",
                "cmp rax, rdx",
                "cmovb rdx, rax",
                "sub rax, rdx",
                "mov [rdi + {owed}], rax",
                "add rdx, [rdi + {preset}]",
                "mov eax, edx",
                "shr rdx, 32",
                "wrmsr",
                "mov rdi, [rsp + {top}]",
                "jmp 4b",
                // No room in the log.
                "24: inc qword ptr [rdi + {dropped}]",
                "mov rax, rsi",
                "27: bsf rdx, rax",
                "btr rax, rdx",
                "shl edx, 6",
                "inc qword ptr [rdi + rdx + {unsampled}]",
                "test rax, rax",
                "jnz 27b",
                "jmp 3b",
                // Another overflow meanwhile, in the same interrupt. Every 128th time it ends all the same, so that a period
                // shorter than this path does not keep the processor here for ever.
                "22: inc qword ptr [rdi + {back_to_back}]",
                "test byte ptr [rdi + {back_to_back}], 127",
                "jz 25b",
                "dec qword ptr [rdi + {pmis}]",
                "jmp 2b",
                top = const TOP,
                status = const offset::STATUS,
                clear = const offset::CLEAR,
                mask = const offset::MASK,
                found = const offset::FOUND,
                resume = const offset::RESUME,
                shut = const offset::SHUT,
                closed = const offset::CLOSED,
                apic = const offset::APIC,
                lvt = const offset::LVT,
                pmis = const offset::PMIS,
                spurious = const offset::SPURIOUS,
                back_to_back = const offset::BACK_TO_BACK,
                dropped = const offset::DROPPED,
                unsampled = const offset::UNSAMPLED,
                task = const offset::TASK,
                cursor = const offset::CURSOR,
                end = const offset::END,
                reload = const offset::RELOAD,
                preset = const offset::PRESET,
                look_at = const offset::LOOK_AT,
                carry = const offset::CARRY,
                owed = const offset::OWED,
                overflows = const offset::OVERFLOWS,
                lvtpc = const Register::LvtPmc as u32,
                eoi = const Register::EndOfInterrupt as u32,
                x2apic = const 0x800,
                most = const MOST_SPURIOUS,
                mask_bit = const LVT_MASK,
            )
        }
    };
}

/// Those of one way to the APIC and one delivery. The names are those of the places that [`Handler::found`] leads to.
macro_rules! handlers {
    ($module:ident, [$each:ident, $sample:ident], [$each_resuming:ident, $sample_resuming:ident],
     unmask: $unmask:tt, end: $end:tt) => {
        mod $module {
            use super::*;

            handler!(counting, $each, $sample, unmask: $unmask, end: $end, resume: []);
            handler!(
                resuming, $each_resuming, $sample_resuming, unmask: $unmask, end: $end,
                resume: [
                    // Unless the gate is closed.
                    "cmp dword ptr [rdi + {shut}], 0",
                    "jne 26f",
                    "mov rax, [rsp + 40]",
                    "sub rax, [rdi + {closed}]",
                    "cmp rax, [rdi + {closed} + 8]",
                    "jb 26f",
                    "mov ecx, [rdi + {resume}]",
                    "mov eax, [rdi + {resume} + 8]",
                    "mov edx, [rdi + {resume} + 12]",
                    "wrmsr"
                ]
            );

            #[unsafe(naked)]
            extern "C" fn stopping() {
                naked_asm!(
                    "push rax",
                    "push rcx",
                    "push rdx",
                    "push rsi",
                    "push rdi",
                    "mov rdi, [rsp + {top}]",
                    "mov ecx, [rdi + {stop}]",
                    "mov eax, [rdi + {stop} + 8]",
                    "mov edx, [rdi + {stop} + 12]",
                    "wrmsr",
                    "jmp {resuming} + {skip}",
                    top = const TOP,
                    resuming = sym resuming,
                    stop = const offset::STOP,
                    skip = const ENTRY_BYTES,
                )
            }

            pub(super) fn handlers() -> Handlers {
                let found = [&raw const $each, &raw const $sample];
                let counting = Handler { entry: counting, found };
                let found = [&raw const $each_resuming, &raw const $sample_resuming];
                Handlers { counting, resuming: Handler { entry: resuming, found }, stopping }
            }
        }
    };
}

handlers!(
    xapic,
    [barecount_pmi_xapic_each, barecount_pmi_xapic_sample],
    [barecount_pmi_xapic_resuming_each, barecount_pmi_xapic_resuming_sample],
    unmask: ["mov rsi, [rdi + {apic}]", "mov eax, [rdi + {lvt}]", "mov [rsi + {lvtpc}], eax"],
    end: ["mov dword ptr [rsi + {eoi}], 0"]
);

handlers!(
    xapic_nmi,
    [barecount_pmi_xapic_nmi_each, barecount_pmi_xapic_nmi_sample],
    [barecount_pmi_xapic_nmi_resuming_each, barecount_pmi_xapic_nmi_resuming_sample],
    unmask: ["mov rsi, [rdi + {apic}]", "mov eax, [rdi + {lvt}]", "mov [rsi + {lvtpc}], eax"],
    end: []
);

handlers!(
    x2apic,
    [barecount_pmi_x2apic_each, barecount_pmi_x2apic_sample],
    [barecount_pmi_x2apic_resuming_each, barecount_pmi_x2apic_resuming_sample],
    unmask: [
        "mov ecx, {x2apic} + ({lvtpc} >> 4)", "mov eax, [rdi + {lvt}]", "xor edx, edx", "wrmsr"
    ],
    end: ["mov ecx, {x2apic} + ({eoi} >> 4)", "xor eax, eax", "xor edx, edx", "wrmsr"]
);

handlers!(
    x2apic_nmi,
    [barecount_pmi_x2apic_nmi_each, barecount_pmi_x2apic_nmi_sample],
    [barecount_pmi_x2apic_nmi_resuming_each, barecount_pmi_x2apic_nmi_resuming_sample],
    unmask: [
        "mov ecx, {x2apic} + ({lvtpc} >> 4)", "mov eax, [rdi + {lvt}]", "xor edx, edx", "wrmsr"
    ],
    end: []
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msr::Msr;
    use crate::pmu::driver::Write;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register as Gpr};

    fn all() -> impl Iterator<Item = Handlers> {
        [true, false].into_iter().flat_map(|has_page| {
            [Delivery::Fixed, Delivery::Nmi].map(|delivery| Handlers::of(has_page, delivery))
        })
    }

    /// So many bytes of code.
    fn code(address: u64, bytes: usize) -> &'static [u8] {
        // SAFETY: the handlers' code, which is longer than what is requested.
        unsafe { core::slice::from_raw_parts(address as *const u8, bytes) }
    }

    #[test]
    fn the_stopping_entries_join_behind_the_first_six_instructions() {
        for handlers in all() {
            let code = code(handlers.resuming.entry as *const () as u64, ENTRY_BYTES + 2);
            assert_eq!(code[..5], [0x50, 0x51, 0x52, 0x56, 0x57]);
            // mov rdi, [rsp + disp8]; mov ecx, [rdi + ...]
            assert_eq!(
                (&code[5..10], code[ENTRY_BYTES]),
                (&[0x48, 0x8b, 0x7c, 0x24, 80][..], 0x8b)
            );
        }
    }

    /// Each block has the handler that does what it requests, and no more.
    #[test]
    fn a_block_goes_to_the_handler_that_it_needs() {
        let write = Write::new(Msr(0x38f), 1);
        for handlers in all() {
            let mut block = ControlBlock::EMPTY;
            let [counting, each] = handlers.addresses(&block);
            block.resume = write;
            let [resuming, each_resuming] = handlers.addresses(&block);
            block.stop = write;
            let [stopping, each_stopping] = handlers.addresses(&block);
            block.end = 1;
            let [logging, sample] = handlers.addresses(&block);
            assert!(counting != resuming && resuming != stopping && counting != stopping);
            assert!(each != each_resuming && sample < each_resuming && logging == stopping);
            assert_eq!(each_stopping, each_resuming, "it joins that one");
            // bsf rdx, rsi; and mov rcx, [rdi + ...]
            assert_eq!(code(each, 4), [0x48, 0x0f, 0xbc, 0xd6]);
            assert_eq!(code(sample, 2), [0x48, 0x8b]);
        }
    }

    /// From where a handler continues that has found an overflow, to its IRETQ.
    fn end(each: u64) -> Vec<Instruction> {
        let code = code(each, 256);
        let mut end: Vec<Instruction> =
            Decoder::with_ip(64, code, each, DecoderOptions::NONE).iter().collect();
        let return_ = end.iter().position(|one| one.code() == Code::Iretq).unwrap();
        end.truncate(return_ + 1);
        end
    }

    /// The handlers that let counters continue look first whether the gate has been shut, then whether the interrupted RIP, five
    /// pushes above the stack pointer, is where it is closed, and continue after the write if so.
    #[test]
    fn i6_counters_of_a_closed_gate_are_left_as_they_are_by_each_handler() {
        let mut block = ControlBlock::EMPTY;
        block.resume = Write::new(Msr(0x38f), 1);
        for handlers in all() {
            let end = end(handlers.addresses(&block)[1]);
            // Four instructions of the write, five POPs, IRETQ.
            let (body, tail) = end.split_at(end.len() - 10);
            let check = &body[body.len() - 6..];
            let codes: Vec<Code> = check.iter().chain(&tail[3..5]).map(Instruction::code).collect();
            let (reads, compares) = (Code::Mov_r64_rm64, Code::Cmp_r64_rm64);
            assert_eq!(codes[0], Code::Cmp_rm32_imm8);
            assert_eq!(codes[1], Code::Jne_rel8_64);
            assert_eq!(codes[2..5], [reads, Code::Sub_r64_rm64, compares]);
            assert_eq!(codes[5..], [Code::Jb_rel8_64, Code::Wrmsr, Code::Pop_r64]);
            for branch in [check[1], check[5]] {
                assert_eq!(branch.near_branch_target(), tail[4].ip());
            }
            let (shut, closed) = (offset::SHUT as u64, offset::CLOSED as u64);
            let operands = [0, 2, 3, 4]
                .map(|one| (check[one].memory_base(), check[one].memory_displacement64()));
            let expected =
                [(Gpr::RDI, shut), (Gpr::RSP, 40), (Gpr::RDI, closed), (Gpr::RDI, closed + 8)];
            assert_eq!(operands, expected);
        }
    }
}
