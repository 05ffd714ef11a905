//! Model-specific registers that are read before and after a run.

use super::{Code, Data, RAX, RCX, RDX};
use core::mem::offset_of;
use protocol::job::control::ReadMsr;
use protocol::job::limits::MAX_MSRS;

impl Code<'_> {
    /// Reads model-specific registers into column `column` of [`Data::msrs`].
    pub(super) fn read_msrs(&mut self, msrs: &[ReadMsr], column: usize) {
        if msrs.is_empty() {
            return;
        }
        self.kept(|code| {
            for (index, msr) in msrs.iter().take(MAX_MSRS).enumerate() {
                let offset = offset_of!(Data, msrs) + 16 * index + 8 * column;
                // mov ecx, imm32; rdmsr
                code.put(&[0xb8 | RCX]);
                code.put(&msr.number.to_le_bytes());
                code.put(&[0x0f, 0x32]);
                code.store_half(RAX, offset);
                code.store_half(RDX, offset + 4);
            }
        });
    }
}
