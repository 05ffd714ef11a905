//! Memory as jobs and the command line write it.

use super::*;
use crate::job::{JobError, Purpose, file, pack};
use protocol::job::Item;

fn packed(toml: &str) -> Result<crate::job::Packed, JobError> {
    file::parse(toml, "job.toml").and_then(|file| pack(&file, Purpose::Qemu))
}

fn said(toml: &str) -> String {
    packed(toml).err().unwrap_or_else(|| panic!("it is taken: {toml}")).to_string()
}

#[test]
fn n5_jobs_say_size_pages_type_and_fill_of_memory() {
    let packed = packed(
        r#"
        [[defaults.memory]]
        name = "shared"
        size = 4096
        [[snippet]]
        asm = "mov rax, offset memory_list; mov rbx, offset memory_shared; mov ecx, offset memory_list_size"
        [[snippet.memory]]
        name = "list"
        size = "64M"
        page-size = "2m"
        memory-type = "wt"
        fill = { chase = { order = "backward", seed = 7 } }
        [[snippet]]
        asm = "movabs rax, offset memory_shared"
        memory = [{ name = "shared", size = "1g", page-size = "1g", fill = { pattern = "de ad BE ef" } }]
        [[snippet]]
        asm = "nop"
        "#,
    )
    .unwrap();
    let chase = Chase { stride: 64, order: Order::Backward, seed: 7 };
    let wanted = [
        ("shared", 0x7020_0000, 4096, PageSize::Small, Fill::Zero, vec![0, 2]),
        ("list", 0x7060_0000, 64 << 20, PageSize::Large, Fill::Chase(chase), vec![0]),
        (
            "shared",
            0x3000_4000_0000,
            1 << 30,
            PageSize::Giant,
            Fill::Pattern(vec![0xde, 0xad, 0xbe, 0xef].into()),
            vec![1],
        ),
    ];
    let found = packed.job.memory.iter().map(|one| {
        let Memory { name, at, bytes, page_size, fill, items, .. } = one.clone();
        (name, at, bytes, page_size, fill, items)
    });
    let wanted = wanted.map(|(name, at, bytes, page, fill, items)| {
        (Cow::from(name), at, bytes, page, fill, items)
    });
    assert_eq!(found.collect::<Vec<_>>(), wanted);
    assert_eq!(packed.job.memory[1].memory_type, MemoryType::WriteThrough);
    let Item::Snippet(first) = &packed.job.items[0] else { panic!("a snippet") };
    assert_eq!(first.body[3..7], 0x7060_0000u32.to_le_bytes());
    assert_eq!(first.body[10..14], 0x7020_0000u32.to_le_bytes());
    assert_eq!(first.body[15..], (64u32 << 20).to_le_bytes());
    // One page of 1 GiB, which begins behind the first GiB.
    assert_eq!(packed.mib, 2 * 1024 + 2 + 4);
    let rest = packed.rest(1, None).unwrap().job.memory;
    let items: Vec<_> = rest.iter().map(|one| (&*one.name, &one.items[..])).collect();
    assert_eq!(items, [("shared", &[1][..]), ("shared", &[0])]);
}

#[test]
fn n5_the_command_line_says_the_same_as_a_job() {
    let of_job = |toml: &str| {
        let value: toml::Value = toml::from_str(toml).unwrap();
        value.try_into::<MemoryFile>().unwrap()
    };
    for (option, toml) in [
        ("a=64M", "name = 'a'\nsize = '64M'"),
        ("a=0x10", ""),
        (
            "list=2G,page-size=1g,memory-type=uc,chase=forward,stride=4096",
            "name = 'list'\nsize = '2G'\npage-size = '1g'\nmemory-type = 'uc'\n\
             fill = { chase = { order = 'forward', stride = 4096 } }",
        ),
        ("a = 10, seed=3", "name = 'a'\nsize = 10\nfill = { chase = { seed = 3 } }"),
        ("a=8,pattern=0aff", "name = 'a'\nsize = 8\nfill = { pattern = '0a ff' }"),
        ("a,file=/x/y", "name = 'a'\nfill = { file = '/x/y' }"),
    ] {
        match option.parse::<MemoryFile>() {
            Ok(memory) => assert_eq!(memory, of_job(toml), "{option}"),
            Err(wrong) => assert!(toml.is_empty() && wrong.contains("0x10"), "{option}: {wrong}"),
        }
    }
    for (option, reason) in [
        ("", "it has no size"),
        ("a=1,page-size=8k", "unknown variant `8k`"),
        ("a=1,what=2", "`what=2`: it must be NAME=SIZE"),
        ("a=1,stride=x", "stride: `x` is no number"),
        ("a=1,stride=-8", "invalid value"),
        ("a=1,chase=up", "unknown variant `up`"),
        ("a=1,pattern=0", "1 hexadecimal digits are no whole bytes"),
        ("a=1,pattern=zz", "'z' is no hexadecimal digit"),
        ("a=1,pattern=00,chase=random", "give one of pattern, file and chase"),
        ("a=1,pattern=00,file=x", "give one of pattern and file"),
    ] {
        let wrong = option.parse::<MemoryFile>().unwrap_err();
        assert!(wrong.contains(reason), "{option}: {wrong}");
    }
}

#[test]
fn n5_memory_that_there_cannot_be_is_refused_with_its_place() {
    let snippet = |memory: &str| {
        said(&format!("[[snippet]]\nname = \"s\"\nasm = \"nop\"\nmemory = [{memory}]"))
    };
    for (memory, reason) in [
        ("{ name = \"a\" }", "memory `a`: it has no size"),
        ("{ name = \"a\", size = -1 }", "memory `a`: size is -1"),
        ("{ name = \"a\", size = 1.5 }", "memory `a`: size is 1.5; write 4096"),
        ("{ name = \"a\", size = \"much\" }", "memory `a`: size `much`"),
        ("{ name = \"a\", size = 1, fil = 0 }", "unknown field `fil`"),
        ("{ name = \"a\", size = 0 }", "job.toml: memory `a`: size is 0; it must be 1 to"),
        ("{ name = \"a b\", size = 1 }", "memory `a b`: its name may have letters"),
        (
            "{ name = \"a\", size = \"1T\" }",
            "job.toml:1:1: snippet `s`: memory `a`: there are not so many addresses",
        ),
        ("{ name = \"a\", size = \"300G\" }", "size is 322122547200; it must be 1 to"),
        (
            "{ name = \"a\", size = 9, fill = { chase = { stride = 4 } } }",
            "stride is 4; it must be 8",
        ),
        ("{ name = \"a\", size = 9, fill = { pattern = \"\" } }", "bytes of the pattern is 0"),
        (
            "{ name = \"a\", fill = { file = \"none\" } }",
            "job.toml:1:1: snippet `s`: memory `a`: none: No such file",
        ),
        ("{ name = \"a\", fill = { file = \"/\" } }", "memory `a`: /: it is no file"),
        (
            "{ name = \"a\", fill = { file = \"/dev/zero\" } }",
            "memory `a`: /dev/zero: it is no file",
        ),
        (
            "{ name = \"a\", size = 1 }, { name = \"a\", size = 1 }",
            "memory `a`: the item has another one",
        ),
    ] {
        let said = snippet(memory);
        assert!(said.contains(reason), "{memory}: {said}");
    }
    let narrow =
        said("[[snippet]]\nasm = \"nop\"\nbits = 32\nmemory = [{ name = \"a\", size = \"300M\" }]");
    assert!(narrow.contains("memory `a`: bits = 32: it lies above 4 GiB"), "{narrow}");
}

#[test]
fn n5_a_file_goes_along_with_the_job_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), b"a file").unwrap();
    let toml = "[[defaults.memory]]\nname = \"t\"\nfill = { file = \"text\" }\n[[snippet]]\nasm = \"nop\"\n\
                [[snippet]]\nasm = \"mov eax, offset memory_t_size\"\n[[snippet]]\nasm = \"nop\"\n\
                memory = [{ name = \"t\", size = 3, fill = { file = \"text\" } }]";
    let source = folder.path().join("job.toml").display().to_string();
    let wrong = file::parse(toml, &source).and_then(|file| pack(&file, Purpose::Qemu)).unwrap_err();
    assert!(wrong.to_string().ends_with("text has 6 bytes, and its size is 3"), "{wrong}");
    let toml = toml.replace("size = 3", "size = 30");
    let file = file::parse(&toml, &source).unwrap();
    let packed = pack(&file, Purpose::Qemu).unwrap();
    let found: Vec<_> =
        packed.job.memory.iter().map(|one| (one.bytes, one.items.clone())).collect();
    assert_eq!(found, [(6, vec![0, 1]), (30, vec![2])]);
    assert!(packed.job.memory.iter().all(|one| one.fill == Fill::Bytes(b"a file"[..].into())));
    // What an item is told by changes with the memory that it has.
    let about = packed.about();
    assert_ne!(about.items[0].digest, about.items[2].digest);
    std::fs::write(folder.path().join("text"), b"a fine").unwrap();
    let other = pack(&file, Purpose::Qemu).unwrap().about();
    assert_ne!(about.items[0].digest, other.items[0].digest);
}

#[test]
fn n5_a_place_in_memory_is_its_name_and_a_distance() {
    let area = |name: &str, at, bytes| Area { name: name.to_string(), at, bytes };
    let areas = [area("list", 0x7020_0000, 8192), area("0x", 0x7080_0000, 1)];
    let ok = |text| resolve(&areas, text).unwrap().unwrap();
    assert_eq!(ok("memory:list"), 0x7020_0000);
    assert_eq!(ok("memory:list+64"), 0x7020_0040);
    assert_eq!(ok("memory:list + 0x1f"), 0x7020_001f);
    assert_eq!(ok("memory:0+4K"), 0x7020_1000);
    assert_eq!(ok("memory:1"), 0x7080_0000);
    assert_eq!(ok("memory:list+8192"), 0x7020_2000);
    assert!(resolve(&areas, "1000").is_none());
    for (text, reason) in [
        ("memory:lisst", "`memory:lisst`: there is no memory `lisst`; the item has list, 0x"),
        ("memory:2", "there is no memory `2`"),
        ("memory:list+8193", "memory `list` has 8192 bytes"),
        ("memory:list+x", "`x` is no number of bytes"),
        ("memory:list+0x+1", "is no number of bytes"),
    ] {
        let wrong = resolve(&areas, text).unwrap().unwrap_err();
        assert!(wrong.contains(reason), "{text}: {wrong}");
    }
    assert!(resolve(&[], "memory:a").unwrap().unwrap_err().contains("the item has no memory"));
}

proptest::proptest! {
    #[test]
    fn n5_no_option_panics(text in "[a-z=,0-9GMT+.-]{0,40}") {
        let _ = text.parse::<MemoryFile>();
        let _ = resolve(&[], &text);
    }
}
