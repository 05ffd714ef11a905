use super::told::Says;
use super::*;

#[test]
fn d1_what_cpuid_says_is_read() {
    // Skylake: leaf 4 of a Core i7-6700, and its leaf 0x18's form as of Tiger Lake.
    let answers = [
        [4, 0, 0x1c00_4121, 0x01c0_003f, 0x3f, 0],
        [4, 1, 0x1c00_4122, 0x01c0_003f, 0x3f, 0],
        [4, 2, 0x1c00_4143, 0x00c0_003f, 0x3ff, 0],
        [4, 3, 0x1c03_c163, 0x03c0_003f, 0x1fff, 6],
        [0x18, 1, 0, 0x0004_0001, 0x10, 0x0000_4021],
        [0x18, 2, 0, 0x0008_0007, 0x100, 0x0000_4043],
    ];
    let says = Says::of(&answers);
    let cache = |level| says.cache(level).map(|cache| (cache.bytes, cache.ways));
    assert_eq!(cache(1), Some((32 << 10, 8)));
    assert_eq!(cache(2), Some((256 << 10, 4)));
    assert_eq!(cache(3), Some((8 << 20, 16)));
    assert_eq!((cache(4), says.line()), (None, Some(64)));
    let code = says.code().map(|code| (code.bytes, code.ways, code.line));
    assert_eq!(code, Some((32 << 10, 8, 64)));
    assert_eq!(says.tlb(1, 4096), Some((64, 4)));
    assert_eq!(says.tlb(2, 2 << 20), Some((2048, 8)));
    assert_eq!(says.tlb(1, 2 << 20), None);
    // Zen 2: 64 entries of each size, fully associative; 2048 of the second level, 8 and 4 ways.
    let amd = [
        [0x8000_0005, 0, 0xff40_ff40, 0xff40_ff40, 0x2008_0140, 0x2008_0140],
        [0x8000_0006, 0, 0x4800_6400, 0x6800_4400, 0x0200_6140, 0x0100_9140],
    ];
    let says = Says::of(&amd);
    assert_eq!(says.cache(1).map(|cache| (cache.bytes, cache.ways)), Some((32 << 10, 8)));
    assert_eq!(says.code().map(|code| (code.bytes, code.ways)), Some((32 << 10, 8)));
    assert_eq!(says.tlb(1, 4096), Some((64, 64)));
    assert_eq!(says.tlb(2, 4096), Some((2048, 8)));
}

#[test]
fn d1_a_contradiction_is_marked() {
    assert_eq!(marked(Some(6), Some(8), "8 ways".into()), "8 ways (contradicts)");
    assert_eq!(marked(Some(8), Some(8), "8 ways".into()), "8 ways");
    // What was not measured contradicts nothing.
    assert_eq!(marked(None, Some(8), "8 ways".into()), "8 ways");
}
