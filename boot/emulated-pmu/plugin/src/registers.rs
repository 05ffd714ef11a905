//! The registers that addresses are made of.

use crate::qemu::{Names, Register};
use iced_x86::Register as Name;

/// General-purpose registers, as the decoder and GDB call them.
const GENERAL: [(Name, &str); 16] = [
    (Name::RAX, "rax"),
    (Name::RCX, "rcx"),
    (Name::RDX, "rdx"),
    (Name::RBX, "rbx"),
    (Name::RSP, "rsp"),
    (Name::RBP, "rbp"),
    (Name::RSI, "rsi"),
    (Name::RDI, "rdi"),
    (Name::R8, "r8"),
    (Name::R9, "r9"),
    (Name::R10, "r10"),
    (Name::R11, "r11"),
    (Name::R12, "r12"),
    (Name::R13, "r13"),
    (Name::R14, "r14"),
    (Name::R15, "r15"),
];

/// Their handles.
#[derive(Clone, Copy, Debug)]
pub struct Handles {
    general: [Option<Register>; 16],
    fs: Option<Register>,
    gs: Option<Register>,
    /// RIP.
    pub rip: Option<Register>,
    /// CR0, CR3, CR4 and EFER.
    pub paging: Option<[Register; 4]>,
}

// SAFETY: a handle is a number to QEMU, and names the register of whichever vCPU asks.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

impl Handles {
    /// Of those that QEMU has.
    pub fn of(names: &Names) -> Self {
        Self {
            general: GENERAL.map(|(_, name)| names.find(name)),
            fs: names.find("fs_base"),
            gs: names.find("gs_base"),
            rip: names.find("rip"),
            paging: match ["cr0", "cr3", "cr4", "efer"].map(|name| names.find(name)) {
                [Some(cr0), Some(cr3), Some(cr4), Some(efer)] => Some([cr0, cr3, cr4, efer]),
                _ => None,
            },
        }
    }

    /// Which register must be read for `name`: for a segment register, its base. `None`: it counts as 0, as it does
    /// for whoever steps the guest.
    pub fn find(&self, name: Name) -> Option<Register> {
        match name {
            Name::FS => self.fs,
            Name::GS => self.gs,
            _ => {
                let full = name.full_register();
                let place = GENERAL.iter().position(|(own, _)| *own == full)?;
                self.general[place]
            }
        }
    }
}
