//! Jobs with 32-bit code, from their text to what the firmware gets.

use super::*;
use protocol::bits::Bits;
use protocol::job::{Item, LoopCounter};

fn packed(text: &str) -> Result<Job<'static>, String> {
    let file = file::parse(text, "x.toml").map_err(|error| error.to_string())?;
    pack(&file, Purpose::Qemu).map(|packed| packed.job).map_err(|error| error.to_string())
}

#[test]
fn t6_32_bit_code_is_assembled_as_such_beside_64_bit_code() {
    let job = packed(
        "[defaults]\nbits = 32\n[[snippet]]\nasm = \"inc eax; push eax\"\ninit = \"dec ecx\"\nloop = 2\n\
         [[snippet]]\nbits = 64\nasm = \"inc eax; push rax\"\n\
         [[snippet]]\nsyntax = \"att\"\nasm = \"incl %eax\"\n\
         [[run]]\n[[run.task]]\nname = \"n\"\nasm = \"dec eax\"\nbits = 32\n\
         [[run.task]]\nname = \"w\"\nasm = \"dec eax\"\n\
         [[sample]]\nasm = \"inc ecx\"\nbits = 32\nevents = [\"cycles\"]\nperiod = 99\n",
    );
    let items = job.unwrap().items;
    let [
        Item::Snippet(narrow),
        Item::Snippet(wide),
        Item::Snippet(att),
        Item::Tasks(run),
        Item::Sample(sample),
    ] = &items[..]
    else {
        panic!("{items:?}")
    };
    assert_eq!((&*narrow.body, &*narrow.init), (&[0x40, 0x50][..], &[0x49][..]));
    assert_eq!(
        (narrow.setup.bits, narrow.loop_counter),
        (Bits::Compatibility, LoopCounter::Memory)
    );
    assert!(!narrow.extended_state);
    assert_eq!((&*wide.body, wide.setup.bits), (&[0xff, 0xc0, 0x50][..], Bits::SixtyFour));
    assert_eq!((&*att.body, att.setup.bits), (&[0x40][..], Bits::Compatibility));
    let tasks: Vec<_> = run.workload.tasks.iter().map(|task| (&*task.body, task.bits)).collect();
    assert_eq!(tasks, [(&[0x48][..], Bits::Compatibility), (&[0xff, 0xc8], Bits::SixtyFour)]);
    let task = &sample.workload.tasks[0];
    assert_eq!(
        (&*task.body, task.bits, task.loop_counter),
        (&[0x41][..], Bits::Compatibility, LoopCounter::Memory)
    );
}

#[test]
fn t6_the_command_line_sets_the_width_of_every_snippet() {
    let overrides = Overrides { bits: Some(Bits::Compatibility), ..Overrides::default() };
    let mut file = file::parse("[[snippet]]\nasm = \"inc eax\"", "x.toml").unwrap();
    overrides.apply(&mut file).unwrap();
    let job = pack(&file, Purpose::Qemu).unwrap().job;
    let Item::Snippet(snippet) = &job.items[0] else { panic!() };
    assert_eq!((&*snippet.body, snippet.setup.bits), (&[0x40][..], Bits::Compatibility));
}

#[test]
fn t6_what_32_bit_code_cannot_be_is_refused_by_name() {
    let snippet = |rest: &str| format!("[[snippet]]\nasm = \"inc eax\"\nbits = 32\n{rest}");
    for (text, parts) in [
        ("[[snippet]]\nasm = \"nop\"\nbits = 16".to_string(), &["line 3", "bits is 16; code has 64"][..]),
        (
            "[[snippet]]\nasm = \"nop\\ninc rax\"\nbits = 32".into(),
            &["x.toml:2:", "only available in 64-bit mode"],
        ),
        ("[[snippet]]\nasm = \"mov eax, r8d\"\nbits = 32".into(), &["x.toml:2:", "64-bit mode"]),
        ("[[snippet]]\nasm = \"daa\"".into(), &["x.toml:2:", "64-bit mode"]),
        (snippet("no-memory = true"), &["bits = 32: no-memory mode"]),
        (snippet("machine = { page-size = \"1g\" }"), &["bits = 32: page-size = \"1g\"", "above 4 GiB"]),
        (snippet("loop = 4294967296"), &["loop is 4294967296; it must be 0 to 4294967295"]),
        (snippet("loop = 2\nmachine = { ring = 3 }"), &["ring = 3", "R15", "32-bit code, does not have"]),
        (
            "[[snippet]]\nasm = \".barecount pause; nop; .barecount resume\"\nbits = 32".into(),
            &["bits = 32: counting cannot be paused"],
        ),
        ("[[snippet]]\nlatency = \"imul r64, r64\"\nbits = 32".into(), &["x.toml:1:", "`r64`", "no 64-bit general registers"]),
        (
            "[[snippet]]\nthroughput = \"inc r32 [32-bit]\"\nno-memory = true".into(),
            &["bits = 32: no-memory mode"],
        ),
        (
            "[[run]]\n[[run.task]]\nname = \"t\"\nasm = \"\"\nbits = 8".into(),
            &["line 5", "bits is 8; code has 64"],
        ),
        (
            "[[run]]\n[[run.task]]\nname = \"t\"\nasm = \"inc r8d\"\nbits = 32".into(),
            &["x.toml:4:", "task `t`", "64-bit mode"],
        ),
        (
            "[[run]]\n[[run.task]]\nname = \"t\"\nasm = \"nop\"\nbits = 32\nturns = 5000000000".into(),
            &["task `t`: turns is 5000000000; it must be 0 to 4294967295"],
        ),
        (
            "[[sample]]\nbits = 32\nevents = [\"cycles\"]\nperiod = 9\n[[sample.task]]\nname = \"t\"\nasm = \"nop\"".into(),
            &["bits stands in each [[sample.task]] table"],
        ),
    ] {
        let error = packed(&text).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}\n{error}\nlacks {part}");
        }
    }
}

#[test]
fn n5_memory_of_the_command_line_is_that_of_items_of_every_kind() {
    let task = "name = \"t\"\nasm = \"mov rax, [memory_list]\"";
    let text = format!(
        "[[snippet]]\nasm = \"mov rax, [memory_list]\"\n[[run]]\n[[run.task]]\n{task}\n\
         [[count]]\nevents = [\"cycles\"]\nbind = {{ task = \"t\" }}\n[[count.task]]\n{task}\n\
         [[sample]]\nasm = \"mov rax, [memory_list]\"\nevents = [\"cycles\"]\nperiod = 99\n\
         [[sample]]\nevents = [\"cycles\"]\nperiod = 99\n[[sample.task]]\n{task}\n"
    );
    let packed = |overrides: &Overrides| {
        let mut file = file::parse(&text, "x.toml").unwrap();
        overrides.apply(&mut file).unwrap();
        pack(&file, Purpose::Qemu).map(|packed| packed.job).map_err(|error| error.to_string())
    };
    let job = packed(&Overrides {
        memory_areas: vec!["list=8K".parse().unwrap()],
        ..Overrides::default()
    });
    let job = job.unwrap();
    assert_eq!(job.items.len(), 5);
    for index in 0..5 {
        let sizes: Vec<u64> = job.memory_of(index).map(|memory| memory.bytes).collect();
        assert_eq!(sizes, [8 << 10], "item {index}");
    }
    assert!(packed(&Overrides::default()).unwrap_err().contains("memory_list"));
}
