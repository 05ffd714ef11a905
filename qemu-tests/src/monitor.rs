//! QEMU's monitor, for looking at the screen.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection to QEMU's monitor protocol.
pub struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Argument for QEMU that opens the monitor at `socket`.
    #[must_use]
    pub fn arguments(socket: &Path) -> Vec<String> {
        vec!["-qmp".into(), format!("unix:{},server=on,wait=off", socket.display())]
    }

    /// Connects, waiting until QEMU has opened the socket. `None` after `patience`.
    #[must_use]
    pub fn connect(socket: &Path, patience: Duration) -> Option<Self> {
        let start = Instant::now();
        loop {
            if let Ok(stream) = UnixStream::connect(socket) {
                stream.set_read_timeout(Some(patience)).ok()?;
                let mut monitor = Self { reader: BufReader::new(stream) };
                monitor.command(r#"{"execute":"qmp_capabilities"}"#)?;
                return Some(monitor);
            }
            if start.elapsed() > patience {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a command and waits for its answer; greetings and events are passed over.
    pub fn command(&mut self, json: &str) -> Option<String> {
        writeln!(self.reader.get_mut(), "{json}").ok()?;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.starts_with(r#"{"return""#) || line.starts_with(r#"{"error""#) {
                return Some(line);
            }
        }
    }

    /// The screen, if there is one.
    pub fn screen(&mut self, file: &Path) -> Option<Picture> {
        let command = format!(
            r#"{{"execute":"screendump","arguments":{{"filename":"{}"}}}}"#,
            file.display()
        );
        self.command(&command).filter(|answer| answer.starts_with(r#"{"return""#))?;
        Picture::parse(&std::fs::read(file).ok()?)
    }
}

/// A picture in the portable pixmap format that QEMU writes.
pub struct Picture {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    pixels: Vec<u8>,
}

impl Picture {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.splitn(4, u8::is_ascii_whitespace);
        if fields.next()? != b"P6" {
            return None;
        }
        let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
        let (width, height) = (number()?, number()?);
        let rest = fields.next()?;
        // The greatest value, one white space, then the pixels.
        let start = rest.iter().position(u8::is_ascii_whitespace)? + 1;
        let pixels = rest.get(start..)?.to_vec();
        (pixels.len() >= width * height * 3).then_some(Self { width, height, pixels })
    }

    /// Red, green and blue of a pixel.
    #[must_use]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        self.pixels[at..at + 3].try_into().expect("three bytes")
    }
}
