//! The kernel is compressed in images: it unpacks to what it was, and one that is damaged is named.

use bios::fat::Volume;
use bios::{Disk, SECTOR};
use compressed_kernel::{KernelFile, compress};
use qemu_tests::stick::{Machine, On, OnReset};
use qemu_tests::{Guest, tree};
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use xtask::cli::Boot;
use xtask::machine::Ending;
use xtask::machine::devices::Boot as Files;

const JOB: &str = "[[snippet]]\nname = \"imul\"\nasm = \"imul rax, rax\"\n";
const NAME: &str = "kernel-x86_64";
/// What is said of any damage, and what to do.
const DAMAGED: &str = "the kernel's file is damaged: it";
const HELP: &str = "Write the image again";

struct Image(Vec<u8>);

impl Disk for Image {
    type Error = Infallible;

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<(), Infallible> {
        let at = first as usize * SECTOR;
        to.copy_from_slice(&self.0[at..at + to.len()]);
        Ok(())
    }
}

/// The kernel's file in an image.
fn in_image(image: &Path) -> Vec<u8> {
    let image = fs::read(image).unwrap();
    let start = bios::table::active(image[..SECTOR].try_into().unwrap()).unwrap();
    let mut volume = Volume::open(Image(image), start).unwrap();
    let file = volume.find(NAME).unwrap().unwrap();
    let mut content = vec![0; (file.bytes as usize).next_multiple_of(SECTOR)];
    volume.read(file, &mut content).unwrap();
    content.truncate(file.bytes as usize);
    content
}

fn image(folder: &Path) -> PathBuf {
    let guest = Guest::new(Boot::Bios, JOB);
    let (kernel, ramdisk) = (tree().kernel(), guest.ramdisk.as_deref());
    let staged = xtask::commands::run::stage_files(tree(), &kernel, ramdisk, Boot::Bios, folder);
    let Ok(Files::Bios { image }) = staged else { panic!("an image") };
    image
}

/// Changes a bit in the middle of the compressed kernel, wherever it is in `path`'s file.
fn damage(path: &Path) {
    let kernel = compress(&fs::read(tree().kernel()).unwrap()).unwrap();
    let mut bytes = fs::read(path).unwrap();
    let middle = &kernel[kernel.len() / 2..][..64];
    let places: Vec<usize> = bytes
        .windows(64)
        .enumerate()
        .filter(|(_, bytes)| *bytes == middle)
        .map(|(at, _)| at)
        .collect();
    let [at] = places[..] else { panic!("{} times", places.len()) };
    bytes[at + 9] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn x3_an_images_kernel_unpacks_to_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kernel) = (in_image(&image(folder.path())), fs::read(tree().kernel()).unwrap());
    println!("{} of {} bytes", file.len(), kernel.len());
    let Ok(KernelFile::Compressed(compressed)) = KernelFile::parse(&file) else { panic!("plain") };
    let mut unpacked = vec![0; compressed.bytes()];
    compressed.unpack(&mut unpacked).unwrap();
    assert!(unpacked == kernel);
    assert!(file.len() < kernel.len() * 11 / 20, "{} of {}", file.len(), kernel.len());
}

#[test]
fn x3_a_damaged_kernel_is_named_on_a_bios_machine_on_line_and_screen() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    damage(&image);
    let drive = format!("if=ide,format=raw,file={}", image.display());
    // As on hardware: nothing says that there may be an exit device.
    let devices = ["-drive", &drive, "-device", "VGA", "-cpu", "max,-hypervisor"];
    let mut on = On::bios(folder.path(), &devices);
    on.wait_for(HELP, 1);
    on.wait_for("\n", 2);
    let (line, screen) = (on.text(), on.text_screen());
    on.cut_power();
    for text in [line, screen] {
        let start = format!("barecount: cannot be loaded: {NAME}: {DAMAGED}");
        // The screen has lines of 80 characters, one after the other.
        assert!(text.contains(&start) && text.contains(HELP), "{text}");
    }
}

/// GRUB and iPXE load the files that `image` writes, and start the direct loader.
#[test]
fn x3_the_direct_loader_unpacks_a_kernel_and_names_a_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("compressed");
    fs::write(&file, compress(&fs::read(tree().kernel()).unwrap()).unwrap()).unwrap();
    let guest = || Guest { kernel: Some(file.clone()), ..Guest::new(Boot::Direct, JOB) };
    let ran = guest().run();
    assert_eq!(ran.ends_with(0).medians(), [("imul", 1.0)]);
    damage(&file);
    let ran = guest().run();
    let text = String::from_utf8_lossy(&ran.raw);
    assert!(text.contains(&format!("barecount's direct loader failed: {DAMAGED}")), "{text}");
    assert!(text.contains(HELP) && ran.report.records.is_empty(), "{text}");
    assert_eq!(ran.ending, Ending::Exited(Some(39)));
}

#[test]
fn x3_a_damaged_kernel_is_named_under_uefi() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    damage(&image);
    let mut on = Machine::new(folder.path(), image).start(OnReset::Ends);
    on.wait_for(&format!("barecount: the kernel cannot be started: {DAMAGED}"), 2);
    on.wait_for(HELP, 2);
    on.cut_power();
}
