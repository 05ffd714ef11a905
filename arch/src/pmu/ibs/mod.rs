//! AMD's instruction-based sampling: the processor tags one operation, or one fetch, and states what became of it.
//!
//! After so many cycles or operations the next operation is tagged. When it retires, the unit stops, its registers say of
//! which instruction it is and what it did, and an interrupt comes through an entry of the extended local vector table. The
//! registers are AMD's APM vol. 2, 13.3, and the PPRs; bits of Zen 4 and later in Linux, `arch/x86/include/asm/amd/ibs.h`.

mod period;
mod registers;

pub use period::{Period, PeriodError};
pub(crate) use registers::OP_DATA_2;
pub use registers::{Features, LvtOffset, OpData, OpData3, Unit};
