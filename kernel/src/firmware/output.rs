//! The report's way out: the serial lines, if there are some.

use super::ports::Ports;
use super::saved;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::acpi::Platform;
use arch::memory::Mapped;
use arch::memory::image;
use arch::time::tsc;
use arch::uart;
use core::ops::{Deref, DerefMut};
use kernel::report::{Form, Report, Sink};
use kernel::screen::{Trouble, Ways};
use protocol::PROTOCOL_VERSION;
use protocol::authentication::Key;
use protocol::console::Received;
use protocol::hex::Hex;
use protocol::ktap::Ktap;
use protocol::record::{Record, Start};
use protocol::serial::SerialPorts;
use spin::{Mutex, MutexGuard};

/// Rate before a job says another.
pub const DEFAULT_BAUD: u32 = protocol::job::limits::MAX_BAUD;

/// Where the report goes.
pub struct Line {
    ports: Ports,
    /// What was sent before all ports were found, for those that come later.
    early: Option<Vec<u8>>,
}

impl Line {
    fn new(wanted: SerialPorts, baud: u32) -> Self {
        Self { ports: Ports::open(wanted, baud), early: Some(Vec::new()) }
    }

    /// The usual port alone, for a failure. Takes no heap.
    fn bare() -> Self {
        Self { ports: Ports::open(SerialPorts::Auto, DEFAULT_BAUD), early: None }
    }

    /// Takes the ports into use that ACPI and PCI name. Returns what the job asked for and did not get, a sentence each.
    pub fn widen(&mut self, platform: &Platform, mapped: &Mapped) -> Vec<String> {
        let before = self.ports.count();
        self.ports.widen(platform, mapped);
        let early = self.early.take().unwrap_or_default();
        self.ports.send_from(before, &early);
        core::mem::take(&mut self.ports.refused)
    }

    /// The ports in use, and where they are.
    pub fn names(&self) -> Vec<String> {
        self.ports.names()
    }

    /// Waits until everything has left the machine.
    pub fn drain(&mut self) {
        self.ports.drain();
    }

    /// Why the report is kept nowhere, or not all of it, if that is so.
    pub fn trouble(&self) -> Option<Trouble> {
        if saved::is_on() { None } else { self.ports.trouble() }
    }

    /// How the report leaves the machine, for whoever reads the screen.
    pub fn ways(&self) -> Ways {
        let trouble = self.trouble();
        let names = self.names().join(", ");
        let working = Vec::from([format!("report: {names}")]);
        Ways { working: if names.is_empty() { Vec::new() } else { working }, trouble }
    }
}

impl Sink for Line {
    fn send(&mut self, bytes: &[u8]) {
        saved::push(bytes);
        self.ports.send_from(0, bytes);
        if let Some(early) = &mut self.early {
            early.extend_from_slice(bytes);
        }
    }

    fn receive(&mut self) -> Option<(usize, Received)> {
        let (port, received) = self.ports.receive()?;
        Some((
            port,
            match received {
                uart::Received::Byte(byte) => Received::Byte(byte),
                uart::Received::Overrun => Received::Overrun,
                uart::Received::Damaged => Received::Damaged,
            },
        ))
    }
}

/// The report, while it lasts.
static REPORT: Mutex<Option<Report<Line>>> = Mutex::new(None);

/// The boot's key, for a report that a failure opens.
static KEY: Mutex<Option<Key>> = Mutex::new(None);

/// Notes the boot's key, before the report is opened. It lies in memory that ring 3 cannot read.
pub fn set_key(key: Option<Key>) {
    *KEY.lock() = key;
}

/// The report, held by one user.
pub struct Held(MutexGuard<'static, Option<Report<Line>>>);

impl Deref for Held {
    type Target = Report<Line>;

    fn deref(&self) -> &Report<Line> {
        self.0.as_ref().expect("filled by `open` or `seize`")
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Report<Line> {
        self.0.as_mut().expect("filled by `open` or `seize`")
    }
}

/// Opens the serial lines. A machine without one is measured all the same, and shows it on the screen.
pub fn open(wanted: SerialPorts, baud: u32, ktap: Option<Ktap>) -> Held {
    let mut report = REPORT.lock();
    let form = Form { key: *KEY.lock(), ktap };
    *report = Some(Report::in_form(Line::new(wanted, baud), form));
    Held(report)
}

/// Takes the report from whoever holds it, or opens it if nobody did.
///
/// # Safety
/// The holder must never run again.
pub unsafe fn seize() -> Held {
    // SAFETY: the caller promises that the guard is never used or dropped.
    unsafe {
        REPORT.force_unlock();
        KEY.force_unlock();
    }
    let mut report = REPORT.lock();
    report.get_or_insert_with(|| {
        Report::in_form(Line::bare(), Form { key: *KEY.lock(), ktap: None })
    });
    Held(report)
}

/// The record that every report begins with. `entered`: the TSC at the firmware's first instruction.
pub fn start(report: &mut Report<Line>, entered: u64) {
    report.send(&Record::Start(Start {
        program: "barecount".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL_VERSION,
        image_base: Hex(image::base()),
        tsc: [entered, tsc::now()],
    }));
}
