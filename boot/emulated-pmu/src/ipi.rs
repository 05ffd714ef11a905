//! What a write to the local APIC's interrupt command register sends: SDM vol. 3, 11.6.1.

/// Delivery modes, bits 10:8.
const NMI: u32 = 0b100;
const INIT: u32 = 0b101;
const STARTUP: u32 = 0b110;
/// The destination is a logical one.
const LOGICAL: u32 = 1 << 11;
/// Clear in the INIT that all processors take as no more than a signal to set their arbitration ids.
const ASSERT: u32 = 1 << 14;
/// Destination shorthands, bits 19:18.
const TO_SELF: u32 = 0b01;
const TO_ALL: u32 = 0b10;
const TO_OTHERS: u32 = 0b11;
/// The destination of all, physical and logical.
const EVERYBODY: u8 = 0xff;
/// Bits 31:28 of the destination format register: the flat model; otherwise it is that of clusters (SDM vol. 3, 11.6.2.2).
const FLAT: u32 = 0xf;

/// What is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// INIT.
    Init,
    /// A start-up interrupt, with its vector: the number of the page where the receiver begins.
    Startup(u8),
    /// A non-maskable interrupt.
    Nmi,
    /// Anything else.
    Other,
}

/// Who may get a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receiver {
    /// The id of its local APIC.
    pub id: u64,
    /// Its logical destination register (LDR).
    pub logical: u32,
    /// Its destination format register (DFR).
    pub format: u32,
}

impl Receiver {
    /// Logical destination and format after a reset and after INIT: SDM vol. 3, 11.4.7.1.
    pub const RESET: [u32; 2] = [0, u32::MAX];

    /// Whether a logical destination is, or includes, this processor.
    fn is_meant_by(self, destination: u8) -> bool {
        let own = (self.logical >> 24) as u8;
        if destination == EVERYBODY {
            return true;
        }
        if self.format >> 28 == FLAT {
            return own & destination != 0;
        }
        let everywhere = destination >> 4 == 0xf;
        (everywhere || own >> 4 == destination >> 4) && own & destination & 0xf != 0
    }
}

/// A command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Command {
    low: u32,
    destination: u8,
}

impl Command {
    /// The lower half as it is written, the upper half as it is in the register.
    #[must_use]
    pub fn new(low: u32, high: u32) -> Self {
        Self { low, destination: (high >> 24) as u8 }
    }

    /// What it sends.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.low >> 8 & 7 {
            INIT if self.low & ASSERT != 0 => Kind::Init,
            NMI => Kind::Nmi,
            STARTUP => Kind::Startup(self.low as u8),
            _ => Kind::Other,
        }
    }

    /// The same lower half with another vector.
    #[must_use]
    pub fn with_vector(self, vector: u8) -> u32 {
        self.low & !0xff | u32::from(vector)
    }

    /// Whether `receiver` gets it from the processor with the APIC id `sender`.
    #[must_use]
    pub fn reaches(self, receiver: Receiver, sender: u64) -> bool {
        match self.low >> 18 & 3 {
            TO_SELF => receiver.id == sender,
            TO_ALL => true,
            TO_OTHERS => receiver.id != sender,
            _ if self.low & LOGICAL != 0 => receiver.is_meant_by(self.destination),
            _ if self.destination == EVERYBODY => true,
            _ => receiver.id == u64::from(self.destination),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_and_the_firmware_send_init_and_startup() {
        // Linux: level-triggered INIT, its end, and SIPI to processor 3; the firmware: INIT and SIPI to all others.
        let kind = |low| Command::new(low, 3 << 24).kind();
        assert_eq!(kind(0xc500), Kind::Init);
        assert_eq!(kind(0x8500), Kind::Other);
        assert_eq!(kind(0x0699), Kind::Startup(0x99));
        assert_eq!(kind(0x000c_4500), Kind::Init);
        assert_eq!(kind(0x000c_4687), Kind::Startup(0x87));
        assert_eq!(kind(0x00fd), Kind::Other, "a fixed vector");
        assert_eq!(kind(0x0400), Kind::Nmi);
    }

    #[test]
    fn the_vector_alone_is_replaced() {
        assert_eq!(Command::new(0x000c_4687, 0).with_vector(0x9f), 0x000c_469f);
    }

    /// As Linux numbers the first eight processors.
    fn flat(id: u64) -> Receiver {
        Receiver { id, logical: 1 << (24 + id), format: u32::MAX }
    }

    #[test]
    fn i8_a_logical_destination_is_those_whose_bits_it_has() {
        let reached = |of: fn(u64) -> Receiver, destination: u32| {
            let command = Command::new(0x0400 | LOGICAL, destination << 24);
            (0..8).filter(|&id| command.reaches(of(id), 1)).collect::<Vec<u64>>()
        };
        assert_eq!(reached(flat, 1 << 2), [2]);
        assert_eq!(reached(flat, 0b1000_1001), [0, 3, 7]);
        assert_eq!(reached(flat, 0xff), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(reached(flat, 0), [0; 0]);
        // Clusters of four.
        let cluster: fn(u64) -> Receiver = |id| Receiver {
            id,
            logical: ((id as u32 >> 2) << 4 | 1 << (id & 3)) << 24,
            format: u32::MAX >> 4,
        };
        assert_eq!(reached(cluster, 0x12), [5]);
        assert_eq!(reached(cluster, 0x03), [0, 1]);
        assert_eq!(reached(cluster, 0xf4), [2, 6]);
        let [logical, format] = Receiver::RESET;
        let command = Command::new(0x0400 | LOGICAL, 0x7f << 24);
        assert!(!command.reaches(Receiver { id: 0, logical, format }, 1), "nobody's yet");
    }

    #[test]
    fn destinations_are_one_some_or_all() {
        let reached = |low, high: u32| {
            let command = Command::new(low, high << 24);
            (0..4).filter(|&id| command.reaches(flat(id), 1)).collect::<Vec<u64>>()
        };
        assert_eq!(reached(0x0600, 2), [2]);
        assert_eq!(reached(0x0600, 0xff), [0, 1, 2, 3]);
        assert_eq!(reached(0x0600 | TO_SELF << 18, 2), [1]);
        assert_eq!(reached(0x0600 | TO_ALL << 18, 2), [0, 1, 2, 3]);
        assert_eq!(reached(0x0600 | TO_OTHERS << 18, 2), [0, 2, 3]);
    }
}
