//! Loops that move data through registers, in order of addresses.

use core::arch::asm;
use facts::bandwidth::TURN;
use protocol::record::Moving;

/// What each turn has: the instructions at each offset. A copy has a pointer more.
macro_rules! turns {
    ($offsets:literal, $moves:literal, $area:expr) => {
        turns!(@ $offsets, $moves, "", "", $area)
    };
    ($offsets:literal, $moves:literal, copy $area:expr) => {
        turns!(@ $offsets, $moves, "mov rdi, {to}", "add rdi, 512", $area)
    };
    (@ $offsets:literal, $moves:literal, $second:literal, $advance:literal, $area:expr) => {{
        let Area { from, to, turns, passes } = $area;
        asm!(
            "21:",
            "mov rsi, {from}",
            $second,
            "mov rcx, {turns}",
            "22:",
            concat!(".irp at, ", $offsets),
            $moves,
            ".endr",
            "add rsi, 512",
            $advance,
            "dec rcx",
            "jnz 22b",
            "dec {passes}",
            "jnz 21b",
            // Until all is written (SDM vol. 2, MFENCE).
            "mfence",
            "/* {to} */",
            from = in(reg) from,
            to = in(reg) to,
            turns = in(reg) turns,
            passes = inout(reg) passes => _,
            out("rax") _,
            out("rcx") _,
            out("rsi") _,
            out("rdi") _,
            options(nostack),
        );
    }};
}

/// Where data are moved.
#[derive(Clone, Copy)]
struct Area {
    /// What is loaded, or stored if nothing is loaded.
    from: u64,
    /// What a copy stores.
    to: u64,
    /// Turns of a pass.
    turns: u64,
    passes: u64,
}

const _: () = assert!(TURN == 512);

/// The four ways of one width.
macro_rules! ways {
    ($by:expr, $area:expr, $offsets:literal, $read:literal, $write:literal, $copy:literal, $stream:literal) => {
        match $by {
            Moving::Read => turns!($offsets, $read, $area),
            Moving::Write => turns!($offsets, $write, $area),
            Moving::Copy => turns!($offsets, $copy, copy $area),
            Moving::NonTemporal => turns!($offsets, $stream, $area),
        }
    };
}

/// Moves the data of an area of so many bytes, so often; of a copy its first half into its second. Through registers of `width` bytes: 64,
/// 32, 16, or 8.
///
/// # Safety
/// The area is mapped, at a multiple of 64, and nobody needs its content; `bytes` is a multiple of twice [`TURN`], and neither it nor
/// `passes` is 0. Registers of that width can be used, and vector registers hold nothing.
pub unsafe fn run(by: Moving, width: u32, at: u64, bytes: u64, passes: u32) {
    let part = if by == Moving::Copy { bytes / 2 } else { bytes };
    let area = Area { from: at, to: at + bytes / 2, turns: part / TURN, passes: passes.into() };
    // SAFETY: the caller's promises; the loops stay in the area. They change flags, the registers that are named and a vector register,
    // which the kernel's own code does not use.
    unsafe {
        match width {
            64 => ways!(
                by,
                area,
                "0, 64, 128, 192, 256, 320, 384, 448",
                "vmovdqa64 zmm0, [rsi + \\at]",
                "vmovdqa64 [rsi + \\at], zmm0",
                "vmovdqa64 zmm0, [rsi + \\at]\nvmovdqa64 [rdi + \\at], zmm0",
                "vmovntdq [rsi + \\at], zmm0"
            ),
            32 => ways!(
                by,
                area,
                "0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 480",
                "vmovdqa ymm0, [rsi + \\at]",
                "vmovdqa [rsi + \\at], ymm0",
                "vmovdqa ymm0, [rsi + \\at]\nvmovdqa [rdi + \\at], ymm0",
                "vmovntdq [rsi + \\at], ymm0"
            ),
            16 => ways!(
                by,
                area,
                "0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, \
                 368, 384, 400, 416, 432, 448, 464, 480, 496",
                "movdqa xmm0, [rsi + \\at]",
                "movdqa [rsi + \\at], xmm0",
                "movdqa xmm0, [rsi + \\at]\nmovdqa [rdi + \\at], xmm0",
                "movntdq [rsi + \\at], xmm0"
            ),
            _ => ways!(
                by,
                area,
                "0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, \
                 192, 200, 208, 216, 224, 232, 240, 248, 256, 264, 272, 280, 288, 296, 304, 312, 320, 328, 336, 344, 352, \
                 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440, 448, 456, 464, 472, 480, 488, 496, 504",
                "mov rax, [rsi + \\at]",
                "mov [rsi + \\at], rax",
                "mov rax, [rsi + \\at]\nmov [rdi + \\at], rax",
                "movnti [rsi + \\at], rax"
            ),
        }
        if width > 16 {
            // Code of SSE would have transitions with dirty upper halves (Intel's optimization manual, "Mixing AVX code with SSE code").
            asm!("vzeroupper", options(nomem, nostack));
        }
    }
}
