//! What somebody in front of the machine sees, where that is all there is.

use qemu_tests::Guest;
use qemu_tests::monitor::{Monitor, Picture};
use std::time::{Duration, Instant};
use xtask::cli::Boot;
use xtask::job::{Purpose, file, pack};

/// How long a machine may take to show something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Boots `toml` from a stick, with a screen, and looks until all of `texts` stand there or there is no more to see.
/// Returns the last picture. With `serial`, there is a UART that nobody listens to: a report that ended would have the
/// machine stopped before there was time to look.
#[track_caller]
fn seen(toml: &str, serial: bool, texts: &'static [&'static str]) -> Picture {
    let file = file::parse(toml, "test").unwrap();
    // A stick's job: no exit device, so the machine stands still with its last screen.
    let packed = pack(&file, Purpose::Stick).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("monitor");
    let mut extra = Monitor::arguments(&socket);
    if serial {
        extra.extend(["-serial", "null"].map(String::from));
    }
    let guest = Guest {
        screen: true,
        serial: false,
        extra,
        ..Guest::with_ramdisk(Boot::Bios, Some(packed.bytes))
    };
    let dump = folder.path().join("screen.ppm");
    let looker = std::thread::spawn(move || {
        let mut monitor = Monitor::connect(&socket, PATIENCE)?;
        let (start, mut last) = (Instant::now(), None);
        while let Some(picture) = monitor.screen(&dump).filter(|_| start.elapsed() < PATIENCE) {
            let done = texts.iter().all(|text| picture.shows(text));
            last = Some(picture);
            if done {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        monitor.quit();
        last
    });
    let _ = guest.run_in(folder.path());
    let picture = looker.join().unwrap().expect("a picture");
    for text in texts {
        assert!(picture.shows(text), "`{text}` is not on the screen");
    }
    picture
}

#[test]
fn a_crash_is_drawn_and_says_that_it_is_kept_nowhere_else() {
    let picture = seen(
        "self-test = \"page-fault\"\n[[snippet]]\nasm = \"nop\"\n",
        false,
        &[
            "THE FIRMWARE FAILED",
            "at 0x66660000",
            "return addresses: 0xffffffff8",
            "NO SERIAL LINE: this report is kept nowhere but on this screen",
            "no UART answers at port 0x3f8",
        ],
    );
    assert_eq!(picture.pixel(picture.width - 2, 2), [180, 30, 30]);
}

#[test]
fn a_crash_with_a_serial_line_is_drawn_as_well() {
    let toml = "self-test = \"panic\"\n[[snippet]]\nasm = \"nop\"\n";
    let picture = seen(toml, true, &["THE FIRMWARE FAILED", "a panic on purpose", "at kernel/src"]);
    assert!(!picture.shows("NO SERIAL LINE"));
}

#[test]
fn a_pass_without_a_serial_line_says_that_its_report_is_kept_nowhere_else() {
    let picture = seen(
        "[[snippet]]\nasm = \"nop\"\nexpect = { min = 0, max = 1000 }\n",
        false,
        &[
            "PASS",
            "NO SERIAL LINE: this report is kept nowhere but on this screen",
            "no UART answers at port 0x3f8",
            "1 of 1 items: 1 passed, 0 failed, 0 measured",
        ],
    );
    assert_eq!(picture.pixel(picture.width - 2, 2), [20, 130, 50]);
    assert!(!picture.shows("running item"));
}

#[test]
fn the_item_that_runs_is_named_before_it_runs() {
    let toml = "[[snippet]]\nname = \"quick\"\nasm = \"nop\"\n\
                [[snippet]]\nname = \"without an end\"\nasm = \"2: jmp 2b\"\n\
                [[snippet]]\nname = \"never\"\nasm = \"nop\"\n";
    let picture = seen(toml, true, &["RUNNING", "running item 2 of 3: without an end"]);
    assert!(!picture.shows("NO SERIAL LINE"));
}
