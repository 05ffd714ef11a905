//! Machine checks: what the processor's banks say of one (SDM vol. 3, 17.3.1 and 17.3.2; AMD APM vol. 2, 9.3).

use crate::msr::{self, Absent, Msr};
use alloc::format;
use alloc::string::String;

/// IA32_MCG_CAP: bits 7:0 are the number of banks.
const CAPABILITIES: Msr = Msr(0x179);
/// IA32_MCG_STATUS.
const STATUS: Msr = Msr(0x17a);
/// IA32_MC0_STATUS; each bank has four registers.
const BANK_STATUS: u32 = 0x401;
/// Bit 2 of [`STATUS`]: a machine check is in progress. Another one before it is cleared shuts the processor down.
const IN_PROGRESS: u64 = 1 << 2;
/// Bit 63 of a bank's status: it holds an error.
const VALID: u64 = 1 << 63;
/// Banks that Intel's and AMD's processors have at most.
const MAX_BANKS: u64 = 64;

/// Whether an exception of vector 18 is one, and not `int 18`.
#[must_use]
pub fn is_in_progress() -> bool {
    // SAFETY: guarded; every processor with CR4.MCE has the register, and reading it has no effect.
    unsafe { msr::try_read(STATUS) }.is_ok_and(|status| status & IN_PROGRESS != 0)
}

/// What the registers say, as text: the global status, and that of each bank with an error.
#[must_use]
pub fn said() -> String {
    // SAFETY: as above.
    text(|register| unsafe { msr::try_read(register) })
}

fn text(mut read: impl FnMut(Msr) -> Result<u64, Absent>) -> String {
    let Ok(status) = read(STATUS) else { return "no IA32_MCG_STATUS".into() };
    let mut text = format!("IA32_MCG_STATUS {status:#x}");
    let banks = read(CAPABILITIES).map_or(0, |value| (value & 0xff).min(MAX_BANKS));
    for bank in 0..banks as u32 {
        if let Ok(status) = read(Msr(BANK_STATUS + 4 * bank))
            && status & VALID != 0
        {
            text += &format!(", bank {bank} {status:#x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_with_an_error_are_named() {
        let with = |banks: u64| {
            text(move |register| match register.0 {
                0x179 => Ok(banks),
                0x17a => Ok(5),
                0x401 | 0x409 => Ok(0xbe00_0000_0080_0400),
                0x405 => Ok(0x3e00_0000_0080_0400),
                _ => Err(Absent),
            })
        };
        assert_eq!(
            with(0x1c09),
            "IA32_MCG_STATUS 0x5, bank 0 0xbe00000000800400, bank 2 0xbe00000000800400"
        );
        assert_eq!(with(0x1c02), "IA32_MCG_STATUS 0x5, bank 0 0xbe00000000800400");
        assert_eq!(text(|_| Err(Absent)), "no IA32_MCG_STATUS");
    }
}
