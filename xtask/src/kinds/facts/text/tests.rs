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
fn d1_the_first_instruction_cache_is_neither_data_of_its_level_nor_code_of_the_next() {
    // 48 KiB of data in 12 ways, a second level for code, 32 KiB of code in 8 ways.
    let answers = [
        [4, 0, 0x0000_0021, 0x02c0_003f, 0x3f, 0],
        [4, 1, 0x0000_0042, 0x00c0_003f, 0x3ff, 0],
        [4, 2, 0x0000_0022, 0x01c0_003f, 0x3f, 0],
    ];
    let says = Says::of(&answers);
    let of = |cache: Option<super::told::Cache>| cache.map(|cache| (cache.bytes, cache.ways));
    assert_eq!(of(says.cache(1)), Some((48 << 10, 12)));
    assert_eq!(of(says.code()), Some((32 << 10, 8)));
}

/// Fields that the answers above have at their least: partitions, ids that share, sets of one way.
#[test]
fn d1_each_field_of_cpuids_answers_is_read() {
    let answers = [
        // Two processors, 8 ways, 2 partitions of 64 bytes, 64 sets.
        [4, 0, 1 << 14 | 1 << 5 | 1, 7 << 22 | 1 << 12 | 63, 63, 0],
        // 4 ways of 16 sets that are one set of 64.
        [0x18, 1, 0, 4 << 16 | 1, 16, 1 << 8 | 1 << 5 | 1],
    ];
    let says = Says::of(&answers);
    let cache = says.cache(1).unwrap();
    assert_eq!((cache.bytes, cache.ways, cache.shared()), (64 << 10, 8, 2));
    assert_eq!(cache.to_string(), "64 KiB, 8 ways, for up to 2 processors");
    assert_eq!((says.line(), says.tlb(1, 4096)), (Some(64), Some((64, 64))));
    // What AMD has not has no bytes, no entries, or no associativity.
    let first = [0x8000_0005, 0, 0, 0, 0x0000_0040, 0];
    let second = |half: u32| [0x8000_0006, 0, 0, half << 16, 0, 0];
    let answers = [first, second(0x4000)];
    let says = Says::of(&answers);
    assert_eq!((says.cache(1).is_none(), says.line()), (true, None));
    assert_eq!((says.tlb(1, 4096), says.tlb(2, 4096)), (None, None));
    let answers = [[0x8000_0005, 0, 0, 0, 0x2008_0140, 0], second(0x0200)];
    let says = Says::of(&answers);
    assert_eq!((says.cache(2).is_none(), says.line(), says.tlb(2, 4096)), (true, Some(64), None));
}

#[test]
fn d1_sizes_are_told_in_the_greatest_unit_that_is_whole() {
    let sizes = [0, 900, 1 << 10, 1536, 32 << 10, 1 << 20, (1 << 20) + 1024, 12 << 20];
    let told =
        ["0 bytes", "900 bytes", "1 KiB", "1.5 KiB", "32 KiB", "1 MiB", "1025 KiB", "12 MiB"];
    assert_eq!(sizes.map(size), told);
}

#[test]
fn d1_a_contradiction_is_marked() {
    assert_eq!(marked(Some(6), Some(8), "8 ways".into()), "8 ways (contradicts)");
    assert_eq!(marked(Some(8), Some(8), "8 ways".into()), "8 ways");
    // What was not measured contradicts nothing.
    assert_eq!(marked(None, Some(8), "8 ways".into()), "8 ways");
}
