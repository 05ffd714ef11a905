//! The loader for UEFI machines where their firmware has made choices that it has to undo, or to follow.

use qemu_tests::{Guest, Ran, tree};
use std::fs;
use xtask::cli::Boot;
use xtask::machine::devices::Boot as Files;
use xtask::setup::firmware;

const JOB: &str = "[[snippet]]\nname = \"imul\"\nasm = \"imul rax, rax\"\n";

/// Boots the job by `first`, which starts what comes next on the disk: the loader.
fn started_by(first: &str) -> Ran {
    let guest = Guest::new(Boot::Uefi, JOB);
    let folder = tempfile::tempdir().unwrap();
    let read = |file: std::path::PathBuf| fs::read(&file).unwrap();
    let files = [
        ("kernel-x86_64", read(tree().kernel())),
        ("ramdisk", guest.ramdisk.clone().unwrap()),
        ("efi/boot/bootx64.efi", read(tree().build_uefi_guest(first).unwrap())),
        ("efi/boot/next.efi", read(tree().uefi_loader())),
    ];
    let files = files.map(|(name, content)| (name.to_string(), content));
    let image = folder.path().join("image");
    fs::write(&image, disk::image(&read(tree().bios()), &files, None).unwrap()).unwrap();
    let ovmf = firmware::find().expect("UEFI firmware").for_run(folder.path()).unwrap();
    Guest { boot_from: Some(Files::Uefi { image, ovmf }), ..guest }.run()
}

/// Firmware of QEMU switches no five-level paging on, so a program does so before the loader starts, which says that it is on.
#[test]
fn x3_a_kernel_starts_where_five_level_paging_was_on() {
    let ran = started_by("five-levels");
    let text = String::from_utf8_lossy(&ran.raw);
    assert!(text.contains("five-levels: CR4.LA57 is 1"), "{text}");
    assert_eq!(ran.medians(), [("imul", 64.0)], "{text}");
    assert_eq!(ran.report.exit_code(), 0);
}

/// The first graphics output takes blocks of pixels only, the second has its picture in memory.
#[test]
fn x3_of_two_graphics_outputs_the_one_with_a_frame_buffer_is_drawn_on() {
    let extra = ["-device", "virtio-gpu-pci,addr=4", "-device", "VGA,addr=9"].map(String::from);
    let ran = Guest { extra: extra.to_vec(), ..Guest::new(Boot::Uefi, JOB) }.run();
    assert_eq!(ran.ends_with(0).medians(), [("imul", 64.0)]);
    assert!(ran.report.machine().unwrap().screen.is_some());
}

/// Where no output has a picture in memory, the job runs without a screen.
#[test]
fn x3_a_graphics_output_without_a_frame_buffer_is_none() {
    let extra = ["-device", "virtio-gpu-pci"].map(String::from);
    let ran = Guest { extra: extra.to_vec(), ..Guest::new(Boot::Uefi, JOB) }.run();
    assert_eq!(ran.ends_with(0).medians(), [("imul", 64.0)]);
    assert_eq!(ran.report.machine().unwrap().screen, None);
}
