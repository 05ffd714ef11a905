//! The instructions of SVM: APM vol. 3, and vol. 2, 15.5, 15.13.1 and 15.17.

use super::{entry, is_page, leave};
use crate::payload::guest::Guest;
use crate::payload::memory::read_physical;
use crate::payload::{events, retire};
use core::arch::asm;
use emulated_pmu::vmcb::{VIRTUAL_GIF, VIRTUAL_GIF_ENABLE, exit};
use iced_x86::{Code, Instruction};

const CR0_PE: u64 = 1;
/// Exit information of a nested page fault: a write, by the walk's own right, in the final address (APM vol. 2, 15.25.6).
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const FINAL: u64 = 1 << 32;

/// One of them, of whoever runs.
pub fn handle(guest: &mut Guest) {
    let code = guest.vmcb.exit_code;
    let is_instruction = !matches!(code, exit::VMMCALL | exit::SKINIT);
    if !guest.svm.enabled || !is_instruction || guest.vmcb.cr0 & CR0_PE == 0 {
        return events::invalid_opcode(guest);
    }
    if guest.vmcb.cpl != 0 {
        return events::general_protection(guest, 0);
    }
    let Some(instruction) = guest.instruction() else { return };
    let bytes = instruction.len() as u64;
    let address = address(&instruction, guest.vmcb.rax);
    let takes_address = matches!(code, exit::VMRUN | exit::VMLOAD | exit::VMSAVE);
    if takes_address && !is_page(guest, address) {
        return events::general_protection(guest, 0);
    }
    match code {
        exit::VMRUN if guest.svm.runs_nested() => return events::invalid_opcode(guest),
        exit::VMRUN => return entry::vmrun(guest, address, bytes),
        exit::VMLOAD | exit::VMSAVE => {
            // By a nested guest whose guest lets it: an address of its own.
            let Some(physical) = guest.translation().physical(address, read_physical) else {
                let writes = if code == exit::VMSAVE { WRITE } else { 0 };
                let infos = (FINAL | USER | writes, address);
                return leave::leave(guest, exit::NESTED_PAGE_FAULT, infos, None);
            };
            load_or_save(physical, code == exit::VMSAVE);
        }
        exit::STGI => set_gif(guest, true),
        exit::CLGI => set_gif(guest, false),
        _ => {}
    }
    retire::plain(guest, None);
    guest.skip(bytes);
}

/// The operand: RAX, cut to the size of addresses.
fn address(instruction: &Instruction, rax: u64) -> u64 {
    match instruction.code() {
        Code::Vmrunw | Code::Vmloadw | Code::Vmsavew => rax & 0xffff,
        Code::Vmrund | Code::Vmloadd | Code::Vmsaved => rax & 0xffff_ffff,
        _ => rax,
    }
}

/// The registers of VMLOAD and VMSAVE, which the guest's are while the hypervisor runs.
fn load_or_save(block: u64, saves: bool) {
    // SAFETY: memory that the guest has named for the processor, in a page that there is; SVM is on. Nothing here uses the
    // registers that VMLOAD loads.
    unsafe {
        if saves {
            asm!("vmsave rax", in("rax") block, options(nostack));
        } else {
            asm!("vmload rax", in("rax") block, options(nostack));
        }
    }
}

fn set_gif(guest: &mut Guest, on: bool) {
    if let Some(inner) = &mut guest.svm.inner
        && inner.control.int_control & VIRTUAL_GIF_ENABLE != 0
    {
        let bit = if on { VIRTUAL_GIF } else { 0 };
        inner.control.int_control = inner.control.int_control & !VIRTUAL_GIF | bit;
    } else {
        guest.svm.gif = on;
    }
}
