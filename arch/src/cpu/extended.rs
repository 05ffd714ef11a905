//! The state beyond the general registers: x87, SSE, AVX and so on. The firmware never uses it, so it
//! belongs to the snippet, which finds it in its initial configuration.

use core::arch::asm;

/// An XSAVE area whose header says that every component has its initial configuration (SDM vol. 1, 13.6).
/// The legacy part still holds MXCSR at offset 24, which XRSTOR loads when SSE or AVX is requested.
#[repr(C, align(64))]
struct InitialState([u8; 576]);

static INITIAL: InitialState = {
    let mut bytes = [0; 576];
    // MXCSR after reset: all exceptions masked (SDM vol. 1, 10.2.3).
    bytes[24] = 0x80;
    bytes[25] = 0x1f;
    // x87 control word after FNINIT, for FXRSTOR.
    bytes[0] = 0x7f;
    bytes[1] = 0x03;
    InitialState(bytes)
};

/// Puts all extended state into its initial configuration. `components` as returned by
/// [`super::features::enable`].
///
/// # Safety
/// Ring 0 after `enable`; the firmware's own code must not hold values in these registers.
pub unsafe fn reset(components: u64) {
    // SAFETY: the area is 64-byte aligned and its XSAVE header valid; FXRSTOR needs 512 of its bytes.
    unsafe {
        if components == 0 {
            asm!("fninit", "fxrstor64 [{}]", in(reg) &raw const INITIAL, options(nostack));
        } else {
            asm!(
                "xrstor64 [{}]",
                in(reg) &raw const INITIAL, in("eax") components as u32, in("edx") (components >> 32) as u32,
                options(nostack),
            );
        }
    }
}
