//! The report's way out: the serial line, if there is one.

use alloc::format;
use alloc::string::{String, ToString};
use arch::memory::image;
use arch::time::tsc;
use arch::uart::{COM1, Uart, UartError};
use core::ops::{Deref, DerefMut};
use kernel::report::{Report, Sink};
use protocol::PROTOCOL_VERSION;
use protocol::authentication::Key;
use protocol::record::{Hex, Record, Start};
use spin::{Mutex, MutexGuard};

/// Rate before a job says another.
pub const DEFAULT_BAUD: u32 = protocol::limits::MAX_BAUD;

/// The serial line, or why there is none.
pub struct Line(Result<Uart, UartError>);

impl Line {
    /// Waits until everything has left the machine.
    pub fn drain(&mut self) {
        if let Ok(uart) = &mut self.0 {
            uart.drain();
        }
    }

    /// Why the report is kept nowhere, or not all of it, if that is so.
    pub fn trouble(&self) -> Option<String> {
        match &self.0 {
            Ok(uart) if uart.lost() == 0 => None,
            Ok(uart) => Some(format!(
                "the UART at port {COM1:#x} took no more: {} bytes are lost",
                uart.lost()
            )),
            Err(error) => Some(error.to_string()),
        }
    }
}

impl Sink for Line {
    fn send(&mut self, bytes: &[u8]) {
        if let Ok(uart) = &mut self.0 {
            uart.send(bytes);
        }
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

/// Opens the serial line. A machine without one is measured all the same, and shows it on the screen.
pub fn open(baud: u32) -> Held {
    let mut report = REPORT.lock();
    *report = Some(Report::with_key(Line(find(baud)), *KEY.lock()));
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
    report.get_or_insert_with(|| Report::with_key(Line(find(DEFAULT_BAUD)), *KEY.lock()));
    Held(report)
}

fn find(baud: u32) -> Result<Uart, UartError> {
    // SAFETY: only the one report uses COM1.
    unsafe { Uart::open(COM1, baud) }
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
