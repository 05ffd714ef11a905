//! Model-specific registers that are read before and behind a run.

use super::{Code, Data, RAX, RCX, RDX};
use core::mem::offset_of;
use protocol::control::ReadMsr;
use protocol::limits::MAX_MSRS;

impl Code<'_> {
    /// Reads model-specific registers into column `column` of [`Data::msrs`].
    pub(super) fn read_msrs(&mut self, msrs: &[ReadMsr], column: usize) {
        if msrs.is_empty() {
            return;
        }
        let kept = [
            (RAX, offset_of!(Data, rax)),
            (RCX, offset_of!(Data, rcx)),
            (RDX, offset_of!(Data, rdx)),
        ];
        for (register, offset) in kept {
            self.store(register, offset);
        }
        for (index, msr) in msrs.iter().take(MAX_MSRS).enumerate() {
            let offset = offset_of!(Data, msrs) + 16 * index + 8 * column;
            // mov ecx, imm32; rdmsr
            self.put(&[0xb8 | RCX]);
            self.put(&msr.number.to_le_bytes());
            self.put(&[0x0f, 0x32]);
            self.store_half(RAX, offset);
            self.store_half(RDX, offset + 4);
        }
        for (register, offset) in kept {
            self.load(register, offset);
        }
    }
}
