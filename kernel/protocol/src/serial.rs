//! Which serial ports the report goes to.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which serial ports the report goes to.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum SerialPorts {
    /// COM1 and the console's port; if there is neither, the first other one that works.
    #[default]
    Auto,
    /// Every one that works.
    All,
    /// These, all of them.
    These(Vec<SerialPort>),
}

/// A serial port, by how it is found.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum SerialPort {
    /// COM1 to COM4, at their usual ports.
    Com(u8),
    /// The console's, by ACPI's SPCR table.
    Spcr,
    /// The debuggers', by ACPI's DBG2 table.
    Dbg2,
    /// All that are PCI devices.
    Pci,
    /// A 16550 at this I/O port.
    Port(u16),
    /// A 16550 in memory.
    Memory {
        /// Physical address of its first register.
        address: u64,
        /// Bytes from one register to the next: 1, 2 or 4.
        stride: u8,
    },
}

/// Why a text names no serial ports.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{0}` is not a serial port: auto, all, or a list of com1 to com4, spcr, dbg2, pci, port:0x3f8 and mmio:0xfe034000/4, separated by commas"
)]
pub struct SerialError(pub String);

impl fmt::Display for SerialPort {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Com(number) => write!(f, "COM{number}"),
            Self::Spcr => f.write_str("SPCR"),
            Self::Dbg2 => f.write_str("DBG2"),
            Self::Pci => f.write_str("PCI"),
            Self::Port(port) => write!(f, "port:{port:#x}"),
            Self::Memory { address, stride } => write!(f, "mmio:{address:#x}/{stride}"),
        }
    }
}

impl FromStr for SerialPort {
    type Err = SerialError;

    fn from_str(text: &str) -> Result<Self, SerialError> {
        let refused = || SerialError(text.to_string());
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        Ok(match text {
            "com1" => Self::Com(1),
            "com2" => Self::Com(2),
            "com3" => Self::Com(3),
            "com4" => Self::Com(4),
            "spcr" => Self::Spcr,
            "dbg2" => Self::Dbg2,
            "pci" => Self::Pci,
            _ => {
                let (kind, place) = text.split_once(':').ok_or_else(refused)?;
                let (address, stride) = place.split_once('/').unwrap_or((place, "1"));
                let address = number(address).ok_or_else(refused)?;
                let stride = ["1", "2", "4"].iter().position(|one| *one == stride);
                let stride = 1 << stride.ok_or_else(refused)?;
                match kind {
                    "port" if stride == 1 => {
                        Self::Port(u16::try_from(address).map_err(|_| refused())?)
                    }
                    "mmio" => Self::Memory { address, stride },
                    _ => return Err(refused()),
                }
            }
        })
    }
}

impl FromStr for SerialPorts {
    type Err = SerialError;

    fn from_str(text: &str) -> Result<Self, SerialError> {
        let text = text.to_lowercase();
        Ok(match &*text {
            "auto" => Self::Auto,
            "all" => Self::All,
            _ => Self::These(text.split(',').map(str::parse).collect::<Result<_, _>>()?),
        })
    }
}

impl SerialPorts {
    /// In the form in which a ramdisk's section has it.
    #[must_use]
    pub fn pack(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("every value has a form in postcard")
    }

    /// Out of a ramdisk's section. What cannot be read counts as none: a report on the usual port is better than none.
    #[must_use]
    pub fn unpack(section: Option<&[u8]>) -> Self {
        section.and_then(|bytes| postcard::from_bytes(bytes).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_text_and_come_through_the_section() {
        let these = |ports: &[SerialPort]| Ok(SerialPorts::These(ports.to_vec()));
        let memory = |address, stride| SerialPort::Memory { address, stride };
        for (text, ports) in [
            ("auto", Ok(SerialPorts::Auto)),
            ("All", Ok(SerialPorts::All)),
            ("com2,SPCR", these(&[SerialPort::Com(2), SerialPort::Spcr])),
            (
                "pci,dbg2,port:0x3e8",
                these(&[SerialPort::Pci, SerialPort::Dbg2, SerialPort::Port(0x3e8)]),
            ),
            ("mmio:0xfe034000/4", these(&[memory(0xfe03_4000, 4)])),
            ("mmio:0xfe034000", these(&[memory(0xfe03_4000, 1)])),
        ] {
            assert_eq!(text.parse(), ports, "{text}");
            let ports = ports.unwrap();
            assert_eq!(SerialPorts::unpack(Some(&ports.pack())), ports);
        }
        for (number, name) in (1..).zip(["com1", "com2", "com3", "com4"]) {
            assert_eq!(name.parse(), these(&[SerialPort::Com(number)]));
        }
        assert_eq!(SerialPorts::unpack(None), SerialPorts::Auto);
        assert_eq!(SerialPorts::unpack(Some(&[9])), SerialPorts::Auto);
    }

    #[test]
    fn ports_are_named_as_a_report_has_them() {
        let texts = [
            (SerialPort::Com(3), "COM3"),
            (SerialPort::Spcr, "SPCR"),
            (SerialPort::Dbg2, "DBG2"),
            (SerialPort::Pci, "PCI"),
            (SerialPort::Port(0x3e8), "port:0x3e8"),
            (SerialPort::Memory { address: 0xfe03_4000, stride: 4 }, "mmio:0xfe034000/4"),
        ];
        for (port, text) in texts {
            assert_eq!(alloc::format!("{port}"), text);
        }
    }

    #[test]
    fn what_is_none_is_named() {
        for text in
            ["", "com5", "com1,", "port:3f8", "port:0x10000", "port:0x3f8/4", "mmio:0x1/3", "mmio:"]
        {
            let error = text.parse::<SerialPorts>().unwrap_err();
            assert!(error.to_string().contains("is not a serial port"), "{text}: {error}");
        }
    }
}
