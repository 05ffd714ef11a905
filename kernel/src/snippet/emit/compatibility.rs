//! 32-bit code of ring 0: the way in by a far jump through memory, the way out by a far jump with its target in the code.
//!
//! Neither touches the stack, a flag or a general register. What a switch of width does to the upper halves of the
//! general registers is undefined (SDM vol. 1, 3.4.1.1); the measuring code expects nothing of them, and all addresses
//! that it gives to 32-bit code are below 4 GiB.

use super::mode_switch::{Entry, ModeSwitch};
use super::{Code, Data, RAX};
use arch::descriptors::{KERNEL_CODE, KERNEL_CODE_32};
use core::mem::offset_of;

/// Bytes of [`Code::enter_compatibility`].
pub(super) const ENTER_BYTES: u64 = 6;

/// What the far jump takes: 32 bits of address, and a selector.
pub(super) fn target(address: u64) -> u64 {
    address & 0xffff_ffff | u64::from(KERNEL_CODE_32.0) << 32
}

impl Code<'_> {
    /// Makes room for where the next stay begins: the first word of what IRETQ would take. Overwrites RAX.
    pub(super) fn entry(&mut self, switch: ModeSwitch) -> Entry {
        self.load_constant(RAX, 0);
        let at = self.at - 8;
        self.store(RAX, offset_of!(Data, user));
        Entry { at, switch }
    }

    /// jmp fword ptr [rip + user]
    pub(super) fn enter_compatibility(&mut self) {
        let displacement = self.displacement(self.data(offset_of!(Data, user)), 6);
        self.put(&[0xff, 5 << 3 | 5]);
        self.put(&displacement);
    }

    /// jmp ptr16:32, to after itself
    pub(super) fn leave_compatibility(&mut self) {
        const BYTES: u64 = 7;
        let target = (self.address() + BYTES) as u32;
        self.put(&[0xea]);
        self.put(&target.to_le_bytes());
        self.put(&KERNEL_CODE.0.to_le_bytes());
    }

    /// dec dword ptr [data]: 32-bit code has no addresses relative to RIP.
    pub(super) fn count_down_compatibility(&mut self, offset: usize) {
        let address = self.data(offset) as u32;
        self.put(&[0xff, 1 << 3 | 5]);
        self.put(&address.to_le_bytes());
    }
}
