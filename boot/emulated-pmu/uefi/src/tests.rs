use super::*;
use proptest::prelude::*;

#[test]
fn an_entry_for_linux() {
    let text = "\u{feff}# a comment\r\npmu skylake shift=6\r\n\r\nlinux\t/vmlinuz\r\ninitrd  /a/b\r\n\
                options console=ttyS0  quiet\r\n";
    let expected = Entry {
        pmu: Some("pmu=skylake shift=6".into()),
        next: r"\vmlinuz".into(),
        options: Some(r"initrd=\a\b console=ttyS0  quiet".into()),
        ..Entry::default()
    };
    assert_eq!(parse(text), Ok(expected));
}

#[test]
fn what_is_not_said_has_a_default() {
    assert_eq!(parse(""), Ok(Entry::default()));
    assert_eq!(parse("pmu none\n"), Ok(Entry::default()));
    let entry = parse("efi /loader.efi\nhypervisor /x.elf\ninitrd /i").unwrap();
    assert_eq!((entry.next.as_str(), entry.hypervisor.as_str()), (r"\loader.efi", r"\x.elf"));
    assert_eq!(entry.options.as_deref(), Some(r"initrd=\i"));
}

#[test]
fn another_device_is_looked_at_as_firmware_does() {
    let of = |text: &str| parse(text).map(|entry| (entry.device, entry.next));
    assert_eq!(of("device other"), Ok((Device::Other, REMOVABLE.to_string())));
    assert_eq!(of("device own"), Ok((Device::Own, NEXT.to_string())));
    assert_eq!(of("efi /a.efi\ndevice other"), Ok((Device::Other, r"\a.efi".to_string())));
}

#[test]
fn errors_name_line_key_and_reason() {
    let table = [
        ("\nmodel zen4", "line 2: `model` is none of pmu, "),
        ("pmu zen4\npmu zen2", "line 2: `pmu` is given twice"),
        ("efi /a\nlinux /b", "line 2: `linux` is given twice"),
        ("pmu  ", "line 1: `pmu` has no value"),
        ("efi loader.efi", "line 1: `efi` names `loader.efi`, which is not a file's path"),
        ("efi /EFI/", "line 1: `efi` names `/EFI/`"),
        ("pmu zen4\ndevice usb", "line 2: `device` is `own` or `other`, not `usb`"),
        ("initrd /\u{1f4be}", "line 1: `initrd` names"),
    ];
    for (text, part) in table {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "((pmu|efi|options|[a-z]*)[ \t]*\\PC{0,20}[\r\n]*){0,6}") {
        let _ = parse(&text);
    }

    #[test]
    fn every_path_that_is_taken_starts_at_the_root(value in "\\PC{1,30}") {
        if let Ok(entry) = parse(&format!("efi {value}")) {
            prop_assert!(entry.next.starts_with('\\') && !entry.next.contains('/'));
        }
    }
}
