//! Servers that take a file, on this machine's own address; the guest of QEMU's user network has it as 10.0.2.2.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A file that came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Taken {
    /// The request's first words: HTTP's method and path, or TFTP's file name.
    pub request: String,
    /// The file's content.
    pub bytes: Vec<u8>,
}

/// A server; it runs until the test ends.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub port: u16,
    taken: Arc<Mutex<Vec<Taken>>>,
}

const HERE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

impl Server {
    /// All that came so far.
    ///
    /// # Panics
    /// If its thread did.
    #[must_use]
    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().expect("nobody panics with it").clone()
    }

    /// A server for HTTP's PUT, which answers with `first`, and then with 201.
    ///
    /// # Panics
    /// If there is no port.
    #[must_use]
    pub fn http(first: &[&'static str]) -> Self {
        let listener = TcpListener::bind(HERE).expect("a port");
        let port = listener.local_addr().expect("its port").port();
        // The thread outlives the caller's slice.
        let first: Vec<&'static str> = first.to_vec();
        let mut answers = first.into_iter();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&taken);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(one) = take_http(&stream) else { continue };
                sink.lock().expect("nobody panics with it").push(one);
                let answer = answers.next().unwrap_or("201 Created");
                let text =
                    format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                // The client may have gone.
                let _ = (&stream).write_all(text.as_bytes());
            }
        });
        Self { port, taken }
    }

    /// A server for TFTP's write requests.
    ///
    /// # Panics
    /// If there is no port.
    #[must_use]
    pub fn tftp() -> Self {
        let socket = UdpSocket::bind(HERE).expect("a port");
        let port = socket.local_addr().expect("its port").port();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&taken);
        std::thread::spawn(move || {
            let mut packet = [0; 2048];
            while let Ok((count, client)) = socket.recv_from(&mut packet) {
                // A second copy of a request gets another transfer, which ends by itself.
                if let Some(one) = take_tftp(&packet[..count], client) {
                    sink.lock().expect("nobody panics with it").push(one);
                }
            }
        });
        Self { port, taken }
    }
}

/// One request with its content; `None` if it ends early.
fn take_http(stream: &TcpStream) -> Option<Taken> {
    let mut reader = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), None);
    reader.read_line(&mut request).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    let mut bytes = vec![0; length?];
    reader.read_exact(&mut bytes).ok()?;
    let words: Vec<_> = request.split(' ').take(2).collect();
    Some(Taken { request: words.join(" "), bytes })
}

/// One transfer (RFC 1350), from a port of its own as servers have it. Options are not taken, and so need no answer (RFC 2347).
fn take_tftp(request: &[u8], client: SocketAddr) -> Option<Taken> {
    const WRITE: u16 = 2;
    const DATA: u16 = 3;
    const ACK: u16 = 4;
    const BLOCK: usize = 512;
    let word =
        |bytes: &[u8], at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    (word(request, 0)? == WRITE).then_some(())?;
    let name = request[2..].split(|byte| *byte == 0).next()?;
    let socket = UdpSocket::bind(HERE).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let acknowledge = |block: u16| {
        socket.send_to(&[ACK.to_be_bytes(), block.to_be_bytes()].concat(), client).ok()
    };
    let (mut bytes, mut last) = (Vec::new(), 0_u16);
    acknowledge(last)?;
    let mut packet = [0; BLOCK + 4];
    loop {
        let (count, from) = socket.recv_from(&mut packet).ok()?;
        let packet = &packet[..count];
        if from != client || word(packet, 0)? != DATA {
            continue;
        }
        let block = word(packet, 2)?;
        if block == last.wrapping_add(1) {
            bytes.extend_from_slice(&packet[4..]);
            last = block;
        }
        acknowledge(last)?;
        if block == last && count < BLOCK + 4 {
            let request = String::from_utf8_lossy(name).into_owned();
            return Some(Taken { request, bytes });
        }
    }
}
