//! Counting from one address to another, by debug registers.
//!
//! An instruction breakpoint is a fault: it comes before its instruction (SDM vol. 3, 17.3.1.1). So the instruction at
//! a starting address is counted and the one at a stopping address is not, whatever the instructions are. A data breakpoint is
//! a trap: it comes after the instruction that writes or reads (17.3.1.2). So the one that starts counting is not counted, and
//! the one that stops it is. Of a repeated string instruction it comes after the iteration that met it, in the middle of the
//! instruction, which is counted when it is done. Behind a load of SS it waits for one instruction more (17.3.1.3), which may
//! be the first one of the kernel. Counters of ring 3 see nothing else; what those of ring 0 see is taken out
//! ([`super::taken_out`]).

use thiserror::Error;

/// Addresses that DR0 to DR3 hold.
pub const MAX_ADDRESSES: usize = 4;
/// DR6\[3:0\]: which breakpoints' conditions are met.
const HIT: u64 = 0xf;
/// DR7\[10\] reads as 1; DR7\[9:8\] (LE, GE) are advised for old processors (SDM vol. 3, 17.2.4).
const DR7_FIXED: u64 = 1 << 10;

/// What happens at an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    /// Counting starts.
    Start,
    /// Counting stops.
    Stop,
}

/// What has to be done at an address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum On {
    /// The instruction there is executed.
    #[default]
    Execute,
    /// One of so many bytes is written.
    Write(u8),
    /// One of so many bytes is read or written.
    Access(u8),
}

impl On {
    /// R/W and LEN of a debug register, in this order from the lowest bit up (SDM vol. 3, 17.2.4).
    const fn bits(self) -> u64 {
        let (kind, bytes) = match self {
            Self::Execute => return 0,
            Self::Write(bytes) => (0b01, bytes),
            Self::Access(bytes) => (0b11, bytes),
        };
        let len = match bytes {
            1 => 0b00,
            2 => 0b01,
            4 => 0b11,
            // 8 bytes, in 64-bit mode.
            _ => 0b10,
        };
        kind | len << 2
    }

    const fn bytes(self) -> u64 {
        match self {
            Self::Execute => 1,
            Self::Write(bytes) | Self::Access(bytes) => bytes as u64,
        }
    }
}

/// An address, and what is done there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Point {
    /// Linear.
    pub address: u64,
    /// What the task does.
    pub on: On,
    /// What counting does.
    pub act: Act,
}

/// Addresses that cannot be watched.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum AddressError {
    /// More than there are registers.
    #[error("{0} addresses are given; the processor has 4 debug registers")]
    TooMany(usize),
    /// One that no instruction can have.
    #[error("address {0:#x} is not canonical")]
    NotCanonical(u64),
    /// Data that does not begin at a multiple of its length.
    #[error("address {0:#x} is no multiple of {1}, the bytes that are watched there")]
    NotAligned(u64, u64),
}

/// Which address does what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AddressGate {
    points: [Option<Point>; MAX_ADDRESSES],
}

/// What a debug exception of a gate's means.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Hit {
    /// Addresses that start and that stop, among those that were met.
    pub starts: u64,
    /// Likewise.
    pub stops: u64,
    /// One of them is of an instruction, which is still to come.
    pub before: bool,
}

impl AddressGate {
    /// A gate with these addresses.
    ///
    /// # Errors
    /// More than four, or one that cannot be watched.
    pub fn new(points: &[Point]) -> Result<Self, AddressError> {
        let mut gate = Self::default();
        if points.len() > MAX_ADDRESSES {
            return Err(AddressError::TooMany(points.len()));
        }
        for (slot, &point) in gate.points.iter_mut().zip(points) {
            let (address, bytes) = (point.address, point.on.bytes());
            // 48 bits, sign-extended; 57 are not used by this kernel.
            if (address << 16) as i64 >> 16 != address as i64 {
                return Err(AddressError::NotCanonical(address));
            }
            if !address.is_multiple_of(bytes) {
                return Err(AddressError::NotAligned(address, bytes));
            }
            *slot = Some(point);
        }
        Ok(gate)
    }

    /// DR0 to DR3.
    #[must_use]
    pub fn addresses(&self) -> [u64; MAX_ADDRESSES] {
        self.points.map(|point| point.map_or(0, |point| point.address))
    }

    /// DR7: the local enable of each register in use, and its R/W and LEN.
    #[must_use]
    pub fn dr7(&self) -> u64 {
        let used = self.points.iter().enumerate().filter_map(|(at, point)| Some((at, (*point)?)));
        used.fold(DR7_FIXED, |bits, (index, point)| {
            bits | 1 << (2 * index) | point.on.bits() << (16 + 4 * index)
        })
    }

    /// What a debug exception asks for; `None`: it is another's. The processor may set bits of registers that are not enabled,
    /// so those do not count (SDM vol. 3, 17.2.3). One instruction may meet several.
    #[must_use]
    pub fn hit(&self, dr6: u64) -> Option<Hit> {
        let met = (0..MAX_ADDRESSES).filter(|index| dr6 & HIT & 1 << index != 0);
        let mut met = met.filter_map(|index| self.points[index]).peekable();
        met.peek()?;
        Some(met.fold(Hit::default(), |hit, point| Hit {
            starts: hit.starts + u64::from(point.act == Act::Start),
            stops: hit.stops + u64::from(point.act == Act::Stop),
            before: hit.before || point.on == On::Execute,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 3, 17.2.4: bit 10 is 1, whatever else is set.
    #[test]
    fn bit_10_of_dr7_is_set() {
        assert_eq!(DR7_FIXED, 0x400);
        assert_eq!(AddressGate::default().dr7(), 0x400);
    }
}
