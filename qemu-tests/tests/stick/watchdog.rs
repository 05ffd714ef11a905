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

#[test]
fn x1_the_tco_timer_resets_a_machine_that_hangs_and_the_saved_report_names_the_item() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::new(folder.path(), image(folder.path(), "stick.img", HANG, &[]));
    let drive = format!("if=none,id=stick,format=raw,file={}", machine.image.display());
    let usb = ["-device", "qemu-xhci", "-device", "usb-storage,drive=stick,bootindex=0"];
    let devices = [&Q35[..], &["-drive", &drive], &usb].concat();
    let mut on = machine.start_devices(OnReset::Boots, &devices);
    on.wait_for(QUESTION, 1);
    switch_off(&mut on);
    let text = on.text();
    assert!(text.contains("\"watchdog_resets\":\"the TCO timer\""), "{text}");
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
