//! Running QEMU and reading what comes out of its serial line.

use super::cpu_time::CpuClock;
use super::{MachineError, seconds, stop_line};
use crate::collect::Collector;
use crate::console::Driver;
use crate::interrupt;
use crate::process::{end_group, tied};
use crate::setup::qemu;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How QEMU ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    /// By itself, with this exit status (`None`: by a signal).
    Exited(Option<i32>),
    /// We ended it after the end record: the job named no exit device.
    Stopped,
    /// We ended it because it had said nothing for so long.
    Silent(Duration),
    /// We ended it because the time was up.
    TimedOut(Duration),
    /// This signal came, for us or for both.
    Interrupted(&'static str),
}

/// A run that is over.
pub struct Finished {
    /// The report, as far as it came.
    pub collector: Collector,
    /// How QEMU ended.
    pub ending: Ending,
    /// What QEMU itself said.
    pub said: String,
    /// From the start of the process to the first record.
    pub to_first_record: Option<Duration>,
    /// From the start of the process to the end record.
    pub to_end_record: Option<Duration>,
    /// Processor time that QEMU took from the first record to the end record.
    pub cpu_between_records: Option<Duration>,
}

/// How long a machine may take from its end record to its end.
const GRACE: Duration = Duration::from_secs(3);
/// How often signs of life are given.
const TICK: Duration = Duration::from_millis(100);

/// How long a machine may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In all.
    pub timeout: Duration,
    /// From one record to the next.
    pub silence: Option<Duration>,
}

impl From<Duration> for Limits {
    fn from(timeout: Duration) -> Self {
        Self { timeout, silence: None }
    }
}

/// What is started.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// In place of the QEMU that this process uses.
    pub program: Option<&'a Path>,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Where it runs.
    pub folder: &'a Path,
    /// How long it may take.
    pub limits: Limits,
}

/// Runs QEMU until it ends, its report ends, or the time is over. `tick` is called with the collector now and then.
///
/// # Errors
/// QEMU cannot be started.
pub fn run(launch: &Launch, tick: impl FnMut(&Collector)) -> Result<Finished, MachineError> {
    run_into(Collector::new(), launch, tick)
}

/// The same into a collector that knows something of the boot, such as its key.
///
/// # Errors
/// As for [`run`].
pub fn run_into(
    collector: Collector,
    launch: &Launch,
    mut tick: impl FnMut(&Collector),
) -> Result<Finished, MachineError> {
    run_timed(collector, launch, |collector, _| tick(collector))
}

/// The same where `tick` also gets QEMU's clock of processor time.
///
/// # Errors
/// As for [`run`].
pub fn run_timed(
    collector: Collector,
    launch: &Launch,
    mut tick: impl FnMut(&Collector, &CpuClock),
) -> Result<Finished, MachineError> {
    start(collector, launch, None, |collector, clock| {
        tick(collector, clock);
        Vec::new()
    })
}

/// The same as [`run_into`] where `driver` says what is sent to the serial line.
///
/// # Errors
/// As for [`run`].
pub fn run_driven(
    collector: Collector,
    launch: &Launch,
    driver: &mut Driver,
    mut tick: impl FnMut(&Collector),
) -> Result<Finished, MachineError> {
    driver.boots();
    start(collector, launch, Some(Stdio::piped()), |collector, _| {
        tick(collector);
        driver.drive(collector)
    })
}

/// Starts QEMU with `input`, if it has one, where what `tick` returns goes.
fn start(
    collector: Collector,
    launch: &Launch,
    input: Option<Stdio>,
    mut tick: impl FnMut(&Collector, &CpuClock) -> Vec<u8>,
) -> Result<Finished, MachineError> {
    let mut command = match launch.program {
        Some(program) => tied(program),
        None => tied(qemu::probe().map_or_else(|_| qemu::program().into(), |found| found.path)),
    };
    command
        .args(launch.arguments)
        .current_dir(launch.folder)
        .stdin(input.unwrap_or_else(Stdio::null));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // The program may be a script that waits for QEMU. Both are in a group of their own, which is ended as a whole: QEMU alone
    // would live on and keep the streams open. Ctrl-C does not reach the group, so it is waited for here.
    command.process_group(0);
    let _deferred = interrupt::defer();
    // Those of its arguments that speak of the plugin name it; to a machine without the plugin it is nothing.
    stop_line::give(&mut command).map_err(MachineError::NoStart)?;
    let start = Instant::now();
    let mut child = command.spawn().map_err(MachineError::NoStart)?;
    let serial = reader(child.stdout.take().expect("piped"));
    let sender = child.stdin.take().map(writer);
    let mut errors = child.stderr.take().expect("piped");
    let said = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What QEMU managed to say before it died is what there is.
        let _ = errors.read_to_end(&mut text);
        String::from_utf8_lossy(&text).trim().to_string()
    });
    let clock = CpuClock::of(&child);
    let mut run = Run { collector, start, heard: start, clock, first: None, end: None };
    let mut tick = |collector: &Collector, clock: &CpuClock| {
        let sent = tick(collector, clock);
        if let Some(sender) = sender.as_ref().filter(|_| !sent.is_empty()) {
            // A machine that has gone takes nothing.
            let _ = sender.send(sent);
        }
    };
    let ending = run.watch(&mut child, &serial, launch.limits, &mut tick);
    let cpu_between_records = run.cpu();
    Ok(Finished {
        collector: run.collector,
        ending,
        said: said.join().unwrap_or_default(),
        to_first_record: run.first.map(|moment| moment.passed),
        to_end_record: run.end.map(|moment| moment.passed),
        cpu_between_records,
    })
}

/// A thread that passes on what it reads; the channel closes with the stream.
fn reader(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A thread that writes what it is given, until it is given no more: QEMU takes bytes as the machine does.
fn writer(mut stream: impl Write + Send + 'static) -> Sender<Vec<u8>> {
    let (sender, receiver) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for bytes in receiver {
            if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    });
    sender
}

struct Run {
    collector: Collector,
    start: Instant,
    heard: Instant,
    clock: CpuClock,
    first: Option<Moment>,
    end: Option<Moment>,
}

/// When something came.
#[derive(Clone, Copy)]
struct Moment {
    /// Since the start of the process.
    passed: Duration,
    /// Processor time that it had taken.
    cpu: Option<Duration>,
}

impl Run {
    fn watch(
        &mut self,
        child: &mut Child,
        serial: &Receiver<Vec<u8>>,
        limits: Limits,
        tick: &mut impl FnMut(&Collector, &CpuClock),
    ) -> Ending {
        let (mut open, timeout) = (true, limits.timeout);
        loop {
            // A machine without serial line closes the stream only with its end.
            if open {
                match serial.recv_timeout(TICK) {
                    Ok(bytes) => self.take(&bytes),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => open = false,
                }
            } else {
                std::thread::sleep(Duration::from_millis(5));
            }
            tick(&self.collector, &self.clock);
            let elapsed = self.start.elapsed();
            if let Some(signal) = interrupt::pending() {
                self.stop(child, serial);
                return Ending::Interrupted(signal);
            }
            if !open && let Ok(Some(status)) = child.try_wait() {
                // The signal may have come for all of us, as at the system's end.
                return interrupt::pending().map_or(exited(status), Ending::Interrupted);
            }
            if self.end.is_some_and(|end| elapsed > end.passed + GRACE) {
                end_group(child);
                return Ending::Stopped;
            }
            if let Some(silence) = limits.silence
                && self.heard.elapsed() > silence
            {
                end_group(child);
                return Ending::Silent(silence);
            }
            if elapsed > timeout {
                self.stop(child, serial);
                return Ending::TimedOut(timeout);
            }
        }
    }

    /// Ends the machine and takes what it still said.
    fn stop(&mut self, child: &mut Child, serial: &Receiver<Vec<u8>>) {
        end_group(child);
        while let Ok(bytes) = serial.recv_timeout(TICK) {
            self.take(&bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.collector.feed(bytes);
        self.heard = Instant::now();
        let now = Moment { passed: self.start.elapsed(), cpu: self.clock.now() };
        if self.collector.records() > 0 {
            self.first.get_or_insert(now);
        }
        if self.collector.ended() {
            self.end.get_or_insert(now);
        }
    }

    /// Processor time from the first record to the end record.
    fn cpu(&self) -> Option<Duration> {
        self.end?.cpu?.checked_sub(self.first?.cpu?)
    }
}

fn exited(status: ExitStatus) -> Ending {
    Ending::Exited(status.code())
}

impl Finished {
    /// What is to be said about the end, if it was not as it should be.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let said = if self.said.is_empty() {
            String::new()
        } else {
            format!("; QEMU says: {}", self.said)
        };
        match &self.ending {
            Ending::TimedOut(timeout) => {
                Some(format!("the machine was stopped after {}{said}", seconds(*timeout)))
            }
            Ending::Silent(silence) => Some(format!(
                "the machine was stopped after {} of silence{said}",
                seconds(*silence)
            )),
            Ending::Exited(status) if !self.collector.ended() => {
                let ended = match status {
                    // QEMU's end without a reboot: a triple fault is a reset.
                    Some(0) => "the machine was reset or switched off".to_string(),
                    Some(status) => format!("the machine ended with status {status}"),
                    None => "the machine ended with a signal".to_string(),
                };
                Some(format!("{ended} before its end record{said}"))
            }
            Ending::Interrupted(signal) if !self.collector.ended() => {
                Some(format!("interrupted by {signal}; what was measured before is above"))
            }
            Ending::Interrupted(_) | Ending::Exited(_) | Ending::Stopped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that waits for the program that it started, as one without `exec` does.
    #[test]
    fn time_limits_end_what_is_behind_a_script() {
        let limits = |timeout, silence| Limits {
            timeout: Duration::from_millis(timeout),
            silence: Some(Duration::from_millis(silence)),
        };
        for (limits, ending) in [
            (limits(300, 60_000), Ending::TimedOut(Duration::from_millis(300))),
            (limits(60_000, 300), Ending::Silent(Duration::from_millis(300))),
        ] {
            let arguments = ["-c", "echo started >&2; sleep 600; true"].map(OsString::from);
            let launch = Launch {
                program: Some(Path::new("/bin/sh")),
                arguments: &arguments,
                folder: Path::new("/"),
                limits,
            };
            let start = Instant::now();
            let finished = run(&launch, |_| ()).unwrap();
            assert_eq!(finished.ending, ending);
            assert_eq!(finished.said, "started");
            assert!(start.elapsed() < Duration::from_secs(60), "the program was waited for");
        }
    }

    #[test]
    fn a_machine_that_is_reset_is_not_said_to_have_a_status() {
        let complaint = |status| {
            let finished = Finished {
                collector: Collector::new(),
                ending: Ending::Exited(status),
                said: String::new(),
                to_first_record: None,
                to_end_record: None,
                cpu_between_records: None,
            };
            finished.complaint().unwrap()
        };
        let ends = [Some(0), Some(1), None].map(complaint);
        assert_eq!(ends[0], "the machine was reset or switched off before its end record");
        assert_eq!(ends[1], "the machine ended with status 1 before its end record");
        assert_eq!(ends[2], "the machine ended with a signal before its end record");
    }
}
