//! What hangs the machine past everything that the firmware can do: the machine's own watchdog resets it, and the report that is
//! saved then says which item it was.

use super::*;
use ::xtask::stick::read;

/// The TCO timer of QEMU's q35, which may reset. A clock that counts instructions passes over the time in which all is halted.
const Q35: [&str; 10] = [
    "-cpu",
    "max,-x2apic",
    "-machine",
    "q35",
    "-global",
    "ICH9-LPC.noreboot=false",
    "-icount",
    "shift=6,sleep=off",
    "-rtc",
    "clock=vm",
];

/// Interrupts off, and halted: no counter counts, and there is no second processor.
const HANG: &str = "
name = \"hang\"
[[snippet]]
name = \"before\"
asm = \"add rax, rbx\"
[[snippet]]
name = \"a hang\"
asm = \"cli; hlt; hlt\"
unroll = 1
machine = { time-limit = 1000 }
[[snippet]]
name = \"behind\"
asm = \"nop\"
";

/// ACPI's table for the same timer, with QEMU's addresses of it, as `-acpitable` takes it: its flags, and the value
/// of a bit that says that it runs, which is that it is not halted.
fn wdat(folder: &Path, flags: u8, runs: u32) -> [String; 2] {
    const PM: u64 = 0x600;
    const GCS: u64 = 0xfed1_c000 + 0x3410;
    // Action, instruction (2: write a value, 3: the countdown, 0x80: keep other bits), shift, address, value, mask.
    let rows: [(u8, u8, u8, u64, u32, u32); 6] = [
        (1, 2, 0, PM + 0x60, 1, 0xffff),
        (6, 0x83, 0, PM + 0x72, 0, 0x3ff),
        (8, 0, 11, PM + 0x68, runs, 1),
        (9, 0x82, 11, PM + 0x68, 0, 1),
        (11, 0x82, 11, PM + 0x68, 1, 1),
        // No NO_REBOOT.
        (17, 0x82, 5, GCS, 0, 1),
    ];
    let mut table = vec![0x20, 0, 0, 0];
    table.extend([0xff, 0, 0xff, 0xff, 0xff, 0, 0, 0]);
    for word in [600, 0x3ff, 4, u32::from(flags), rows.len() as u32] {
        table.extend(word.to_le_bytes());
    }
    for (action, instruction, shift, address, value, mask) in rows {
        let (space, width, access) = if address == GCS { (0, 32, 3) } else { (1, 16, 2) };
        table.extend([action, instruction, 0, 0, space, width, shift, access]);
        table.extend(address.to_le_bytes());
        table.extend([value, mask].into_iter().flat_map(u32::to_le_bytes));
    }
    let file = folder.join("WDAT");
    std::fs::write(&file, table).unwrap();
    ["-acpitable".to_string(), format!("sig=WDAT,data={}", file.display())]
}

#[test]
fn x1_the_tco_timer_resets_a_machine_that_hangs_and_the_saved_report_names_the_item() {
    resets(&[], tempfile::tempdir().unwrap(), "the TCO timer");
}

#[test]
fn x1_the_watchdog_of_acpis_table_resets_a_machine_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    resets(&wdat(folder.path(), 1, 0), folder, "the watchdog of ACPI's WDAT");
}

/// One that is switched off, and one that does not run after it was started.
#[test]
fn x1_a_watchdog_of_acpis_table_that_is_none_is_passed_over() {
    for (flags, runs) in [(0, 0), (1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        resets(&wdat(folder.path(), flags, runs), folder, "the TCO timer");
    }
}

/// Another device's arguments; who resets the machine.
fn resets(table: &[String], folder: tempfile::TempDir, by: &str) {
    let machine = Machine::new(folder.path(), image(folder.path(), "stick.img", HANG, &[]));
    let drive = format!("if=none,id=stick,format=raw,file={}", machine.image.display());
    let usb = ["-device", "qemu-xhci", "-device", "usb-storage,drive=stick,bootindex=0"];
    let table: Vec<&str> = table.iter().map(String::as_str).collect();
    let devices = [&Q35[..], &["-drive", &drive], &usb, &table].concat();
    let mut on = machine.start_devices(OnReset::Boots, &devices);
    on.wait_for(QUESTION, 1);
    switch_off(&mut on);
    let text = on.text();
    assert!(text.contains(&format!("\"watchdog_resets\":\"{by}\"")), "{text}");
    for shown in ["this is a part", "a hang", "the machine was reset while it ran"] {
        assert!(text.contains(shown), "{text}");
    }
    let stick = read(&machine.image).unwrap();
    let [saved] = &stick.saved[..] else { panic!("{:?}", stick.saved) };
    assert_eq!(title(&saved.name.to_string()), ("Partial".to_string(), 1));
    let [path, name] = [machine.image.display().to_string(), saved.name.to_string()];
    let called = xtask(folder.path(), &["collect", "--image", &path, "--report", &name]);
    assert_eq!(called.code, 3, "{called:#?}");
    let said = "item 1 (a hang): the machine was reset while it ran";
    assert!(called.out.contains(said) && called.out.contains("before"), "{called:#?}");
}
