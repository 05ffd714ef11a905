//! What is put in comes out, and damage is named.

use super::*;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

/// Like a kernel, some of it repeats and some does not.
fn kernel() -> Vec<u8> {
    let mut state = 1_u32;
    let noise = core::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    let mut kernel = Vec::from(ELF);
    kernel.extend(noise.take(5_000).flat_map(|byte| [byte, 0, byte & 7]));
    kernel
}

fn unpacked(file: &[u8]) -> Result<Vec<u8>, KernelError> {
    match KernelFile::parse(file)? {
        KernelFile::Plain(file) => Ok(file.to_vec()),
        KernelFile::Compressed(compressed) => {
            let mut to = vec![0; compressed.bytes()];
            compressed.unpack(&mut to).map(|()| to)
        }
    }
}

#[test]
fn x3_a_compressed_kernel_unpacks_to_what_it_was() {
    let kernel = kernel();
    let file = compress(&kernel).unwrap();
    assert!(file.len() < kernel.len() * 3 / 4, "{} of {}", file.len(), kernel.len());
    assert_eq!(unpacked(&file), Ok(kernel.clone()));
    // To the beginning of a larger buffer.
    let KernelFile::Compressed(compressed) = KernelFile::parse(&file).unwrap() else { panic!() };
    let mut to = vec![0xaa; kernel.len() + 100];
    compressed.unpack(&mut to).unwrap();
    assert!(to.starts_with(&kernel));
    assert_eq!(to[kernel.len()..], [0xaa; 100]);
}

#[test]
fn x3_a_plain_kernel_starts_as_it_is() {
    let kernel = kernel();
    assert_eq!(KernelFile::parse(&kernel), Ok(KernelFile::Plain(&kernel)));
}

#[test]
fn x3_a_damaged_kernel_is_named_with_what_is_wrong_and_what_to_do() {
    let file = compress(&kernel()).unwrap();
    let changed = |at: usize, by: u8| {
        let mut file = file.clone();
        file[at] ^= by;
        unpacked(&file).unwrap_err()
    };
    let (bytes, stream) = (kernel().len(), file.len() - HEADER_BYTES);
    for (error, what) in [
        (unpacked(b""), "it has only 0 bytes"),
        (unpacked(&file[..19]), "it has only 19 bytes"),
        (Err(changed(0, 1)), "it begins with 0x43434b45524e454c"),
        (Err(changed(7, 1)), "it begins with 0x42434b45524e454d"),
        (Err(changed(11, 0x80)), "bytes of kernel"),
        (unpacked(&[&MAGIC[..], &[0; 12]].concat()), "it states 0 bytes of kernel"),
        (unpacked(&file[..file.len() - 1]), "compressed bytes, not"),
    ] {
        let text = error.unwrap_err().to_string();
        assert!(text.contains(what) && text.contains("Write the image again"), "{text}");
    }
    assert!(matches!(changed(16, 1), KernelError::Length { found, .. } if found == stream));
    assert!(
        matches!(changed(12, 1), KernelError::Checksum { stated, found } if stated == found ^ 1)
    );
    // A reserved kind of block; one byte less of room than comes out.
    assert_eq!(
        changed(HEADER_BYTES, 0b110 ^ file[HEADER_BYTES] & 0b110),
        KernelError::Stream { status: -1 }
    );
    let mut less = file.clone();
    less[8..12].copy_from_slice(&(bytes as u32 - 1).to_le_bytes());
    assert_eq!(unpacked(&less), Err(KernelError::Stream { status: 2 }));
    less[8..12].copy_from_slice(&(bytes as u32 + 1).to_le_bytes());
    assert_eq!(unpacked(&less), Err(KernelError::Unpacked { stated: bytes + 1, found: bytes }));
    // A file that was cut, with a header that knows of it.
    let mut cut = file[..file.len() / 2].to_vec();
    let length = (cut.len() - HEADER_BYTES) as u32;
    cut[16..20].copy_from_slice(&length.to_le_bytes());
    assert_eq!(unpacked(&cut), Err(KernelError::Stream { status: -4 }));
}

proptest! {
    /// Whichever bit is wrong: nothing else comes out, and nothing panics. A last byte has bits that say nothing.
    #[test]
    fn x3_no_damage_passes(at: prop::sample::Index, bit in 0..8_u8) {
        let mut file = compress(&kernel()).unwrap();
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        match unpacked(&file) {
            Ok(same) => prop_assert!(same == kernel() && at == file.len() - 1, "{}", at),
            Err(error) => prop_assert!(error.to_string().contains("damaged")),
        }
    }

    #[test]
    fn x3_any_bytes_give_an_error(mut bytes: Vec<u8>, headed: bool) {
        if headed && bytes.len() >= HEADER_BYTES {
            bytes[..8].copy_from_slice(&MAGIC);
            bytes[8..12].copy_from_slice(&100_u32.to_le_bytes());
            let length = (bytes.len() - HEADER_BYTES) as u32;
            bytes[16..20].copy_from_slice(&length.to_le_bytes());
        }
        prop_assert!(bytes.starts_with(&ELF) || unpacked(&bytes).is_err());
    }
}
