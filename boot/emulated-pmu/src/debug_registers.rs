//! The guest's debug registers: SDM vol. 3, 17.2. The hypervisor uses the processor's for itself, so the guest's are
//! kept here, and what fits goes into the processor's for each guest run.

/// Breakpoints that there are.
pub const COUNT: usize = 4;
/// DR6: B0 to B3, which breakpoints' conditions are met.
pub const HITS: u64 = 0xf;
/// DR6.BD: an access to a debug register while DR7.GD was set.
pub const ACCESS_DETECTED: u64 = 1 << 13;
/// DR6.BS: single step.
pub const SINGLE_STEP: u64 = 1 << 14;
/// DR6 as it is when nothing happened: its fixed ones.
pub const DR6_IDLE: u64 = 0xffff_0ff0;
/// Bits of DR6 that software can change: B0 to B3, BD, BS, BT.
const DR6_WRITABLE: u64 = 0xe00f;
/// DR7's bit that is always 1.
pub const DR7_ONE: u64 = 1 << 10;
/// DR7: local and global enables of all four.
const ENABLES: u64 = 0xff;
/// DR7.GD: general detection.
const GENERAL_DETECT: u64 = 1 << 13;
/// Bits of DR7 that software can change: enables, LE and GE, GD, conditions and lengths.
const DR7_WRITABLE: u64 = 0xffff_23ff;

/// What a breakpoint is on: DR7.R/W.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Condition {
    /// An instruction is about to be executed.
    Execute,
    /// Data was written.
    Write,
    /// A port was accessed.
    Port,
    /// Data was read or written.
    Access,
}

/// Whether a write to DR6 or DR7 has reserved upper bits, which raises #GP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReservedBits;

/// DR0 to DR3, DR6 and DR7.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DebugRegisters {
    addresses: [u64; COUNT],
    dr6: u64,
    dr7: u64,
}

/// What to put into the processor's registers for a guest run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Placed {
    /// DR0 to DR3.
    pub addresses: [u64; COUNT],
    /// DR7, without its fixed bit.
    pub dr7: u64,
    /// Which are the hypervisor's own, as bits.
    own: u64,
    /// Which are the guest's.
    guests: u64,
    /// Those of the guest's that are on instructions.
    code: u64,
}

/// What the processor's DR6 says of a guest run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Happened {
    /// One of the hypervisor's breakpoints, and nothing else that comes first.
    pub own: bool,
    /// What the guest's DR6 is to say.
    pub bits: u64,
}

/// Which of the guest's breakpoints are to be placed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Which {
    /// All.
    All,
    /// Those on data and ports.
    Data,
    /// No breakpoint at all.
    None,
}

impl DebugRegisters {
    /// With these values.
    #[must_use]
    pub const fn new(addresses: [u64; COUNT], dr6: u64, dr7: u64) -> Self {
        Self { addresses, dr6, dr7 }
    }

    /// Register `number`, 0 to 7; 4 and 5 are other names of 6 and 7.
    #[must_use]
    pub fn read(&self, number: usize) -> u64 {
        match number {
            0..COUNT => self.addresses[number],
            4 | 6 => self.dr6 & DR6_WRITABLE | DR6_IDLE,
            _ => self.dr7 & DR7_WRITABLE | DR7_ONE,
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// One of the upper 32 bits of DR6 or DR7 (SDM vol. 3, 17.2.6).
    pub fn write(&mut self, number: usize, value: u64) -> Result<(), ReservedBits> {
        if number >= COUNT && value >> 32 != 0 {
            return Err(ReservedBits);
        }
        match number {
            0..COUNT => self.addresses[number] = value,
            4 | 6 => self.dr6 = value & DR6_WRITABLE | DR6_IDLE,
            _ => self.dr7 = value & DR7_WRITABLE | DR7_ONE,
        }
        Ok(())
    }

    /// DR6, as the processor left it when it delivered an exception by itself.
    pub fn set_status(&mut self, dr6: u64) {
        self.dr6 = dr6;
    }

    /// Whether any access to the registers faults.
    #[must_use]
    pub fn detects_access(&self) -> bool {
        self.dr7 & GENERAL_DETECT != 0
    }

    /// Whether a debug exception may come of anything but the trap flag.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.dr7 & (ENABLES | GENERAL_DETECT) != 0
    }

    /// A debug exception is raised: B0 to B3 say what is to blame this time, the rest adds up, and GD is off for the
    /// handler.
    pub fn raise(&mut self, bits: u64) {
        self.dr6 = self.dr6 & !HITS | bits;
        self.dr7 &= !GENERAL_DETECT;
    }

    fn condition(&self, number: usize) -> Condition {
        match self.dr7 >> (16 + 4 * number) & 3 {
            0 => Condition::Execute,
            1 => Condition::Write,
            2 => Condition::Port,
            _ => Condition::Access,
        }
    }

    /// Bytes of breakpoint `number`.
    fn bytes(&self, number: usize) -> u64 {
        match self.dr7 >> (18 + 4 * number) & 3 {
            0 => 1,
            1 => 2,
            2 => 8,
            _ => 4,
        }
    }

    fn is_enabled(&self, number: usize) -> bool {
        self.dr7 >> (2 * number) & 3 != 0
    }

    /// The enabled ones for which `wanted` holds, as bits.
    fn enabled(&self, wanted: impl Fn(usize) -> bool) -> u64 {
        let numbers = (0..COUNT).filter(|&number| self.is_enabled(number) && wanted(number));
        numbers.fold(0, |bits, number| bits | 1 << number)
    }

    fn of(&self, which: Which) -> u64 {
        match which {
            Which::All => self.enabled(|_| true),
            Which::Data => self.enabled(|number| self.condition(number) != Condition::Execute),
            Which::None => 0,
        }
    }

    /// Breakpoints that the guest leaves to others.
    #[must_use]
    pub fn room(&self) -> usize {
        COUNT - self.of(Which::All).count_ones() as usize
    }

    /// Whether data or ports are watched.
    #[must_use]
    pub fn watches_data(&self) -> bool {
        self.of(Which::Data) != 0
    }

    /// Breakpoints on the instruction at `linear`, as bits of DR6.
    #[must_use]
    pub fn on_instruction(&self, linear: u64) -> u64 {
        self.enabled(|number| {
            self.condition(number) == Condition::Execute && self.addresses[number] == linear
        })
    }

    /// Breakpoints that a store of eight bytes at `linear` meets.
    #[must_use]
    pub fn on_store(&self, linear: u64) -> u64 {
        self.enabled(|number| {
            let bytes = self.bytes(number);
            // The processor ignores the lower bits: SDM vol. 3, 17.2.5.
            let begin = self.addresses[number] & !(bytes - 1);
            let meets = begin < linear.saturating_add(8) && linear < begin.saturating_add(bytes);
            matches!(self.condition(number), Condition::Write | Condition::Access) && meets
        })
    }

    /// Places the guest's `which` and, in addition to them, breakpoints on the instructions at `own`. `None` if they are too many.
    #[must_use]
    pub fn place(&self, own: &[u64], which: Which) -> Option<Placed> {
        let guests = self.of(which);
        let mut placed = Placed { guests, ..Placed::default() };
        for number in (0..COUNT).filter(|number| guests >> number & 1 != 0) {
            let aligned = self.addresses[number] & !(self.bytes(number) - 1);
            let is_code = self.condition(number) == Condition::Execute;
            placed.addresses[number] = if is_code { self.addresses[number] } else { aligned };
            placed.dr7 |= 1 << (2 * number) | self.dr7 & 0xf << (16 + 4 * number);
            placed.code |= u64::from(is_code) << number;
        }
        let mut free = (0..COUNT).filter(|number| guests >> number & 1 == 0);
        for &address in own {
            let number = free.next()?;
            placed.addresses[number] = address;
            placed.dr7 |= 1 << (2 * number);
            placed.own |= 1 << number;
        }
        Some(placed)
    }
}

impl Placed {
    /// What the processor's DR6, which was idle before, says. Traps belong to the instruction that is done and come
    /// first; the processor shows breakpoints on the next instruction at once with them, whose own exception will come.
    #[must_use]
    pub fn happened(&self, dr6: u64) -> Happened {
        let traps = dr6 & (SINGLE_STEP | self.guests & !self.code);
        if traps != 0 {
            return Happened { own: false, bits: traps };
        }
        let faults = dr6 & self.guests;
        Happened { own: faults == 0 && dr6 & self.own != 0, bits: faults }
    }
}

#[cfg(test)]
mod tests;
