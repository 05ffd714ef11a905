//! QEMU's test line (qtest): making the guest leave by an NMI, and reading its memory by physical address.
//!
//! A callback cannot stop the guest. But QEMU takes commands from a qtest line while the guest runs; the plugin holds the
//! line's other end. It has an NMI sent to the vCPU, and waits for QEMU's answer, so that the NMI is pending before the
//! block continues. The guest leaves at the start of the next block.

use std::io::{Read, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long QEMU may take to answer: it does not while it shuts down. On a machine that has much else to do its thread of
/// devices may have to wait for seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The base of message addresses (SDM vol. 3, 11.11.1); the destination is in bits 12 to 19.
const MSI_ADDRESS: u64 = 0xfee0_0000;
/// A message's data with delivery mode NMI (SDM vol. 3, 11.11.2).
const NMI: u32 = 4 << 8;

/// The line does not work.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// There is no such file.
    #[error("stop={0}: no such open file descriptor")]
    NotOpen(RawFd),
    /// It cannot be set up.
    #[error("stop={0}: {1}")]
    Unusable(RawFd, std::io::Error),
}

/// The line.
#[derive(Debug)]
pub struct Line {
    stream: UnixStream,
    /// What has come of an answer.
    begun: Vec<u8>,
    /// Commands that QEMU has not answered in time. It will, and those answers come first.
    late: usize,
}

impl Line {
    /// By its file descriptor, which is the plugin's from now on.
    ///
    /// # Errors
    /// If it is not open, or no socket.
    pub fn new(descriptor: RawFd) -> Result<Self, StopError> {
        Self::with_patience(descriptor, PATIENCE)
    }

    fn with_patience(descriptor: RawFd, patience: Duration) -> Result<Self, StopError> {
        // SAFETY: asks about a number, whatever it is.
        if descriptor < 0 || unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return Err(StopError::NotOpen(descriptor));
        }
        // SAFETY: it is open, and whoever started QEMU said that it is the plugin's.
        let stream = unsafe { UnixStream::from_raw_fd(descriptor) };
        let unusable = |error| StopError::Unusable(descriptor, error);
        stream.set_read_timeout(Some(patience)).map_err(unusable)?;
        stream.set_write_timeout(Some(patience)).map_err(unusable)?;
        Ok(Self { stream, begun: Vec::new(), late: 0 })
    }

    /// Sends an NMI to the processor with an APIC ID. False if QEMU does not answer.
    pub fn nmi(&mut self, apic_id: u8) -> bool {
        let address = MSI_ADDRESS | u64::from(apic_id) << 12;
        self.ask(&format!("writel {address:#x} {NMI:#x}\n")).is_some()
    }

    /// Reads 8 bytes at a physical address. `None` if QEMU does not answer.
    pub fn read(&mut self, physical: u64) -> Option<u64> {
        let answer = self.ask(&format!("readq {physical:#x}\n"))?;
        let digits = answer.trim().strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    }

    /// What QEMU answers to a command, after "OK".
    fn ask(&mut self, command: &str) -> Option<String> {
        while self.late > 0 {
            self.answer()?;
            self.late -= 1;
        }
        self.stream.write_all(command.as_bytes()).ok()?;
        let answer = self.answer();
        self.late += usize::from(answer.is_none());
        answer
    }

    /// Reads up to the end of an answer: QEMU's own messages may come before it.
    fn answer(&mut self) -> Option<String> {
        let mut byte = [0];
        while matches!(self.stream.read(&mut byte), Ok(1)) {
            if byte[0] != b'\n' {
                self.begun.push(byte[0]);
                continue;
            }
            let line = core::mem::take(&mut self.begun);
            if let Some(rest) = line.strip_prefix(b"OK") {
                return Some(String::from_utf8_lossy(rest).into_owned());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::fd::IntoRawFd;

    #[test]
    fn an_nmi_is_asked_for_and_the_answer_awaited() {
        let (own, other) = UnixStream::pair().expect("a pair");
        let qemu = std::thread::spawn(move || {
            let mut command = String::new();
            BufReader::new(&other).read_line(&mut command).expect("a command");
            (&other).write_all(b"IRQ raise 1\nOK\n").expect("an answer");
            command
        });
        let mut line = Line::new(own.into_raw_fd()).expect("an open socket");
        assert!(line.nmi(3));
        assert_eq!(qemu.join().expect("it ended"), "writel 0xfee03000 0x400\n");
        assert!(!line.nmi(3), "QEMU is gone");
    }

    #[test]
    fn memory_is_read_by_its_physical_address() {
        let (own, other) = UnixStream::pair().expect("a pair");
        let qemu = std::thread::spawn(move || {
            let mut reader = BufReader::new(&other);
            let mut asked = Vec::new();
            for answer in ["OK 0x00000000fee01007\n", "FAIL Unknown command\nOK\n"] {
                let mut command = String::new();
                reader.read_line(&mut command).expect("a command");
                asked.push(command);
                (&other).write_all(answer.as_bytes()).expect("an answer");
            }
            asked
        });
        let mut line = Line::new(own.into_raw_fd()).expect("an open socket");
        assert_eq!(line.read(0x1008), Some(0xfee0_1007));
        assert_eq!(line.read(0x2000), None, "no number");
        let asked = qemu.join().expect("it ended");
        assert_eq!(asked, ["readq 0x1008\n", "readq 0x2000\n"]);
        assert_eq!(line.read(0), None, "QEMU is gone");
    }

    /// Taken for the next command's, a late answer would state that an NMI waits which is still to come.
    #[test]
    fn an_answer_that_comes_late_is_not_the_next_commands() {
        let (own, mut qemu) = UnixStream::pair().expect("a pair");
        let patience = Duration::from_millis(20);
        let mut line = Line::with_patience(own.into_raw_fd(), patience).expect("an open socket");
        assert_eq!(line.read(0x1000), None, "no answer");
        qemu.write_all(b"O").expect("a part of it");
        assert_eq!(line.read(0x2000), None, "and not asked, as the first one is still to come");
        qemu.write_all(b"K 0x1\nOK 0x3\n").expect("the rest, and the next");
        assert_eq!(line.read(0x3000), Some(3));
        let mut asked = [0; 64];
        let bytes = qemu.read(&mut asked).expect("what was asked");
        assert_eq!(&asked[..bytes], b"readq 0x1000\nreadq 0x3000\n");
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_named() {
        let error = Line::new(9999).expect_err("it is not open").to_string();
        assert!(error.contains("stop=9999"), "{error}");
    }
}
