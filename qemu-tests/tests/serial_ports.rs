//! Serial ports of every kind: each that is asked for has the same report, and one that is not there is said.

use protocol::ramdisk::{SectionKind, add_section};
use protocol::record::{ErrorCode, ErrorRecord, Record};
use qemu_tests::{Guest, Ran};
use std::path::Path;
use std::time::Duration;
use xtask::cli::Boot;
use xtask::collect::{Collector, Report};
use xtask::job::{Purpose, file, pack};

const JOB: &str = "[[snippet]]\nname = \"imul\"\nasm = \"imul rax, rax\"\n";
/// A PC's old ports, by number.
const COM: [u16; 4] = [0x3f8, 0x2f8, 0x3e8, 0x2e8];

/// Boots with `devices` in place of COM1; each of `files` is a `-chardev` of that name, whose file is returned.
fn booted<const N: usize>(ports: &str, devices: &[&str], files: [&str; N]) -> (Ran, [Report; N]) {
    let file = file::parse(JOB, "test").unwrap();
    let mut ramdisk = pack(&file, Purpose::Qemu).unwrap().bytes;
    if !ports.is_empty() {
        let ports: protocol::serial::SerialPorts = ports.parse().unwrap();
        add_section(&mut ramdisk, SectionKind::SerialPorts, &ports.pack()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut extra = Vec::new();
    for name in files {
        extra.push("-chardev".to_string());
        extra.push(format!("file,id={name},path={}", path(name).display()));
    }
    extra.extend(devices.iter().map(ToString::to_string));
    let guest = Guest {
        serial: false,
        extra,
        timeout: Duration::from_secs(60),
        ..Guest::with_ramdisk(Boot::Direct, Some(ramdisk))
    };
    let ran = guest.run_in(folder.path());
    let read = |name: &str| report(&path(name));
    let reports = files.map(read);
    (ran, reports)
}

fn report(path: &Path) -> Report {
    let mut collector = Collector::new();
    collector.feed(&std::fs::read(path).unwrap());
    collector.finish()
}

#[track_caller]
fn is_whole(report: &Report, serial: &[&str]) {
    assert_eq!(report.problems, [], "{:?}", report.foreign);
    assert_eq!(report.exit_code(), 0);
    assert_eq!(report.machine().unwrap().serial, serial);
}

fn device_errors(report: &Report) -> Vec<&str> {
    let device = |error: &&ErrorRecord| error.code == ErrorCode::Device;
    report.errors().filter(device).map(|error| error.text.as_str()).collect()
}

/// An ISA UART at a COM port of this index.
fn isa(name: &str, index: usize) -> [String; 2] {
    let device = format!("isa-serial,chardev={name},iobase={:#x},irq=4", COM[index]);
    ["-device".to_string(), device]
}

#[test]
fn com1_to_com4_all_have_the_report_at_once() {
    let names = ["one", "two", "three", "four"];
    let devices: Vec<String> = (0..4).flat_map(|index| isa(names[index], index)).collect();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    let (_, reports) = booted("com1,com2,com3,com4", &devices, names);
    let serial =
        ["COM1 (port 0x3f8)", "COM2 (port 0x2f8)", "COM3 (port 0x3e8)", "COM4 (port 0x2e8)"];
    for report in &reports {
        is_whole(report, &serial);
        assert_eq!(report.records, reports[0].records);
        assert_eq!(device_errors(report), [""; 0]);
    }
}

#[test]
fn without_com1_the_first_other_port_is_taken() {
    let devices = isa("three", 2);
    let (_, [report]) = booted("", &[&devices[0], &devices[1]], ["three"]);
    is_whole(&report, &["COM3 (port 0x3e8)"]);
    assert!(matches!(report.records[0].record, Record::Start(_)), "what was sent before is there");
}

#[test]
fn a_port_without_a_device_is_said_and_nothing_waits_for_it() {
    let devices = isa("two", 1);
    let (_, [report]) = booted(
        "com1,com2,spcr,pci,port:0x1230,mmio:0xfeb00000/4,mmio:0xfffffffff0000000",
        &[&devices[0], &devices[1]],
        ["two"],
    );
    is_whole(&report, &["COM2 (port 0x2f8)"]);
    assert_eq!(
        device_errors(&report),
        [
            "serial port COM1: no UART responds at port 0x3f8",
            "serial port port:0x1230: no UART responds at port 0x1230",
            "serial port SPCR: ACPI has no such table, or it names no 16550",
            "serial port PCI: no PCI device is a 16550",
            "serial port mmio:0xfeb00000/4: no UART responds at address 0xfeb00000",
            "serial port mmio:0xfffffffff0000000/1: the UART at address 0xfffffffff0000000 is beyond the mapped memory",
        ]
    );
}

/// The same class as Intel AMT's serial over LAN. QEMU's multiboot has SeaBIOS run first, which gives it its port.
#[test]
fn pci_uarts_are_found() {
    let devices =
        ["-device", "pci-serial,chardev=one", "-device", "pci-serial,chardev=two,addr=0x1e"];
    let (_, reports) = booted("pci", &devices, ["one", "two"]);
    for report in &reports {
        assert_eq!((&report.problems[..], report.exit_code()), (&[][..], 0));
        let serial = &report.machine().unwrap().serial;
        assert_eq!(serial.len(), 2, "{serial:?}");
        assert!(serial[1].starts_with("PCI 00:1e.0 (port 0x"), "{serial:?}");
    }
    // Without COM1, one of them is enough.
    let (_, [report]) = booted("", &devices[..2], ["one"]);
    assert!(report.machine().unwrap().serial[0].starts_with("PCI "));
}

/// Two ports more than the firmware opens: each of those that have none is named in the report.
#[test]
fn ports_beyond_the_sixteenth_are_said() {
    let device = |index: usize| {
        let file = if index == 0 { "one".to_string() } else { format!("none{index}") };
        let device = format!("pci-serial,chardev={file},addr={:#x}", index + 4);
        let none = ["-chardev".to_string(), format!("null,id={file}")];
        let none = none.into_iter().filter(move |_| index > 0);
        none.chain(["-device".to_string(), device]).collect::<Vec<_>>()
    };
    let devices: Vec<String> = (0..18).flat_map(device).collect();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    for ports in ["pci", "all"] {
        let (_, [report]) = booted(ports, &devices, ["one"]);
        assert_eq!(report.machine().unwrap().serial.len(), 16, "{ports}");
        assert_eq!(
            device_errors(&report),
            [
                "serial port PCI 00:14.0: no more can be open",
                "serial port PCI 00:15.0: no more can be open",
            ],
            "{ports}"
        );
    }
}

/// An ACPI table as `-acpitable` takes it: QEMU fills in length and checksum.
fn table(folder: &Path, signature: &str, content: &[u8]) -> [String; 2] {
    let file = folder.join(signature);
    std::fs::write(&file, content).unwrap();
    ["-acpitable".to_string(), format!("sig={signature},rev=2,data={}", file.display())]
}

fn address(port: u64) -> Vec<u8> {
    // In port space, 8 bits wide, accessed by bytes.
    [&[1, 8, 0, 1], &port.to_le_bytes()[..]].concat()
}

#[test]
fn the_consoles_port_by_spcr_has_the_report_besides_com1() {
    let folder = tempfile::tempdir().unwrap();
    let content = [&[0, 0, 0, 0], &address(0x2e8)[..], &[0; 28]].concat();
    let table = table(folder.path(), "SPCR", &content);
    let (com1, com4) = (isa("one", 0), isa("four", 3));
    let devices: Vec<&str> =
        [&com1[..], &com4, &table].concat().leak().iter().map(String::as_str).collect();
    let (_, reports) = booted("", &devices, ["one", "four"]);
    for report in &reports {
        is_whole(report, &["COM1 (port 0x3f8)", "SPCR (port 0x2e8)"]);
        assert_eq!(report.records, reports[0].records);
    }
}

#[test]
fn a_debuggers_port_by_dbg2_is_taken_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = vec![0, 38, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 22, 0, 34, 0];
    device.extend(address(0x3e8));
    device.extend([8, 0, 0, 0]);
    let content = [&44_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &device].concat();
    let table = table(folder.path(), "DBG2", &content);
    let com3 = isa("three", 2);
    let devices: Vec<&str> =
        [&com3[..], &table].concat().leak().iter().map(String::as_str).collect();
    let (_, [report]) = booted("dbg2", &devices, ["three"]);
    is_whole(&report, &["DBG2 (port 0x3e8)"]);
}

#[test]
fn all_takes_every_one_that_works_once() {
    let folder = tempfile::tempdir().unwrap();
    // The console's port is COM2 as well: it gets the report once.
    let content = [&[0, 0, 0, 0], &address(0x2f8)[..], &[0; 28]].concat();
    let table = table(folder.path(), "SPCR", &content);
    let com2 = isa("two", 1);
    let pci = ["-device".to_string(), "pci-serial,chardev=pci".to_string()];
    let devices: Vec<&str> =
        [&com2[..], &pci, &table].concat().leak().iter().map(String::as_str).collect();
    let (_, reports) = booted("all", &devices, ["two", "pci"]);
    for report in &reports {
        assert_eq!((&report.problems[..], report.exit_code()), (&[][..], 0));
        let serial = &report.machine().unwrap().serial;
        assert_eq!((serial.len(), &*serial[0]), (2, "SPCR (port 0x2f8)"), "{serial:?}");
        assert_eq!(report.records, reports[0].records);
        assert_eq!(device_errors(report), [""; 0], "nobody named one that is not there");
    }
}
