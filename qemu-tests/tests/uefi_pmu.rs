//! The UEFI application that starts the emulated PMU before the boot loader of an image.

use handover::Refusal;
use pmu_model::Model;
use protocol::record::ProcessorState;
use qemu_tests::{Guest, Ran, is_model, tree, xtask};
use std::fs;
use std::path::Path;
use xtask::build::Hypervisor;
use xtask::cli::{Boot, Icount, models};
use xtask::commands::image;
use xtask::machine::devices::{Boot as Files, PMU_LOG, Pmu};
use xtask::machine::{Ending, pmu_log};
use xtask::setup::firmware;

const JOB: &str = "[[snippet]]\nname = \"imul\"\nasm = \"imul rax, rax\"\n";
/// The same, and on all processors at once.
const JOB_OF_ALL: &str = r#"
[[snippet]]
name = "imul"
asm = "imul rax, rax"
[[processors]]
name = "together"
asm = "inc qword ptr [r14]; imul rcx, rcx"
events = ["instructions"]
unroll = 50
"#;

/// What QEMU gives a machine with an emulated PMU, but for icount, which `Guest` sets by itself.
fn devices() -> Vec<String> {
    ["-global", "hpet.msi=on", "-debugcon", &format!("file:{PMU_LOG}")].map(String::from).to_vec()
}

/// A machine that boots our image with `model`'s PMU under UEFI.
fn guest(model: Model, folder: &Path) -> Guest {
    guest_with(JOB, model, folder)
}

fn guest_with(job: &str, model: Model, folder: &Path) -> Guest {
    tree().build_uefi_pmu().unwrap_or_else(|error| panic!("{error}"));
    let guest = Guest::new(Boot::Uefi, job);
    let file = tree().emulated_pmu();
    let pmu = Hypervisor { model, file: &file };
    let staged = image::stage(tree(), &tree().kernel(), guest.ramdisk.as_deref(), pmu, folder);
    let (files, pmu) = staged.unwrap_or_else(|failure| panic!("{failure}"));
    assert_ne!(pmu, Pmu::None);
    // As `run` gives it: the model's vendor.
    let vendor = model.spec().identity.as_ref().map(|identity| identity.vendor.name());
    let cpu = vendor.map(|vendor| format!("max,vendor={vendor}"));
    Guest { boot_from: Some(files), extra: devices(), cpu, ..guest }
}

/// The application's own lines on the console, which under UEFI is the serial line as well.
fn said(ran: &Ran) -> Vec<&str> {
    let lines = ran.report.foreign.iter().map(|line| line.text.trim());
    lines.filter(|line| line.starts_with("barecount: ")).collect()
}

#[test]
fn x3_each_model_under_uefi_with_the_images_own_loader() {
    for model in models() {
        let folder = tempfile::tempdir().unwrap();
        let ran = guest(model, folder.path()).run_in(folder.path());
        ran.ends_with(0);
        assert_eq!(ran.ending, Ending::Exited(Some(33)));
        let name = model.spec().name;
        assert_eq!(said(&ran), [format!("barecount: emulated PMU: pmu={name}")]);
        is_model(ran.report.machine().unwrap(), model);
        // The guest's clock is the machine's: 2^6 ticks an instruction, as without a hypervisor.
        assert_eq!(ran.medians(), [("imul", 64.0)]);
        assert_eq!(pmu_log::read(folder.path(), model), [""; 0]);
    }
}

/// The application says why there is no PMU, and the image boots without one.
fn refused(change: impl FnOnce(Guest) -> Guest, refusal: Refusal) {
    let folder = tempfile::tempdir().unwrap();
    let ran = change(guest(Model::Skylake, folder.path())).run_in(folder.path());
    ran.ends_with(0);
    assert_eq!(said(&ran), [format!("barecount: no emulated PMU: {refusal}")]);
    let machine = ran.report.machine().unwrap();
    assert!(machine.pmu.is_none() && machine.pmu_absent.is_some(), "{machine:?}");
    assert_eq!(ran.results().len(), 1);
}

#[test]
fn without_icount_the_image_boots_without_a_pmu() {
    refused(|guest| Guest { icount: Icount::Off, ..guest }, Refusal::NoIcount);
}

#[test]
fn without_svm_the_image_boots_without_a_pmu() {
    let cpu = Some("max,-svm".to_string());
    refused(|guest| Guest { cpu, ..guest }, Refusal::NoSvm);
}

#[test]
fn without_messages_of_the_hpet_the_image_boots_without_a_pmu() {
    let extra = ["-global", "hpet.msi=off"].map(String::from).to_vec();
    refused(|guest| Guest { extra, ..guest }, Refusal::NoHpetMsi);
}

#[test]
fn without_a_timer_for_each_processor_the_image_boots_without_a_pmu() {
    let extra = [&devices()[..], &["-smp", "2"].map(String::from)].concat();
    refused(|guest| Guest { extra, ..guest }, Refusal::NoTimer);
}

/// The firmware starts the second one by a start-up interrupt, as operating systems do, and counts on both.
#[test]
fn with_a_second_processor_the_image_boots_with_a_pmu() {
    let folder = tempfile::tempdir().unwrap();
    let guest = guest_with(JOB_OF_ALL, Model::Skylake, folder.path());
    let more = ["-smp", "2", "-global", "hpet.timers=4"].map(String::from);
    let extra = [&guest.extra[..], &more].concat();
    let ran = Guest { extra, ..guest }.run_in(folder.path());
    ran.ends_with(0);
    assert_eq!(said(&ran), ["barecount: emulated PMU: pmu=skylake"]);
    let machine = ran.report.machine().unwrap();
    is_model(machine, Model::Skylake);
    assert_eq!(machine.processors[1].state, ProcessorState::Started, "{:?}", machine.processors);
    assert_eq!(ran.medians(), [("imul", 64.0)]);
    let together = ran.report.processors().next().expect("an item of both");
    assert_eq!(together.processors.len(), 2);
    for one in &together.processors {
        let counted = one.metrics.iter().find(|metric| metric.event == "instructions");
        assert_eq!(counted.map(|metric| metric.value.median), Some(2.0), "{one:?}");
    }
    assert_eq!(pmu_log::read(folder.path(), Model::Skylake), [""; 0]);
}

/// Their times of day differ, with the hypervisor or without: QEMU's disk answers by the host's clock.
#[test]
fn two_runs_under_uefi_measure_the_same() {
    let run = || {
        let folder = tempfile::tempdir().unwrap();
        guest(Model::IceLake, folder.path()).run_in(folder.path())
    };
    let (first, second) = (run(), run());
    assert!(first.ends_with(0).report.machine().unwrap().pmu.is_some());
    let [first, second] = [first.results(), second.results()];
    assert_eq!(first[0].metrics, second[0].metrics);
}

/// Of a partition with the application in front of a program that the firmware's timer interrupts: the period that it finds, in units
/// of 100 ns, and the exits that the hypervisor counts.
fn interrupted(pmu: &str) -> (u64, Option<u64>) {
    tree().build_uefi_pmu().unwrap_or_else(|error| panic!("{error}"));
    let program = tree().build_uefi_guest("firmware-timer").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("partition");
    for part in ["EFI/BOOT", "EFI/barecount"] {
        fs::create_dir_all(place.join(part)).unwrap();
    }
    fs::copy(tree().pmu_application(), place.join("EFI/BOOT/BOOTX64.EFI")).unwrap();
    fs::copy(tree().emulated_pmu(), place.join("EFI/barecount/pmu.elf")).unwrap();
    fs::copy(program, place.join("timer.efi")).unwrap();
    let entry = format!("pmu {pmu}\nefi /timer.efi\n");
    fs::write(place.join("EFI/barecount/pmu.conf"), entry).unwrap();
    let ovmf = firmware::find().expect("UEFI firmware").for_run(folder.path()).unwrap();
    let image = format!("fat:{}", place.display()).into();
    let guest = Guest::new(Boot::Uefi, JOB);
    let cpu = Some("max,vendor=GenuineIntel".to_string());
    let boot_from = Some(Files::Uefi { image, ovmf });
    let log = format!("file:{}", folder.path().join(PMU_LOG).display());
    let extra = ["-global", "hpet.msi=on", "-debugcon", &log].map(String::from).to_vec();
    let ran = Guest { boot_from, extra, cpu, ..guest }.run();
    let text = String::from_utf8_lossy(&ran.raw);
    let period = text.split("firmware-timer: ").nth(1).and_then(|rest| rest.split(' ').next());
    let period = period.and_then(|period| period.parse().ok());
    let said = pmu_log::read(folder.path(), Model::Skylake);
    let mut totals = said.iter().rev().filter_map(|line| line.strip_prefix("statistics: exits="));
    let exits = totals.next().and_then(|rest| rest.split(' ').next()?.parse().ok());
    (period.unwrap_or_else(|| panic!("{text}")), exits)
}

/// Each of the firmware's interrupts costs several exits, so below the hypervisor they come after more instructions.
#[test]
fn x3_the_firmwares_timer_interrupts_less_often_below_the_hypervisor() {
    let (before, none) = interrupted("none");
    assert_eq!(none, None);
    let (after, exits) = interrupted("skylake statistics=64");
    assert!(before > 0 && after >= 5 * before, "{before}, {after}");
    // 2^28 instructions, with an interrupt each 2^22.
    let exits = exits.expect("statistics");
    assert!(exits < 3_000, "{exits}");
}

#[test]
fn image_takes_a_model_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let image = |pmu: &str| {
        xtask(folder.path(), &["image", "--asm", "nop", "--pmu", pmu, "--out", "stick.img"])
    };
    for word in ["z80", "auto", "host", "none"] {
        image(word).fails_with(2, &[&format!("invalid value '{word}'"), "skylake"]);
        assert!(!folder.path().join("stick.img").exists());
    }
    let made = image("zen4");
    assert_eq!(made.code, 0, "{made:#?}");
    assert!(made.err.contains("on UEFI with an emulated PMU (zen4)"), "{made:#?}");
    let bytes = fs::read(folder.path().join("stick.img")).unwrap();
    let entry = b"pmu zen4\n";
    assert!(bytes.windows(entry.len()).any(|window| window == entry));
}

/// The image with `from` replaced by `to`, which is as long; it is there once.
fn damage(guest: &Guest, from: &[u8], to: &[u8]) {
    let Some(Files::Uefi { image, .. }) = &guest.boot_from else { panic!("an image") };
    let mut bytes = fs::read(image).unwrap();
    let places = bytes.windows(from.len()).enumerate().filter(|(_, window)| *window == from);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    let [place] = places[..] else { panic!("{} times", places.len()) };
    bytes[place..place + to.len()].copy_from_slice(to);
    fs::write(image, bytes).unwrap();
}

/// A sector of the hypervisor's file, as it lies on the disk.
fn first_sector(file: &Path) -> Vec<u8> {
    let mut bytes = fs::read(file).unwrap();
    bytes.truncate(512);
    bytes
}

#[test]
fn damaged_files_are_named_and_the_image_boots_without_a_pmu() {
    let entry = b"pmu skylake\n".to_vec();
    let hypervisor = first_sector(&tree().emulated_pmu());
    let no_elf_file = [b"\x7fELK", &hypervisor[4..]].concat();
    let refusal = |refusal: Refusal| refusal.to_string();
    for (from, to, reason) in [
        (
            &entry,
            b"pmx skylake\n".to_vec(),
            r"\EFI\barecount\pmu.conf: line 1: `pmx` is".to_string(),
        ),
        (
            &entry,
            b"pmu \xffkylake\n".to_vec(),
            r"\EFI\barecount\pmu.conf: invalid utf-8".to_string(),
        ),
        (&entry, b"pmu skylark\n".to_vec(), refusal(Refusal::Options)),
        (&entry, b"pmu shift=z\n".to_vec(), refusal(Refusal::Options)),
        (&hypervisor, no_elf_file, refusal(Refusal::Image)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let guest = guest(Model::Skylake, folder.path());
        damage(&guest, from, &to);
        let ran = guest.run_in(folder.path());
        ran.ends_with(0);
        let [line] = said(&ran)[..] else { panic!("{:?}", said(&ran)) };
        let start = format!("barecount: no emulated PMU: {reason}");
        assert!(line.starts_with(&start), "{line} instead of {start}");
        assert!(ran.report.machine().unwrap().pmu.is_none());
    }
}

/// A BIOS does not see the application.
#[test]
fn x3_the_same_image_under_a_bios_is_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let guest = guest(Model::Skylake, folder.path());
    let Some(Files::Uefi { image, .. }) = guest.boot_from else { panic!("an image") };
    let guest = Guest { boot_from: Some(Files::Bios { image }), boot: Boot::Bios, ..guest };
    let ran = guest.run_in(folder.path());
    ran.ends_with(0);
    assert!(ran.report.machine().unwrap().pmu.is_none());
    assert_eq!(ran.medians(), [("imul", 1.0)]);
    assert_eq!(said(&ran), [""; 0]);
}
