use super::*;
use crate::job::assemble;
use crate::setup::Toolchain;
use std::fs;
use std::process::Command;

/// An object file of this assembly.
fn object(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, assemble::object(text).unwrap()).unwrap();
    path
}

fn wanted(files: &[&Path], functions: &[&str]) -> Wanted {
    Wanted {
        files: files.iter().map(|file| file.to_path_buf()).collect(),
        functions: functions.iter().map(|name| (*name).to_string()).collect(),
        sections: Vec::new(),
    }
}

fn refusal(files: &[&Path], function: &str) -> String {
    link(&wanted(files, &[function])).unwrap_err().to_string()
}

/// `f` needs `g` and copies memory; what is next to them needs symbols that do not exist.
const CODE: &str = "
    .globl f, g, h, t, s, k, p, d, table
    f: call g; mov rdx, 1; call memcpy; ret
    g: mov rax, [rip + d]; ret
    h: call missing; ret
    t: mov rax, fs:[0]; ret
    k: mov rax, fs:[0x28]; ret
    v: mov rax, qword ptr [rip + thread@gottpoff]; ret
    .globl v
    s: jmp 2f
    2: syscall; ret
    p: lea rax, [rip + table]; jmp [rax + 8*rdi]
    local: ret
    .data
    .type d, @object
    d: .quad 7
    .size d, 8
    .type table, @object
    table: .quad f, h
    .size table, 16
    .section .init_array, \"aw\"
    .quad g
    .section .tbss, \"awT\", @nobits
    .type thread, @object
    thread: .zero 8
    .size thread, 8
    .text
";

#[test]
fn a_function_is_linked_with_what_it_needs_whatever_stands_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = object(folder.path(), "a.o", CODE);
    let linked = link(&wanted(&[&file], &["f", "g"])).unwrap();
    let program = protocol::program::Program::unpack(&linked.bytes).unwrap();
    let f = linked.functions["f"];
    let (code, bytes) = program.segments().find(|(one, _)| one.range().contains(&f)).unwrap();
    assert!(code.execute && !code.write && code.address >= protocol::program::LINKED_AT);
    // call rel32 to g
    let at = (f - code.address) as usize;
    let distance = i32::from_le_bytes(*bytes[at + 1..].first_chunk().unwrap());
    assert_eq!(
        (bytes[at], (f + 5).wrapping_add_signed(distance.into())),
        (0xe8, linked.functions["g"])
    );
    assert_eq!(linked.constructors, [linked.functions["g"]]);
    assert!(program.head.segments.iter().all(|one| !(one.write && one.execute)));
    // A second time nothing is made.
    let made = fs::metadata(&linked.path).unwrap().modified().unwrap();
    assert_eq!(link(&wanted(&[&file], &["f", "g"])).unwrap().bytes, linked.bytes);
    assert_eq!(fs::metadata(&linked.path).unwrap().modified().unwrap(), made);
}

/// As compilers leave it without -g: there are symbols, and nothing else has names.
#[test]
fn x7_symbols_without_debug_information_are_named_as_their_language_writes_them() {
    let names = [
        ("_ZN4demo4turnEj", "demo::turn(unsigned int)"),
        ("_RNvC4demo4turn", "demo::turn"),
        ("turn", "turn"),
    ];
    let one = |(name, _): &(&str, &str)| {
        format!(".globl {name}\n.type {name}, @function\n{name}: ret\n.size {name}, . - {name}\n")
    };
    let folder = tempfile::tempdir().unwrap();
    let file = object(folder.path(), "a.o", &names.iter().map(one).collect::<String>());
    let linked = link(&wanted(&[&file], &names.map(|(name, _)| name))).unwrap();
    let symbols = crate::symbols::Symbols::of(&linked.path);
    for (name, expected) in names {
        let frame = symbols.at(linked.functions[name]).unwrap();
        assert_eq!(frame.function.as_deref(), Some(expected));
    }
}

#[test]
fn what_a_function_reaches_and_cannot_have_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = object(folder.path(), "a.o", CODE);
    for (function, expected) in [
        ("h", "undefined: `missing`, which `h` uses"),
        ("p", "undefined: `missing`, which `h` uses"),
        ("t", "`t` uses thread-local storage; there are no threads"),
        ("k", "the stack protector's canary: -fno-stack-protector"),
        ("v", "`v` uses thread-local storage (`thread`)"),
        ("s", "`s` makes a system call (syscall at 0x1000"),
        ("d", "`d` is data, not a function"),
        ("local", "`local` is local to "),
        ("missin", "no function `missin` in "),
    ] {
        let text = refusal(&[&file], function);
        assert!(text.contains(expected), "{function}: {text}");
    }
    let one = object(folder.path(), "one.o", ".globl f; f: ret");
    let other = object(folder.path(), "other.o", ".globl f; f: nop; ret");
    let text = refusal(&[&one, &other], "f");
    assert!(text.starts_with("there are 2 symbols `f`"), "{text}");
    let text = refusal(&[&one], "ff");
    assert!(text.ends_with("; there is f"), "{text}");
}

/// Of an object, and of an executable that another linker call has made.
#[test]
fn an_indirect_function_is_refused_where_it_is_reached_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let text = ".globl f, g, m; f: call g; call m; ret; g: ret; .size g, . - g\n\
                .type m, @gnu_indirect_function; m: lea rax, [rip + g]; ret; .size m, . - m";
    let file = object(folder.path(), "a.o", text);
    let linked = |name: &str, options: &[&str]| {
        let to = folder.path().join(name);
        fs::rename(executable(folder.path(), &[&file], options), &to).unwrap();
        to
    };
    let fixed = linked("fixed", &["-static"]);
    // As every `-static-pie`: its C library has slots, and start-up code that would fill them.
    let independent = linked("independent", &["-pie", "--no-dynamic-linker"]);
    for file in [&file, &fixed, &independent] {
        let text = refusal(&[file], "f");
        assert!(text.starts_with("it reaches `m`, an indirect function (IFUNC)"), "{text}");
        link(&wanted(&[file], &["g"])).unwrap_or_else(|error| panic!("{error}"));
        assert!(refusal(&[file], "m").starts_with("`m` is an indirect function"));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let large = object(
        folder.path(),
        "large.o",
        ".globl f; f: lea rax, [rip + big]; ret\n.bss\nbig: .zero 0x80000000\n.text",
    );
    let error = link(&wanted(&[&large], &["f"])).unwrap_err();
    assert!(matches!(error, ProgramError::TooLarge { .. } | ProgramError::Overflow(_)), "{error}");
    let narrow = object(folder.path(), "narrow.o", ".globl f; f: mov al, offset f; ret");
    let error = link(&wanted(&[&narrow], &["f"])).unwrap_err();
    assert!(matches!(error, ProgramError::Overflow(_)), "{error}");
}

#[test]
fn what_is_no_object_is_told_by_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let good = fs::read(object(folder.path(), "a.o", ".globl f; f: ret")).unwrap();
    let patched = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let path = folder.path().join("x");
    for (bytes, expected) in [
        (b"hello".to_vec(), "neither an ELF file nor a static library"),
        (Vec::new(), "neither an ELF file nor a static library"),
        (b"BC\xc0\xde".to_vec(), "bitcode"),
        (patched(4, 1), "32-bit ELF"),
        (patched(5, 2), "big-endian"),
        (patched(18, 183), "AArch64"),
        (patched(18, 40), "ELF machine 40"),
        (patched(16, 4), "ELF file of type 4"),
        (good[..40].to_vec(), "ends within its header"),
    ] {
        fs::write(&path, bytes).unwrap();
        let text = refusal(&[&path], "f");
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let absent = folder.path().join("absent");
    assert!(refusal(&[&absent], "f").contains("it cannot be read"));
    // Cut anywhere, it is an error and never a panic.
    for index in 0..200 {
        fs::write(&path, &good[..good.len() * index / 200]).unwrap();
        link(&wanted(&[&path], &["f"])).unwrap_err();
    }
}

/// The bytes of the function `name`, as they are linked.
fn code_of<'a>(linked: &Linked, name: &str, file: &'a [u8], bytes: u64) -> &'a [u8] {
    use object::{Object, ObjectSegment};
    let at = linked.functions[name] - linked.bias;
    let file = object::File::parse(file).unwrap();
    let found = |one: object::Segment<'a, '_>| one.data_range(at, bytes).ok().flatten();
    file.segments().find_map(found).unwrap()
}

/// Symbol tables list local symbols first.
#[test]
fn a_local_function_or_variable_of_the_name_is_not_what_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let other =
        ".globl f\nf: call h; call [rip + k]; ret\nh: mov al, 1; ret\n.data\nk: .quad f\n.text";
    let one = object(folder.path(), "a.o", other);
    let two = object(folder.path(), "b.o", ".globl h, k\nh: mov al, 2; ret\nk: mov al, 3; ret");
    let linked = link(&wanted(&[&one, &two], &["f", "h", "k"])).unwrap();
    let file = fs::read(&linked.path).unwrap();
    for (name, code) in [("h", [0xb0, 2]), ("k", [0xb0, 3])] {
        assert_eq!(code_of(&linked, name, &file, 2), code, "{name}");
    }
}

#[test]
fn of_local_functions_of_one_name_the_address_says_which() {
    let folder = tempfile::tempdir().unwrap();
    let text = |value| format!(".globl f{value}\nf{value}: call h; ret\nh: mov al, {value}; ret");
    let one = object(folder.path(), "a.o", &format!(".globl f\nf: ret\n{}", text(1)));
    let two = object(folder.path(), "b.o", &text(2));
    for options in [&["-static"][..], &["-pie", "--no-dynamic-linker"]] {
        let program = executable(folder.path(), &[&one, &two], options);
        let said = refusal(&[&program], "h");
        let places = said.strip_prefix("there are 2 symbols `h`: ").expect("places");
        let places: Vec<&str> = places.split(", ").collect();
        let linked = link(&wanted(&[&program], &places)).unwrap();
        let file = fs::read(&linked.path).unwrap();
        let values: Vec<u8> = places.iter().map(|h| code_of(&linked, h, &file, 2)[1]).collect();
        assert_eq!(values, [1, 2], "{said}");
        assert!(refusal(&[&program], "h@0x77").starts_with("no function `h@0x77`"));
    }
}

/// A thin archive of these files: a header of 60 bytes for the names, and for each member.
fn thin(members: &[(&str, &Path)]) -> Vec<u8> {
    let header = |name: &str, size: u64| {
        format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
    };
    let mut names: String = members.iter().map(|(name, _)| format!("{name}/\n")).collect();
    let mut text = format!("!<thin>\n{}", header("//", names.len() as u64));
    let mut at = 0;
    let mut entries = String::new();
    for (name, file) in members {
        entries += &header(&format!("/{at}"), fs::metadata(file).unwrap().len());
        at += name.len() + 2;
    }
    if !names.len().is_multiple_of(2) {
        names.push('\n');
    }
    text += &names;
    (text + &entries).into_bytes()
}

#[test]
fn a_thin_archive_is_what_its_members_are() {
    let folder = tempfile::tempdir().unwrap();
    let sub = folder.path().join("sub");
    fs::create_dir(&sub).unwrap();
    let one = object(folder.path(), "a.o", ".globl f\nf: call g; ret");
    let code = |value| format!(".globl g\ng: mov al, {value}; ret");
    let member = object(&sub, "g.o", &code(1));
    let archive = folder.path().join("lib.a");
    fs::write(&archive, thin(&[("sub/g.o", &member)])).unwrap();
    for value in [1, 2] {
        // Same size: the archive is the same to the last byte.
        object(&sub, "g.o", &code(value));
        let linked = link(&wanted(&[&one, &archive], &["f", "g"])).unwrap();
        let file = fs::read(&linked.path).unwrap();
        assert_eq!(code_of(&linked, "g", &file, 2), [0xb0, value]);
        link(&wanted(&[&archive], &["g"])).unwrap();
    }
    fs::write(&member, b"BC\xc0\xde").unwrap();
    assert!(refusal(&[&archive], "g").contains("bitcode of LLVM"));
    fs::remove_file(&member).unwrap();
    let said = refusal(&[&archive], "g");
    assert!(said.contains("a thin archive, and its member sub/g.o cannot be read"), "{said}");
}

/// Links `objects` with these options of the linker's.
fn executable(folder: &Path, objects: &[&Path], options: &[&str]) -> PathBuf {
    let out = folder.join("out");
    let linker = Toolchain::find().unwrap().tools().join("rust-lld");
    let mut command = Command::new(linker);
    command.args(["-flavor", "gnu", "-e", "f", "-o"]).arg(&out).args(options).args(objects);
    assert!(command.status().unwrap().success());
    out
}

#[test]
fn executables_are_taken_as_they_are_and_moved_if_they_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let text = ".globl f, d; f: mov rax, [rip + d]; ret\n.data\nd: .quad f, d\n.text";
    let file = object(folder.path(), "a.o", text);
    for (options, at) in [
        (&["-static"][..], 0x20_0000),
        (&["-static", "--image-base=0x400000"], 0x40_0000),
        (&["-pie", "--no-dynamic-linker"], 0x1000_0000),
        (&["-pie", "--no-dynamic-linker", "--pack-dyn-relocs=relr"], 0x1000_0000),
    ] {
        let program = executable(folder.path(), &[&file], options);
        let linked = link(&wanted(&[&program], &["f"])).unwrap_or_else(|error| panic!("{error}"));
        let f = linked.functions["f"];
        assert!((at..at + 0x1_0000).contains(&f), "{options:?}: {f:#x}");
        // Whatever moved it, its data have its addresses.
        let held = f.to_le_bytes();
        assert!(linked.bytes.windows(8).any(|window| window == held), "{options:?}");
        assert!(refusal(&[&program, &file], "f").contains("already linked"));
    }
    let far = executable(folder.path(), &[&file], &["-static", "--image-base=0x80000000"]);
    assert!(matches!(link(&wanted(&[&far], &["f"])), Err(ProgramError::TooLarge { .. })));
    let shared = executable(folder.path(), &[&file], &["-pie", "--dynamic-linker=/lib/ld.so"]);
    assert!(refusal(&[&shared], "f").contains("linked dynamically"));
}

#[test]
fn segments_that_overlap_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = object(folder.path(), "a.o", ".globl f; f: ret\n.data\n.quad 1\n.text");
    let program = executable(folder.path(), &[&file], &["-static"]);
    let mut bytes = fs::read(&program).unwrap();
    // Program headers: e_phoff, e_phnum; p_type, p_vaddr.
    let word =
        |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let (headers, count) = (word(&bytes, 32), usize::from(bytes[56]));
    let loads: Vec<usize> =
        (0..count).map(|index| headers + 56 * index).filter(|&at| bytes[at] == 1).collect();
    let first = bytes[loads[0] + 16..][..8].to_vec();
    bytes[loads[1] + 16..][..8].copy_from_slice(&first);
    fs::write(&program, bytes).unwrap();
    let error = link(&wanted(&[&program], &["f"])).unwrap_err();
    assert!(matches!(error, ProgramError::Overlap { .. }), "{error}");
}

/// What the fuzzer begins with reaches the checks behind the file's format, and the reader of entries.
#[test]
fn the_fuzzers_seeds_are_a_program_with_an_entry() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let [program, entries] =
        ["program", "entries"].map(|target| fs::read(seeds.join(target).join("linked")).unwrap());
    for functions in [vec![], vec!["f".to_string()]] {
        let count = functions.len();
        let linked = read(&program, &Wanted { functions, ..Wanted::default() }).unwrap();
        assert_eq!((linked.functions.len(), linked.constructors.len()), (count, 1));
    }
    let found = crate::benchmarks::entries::read(&entries, "linked").unwrap();
    let names: Vec<_> = found.iter().map(|one| (&*one.name, &*one.function)).collect();
    assert_eq!(names, [("f/3", "f")]);
    assert_eq!(found[0].around, [None, Some("g".to_string())]);
}
