use super::*;
use crate::cli::{Arguments, Command, User};
use clap::Parser;

fn arguments(words: &[&str]) -> std::result::Result<Vm, clap::Error> {
    let words = ["cargo xtask", "vm"].iter().chain(words);
    Arguments::try_parse_from(words).map(|arguments| match arguments.command {
        Command::User(User::Vm(vm)) => vm,
        other => panic!("{other:?}"),
    })
}

/// The least that firmware would look at.
fn program() -> Vec<u8> {
    let mut bytes = vec![0; 0x84];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes[0x80..].copy_from_slice(b"PE\0\0");
    bytes
}

#[test]
fn one_system_is_named_and_what_belongs_to_a_kernel_needs_one() {
    assert!(arguments(&["--pmu", "zen4", "--disk", "d"]).is_ok());
    for wrong in [
        &["--disk", "d"][..],
        &["--pmu", "zen4"],
        &["--pmu", "zen4", "--disk", "d", "--iso", "i"],
        &["--pmu", "zen4", "--disk", "d", "--initrd", "i"],
        &["--pmu", "none", "--disk", "d"],
        &["--pmu", "zen4", "--disk", "d", "--cpus", "23"],
        &["--pmu", "zen4", "--disk", "d", "--shift", "11"],
    ] {
        assert!(arguments(wrong).is_err(), "{wrong:?}");
    }
    let vm = arguments(&["--pmu", "zen4", "--disk", "d", "--", "-snapshot", "-s"]).unwrap();
    assert_eq!(vm.qemu_arguments, ["-snapshot", "-s"]);
    let vm = arguments(&["--pmu", "zen4", "--kernel", "k", "--append", "-x root=/dev/sda"]);
    assert_eq!(vm.unwrap().append.as_deref(), Some("-x root=/dev/sda"));
}

#[test]
fn each_system_has_its_entry_and_its_devices() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    };
    let of = |words: &[&str]| {
        System::of(&arguments(&[&["--pmu", "zen4"], words].concat()).unwrap()).unwrap()
    };
    let (kernel, initrd) = (file("k", &program()), file("i", b"cpio"));
    let system = of(&["--kernel", &kernel, "--initrd", &initrd, "--append", "quiet"]);
    assert_eq!(
        system.entry("zen4 cpus=2"),
        "pmu zen4 cpus=2\nlinux /kernel\ninitrd /initrd\noptions quiet\n"
    );
    assert_eq!(system.devices(), [""; 0]);
    assert_eq!(of(&["--kernel", &kernel]).entry("zen4"), "pmu zen4\nlinux /kernel\n");
    let raw = of(&["--disk", &file("a,b", b"")]);
    assert_eq!(raw.entry("zen4"), "pmu zen4\ndevice other\n");
    let line = raw.devices().join(" ");
    assert!(line.contains(",format=raw,") && line.contains("/a,,b "), "{line}");
    let line = of(&["--disk", &file("q", b"QFI\xfb\0\0\0\x03")]).devices().join(" ");
    assert!(line.contains(",format=qcow2,") && line.ends_with("ide-hd,drive=system,bootindex=1"));
    let line = of(&["--iso", &file("c", b"")]).devices().join(" ");
    assert!(line.contains(",readonly=on,") && line.contains("ide-cd,"), "{line}");
}

#[test]
fn what_is_missing_or_of_another_kind_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let name = path.to_str().unwrap();
    let why = |words: &[&str]| {
        let wanted = arguments(&[&["--pmu", "zen4"], words].concat()).unwrap();
        System::of(&wanted).unwrap_err().to_string()
    };
    for option in ["--kernel", "--disk", "--iso"] {
        assert!(why(&[option, name]).starts_with(&format!("cannot read {name}: ")));
        let folder = folder.path().to_str().unwrap();
        assert!(why(&[option, folder]).ends_with(" is a folder"));
    }
    for wrong in [&b""[..], b"MZ", b"\x7fELF", &program()[..0x83]] {
        fs::write(&path, wrong).unwrap();
        assert!(why(&["--kernel", name]).contains("not an EFI program"), "{wrong:?}");
    }
    fs::write(&path, program()).unwrap();
    let large = folder.path().join("large");
    File::create(&large).unwrap().set_len(MAX_BYTES).unwrap();
    let text = why(&["--kernel", name, "--initrd", large.to_str().unwrap()]);
    assert!(text.contains("have 500 MiB together; the firmware takes at most 500"), "{text}");
}
