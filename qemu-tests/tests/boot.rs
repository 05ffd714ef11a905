//! The same kernel and job, booted every way, on every kind of machine.

use protocol::record::{ApicMode, MemoryDomains};
use qemu_tests::monitor::Monitor;
use qemu_tests::{Guest, Ran, skip, tree};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use xtask::cli::{Boot, Icount};
use xtask::machine::devices::{Boot as Files, Cpus};
use xtask::machine::{Ending, Host};
use xtask::setup::grub;

const JOB: &str = r#"
name = "boot"
[[snippet]]
name = "imul"
asm = "imul rax, rax"
[[snippet]]
name = "sse"
asm = "addps xmm0, xmm1"
"#;

/// Under icount each instruction takes `ticks` ticks, and each run takes as many as every other.
fn measured(ran: &Ran, ticks: f64) {
    ran.ends_with(0);
    assert_eq!(ran.medians(), [("imul", ticks), ("sse", ticks)]);
    assert!(ran.results().iter().all(|result| result.metrics[0].deterministic));
    // The exit device, and not the end record's grace period, ended it.
    assert_eq!(ran.ending, Ending::Exited(Some(33)));
}

#[test]
fn x3_direct() {
    measured(&Guest::new(Boot::Direct, JOB).run(), 1.0);
}

#[test]
fn x3_bios() {
    measured(&Guest::new(Boot::Bios, JOB).run(), 1.0);
}

/// Both loaders, the kernel and the ramdisk are read once, and little else, and 63 KiB at a time. QEMU's trace says what
/// was read.
#[test]
fn x3_a_bios_boot_reads_each_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let file = trace.display().to_string();
    let extra = ["-trace", "enable=virtio_blk_handle_read", "-D", &file].map(String::from);
    let guest = Guest { extra: extra.to_vec(), ..Guest::new(Boot::Bios, JOB) };
    let ramdisk = guest.ramdisk.as_ref().unwrap().len() as u64;
    measured(&guest.run_in(folder.path()), 1.0);
    let trace = std::fs::read_to_string(trace).unwrap();
    let sectors = |line: &str| line.rsplit_once("nsectors ")?.1.trim().parse::<u64>().ok();
    let read: Vec<u64> = trace.lines().filter_map(sectors).collect();
    let (reads, bytes) = (read.len() as u64, read.iter().sum::<u64>() * 512);
    let length = |file: std::path::PathBuf| file.metadata().unwrap().len();
    let kernel = std::fs::read(tree().kernel()).unwrap();
    let kernel = compressed_kernel::compress(&kernel).unwrap().len() as u64;
    let files = kernel + length(tree().direct()) + length(tree().bios()) + ramdisk;
    println!("{reads} reads, {bytes} bytes, of {files} in loaders, kernel and ramdisk");
    assert!(bytes > files, "the trace misses some");
    // The boot sector, directory and table of clusters, and what a file does not fill of its last sector.
    assert!(bytes < files + (32 << 10), "{bytes} bytes for {files}");
    assert!(reads < files / (63 << 10) + 65, "{reads} reads");
    // 1,863,168, of which 626,580 are the ramdisk with its event tables: at half a megabyte a second, three and a half seconds.
    assert!(bytes < 1_866_000, "{bytes} bytes");
}

/// Some BIOSes write geometry where a volume has its parameter block, and some tell no drive's number. Nothing lies there, so that a
/// test can put both there: code that forgets the number, and bytes that are no code.
#[test]
fn x3_a_bios_may_write_where_a_volume_has_its_parameters() {
    let guest = Guest::new(Boot::Bios, JOB);
    let folder = tempfile::tempdir().unwrap();
    let (kernel, ramdisk) = (tree().kernel(), guest.ramdisk.as_deref());
    let files =
        xtask::commands::run::stage_files(tree(), &kernel, ramdisk, Boot::Bios, folder.path());
    let Ok(Files::Bios { image }) = files else { panic!("an image") };
    let mut disk = std::fs::read(&image).unwrap();
    assert_eq!(disk[..3], [0xeb, 88, 0x90], "jmp short over it; nop");
    assert_eq!(disk[3..90], [0; 87]);
    disk[3..90].fill(0xff);
    // jmp short to 86: xor dx, dx; the sector goes on at 90.
    disk[1] = 84;
    disk[86..90].copy_from_slice(&[0x31, 0xd2, 0x66, 0x90]);
    std::fs::write(&image, &disk).unwrap();
    measured(&Guest { boot_from: Some(Files::Bios { image }), ..guest }.run(), 1.0);
}

/// A stick's BIOS reads slowly, and a network boot too: whoever adds to the kernel is to notice what it takes.
#[test]
fn x3_the_kernel_takes_no_more_than_its_bound() {
    let bytes = tree().kernel().metadata().unwrap().len();
    println!("{bytes} bytes");
    assert!((100_000..2_198_000).contains(&bytes), "{bytes}");
}

#[test]
fn x3_uefi() {
    measured(&Guest::new(Boot::Uefi, JOB).run(), 64.0);
}

#[test]
fn x3_uefi_with_a_screen() {
    let ran = Guest { screen: true, ..Guest::new(Boot::Uefi, JOB) }.run();
    measured(&ran, 64.0);
    let machine = ran.report.machine().unwrap();
    assert!(machine.screen.is_some());
    // The MTRRs have all of it, and there is but one domain.
    assert_eq!((machine.memory_uncached_bytes, machine.memory_domains), (0, None));
}

/// The image as it is, on a USB stick.
#[test]
fn x3_usb_stick_under_bios() {
    let guest = Guest::new(Boot::Bios, JOB);
    let folder = tempfile::tempdir().unwrap();
    let files = xtask::commands::run::stage_files(
        tree(),
        &tree().kernel(),
        guest.ramdisk.as_deref(),
        Boot::Bios,
        folder.path(),
    );
    let Ok(Files::Bios { image }) = files else { panic!("an image") };
    let stick = format!("if=none,id=stick,format=raw,snapshot=on,file={}", image.display());
    let extra = ["-device", "VGA", "-drive", &stick, "-device", "qemu-xhci", "-device"];
    let mut extra: Vec<String> = extra.map(String::from).to_vec();
    extra.push("usb-storage,drive=stick,bootindex=0".into());
    // Nothing else to boot from: an empty list of modules would need a loader.
    let boot_from = Some(Files::Iso { image: "/dev/null".into() });
    measured(&Guest { boot_from, extra, ..guest }.run(), 1.0);
}

#[test]
fn x3_grub_starts_the_direct_loader_from_a_cd() {
    let grub = match grub::find() {
        Ok(grub) => grub,
        Err(reason) => skip!("GRUB's rescue tools: {reason}"),
    };
    let guest = Guest::new(Boot::Direct, JOB);
    let folder = tempfile::tempdir().unwrap();
    let boot = folder.path().join("iso/boot/grub");
    std::fs::create_dir_all(&boot).unwrap();
    std::fs::copy(tree().direct(), folder.path().join("iso/direct.bin")).unwrap();
    std::fs::copy(tree().kernel(), folder.path().join("iso/kernel")).unwrap();
    std::fs::write(folder.path().join("iso/ramdisk"), guest.ramdisk.as_ref().unwrap()).unwrap();
    let menu = "set timeout=0\nmenuentry barecount {\n  multiboot /direct.bin\n  module /kernel\n  \
                module /ramdisk\n}\n";
    std::fs::write(boot.join("grub.cfg"), menu).unwrap();
    let image = folder.path().join("barecount.iso");
    let made = Command::new(grub.program)
        .arg("-d")
        .arg(grub.modules)
        .args(["--fonts=", "--locales=", "--themes=", "-o"])
        .args([&image, &folder.path().join("iso")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let extra = vec!["-device".to_string(), "VGA".to_string()];
    measured(&Guest { boot_from: Some(Files::Iso { image }), extra, ..guest }.run(), 1.0);
}

#[test]
fn x3_kvm() {
    if let Err(reason) = Host::read().kvm {
        skip!("{reason}");
    }
    // Some hosts' KVM emulates ring 0 and does not know SSE, so here only general registers.
    let job = "[[snippet]]\nname = \"imul\"\nasm = \"imul rax, rax\"\nruns = 3\nunroll = 20";
    let ran = Guest { kvm: true, ..Guest::new(Boot::Direct, job) }.run();
    ran.ends_with(0);
    let machine = ran.report.machine().unwrap();
    assert_eq!(machine.hypervisor.as_deref(), Some("KVMKVMKVM"));
    // Without a vPMU there must be a reason, and never a PMU that holds no value.
    assert_ne!(machine.pmu.is_some(), machine.pmu_absent.is_some());
    // A multiplication takes some time on anything that has KVM; more cannot be said of a shared host.
    let (_, imul) = ran.medians()[0];
    assert!(imul > 0.1, "{imul}");
}

#[test]
fn without_icount_the_clock_is_the_hosts_and_the_apic_an_x2apic() {
    let ran = Guest { icount: Icount::Off, ..Guest::new(Boot::Direct, JOB) }.run();
    ran.ends_with(0);
    assert_eq!(ran.report.machine().unwrap().apic.mode, ApicMode::X2Apic);
    assert!(ran.errors().is_empty(), "the APIC's self-test");
}

/// The flag of the DMAR table by which firmware whose SMIs cannot deal with x2APIC mode asks for the other; and a table without it.
#[test]
fn i7_x2apic_mode_stays_off_where_the_machines_firmware_asks_for_that() {
    for (flags, mode) in [(0b11, ApicMode::XApic), (0b01, ApicMode::X2Apic)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("DMAR");
        std::fs::write(&file, [38, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        let extra = ["-acpitable".to_string(), format!("sig=DMAR,data={}", file.display())];
        let guest =
            Guest { icount: Icount::Off, extra: extra.to_vec(), ..Guest::new(Boot::Direct, JOB) };
        let ran = Guest { cpus: Cpus::Many(2), ..guest }.run();
        ran.ends_with(0);
        let machine = ran.report.machine().unwrap();
        assert_eq!((machine.apic.mode, machine.processors.len()), (mode, 2));
        assert!(ran.errors().is_empty(), "the APIC's self-test, and the other processor");
    }
}

#[test]
fn an_xapic_works_as_well() {
    let ran = Guest::new(Boot::Direct, JOB).run();
    let machine = ran.report.machine().unwrap();
    assert_eq!(machine.apic.mode, ApicMode::XApic);
    assert!(machine.apic.timer_hz > 1_000_000, "{machine:?}");
    assert!(ran.errors().is_empty(), "the APIC's self-test");
}

#[test]
fn an_old_processor_without_giant_pages_and_without_xsave_is_enough() {
    let cpu = Some("qemu64,-x2apic,-pdpe1gb,-xsave".to_string());
    measured(&Guest { cpu, ..Guest::new(Boot::Direct, JOB) }.run(), 1.0);
}

#[test]
fn memory_above_four_gib_does_no_harm() {
    let ran = Guest { memory: 5120, ..Guest::new(Boot::Direct, JOB) }.run();
    measured(&ran, 1.0);
    let machine = ran.report.machine().unwrap();
    assert_eq!(machine.memory_uncached_bytes, 0);
    assert!(machine.memory_bytes > 5000 << 20, "{}", machine.memory_bytes);
}

/// Two domains of 128 MiB, of which the upper one is the boot processor's or not: bytes of it that were written.
fn written_above(boot_node: u32, folder: &Path) -> u64 {
    let file = |node: u32| folder.join(format!("node{node}"));
    let mut extra = Vec::new();
    for node in 0..2 {
        let path = file(node).display().to_string();
        extra.push("-object".to_string());
        extra.push(format!("memory-backend-file,id=m{node},size=128M,share=on,mem-path={path}"));
        let cpu = (node + boot_node) % 2;
        extra.push("-numa".to_string());
        extra.push(format!("node,nodeid={node},memdev=m{node},cpus={cpu}"));
    }
    let ran = Guest { extra, cpus: Cpus::Many(2), ..Guest::new(Boot::Direct, JOB) }.run();
    ran.ends_with(0);
    assert_eq!(ran.medians(), [("imul", 1.0), ("sse", 1.0)]);
    let domains = ran.report.machine().unwrap().memory_domains;
    assert_eq!(domains, Some(MemoryDomains { count: 2, used: boot_node }));
    // Pages that nobody touched are holes of the file.
    std::fs::metadata(file(1)).unwrap().blocks() * 512
}

#[test]
fn memory_near_to_the_boot_processor_is_used_first() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [far, near] = [0, 1].map(|node| written_above(node, folders[node as usize].path()));
    println!("{far} and {near} bytes of the upper domain are used");
    assert!(2 * far < near, "{far}, {near}");
}

#[test]
fn the_least_memory_that_the_host_tool_allows_is_enough() {
    measured(&Guest { memory: 96, ..Guest::new(Boot::Direct, JOB) }.run(), 1.0);
}

#[test]
fn without_serial_line_and_screen_the_run_still_ends_as_it_should() {
    let ran = Guest { serial: false, ..Guest::new(Boot::Direct, JOB) }.run();
    assert_eq!(ran.ending, Ending::Exited(Some(33)));
    assert!(ran.raw.is_empty());
}

/// Pass and fail at a glance: the band at the top is green or red.
fn band(boot: Boot, expect: &str) -> [u8; 3] {
    let toml = format!("[[snippet]]\nasm = \"nop\"\nexpect = {expect}\n");
    let file = xtask::job::file::parse(&toml, "test").unwrap();
    // A stick's job: the machine halts with its last screen.
    let packed = xtask::job::pack(&file, xtask::job::Purpose::Stick).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("monitor");
    let guest = Guest {
        screen: true,
        extra: Monitor::arguments(&socket),
        ..Guest::with_ramdisk(boot, Some(packed.bytes))
    };
    let picture = folder.path().join("screen.ppm");
    let looker = std::thread::spawn(move || {
        let mut monitor = Monitor::connect(&socket, Duration::from_secs(60))?;
        let mut last = None;
        // Until QEMU is gone: the last picture is that of the end.
        while let Some(picture) = monitor.screen(&picture) {
            last = Some(picture);
            std::thread::sleep(Duration::from_millis(200));
        }
        last
    });
    let ran = guest.run_in(folder.path());
    assert_eq!(ran.ending, Ending::Stopped, "the machine halts");
    let picture = looker.join().unwrap().expect("a picture");
    assert!(picture.width >= 640 && picture.height >= 400);
    picture.pixel(picture.width - 2, 2)
}

#[test]
fn the_screen_is_green_after_a_pass() {
    let ticks = "{ min = 0, max = 1000 }";
    assert_eq!(band(Boot::Bios, ticks), [20, 130, 50]);
}

#[test]
fn the_screen_is_red_after_a_failure() {
    assert_eq!(band(Boot::Uefi, "1e9"), [180, 30, 30]);
}

#[test]
fn a_job_can_switch_the_machine_off_or_reset_it() {
    for (word, screen) in [("power-off", true), ("reboot", false)] {
        let toml = format!("on-end = \"{word}\"\n{JOB}");
        let file = xtask::job::file::parse(&toml, "test").unwrap();
        let packed = xtask::job::pack(&file, xtask::job::Purpose::Stick).unwrap();
        let guest = Guest::with_ramdisk(Boot::Direct, Some(packed.bytes));
        let ran = Guest { screen, ..guest }.run();
        ran.ends_with(0);
        // With -no-reboot a reset ends QEMU, as switching off does.
        assert_eq!(ran.ending, Ending::Exited(Some(0)), "{word}");
    }
}
