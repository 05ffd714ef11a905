//! Boots over the network, and reports that are sent over it.

use qemu_tests::servers::Server;
use qemu_tests::stick::{Machine, On, OnReset, image, report_of};
use qemu_tests::xtask;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const JOB: &str = "
name = \"network\"
[[snippet]]
name = \"imul\"
asm = \"imul rax, rax\"
runs = 50
values = true
";
/// What the application asks when there is nothing left to do.
const QUESTION: &str = "O: switch off";
/// The card's address, which QEMU gives the first one.
const MAC: &str = "525400123456";

/// A folder for a boot server.
fn served(folder: &Path, more: &[&str]) -> PathBuf {
    served_job(folder, JOB, more)
}

/// The same with another job.
fn served_job(folder: &Path, job: &str, more: &[&str]) -> PathBuf {
    fs::write(folder.join("job.toml"), job).unwrap();
    let made = xtask(folder, &[&["image", "job.toml", "--network", "server"], more].concat());
    assert_eq!(made.code, 0, "{made:#?}");
    folder.join("server")
}

/// QEMU's network with its own TFTP server, and a card for which UEFI firmware has a driver.
fn card(folder: &Path, file: &str) -> [String; 4] {
    let network = format!("user,id=net,tftp={},bootfile={file}", folder.display());
    let card = "virtio-net-pci,netdev=net,romfile=,bootindex=0".to_string();
    ["-netdev".to_string(), network, "-device".to_string(), card]
}

fn start(machine: &Machine, devices: &[String]) -> On {
    machine.start_devices(OnReset::Boots, &devices.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The name of a report on a server: `REPORT-<date>-<number>-<card>.jsonl`.
#[track_caller]
fn is_named(request: &str, folder: &str, number: u32) {
    let name = request.strip_prefix(folder).unwrap_or_else(|| panic!("{request}"));
    let plain = name.replace(&format!("-{MAC}"), "");
    assert_ne!(plain, name, "the card's address");
    let parsed = stick::names::Name::parse(&plain).unwrap_or_else(|| panic!("{name}"));
    assert_eq!((parsed.kind, parsed.number), (stick::names::Kind::Report, number));
}

#[test]
fn x9_pxe_boots_and_what_is_uploaded_is_the_report_of_the_serial_line() {
    let server = Server::http(&["500 Internal Server Error"]);
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://10.0.2.2:{}/lab/", server.port);
    let given = served(folder.path(), &["--upload", &url]);
    let machine = Machine::new(folder.path(), PathBuf::new());
    let mut on = start(&machine, &card(&given, "barecount.efi"));
    // The server does not take it: it stays.
    on.wait_for("NOT SENT: the server responds 500 INTERNAL SERVER ERROR", 1);
    on.wait_for(QUESTION, 1);
    on.reset();
    // The next boot sends it, and measures nothing.
    on.wait_for(&format!("sent: {url}REPORT-"), 1);
    on.wait_for(QUESTION, 2);
    assert_eq!(on.text().matches("{\"seq\":0,").count(), 1, "{}", on.text());
    on.reset();
    // Nothing is sent twice: the next boot measures, and sends what it measured.
    on.wait_for(&format!("sent: {url}REPORT-"), 2);
    on.wait_for(QUESTION, 3);
    on.type_in("o");
    assert!(on.wait_off().success());
    let (taken, console, text) = (server.taken(), on.console(), on.text());
    assert_eq!(text.matches(", found in memory").count(), 3, "{text}");
    assert_eq!(text.matches("{\"seq\":0,").count(), 2, "{text}");
    let expected = [(1, 0), (1, 0), (2, 1)];
    assert_eq!(taken.len(), expected.len(), "{taken:#?}");
    for (taken, (number, boot)) in taken.iter().zip(expected) {
        is_named(&taken.request, "PUT /lab/", number);
        assert!(taken.bytes == report_of(&console, boot), "{taken:#?}");
    }
    // It reads as any log of the line.
    let log = folder.path().join("report.jsonl");
    fs::write(&log, &taken[2].bytes).unwrap();
    let read = xtask(folder.path(), &["collect", "--serial", &log.display().to_string()]);
    assert_eq!(read.code, 0, "{read:#?}");
    assert!(read.out.contains("imul"), "{read:#?}");
}

/// Nobody is there to turn the pages.
#[test]
fn x9_a_report_of_many_pages_is_sent_again_without_a_key() {
    let server = Server::http(&["500 Internal Server Error"]);
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://10.0.2.2:{}/lab/", server.port);
    let item = |n| format!("[[snippet]]\nname = \"item {n}\"\nasm = \"nop\"\nruns = 1\n");
    // More than any text mode has rows.
    let job: String = (0..120).map(item).collect();
    let given = served_job(folder.path(), &job, &["--upload", &url]);
    let machine = Machine::new(folder.path(), PathBuf::new());
    let mut on = start(&machine, &card(&given, "barecount.efi"));
    on.wait_for("NOT SENT: the server responds 500 INTERNAL SERVER ERROR", 1);
    on.wait_for(&format!("sent: {url}REPORT-"), 1);
    on.wait_for(QUESTION, 2);
    on.type_in("o");
    assert!(on.wait_off().success());
    let (taken, report) = (server.taken(), report_of(&on.console(), 0));
    assert!(!on.text().contains("any key"), "{}", on.text());
    assert_eq!(taken.len(), 2, "{taken:#?}");
    for taken in &taken {
        is_named(&taken.request, "PUT /lab/", 1);
        assert!(taken.bytes == report, "{taken:#?}");
    }
}

#[test]
fn x9_a_stick_saves_the_report_and_sends_it_by_tftp() {
    let server = Server::tftp();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("tftp://10.0.2.2:{}/reports/", server.port);
    let stick = image(folder.path(), "stick.img", JOB, &["--upload", &url]);
    let machine = Machine::new(folder.path(), stick);
    let drive = format!("if=none,id=stick,format=raw,file={}", machine.image.display());
    let devices = ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="];
    let devices = [&["-drive", &drive][..], &devices].concat();
    let mut on = machine.start_with(OnReset::Boots, &devices);
    on.wait_for(&format!("sent: {url}REPORT-"), 1);
    on.wait_for(QUESTION, 1);
    on.type_in("o");
    assert!(on.wait_off().success());
    let (taken, report) = (server.taken(), report_of(&on.console(), 0));
    assert_eq!(taken.len(), 1, "{taken:#?}");
    is_named(&taken[0].request, "reports/", 1);
    assert!(taken[0].bytes == report, "{taken:#?}");
    let saved = ::xtask::stick::read(&machine.image).unwrap().saved;
    assert_eq!(saved.len(), 1, "{}", on.text());
    assert!(saved[0].bytes == report, "{}", saved[0].name);
}

#[test]
fn x9_ipxe_boots_a_machine_with_a_bios() {
    let folder = tempfile::tempdir().unwrap();
    let given = served(folder.path(), &[]);
    // QEMU's card comes with iPXE in its ROM.
    let network = format!("user,id=net,tftp={},bootfile=boot.ipxe", given.display());
    let mut on = On::bios(
        folder.path(),
        &["-netdev", &network, "-device", "virtio-net-pci,netdev=net,bootindex=0"],
    );
    on.wait_for("\"type\":\"end\"", 1);
    // The rest of the line is on its way.
    for _ in 0..1000 {
        if on.text().ends_with("\r\n") {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    on.cut_power();
    let report = String::from_utf8(report_of(&on.console(), 0)).unwrap();
    assert!(report.contains("\"name\":\"imul\""), "{report}");
}

#[test]
fn where_reports_are_sent_has_to_be_a_folder_on_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let image = |more: &[&str]| xtask(folder.path(), &[&["image"], more].concat());
    for (url, reason) in [
        ("ftp://10.0.2.2/", "`ftp://10.0.2.2/` begins with neither http:// nor tftp://"),
        ("http://10.0.2.2/report", "does not end with a slash"),
        ("tftp://server/x/", "it must be an IPv4 address"),
        ("http://10.0.2.2:99999/", "has the port `99999`"),
    ] {
        image(&["--network", "server", "--upload", url]).fails_with(2, &["--upload", reason]);
    }
    let url = "http://10.0.2.2/";
    image(&["--out", "a.img", "--save", "off", "--upload", url])
        .fails_with(2, &["--upload needs --save on"]);
    image(&["--out", "a.img", "--network", "server"]).fails_with(2, &["cannot be used with"]);
    image(&[]).fails_with(2, &["--out"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}

/// The one file is a program that firmware loads: its own sections are where they were, and the volume has a section.
#[test]
fn what_a_boot_server_gives_out_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let given = served(folder.path(), &["--upload", "http://10.0.2.2/"]);
    let mut names: Vec<_> = fs::read_dir(&given)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["barecount.efi", "boot.ipxe", "direct.bin", "kernel", "ramdisk"]);
    let kernel = fs::read(given.join("kernel")).unwrap();
    assert!(kernel.starts_with(&compressed_kernel::MAGIC), "compressed as in images");
    let script = fs::read_to_string(given.join("boot.ipxe")).unwrap();
    assert!(script.starts_with("#!ipxe\n") && script.contains("chain barecount.efi"), "{script}");
    let program = fs::read(given.join("barecount.efi")).unwrap();
    let volume = program.windows(8).position(|name| *name == stick::VOLUME_SECTION);
    assert!(volume.is_some_and(|at| at < 4096), "a row of the section table");
    let settings = b"upload http://10.0.2.2/\n";
    assert!(program.windows(settings.len()).any(|bytes| bytes == settings));
}
