//! The serial ports that the report goes to.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::acpi::Platform;
use arch::memory::Mapped;
use arch::pci;
use arch::uart::{COM, Place, Rate, Received, Uart, UartError};
use core::fmt;
use kernel::screen::Trouble;
use protocol::serial::{SerialPort, SerialPorts};

/// Most ports that are open at the same time: sending must not take memory, because a failure sends as well.
const MOST: usize = 16;

/// How a port was found.
#[derive(Clone, Copy)]
enum Found {
    /// By the job's name for it, or by what is looked for without one.
    Named(SerialPort),
    /// As a PCI device.
    Device(pci::Function),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Named(port) => port.fmt(f),
            Self::Device(at) => at.fmt(f),
        }
    }
}

/// A port that is open.
struct Port {
    found: Found,
    uart: Uart,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({}", self.found, self.uart.place())?;
        match self.uart.divisor() {
            Some(divisor) => write!(f, ", rate of the machine's firmware, divisor {divisor})"),
            None => f.write_str(")"),
        }
    }
}

/// The ports that are open, and what was said of those that are not.
pub struct Ports {
    wanted: SerialPorts,
    baud: u32,
    /// In an array: a firmware that fails before it has a heap opens one as well.
    open: [Option<Port>; MOST],
    /// What the job asked for and did not get, a sentence each.
    pub refused: Vec<String>,
    /// Why the usual port is not open.
    first: Option<UartError>,
    /// The port that is asked first for what has come in: the one behind that which had something last.
    asked: usize,
}

impl Ports {
    /// Opens those that can be found without ACPI's tables.
    pub fn open(wanted: SerialPorts, baud: u32) -> Self {
        let open = [const { None }; MOST];
        let mut ports = Self { wanted, baud, open, refused: Vec::new(), first: None, asked: 0 };
        match ports.wanted.clone() {
            SerialPorts::Auto | SerialPorts::All => {
                ports.first = ports.legacy(SerialPort::Com(1)).err();
            }
            SerialPorts::These(these) => {
                for port in these {
                    if let Err(error) = ports.legacy(port) {
                        ports.refused.push(format!("serial port {port}: {error}"));
                    }
                }
            }
        }
        ports
    }

    /// Opens a port whose place is known; others come later.
    fn legacy(&mut self, port: SerialPort) -> Result<(), UartError> {
        match legacy(port) {
            Some(place) => self.take(Found::Named(port), place, None),
            None => Ok(()),
        }
    }

    /// The ports that are open.
    fn opened(&self) -> impl Iterator<Item = &Port> {
        self.open.iter().flatten()
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.opened().count()
    }

    /// The ports that are open, and where they are.
    pub fn names(&self) -> Vec<String> {
        self.opened().map(ToString::to_string).collect()
    }

    /// Waits until everything has left the machine.
    pub fn drain(&mut self) {
        self.open.iter_mut().flatten().for_each(|port| port.uart.drain());
    }

    /// Opens the others, which ACPI and PCI name. Physical memory is mapped as `mapped` says.
    pub fn widen(&mut self, platform: &Platform, mapped: &Mapped) {
        match self.wanted.clone() {
            SerialPorts::Auto => {
                self.take_all(SerialPort::Spcr, platform, mapped);
                let others = [SerialPort::Com(2), SerialPort::Com(3), SerialPort::Com(4)];
                for port in others.into_iter().chain([SerialPort::Dbg2, SerialPort::Pci]) {
                    if self.count() == 0 {
                        self.take_all(port, platform, mapped);
                    }
                }
            }
            SerialPorts::All => {
                self.take_all(SerialPort::Spcr, platform, mapped);
                let others = [SerialPort::Com(2), SerialPort::Com(3), SerialPort::Com(4)];
                for port in others.into_iter().chain([SerialPort::Dbg2, SerialPort::Pci]) {
                    self.take_all(port, platform, mapped);
                }
            }
            SerialPorts::These(these) => {
                for port in these {
                    if legacy(port).is_none()
                        && let Some(error) = self.take_all(port, platform, mapped)
                    {
                        self.refused.push(format!("serial port {port}: {error}"));
                    }
                }
            }
        }
    }

    /// Opens all ports of a kind. Returns what is wrong, if one does not work or there is none.
    fn take_all(
        &mut self,
        port: SerialPort,
        platform: &Platform,
        mapped: &Mapped,
    ) -> Option<String> {
        let named = |place: &Place| (Found::Named(port), *place);
        let places: Vec<(Found, Place)> = match port {
            SerialPort::Com(_) | SerialPort::Port(_) => legacy(port).iter().map(named).collect(),
            SerialPort::Memory { address, stride } => {
                Vec::from([named(&Place::Memory { address, stride })])
            }
            SerialPort::Spcr => platform.console.iter().map(named).collect(),
            SerialPort::Dbg2 => platform.debug.iter().map(named).collect(),
            SerialPort::Pci => {
                // SAFETY: nobody else uses configuration space, before the first item.
                let found = unsafe { pci::serial_ports() };
                found.into_iter().map(|(at, place)| (Found::Device(at), place)).collect()
            }
        };
        if places.is_empty() {
            return Some(
                match port {
                    SerialPort::Pci => "no PCI device is a 16550",
                    _ => "ACPI has no such table, or it names no 16550",
                }
                .to_string(),
            );
        }
        let errors: Vec<String> = places
            .iter()
            .filter_map(|(found, place)| self.take(*found, *place, Some(mapped)).err())
            .map(|error| error.to_string())
            .collect();
        (!errors.is_empty()).then(|| errors.join("; "))
    }

    /// Opens one, unless it is open already under another name.
    fn take(
        &mut self,
        found: Found,
        place: Place,
        mapped: Option<&Mapped>,
    ) -> Result<(), UartError> {
        if self.opened().any(|port| port.uart.place() == place) {
            return Ok(());
        }
        let Some(free) = self.open.iter_mut().find(|port| port.is_none()) else {
            self.refused.push(format!("serial port {found}: no more can be open"));
            return Ok(());
        };
        // COM ports, and what the job names by its place, have the usual clock; of others the machine's firmware knows it.
        let rate = match found {
            Found::Named(SerialPort::Spcr | SerialPort::Dbg2) | Found::Device(_) => {
                Rate::Found(self.baud)
            }
            Found::Named(_) => Rate::Baud(self.baud),
        };
        // SAFETY: only the one report uses serial ports; in memory they are where ACPI, PCI or the job says that a UART is.
        let uart = unsafe { Uart::open(place, rate, mapped) }?;
        *free = Some(Port { found, uart });
        Ok(())
    }

    /// Sends bytes to all from the one of that index on, at the same time.
    pub fn send_from(&mut self, first: usize, bytes: &[u8]) {
        // Ports are never closed, so those that are open come first. Mostly there is one.
        if let (0, [Some(port), None, ..]) = (first, &mut self.open) {
            let mut rest = bytes;
            while !rest.is_empty() {
                rest = &rest[port.uart.offer(rest)..];
            }
            return;
        }
        let mut rests = [bytes; MOST];
        let count = self.count();
        while rests[first.min(count)..count].iter().any(|rest| !rest.is_empty()) {
            let ports = self.open.iter_mut().flatten().zip(&mut rests);
            for (port, rest) in ports.skip(first) {
                *rest = &rest[port.uart.offer(rest)..];
            }
        }
    }

    /// What has come in on one of them, if something has, and on which. One that always has something keeps none of the others
    /// from being heard.
    pub fn receive(&mut self) -> Option<(usize, Received)> {
        let asked = self.asked;
        let turn = (asked..MOST).chain(0..asked);
        let found = turn.into_iter().find_map(|place| {
            let port = self.open[place].as_mut()?;
            Some((place, port.uart.receive()?))
        });
        if let Some((place, _)) = found {
            self.asked = (place + 1) % MOST;
        }
        found
    }

    /// Why the report is kept nowhere, or not all of it, if that is so.
    pub fn trouble(&self) -> Option<Trouble> {
        if self.count() == 0 {
            let said = self.refused.first().cloned();
            let said = said.or_else(|| Some(self.first.as_ref()?.to_string()));
            return Some(Trouble::NoLine(said.unwrap_or_else(|| {
                "no serial port was asked for that could be opened".to_string()
            })));
        }
        let port = self.opened().min_by_key(|port| port.uart.lost())?;
        let lost = port.uart.lost();
        (lost > 0).then(|| Trouble::NotAll(format!("{port} took no more: {lost} bytes are lost")))
    }
}

/// Where a port is that needs no table to be found.
fn legacy(port: SerialPort) -> Option<Place> {
    match port {
        SerialPort::Com(number) => {
            COM.get(usize::from(number).checked_sub(1)?).copied().map(Place::Port)
        }
        SerialPort::Port(port) => Some(Place::Port(port)),
        _ => None,
    }
}
