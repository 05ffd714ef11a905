//! A board: a machine of QEMU behind a power switch that takes HTTP, with a serial line that takes TCP, as in a lab.

use super::Wanted;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use xtask::setup::qemu;

/// What a board boots from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Media {
    /// iPXE, in the ROM of its network card.
    Network,
    /// A stick after a switch.
    Stick,
}

/// What is wrong with a board. It happens once the result of the first item is out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The machine stands still.
    Hangs,
    /// The serial line is closed, and does not open again.
    LosesLine,
}

/// A board; it is switched off with this.
#[derive(Debug)]
pub struct Board {
    media: Media,
    folder: PathBuf,
    power: u16,
    serial: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    command: Vec<String>,
    folder: PathBuf,
    media: Media,
    fault: Fault,
    machine: Mutex<Option<Child>>,
    /// Who reads the serial line.
    reader: Mutex<Option<TcpStream>>,
    listener: Mutex<Option<TcpListener>>,
    switched_on: AtomicU32,
}

/// In a record of the first item.
const FIRST: &[u8] = b"\"item\":0,";

impl Board {
    /// What each has in the lab: a serial line, a power switch, and what it boots from.
    pub(super) const RESOURCES: usize = 3;

    pub(super) fn new(folder: &Path, wanted: &Wanted) -> Self {
        fs::create_dir_all(folder.join("tftp")).expect("a folder");
        // As when a board came from somebody else: with nothing on its stick.
        fs::write(folder.join("stick"), []).expect("a file");
        fs::write(folder.join("switch"), "host").expect("a file");
        let listener = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let (power, serial) = (listener(), listener());
        let port = |listener: &TcpListener| listener.local_addr().expect("its port").port();
        let (power_port, serial_port) = (port(&power), port(&serial));
        let shared = Arc::new(Shared {
            command: command(folder, wanted),
            folder: folder.to_path_buf(),
            media: wanted.media,
            fault: wanted.fault,
            machine: Mutex::new(None),
            reader: Mutex::new(None),
            listener: Mutex::new(Some(serial.try_clone().expect("another handle"))),
            switched_on: AtomicU32::new(0),
        });
        let on_power = Arc::clone(&shared);
        std::thread::spawn(move || power.incoming().flatten().for_each(|one| on_power.switch(one)));
        let on_serial = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in serial.incoming() {
                let Ok(stream) = stream else { return };
                if on_serial.listener.lock().expect("sound").is_none() {
                    return;
                }
                *on_serial.reader.lock().expect("sound") = Some(stream);
            }
        });
        let folder = folder.to_path_buf();
        Self { media: wanted.media, folder, power: power_port, serial: serial_port, shared }
    }

    /// How often it was switched on.
    #[must_use]
    pub fn switched_on(&self) -> u32 {
        self.shared.switched_on.load(Ordering::SeqCst)
    }

    /// Whether it is on.
    ///
    /// # Panics
    /// If one of its threads did.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.shared.machine.lock().expect("sound").is_some()
    }

    /// What the exporter is told of it.
    pub(super) fn exported(&self, place: &str) -> String {
        let Self { power, serial, .. } = self;
        let folder = self.folder.display();
        let media = match self.media {
            Media::Network => {
                format!("  TFTPProvider:\n    internal: {folder}/tftp/\n    external: /\n")
            }
            Media::Stick => format!(
                "  NetworkUSBSDMuxDevice:\n    host: localhost\n    busnum: 1\n    devnum: 1\n    path: {folder}/stick\n    \
                 vendor_id: 1060\n    model_id: 16449\n    control_path: {folder}/switch\n"
            ),
        };
        format!(
            "{place}:\n  NetworkSerialPort:\n    host: localhost\n    port: {serial}\n    protocol: raw\n  NetworkPowerPort:\n    \
             model: rest\n    host: 'http://localhost:{power}/relay/{{index}}/value'\n    index: 0\n{media}"
        )
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.shared.off();
    }
}

fn command(folder: &Path, wanted: &Wanted) -> Vec<String> {
    let mut line: Vec<String> = ["-nodefaults", "-no-user-config", "-display", "none", "-m", "256"]
        .into_iter()
        // Without -icount: while iPXE waits for an answer, the clock has to go on.
        .chain(["-machine", "pc,accel=tcg", "-cpu", wanted.cpu])
        .chain(["-chardev", "stdio,id=serial,signal=off", "-serial", "chardev:serial"])
        .map(str::to_string)
        .collect();
    let folder = folder.display();
    let devices = match wanted.media {
        Media::Network => [
            "-netdev".to_string(),
            format!("user,id=net,tftp={folder}/tftp,bootfile=boot.ipxe"),
            "-device".to_string(),
            "virtio-net-pci,netdev=net,bootindex=0".to_string(),
        ],
        Media::Stick => [
            "-drive".to_string(),
            format!("if=none,id=stick,format=raw,snapshot=on,file={folder}/stick"),
            "-device".to_string(),
            "virtio-blk-pci,drive=stick,bootindex=0".to_string(),
        ],
    };
    line.extend(devices);
    line
}

impl Shared {
    /// A request of the power switch: PUT with 0 or 1 switches, GET asks.
    fn switch(self: &Arc<Self>, mut stream: TcpStream) {
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        let text = loop {
            match stream.read(&mut buffer) {
                Ok(count @ 1..) => request.extend_from_slice(&buffer[..count]),
                _ => return,
            }
            let text = String::from_utf8_lossy(&request).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            // The body may come by itself.
            if head.starts_with("GET") || !body.is_empty() {
                break text;
            }
        };
        match text.rsplit("\r\n\r\n").next() {
            _ if text.starts_with("GET") => {}
            Some("1") => self.on(),
            _ => self.off(),
        }
        let is_on = u8::from(self.machine.lock().expect("sound").is_some());
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n{is_on}");
        // The client may have gone.
        let _ = stream.write_all(answer.as_bytes());
    }

    fn on(self: &Arc<Self>) {
        let mut machine = self.machine.lock().expect("sound");
        if machine.is_some() {
            return;
        }
        if self.media == Media::Stick {
            let switch = fs::read_to_string(self.folder.join("switch")).unwrap_or_default();
            assert_eq!(switch, "dut", "a board without its stick");
        }
        self.switched_on.fetch_add(1, Ordering::SeqCst);
        let program = qemu::probe().map_or_else(|_| qemu::program().into(), |found| found.path);
        // Not tied to this thread, which ends with the request.
        let mut command = Command::new(program);
        command.args(&self.command).current_dir(&self.folder);
        let log = File::create(self.folder.join("qemu.log")).expect("a file");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("QEMU starts");
        let stdout = child.stdout.take().expect("piped");
        *machine = Some(child);
        let shared = Arc::clone(self);
        std::thread::spawn(move || shared.relay(stdout));
    }

    fn off(&self) {
        if let Some(mut child) = self.machine.lock().expect("sound").take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// From the machine to who reads its line, until its fault happens. Of a machine that stands still nothing comes any more,
    /// whatever it had in its pipe.
    fn relay(&self, mut from: impl Read) {
        let mut line = Vec::new();
        let mut buffer = [0; 4096];
        let mut faulty = false;
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            for byte in &buffer[..count] {
                if faulty {
                    continue;
                }
                line.push(*byte);
                if *byte != b'\n' {
                    continue;
                }
                self.send(&line);
                let is_first = line.windows(FIRST.len()).any(|part| part == FIRST);
                line.clear();
                faulty = is_first && self.fault != Fault::None;
                if faulty && self.fault == Fault::LosesLine {
                    // Without the listener no other connection is taken.
                    self.listener.lock().expect("sound").take();
                    *self.reader.lock().expect("sound") = None;
                }
            }
        }
        self.send(&line);
    }

    fn send(&self, bytes: &[u8]) {
        if let Some(reader) = &mut *self.reader.lock().expect("sound") {
            // Who has gone reads no more.
            let _ = reader.write_all(bytes);
        }
    }
}
