//! What somebody in front of the machine sees, where that is all there is.

use protocol::digest::Digest;
use protocol::digest::text::{MARK, join};
use qemu_tests::Guest;
use qemu_tests::monitor::{Monitor, Picture};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use xtask::cli::{Boot, Icount};
use xtask::job::{Purpose, file, pack};

/// How long a machine may take to show something: pages stand for 6 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// A machine with a screen.
struct Screen {
    boot: Boot,
    /// There is a UART that nobody listens to.
    serial: bool,
    /// QEMU's device.
    device: &'static str,
}

const VGA: Screen = Screen { boot: Boot::Bios, serial: false, device: "VGA" };

impl Screen {
    /// Boots `toml` from a stick and hands every picture to `look`, until that is content or there is no more to see.
    #[track_caller]
    fn watch(&self, toml: &str, mut look: impl FnMut(Picture) -> bool + Send + 'static) {
        let file = file::parse(toml, "test").unwrap();
        // A stick's job: no exit device, so the machine goes on with its last screen.
        let packed = pack(&file, Purpose::Stick).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("monitor");
        let mut extra = Monitor::arguments(&socket);
        extra.extend(["-device", self.device].map(String::from));
        if self.serial {
            extra.extend(["-serial", "null"].map(String::from));
        }
        let guest = Guest {
            serial: false,
            extra,
            // The host's clock: pages then stand as long as they do on a machine.
            icount: Icount::Off,
            timeout: PATIENCE + Duration::from_secs(20),
            ..Guest::with_ramdisk(self.boot, Some(packed.bytes))
        };
        let dump = folder.path().join("screen.ppm");
        let looker = std::thread::spawn(move || {
            let mut monitor = Monitor::connect(&socket, PATIENCE)?;
            let start = Instant::now();
            while let Some(picture) = monitor.screen(&dump).filter(|_| start.elapsed() < PATIENCE) {
                if look(picture) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(300));
            }
            monitor.quit();
            Some(())
        });
        let _ = guest.run_in(folder.path());
        looker.join().unwrap().expect("a picture");
    }

    /// Waits until all of `texts` stand on the screen at the same time. Returns that picture.
    #[track_caller]
    fn seen(&self, toml: &str, texts: &'static [&'static str]) -> Picture {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.watch(toml, move |picture| {
            let done = texts.iter().all(|text| picture.shows(text));
            let _ = sender.send(picture);
            done
        });
        let picture = receiver.into_iter().last().expect("a picture");
        kept(&picture);
        for text in texts {
            assert!(picture.shows(text), "`{text}` is not on the screen");
        }
        picture
    }
}

/// Keeps a picture where the variable BARECOUNT_SCREENS names a folder: for the documents.
fn kept(picture: &Picture) {
    if let Some(folder) = std::env::var_os("BARECOUNT_SCREENS") {
        let name = std::thread::current().name().unwrap_or("test").to_string();
        let name = format!("{name}-{}x{}.ppm", picture.width, picture.height);
        let path = std::path::Path::new(&folder).join(name);
        std::fs::write(path, picture.ppm()).expect("the picture can be written");
    }
}

const RED: [u8; 3] = [180, 30, 30];

/// Three sizes, of which QEMU's screen tells the UEFI firmware.
const SIZES: [(&str, [usize; 2]); 3] = [
    ("VGA,xres=1024,yres=768,edid=on", [1024, 768]),
    ("VGA,xres=1920,yres=1080,edid=on", [1920, 1080]),
    ("VGA,xres=3840,yres=2160,edid=on,refresh_rate=30000,vgamem_mb=64", [3840, 2160]),
];

#[track_caller]
fn at_all_sizes(toml: &str, texts: &'static [&'static str], band: [u8; 3]) {
    for (device, size) in SIZES {
        let screen = Screen { boot: Boot::Uefi, serial: false, device };
        let picture = screen.seen(toml, texts);
        assert_eq!([picture.width, picture.height], size);
        assert_eq!(picture.pixel(picture.width - 2, 2), band);
    }
}

#[test]
fn a_crash_is_drawn_and_says_that_it_is_kept_nowhere_else() {
    at_all_sizes(
        "self-test = \"page-fault\"\n[[snippet]]\nasm = \"nop\"\n",
        &[
            "THE FIRMWARE FAILED",
            "at 0x66660000",
            "return addresses: 0xffffffff8",
            "NO SERIAL LINE: no UART responds at port",
        ],
        RED,
    );
}

#[test]
fn a_crash_with_a_serial_line_is_drawn_as_well() {
    let toml = "self-test = \"panic\"\n[[snippet]]\nasm = \"nop\"\n";
    let screen = Screen { serial: true, ..VGA };
    let picture =
        screen.seen(toml, &["THE FIRMWARE FAILED", "a panic on purpose", "at kernel/src"]);
    assert!(!picture.shows("NO SERIAL LINE"));
}

/// On most machines of today there is no serial line to say it on.
#[test]
fn x5_a_crash_before_the_machine_is_known_is_drawn() {
    let toml = "self-test = \"early-panic\"\n[[snippet]]\nasm = \"nop\"\n";
    VGA.seen(toml, &["THE FIRMWARE FAILED", "an early panic on purpose", "NO SERIAL LINE"]);
}

/// Some items, the last of which misses by the most.
fn items(last: &str) -> String {
    let one = |name: &str, asm: &str, expect: &str| {
        format!("[[snippet]]\nname = \"{name}\"\nasm = \"{asm}\"\n{expect}\n")
    };
    // The clock is the host's, and what differs is small: beside other programs it may come out below 0.
    let within = "expect = { max = 100000 }";
    one("an add", "add rax, rbx", within)
        + &one("a chain of eight", "imul rax, rax; imul rax, rax", within)
        + &one("cpuid", "cpuid", "")
        + last
}

#[test]
fn a_pass_shows_its_figures_the_machine_and_that_there_is_no_serial_line() {
    at_all_sizes(
        &items(""),
        &[
            "PASS",
            "3 of 3 items",
            "2 passed, 0 failed",
            "an add",
            "spread",
            "no PMU: CPUID announces no performance counters",
            "trust: TSC ticks alone",
            "NO SERIAL LINE: no UART responds at port 0x3f8",
            "page 1 of 2, QR code on page 2",
        ],
        [20, 130, 50],
    );
}

#[test]
fn a_miss_stands_first_with_what_was_expected() {
    at_all_sizes(
        &items(
            "[[snippet]]\nname = \"too slow\"\nasm = \"cpuid; cpuid\"\nexpect = { max = 0.001 }\n\
             [[snippet]]\nname = \"faults\"\nasm = \"ud2\"\n",
        ),
        &[
            "FAIL",
            "2 passed, 2 failed",
            "page 1 of",
            "faults",
            "too slow",
            "MISS",
            "expected at most 0.001",
        ],
        RED,
    );
}

#[test]
fn the_item_that_runs_is_named_before_it_runs() {
    let toml = "[[snippet]]\nname = \"quick\"\nasm = \"nop\"\n\
                [[snippet]]\nname = \"without an end\"\nasm = \"2: jmp 2b\"\n\
                [[snippet]]\nname = \"never\"\nasm = \"nop\"\n";
    let screen = Screen { serial: true, ..VGA };
    let picture = screen.seen(toml, &["RUNNING", "item 2 of 3: without an end"]);
    assert!(!picture.shows("NO SERIAL LINE"));
}

/// The codes, read by a library that is none of ours, from what QEMU shows; then by `collect`.
#[test]
fn the_last_screens_codes_hold_the_run() {
    // More than one code, and more than one page of figures.
    let item = |index: u64| {
        let name = format!("item {index} {:x}", index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        format!("[[snippet]]\nname = \"{name}\"\nasm = \"imul rax, rax\"\n")
    };
    let toml: String = (0..60).map(item).collect();
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut texts = BTreeSet::new();
    let mut pictures: Vec<Vec<u8>> = Vec::new();
    VGA.watch(&toml, move |picture| {
        let brightness = |x, y| picture.brightness(x, y);
        let mut image =
            rqrr::PreparedImage::prepare_from_greyscale(picture.width, picture.height, brightness);
        for grid in image.detect_grids() {
            let Ok((_, text)) = grid.decode() else { continue };
            if texts.insert(text) {
                pictures.push(picture.ppm());
                kept(&picture);
            }
        }
        let all: String = texts.iter().map(String::as_str).collect();
        let done = join(&all);
        if let Ok(packed) = &done {
            sender.send((packed.clone(), pictures.clone())).unwrap();
        }
        done.is_ok()
    });
    let (packed, pictures) = receiver.recv().expect("all codes were seen");
    let digest = Digest::unpack(&packed).unwrap();
    assert_eq!((digest.items.len(), digest.measured, digest.left_out), (60, 60, 0));
    assert!(digest.machine[0].starts_with("QEMU TCG CPU"), "{:?}", digest.machine);
    assert!(pictures.len() > 1, "one code");
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<String> = (0..)
        .zip(&pictures)
        .map(|(index, bytes): (usize, _)| {
            let path = folder.path().join(format!("{index}.ppm"));
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        })
        .collect();
    let arguments: Vec<&str> =
        ["collect", "--qr"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let called = qemu_tests::xtask(folder.path(), &arguments);
    assert_eq!(called.code, 0, "{}", called.err);
    for text in ["QEMU TCG CPU", "item 59", "pass: 0 passed, 0 failed, 60 measured"] {
        assert!(called.out.contains(text), "{text}: {}", called.out);
    }
    // And from the text as a phone would show it.
    let text: String = {
        let parts = protocol::digest::text::split(&packed, 300).unwrap();
        parts.join("\n\n")
    };
    assert!(text.starts_with(MARK));
    let path = folder.path().join("text");
    std::fs::write(&path, text).unwrap();
    let from_text = qemu_tests::xtask(folder.path(), &["collect", "--qr", path.to_str().unwrap()]);
    assert_eq!(from_text.out, called.out);
}
