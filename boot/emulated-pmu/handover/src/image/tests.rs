use super::*;
use proptest::prelude::*;

/// A position-independent file of one segment: code, a pointer to be relocated, and 100 bytes that are not
/// in the file.
fn file() -> Vec<u8> {
    let mut file = vec![0; 0x400];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    // Elf64_Ehdr: 64 bit, little endian; DYN, x86-64; entry 0x200; two program headers at 64.
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[3, 0, 62, 0, 1, 0, 0, 0]);
    put(24, &0x200u64.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 2, 0]);
    let mut header = |at: usize, kind: u32, offset: u64, bytes: u64, memory: u64| {
        put(at, &kind.to_le_bytes());
        for (index, value) in [(1, offset), (2, offset), (4, bytes), (5, memory)] {
            put(at + 8 * index, &value.to_le_bytes());
        }
    };
    header(64, 1, 0, 0x400, 0x464);
    header(64 + 56, 2, 0x300, 48, 48);
    // The dynamic table: DT_RELA 0x380, DT_RELASZ 24, DT_NULL.
    for (index, value) in [7u64, 0x380, 8, 24, 0, 0].into_iter().enumerate() {
        put(0x300 + 8 * index, &value.to_le_bytes());
    }
    // At 0x250: base + 0x200.
    for (index, value) in [0x250u64, 8, 0x200].into_iter().enumerate() {
        put(0x380 + 8 * index, &value.to_le_bytes());
    }
    file
}

#[test]
fn a_file_is_loaded_cleared_and_relocated() {
    let file = file();
    assert_eq!(bytes_needed(&file), Ok(0x464));
    let mut memory = vec![0xaa; 0x1000];
    assert_eq!(load(&file, &mut memory, 0x1234_0000), Ok(0x1234_0200));
    assert_eq!(memory[0x250..0x258], 0x1234_0200u64.to_le_bytes());
    assert!(memory[0x400..].iter().all(|&byte| byte == 0));
}

#[test]
fn too_little_memory_and_other_relocations_are_refused() {
    let mut file = file();
    assert_eq!(load(&file, &mut [0; 0x463], 0), Err(Refusal::Image));
    // R_X86_64_GLOB_DAT: needs a symbol.
    file[0x388] = 6;
    assert_eq!(load(&file, &mut [0; 0x1000], 0), Err(Refusal::Image));
    assert_eq!(bytes_needed(b"no ELF file"), Err(Refusal::Image));
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0usize..0x400, to: u8, cut in 0usize..0x400) {
        let mut file = file();
        file[at] = to;
        let mut memory = vec![0; 0x1000];
        let _ = bytes_needed(&file);
        let _ = load(&file, &mut memory, 0x20_0000);
        let _ = load(&file[..cut], &mut memory, 0x20_0000);
    }
}
