//! Copying memory: the function that the compiler calls where a copy is not written out.
//!
//! What is copied between two items is mostly a name, a number or a member of a record. compiler_builtins copies such pieces by
//! `rep movsb`, a byte for each iteration and with a start of some 30 cycles on most processors (Intel optimization
//! manual 3.7.6); here pieces of up to 32 bytes are two or four loads and as many stores, which may overlap.

use core::arch::naked_asm;

/// `memcpy` of the C standard: copies `bytes` bytes, and returns `to`. On the bare machine it goes by that name, in place of
/// the one of compiler_builtins, which is weak.
///
/// # Safety
/// Both are memory of so many bytes, which do not overlap.
#[cfg_attr(target_os = "none", unsafe(export_name = "memcpy"))]
#[unsafe(naked)]
pub unsafe extern "sysv64" fn copy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "cmp rdx, 16",
        "ja 3f",
        "cmp edx, 8",
        "jb 2f",
        // 8 to 16.
        "mov rcx, [rsi]",
        "mov r8, [rsi + rdx - 8]",
        "mov [rdi], rcx",
        "mov [rdi + rdx - 8], r8",
        "ret",
        "2: cmp edx, 4",
        "jb 2f",
        // 4 to 7.
        "mov ecx, [rsi]",
        "mov r8d, [rsi + rdx - 4]",
        "mov [rdi], ecx",
        "mov [rdi + rdx - 4], r8d",
        "ret",
        "2: test edx, edx",
        "je 2f",
        // 1 to 3: the first, the last, and that in the middle.
        "movzx ecx, byte ptr [rsi]",
        "movzx r8d, byte ptr [rsi + rdx - 1]",
        "mov [rdi], cl",
        "mov [rdi + rdx - 1], r8b",
        "shr edx, 1",
        "movzx ecx, byte ptr [rsi + rdx]",
        "mov [rdi + rdx], cl",
        "2: ret",
        "3: cmp rdx, 32",
        "ja 4f",
        // 17 to 32.
        "mov rcx, [rsi]",
        "mov r8, [rsi + 8]",
        "mov r9, [rsi + rdx - 16]",
        "mov r10, [rsi + rdx - 8]",
        "mov [rdi], rcx",
        "mov [rdi + 8], r8",
        "mov [rdi + rdx - 16], r9",
        "mov [rdi + rdx - 8], r10",
        "ret",
        // The last eight bytes, whether or not they are part of the words before them. The direction flag is clear (System V
        // ABI 3.2.1).
        "4: mov r8, [rsi + rdx - 8]",
        "lea r9, [rdi + rdx - 8]",
        "mov rcx, rdx",
        "shr rcx, 3",
        "rep movsq",
        "mov [r9], r8",
        "ret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_beside_it() {
        let from: Vec<u8> = (0..300_u16).map(|index| (index * 7 + 1) as u8).collect();
        for bytes in 0..280 {
            for offset in 0..9 {
                let mut to = [0xee_u8; 300];
                // SAFETY: both have as many bytes after the offset.
                let place =
                    unsafe { copy(to.as_mut_ptr().add(offset), from.as_ptr().add(3), bytes) };
                assert_eq!(place, to.as_mut_ptr().wrapping_add(offset));
                let mut expected = [0xee_u8; 300];
                expected[offset..offset + bytes].copy_from_slice(&from[3..3 + bytes]);
                assert_eq!(to, expected, "{bytes} {offset}");
            }
        }
    }
}
