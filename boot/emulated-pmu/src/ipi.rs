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
/// The physical destination of all.
const EVERYBODY: u8 = 0xff;

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

    /// Whether the processor with the APIC id `receiver` gets it from the one with the id `sender`. A logical destination
    /// may be everybody's.
    #[must_use]
    pub fn reaches(self, receiver: u64, sender: u64) -> bool {
        match self.low >> 18 & 3 {
            TO_SELF => receiver == sender,
            TO_ALL => true,
            TO_OTHERS => receiver != sender,
            _ if self.low & LOGICAL != 0 || self.destination == EVERYBODY => true,
            _ => receiver == u64::from(self.destination),
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

    #[test]
    fn destinations_are_one_some_or_all() {
        let reached = |low, high: u32| {
            let command = Command::new(low, high << 24);
            (0..4).filter(|&id| command.reaches(id, 1)).collect::<Vec<u64>>()
        };
        assert_eq!(reached(0x0600, 2), [2]);
        assert_eq!(reached(0x0600, 0xff), [0, 1, 2, 3]);
        assert_eq!(reached(0x0600 | LOGICAL, 2), [0, 1, 2, 3]);
        assert_eq!(reached(0x0600 | TO_SELF << 18, 2), [1]);
        assert_eq!(reached(0x0600 | TO_ALL << 18, 2), [0, 1, 2, 3]);
        assert_eq!(reached(0x0600 | TO_OTHERS << 18, 2), [0, 2, 3]);
    }
}
