//! Machines whose BIOS or processor is not what the loaders would like: each boots, or says why not.

use qemu_tests::monitor::Monitor;
use qemu_tests::{Guest, Ran};
use std::time::{Duration, Instant};
use xtask::cli::Boot;
use xtask::machine::Ending;

const JOB: &str = "[[snippet]]\nname = \"imul\"\nasm = \"imul rax, rax\"\n";
const NO_LONG_MODE: &str =
    "barecount: this processor has no 64-bit mode (CPUID leaf 0x80000001, EDX bit 29)";
const NO_NX: &str = "barecount: this processor has no no-execute pages";

/// Boots through the BIOS with further arguments; returns the screen's size.
#[track_caller]
fn measured(extra: &[&str]) -> Option<[u32; 2]> {
    let extra = extra.iter().map(ToString::to_string).collect();
    let ran = Guest { extra, ..Guest::new(Boot::Bios, JOB) }.run();
    ran.ends_with(0);
    assert_eq!(ran.medians(), [("imul", 1.0)]);
    ran.report.machine().unwrap().screen
}

/// These video BIOSes load a descriptor table of their own with each call (QEMU 10.0.2, SeaBIOS 1.16.3 on coreboot's
/// linear frame buffer).
#[test]
fn a_video_bios_that_changes_the_descriptor_table_does_no_harm() {
    for device in ["bochs-display", "ramfb"] {
        let screen = measured(&["-device", device]).expect(device);
        assert!(screen[0] >= 640 && screen[1] >= 400, "{device}: {screen:?}");
    }
}

#[test]
fn other_video_bioses_have_modes_as_well() {
    for device in ["VGA", "cirrus-vga", "virtio-vga"] {
        assert!(measured(&["-device", device]).is_some(), "{device}");
    }
}

#[test]
fn without_a_video_bios_the_run_goes_on_without_a_screen() {
    assert_eq!(measured(&["-vga", "none"]), None);
}

fn with_cpu(boot: Boot, cpu: &str) -> Ran {
    Guest { cpu: Some(cpu.to_string()), ..Guest::new(boot, JOB) }.run()
}

#[test]
fn a_processor_without_long_mode_or_no_execute_pages_gets_a_sentence() {
    for boot in [Boot::Bios, Boot::Direct] {
        let none = [("qemu32", NO_LONG_MODE), ("pentium3", NO_LONG_MODE)];
        // An Intel processor is asked first whether they are merely switched off.
        for (cpu, sentence) in
            none.into_iter().chain([("qemu64,-nx", NO_NX), ("Nehalem,-nx", NO_NX)])
        {
            let ran = with_cpu(boot, cpu);
            let said = String::from_utf8_lossy(&ran.raw);
            assert!(said.contains(sentence), "{boot:?}, {cpu}: {said}");
            assert_eq!(ran.ending, Ending::Exited(Some(39)), "{boot:?}, {cpu}");
            assert!(ran.report.records.is_empty(), "{boot:?}, {cpu}: {said}");
        }
    }
}

/// Without an exit device the machine stands still, and who has no serial line reads it on the text screen.
#[test]
fn the_sentence_stands_on_the_text_screen_too() {
    const PATIENCE: Duration = Duration::from_secs(60);
    for boot in [Boot::Bios, Boot::Direct] {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("monitor");
        let guest = Guest {
            // As on hardware: nothing says that there may be an exit device.
            cpu: Some("qemu32,-hypervisor".to_string()),
            screen: true,
            serial: false,
            extra: Monitor::arguments(&socket),
            ..Guest::new(boot, JOB)
        };
        let looker = std::thread::spawn(move || {
            let mut monitor = Monitor::connect(&socket, PATIENCE)?;
            let start = Instant::now();
            let mut text = monitor.text_screen()?;
            while !text.contains(NO_LONG_MODE) && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(200));
                text = monitor.text_screen()?;
            }
            monitor.quit();
            Some(text)
        });
        let _ = guest.run_in(folder.path());
        let text = looker.join().unwrap().expect("a text screen");
        assert!(text.contains(NO_LONG_MODE), "{boot:?}: {text}");
    }
}

/// The built-in tour on processors that lack what some of its items use: they are skipped, with the reason.
#[test]
fn the_tour_skips_what_the_processor_has_not() {
    let tour = xtask::job::load(None, &xtask::job::Overrides::default(), xtask::job::Purpose::Qemu);
    let tour = tour.unwrap();
    for (cpu, lacks) in [("qemu64,-popcnt", "POPCNT"), ("qemu64,-sse3,-popcnt", "SSE3")] {
        let ran = Guest {
            cpu: Some(format!("{cpu},-x2apic")),
            ..Guest::with_ramdisk(Boot::Direct, Some(tour.bytes.clone()))
        };
        let ran = ran.run();
        ran.ends_with(0);
        let errors = ran.errors();
        let reason = format!("this processor has no {lacks} (CPUID leaf 0x1, ECX bit ");
        assert!(errors.iter().any(|error| error.text.starts_with(&reason)), "{cpu}: {errors:#?}");
        for error in errors {
            let skipped = protocol::record::ErrorCode::Skipped;
            assert!(error.code == skipped && error.item.is_some(), "{cpu}: {error:?}");
        }
    }
}
