//! Counting from one instruction address to another, by debug registers.
//!
//! An instruction breakpoint is a fault: it comes before its instruction (SDM vol. 3, 17.3.1.1). So the instruction at
//! a starting address is counted and the one at a stopping address is not, whatever the instructions are. Counters of
//! ring 3 see nothing else. Counters of ring 0 also see the handler from the write that starts them to its IRET, and
//! at a stop its beginning up to the write that stops them: the same number each time.

use super::{Platform, Session, SetError};
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

/// Addresses that cannot be watched.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum AddressError {
    /// More than there are registers.
    #[error("{0} addresses are given; the processor has 4 debug registers")]
    TooMany(usize),
    /// One that no instruction can have.
    #[error("address {0:#x} is not canonical")]
    NotCanonical(u64),
}

/// Which address does what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AddressGate {
    points: [Option<(u64, Act)>; MAX_ADDRESSES],
}

impl AddressGate {
    /// A gate with these addresses, linear ones.
    ///
    /// # Errors
    /// More than four, or one that is not canonical.
    pub fn new(points: &[(u64, Act)]) -> Result<Self, AddressError> {
        let mut gate = Self::default();
        if points.len() > MAX_ADDRESSES {
            return Err(AddressError::TooMany(points.len()));
        }
        for (slot, &(address, act)) in gate.points.iter_mut().zip(points) {
            // 48 bits, sign-extended; 57 are not used by this kernel.
            if (address << 16) as i64 >> 16 != address as i64 {
                return Err(AddressError::NotCanonical(address));
            }
            *slot = Some((address, act));
        }
        Ok(gate)
    }

    /// DR0 to DR3.
    #[must_use]
    pub fn addresses(&self) -> [u64; MAX_ADDRESSES] {
        self.points.map(|point| point.map_or(0, |(address, _)| address))
    }

    /// DR7: the local enable of each register in use; R/W and LEN 0, which is an instruction.
    #[must_use]
    pub fn dr7(&self) -> u64 {
        let used = self.points.iter().enumerate().filter(|(_, point)| point.is_some());
        used.fold(DR7_FIXED, |bits, (index, _)| bits | 1 << (2 * index))
    }

    /// What a debug exception asks for. The processor may set bits of registers that are not enabled, so those do not
    /// count (SDM vol. 3, 17.2.3).
    #[must_use]
    pub fn act(&self, dr6: u64) -> Option<Act> {
        let hit = (0..MAX_ADDRESSES).filter(|index| dr6 & HIT & 1 << index != 0);
        hit.filter_map(|index| self.points[index]).map(|(_, act)| act).next()
    }

    /// The debug exception's handler: starts or stops the session. Returns whether the exception was the gate's; then
    /// the frame needs [`arch::debug::RESUME_FLAG`], and DR6 is to be cleared.
    ///
    /// # Errors
    /// A register refuses.
    pub fn trapped(
        &self,
        dr6: u64,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<bool, SetError> {
        match self.act(dr6) {
            Some(Act::Start) if !session.has_ended() => session.start(platform)?,
            Some(Act::Stop) => session.stop(platform)?,
            Some(Act::Start) => {}
            None => return Ok(false),
        }
        Ok(true)
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
