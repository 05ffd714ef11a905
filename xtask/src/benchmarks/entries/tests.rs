use super::*;
use proptest::prelude::*;

/// Where the made program lies.
const AT: u64 = 0x1000_0000;
/// Where its texts lie, after its code.
const TEXT: u64 = AT + 16;

/// An entry for a name at `name` with these words.
fn entry(name: u64, bytes: u64, parameter: u64, flags: u64) -> [u64; 8] {
    [MAGIC, name, bytes, parameter, AT, 0, AT + 1, flags]
}

/// A program for x86-64 of one segment, which holds some code, the text `texts`, and then the section.
fn program(texts: &[u8], section: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] = b"\0barecount\0names\0symbols\0run\0after\0";
    let mut contents = vec![0xc3; 16];
    contents.extend(texts);
    let (start, section_at) = (64 + 56, contents.len() as u64);
    contents.extend(section);
    let names_at = start + contents.len() as u64;
    let symbols_at = names_at + NAMES.len() as u64;
    let headers_at = symbols_at + 3 * 24;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let words = |file: &mut Vec<u8>, words: &[(u64, usize)]| {
        for (value, bytes) in words {
            file.extend(&value.to_le_bytes()[..*bytes]);
        }
    };
    // The header: System V ABI, chapter 4; executable, x86-64, one program header, four section headers.
    words(&mut file, &[(2, 2), (62, 2), (1, 4), (AT, 8), (64, 8), (headers_at, 8), (0, 4)]);
    words(&mut file, &[(64, 2), (56, 2), (1, 2), (64, 2), (4, 2), (2, 2)]);
    let size = contents.len() as u64;
    words(&mut file, &[(1, 4), (7, 4), (start, 8), (AT, 8), (AT, 8), (size, 8), (size, 8), (1, 8)]);
    file.extend(contents);
    file.extend(NAMES);
    words(&mut file, &[(0, 8); 3]);
    // Functions of the section in which all lies.
    for (name, address) in [(25, AT), (29, AT + 1)] {
        words(&mut file, &[(name, 4), (0x12, 1), (0, 1), (1, 2), (address, 8), (1, 8)]);
    }
    words(&mut file, &[(0, 8); 8]);
    let (at, offset, size) = (AT + section_at, start + section_at, section.len() as u64);
    let ours = [(1, 4), (1, 4), (3, 8), (at, 8), (offset, 8), (size, 8), (0, 8), (8, 8), (0, 8)];
    words(&mut file, &ours);
    let size = NAMES.len() as u64;
    let names = [(11, 4), (3, 4), (0, 8), (0, 8), (names_at, 8), (size, 8), (0, 8), (1, 8), (0, 8)];
    words(&mut file, &names);
    let symbols = [
        (17, 4),
        (2, 4),
        (0, 8),
        (0, 8),
        (symbols_at, 8),
        (72, 8),
        (2, 4),
        (1, 4),
        (8, 8),
        (24, 8),
    ];
    words(&mut file, &symbols);
    file
}

fn of(texts: &str, entries: &[[u64; 8]]) -> Vec<u8> {
    let bytes: Vec<u8> = entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    program(texts.as_bytes(), &bytes)
}

#[test]
fn entries_are_read_by_name_and_parameter() {
    let entries = [entry(TEXT, 3, 20, 1), entry(TEXT, 3, 3, 1), entry(TEXT + 3, 3, 0, 0)];
    let all = read(&of("sumadd", &entries), "p").unwrap();
    let names: Vec<&str> = all.iter().map(|benchmark| &*benchmark.name).collect();
    assert_eq!(names, ["add", "sum/3", "sum/20"]);
    assert_eq!(all[1].parameter, 3);
    assert_eq!(all[0].function, "run");
    assert_eq!(all[0].around, [None, Some("after".to_string())]);
    let named = |text| filter(all.clone(), Some(text), |one| &one.name).map(|all| all.len());
    assert_eq!(named("sum").unwrap(), 2);
    let none = named("zzz").unwrap_err().to_string();
    assert!(none.contains("zzz") && none.contains("add, sum/3, sum/20"), "{none}");
}

/// Functions of two files may have one name: `static void setup`.
#[test]
fn a_function_whose_name_another_has_is_named_with_its_address() {
    let mut bytes = of("sum", &[entry(TEXT, 3, 0, 0)]);
    // The symbol `after` is named `run` as well.
    let symbol = [29, 0, 0, 0, 0x12];
    let at = bytes.windows(5).position(|found| found == symbol).unwrap();
    bytes[at] = 25;
    let all = read(&bytes, "p").unwrap();
    assert_eq!(all[0].function, format!("run@{AT:#x}"));
    assert_eq!(all[0].around, [None, Some(format!("run@{:#x}", AT + 1))]);
}

#[test]
fn what_is_no_entry_is_refused_by_its_place_and_reason() {
    let good = entry(TEXT, 3, 0, 0);
    let changed = |at: usize, value: u64| {
        let mut entry = good;
        entry[at] = value;
        of("sum", &[good, entry])
    };
    for (bytes, expected) in [
        (b"no program".to_vec(), "not a readable program"),
        (of("sum", &[]), "registers no benchmark"),
        (program(b"sum", &[1; 63]), "not a multiple of 64"),
        (changed(0, 7), "entry 1 of the section `barecount` begins with 0x7"),
        (changed(1, 5), "has its name at 0x5"),
        (changed(2, 0), "a name of 0 bytes"),
        (changed(2, u64::MAX), "a name of 18446744073709551615 bytes"),
        (changed(4, 0x40), "(sum) names a function at 0x40"),
        (changed(5, 0x41), "(sum) names a function at 0x41"),
        (of("sum", &[good, good]), "two benchmarks are called `sum`"),
        (of("\u{e9}xy", &[entry(TEXT + 1, 3, 0, 0)]), "not UTF-8"),
    ] {
        let error = read(&bytes, "p").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Of a program that does not use the crate.
    let mut other = of("sum", &[good]);
    let at = other.windows(9).position(|bytes| bytes == b"barecount").unwrap();
    other[at] = b'x';
    assert!(matches!(read(&other, "p"), Err(BenchmarkError::Nothing(_))));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(at: prop::sample::Index, value: u8, cut: prop::sample::Index) {
        let mut bytes = of("sum", &[entry(TEXT, 3, 20, 1), entry(TEXT, 3, 3, 1)]);
        let at = at.index(bytes.len());
        bytes[at] = value;
        let _ = read(&bytes, "p");
        let _ = read(&bytes[..cut.index(bytes.len())], "p");
    }
}
