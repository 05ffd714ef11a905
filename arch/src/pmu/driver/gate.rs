//! Starting and stopping everything that is programmed.

use super::{Driver, ENABLE, PmuError, write};
use crate::msr::Msr;
use crate::pmu::access::Registers;
use crate::pmu::capabilities::Counter;
use core::arch::asm;

/// One WRMSR.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Write {
    /// The register.
    pub msr: u32,
    reserved: u32,
    /// The value.
    pub value: u64,
}

impl Write {
    /// A write of `value` to `msr`.
    #[must_use]
    pub const fn new(msr: Msr, value: u64) -> Self {
        Self { msr: msr.0, reserved: 0, value }
    }

    /// Executes it.
    ///
    /// # Safety
    /// As for [`crate::msr::write`].
    #[inline]
    pub unsafe fn put(&self) {
        // SAFETY: the caller's promise. The halves of the value are read from where they lie.
        unsafe {
            asm!(
                "mov ecx, [{0}]",
                "mov eax, [{0} + 8]",
                "mov edx, [{0} + 12]",
                "wrmsr",
                in(reg) self, out("ecx") _, out("eax") _, out("edx") _,
                options(nostack, preserves_flags),
            );
        }
    }
}

/// Most writes of a gate: one for each of AMD's six counters, or of an Intel processor of version 1.
pub const MAX_WRITES: usize = 8;

/// The writes that start counting, and those that stop it.
///
/// With a global control it is one each, and all counters see the same window. Without, it is one for each counter,
/// in the same order both times: so the windows are of the same length in instructions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct Gate {
    on: [Write; MAX_WRITES],
    off: [Write; MAX_WRITES],
    count: usize,
}

impl Gate {
    /// A gate that opens nothing.
    pub const EMPTY: Self =
        Self { on: [EMPTY_WRITE; MAX_WRITES], off: [EMPTY_WRITE; MAX_WRITES], count: 0 };

    /// Offset of the writes that start, for assembly.
    pub(in crate::pmu) const ON: usize = core::mem::offset_of!(Self, on);
    /// The same of those that stop.
    pub(in crate::pmu) const OFF: usize = core::mem::offset_of!(Self, off);

    /// Writes that start.
    #[must_use]
    pub fn on(&self) -> &[Write] {
        &self.on[..self.count]
    }

    /// Writes that stop.
    #[must_use]
    pub fn off(&self) -> &[Write] {
        &self.off[..self.count]
    }

    /// The same with one more write, `on` when it opens and `off` when it closes. A gate has room for
    /// [`MAX_WRITES`]; what does not fit is left out.
    #[must_use]
    pub fn with(mut self, msr: Msr, on: u64, off: u64) -> Self {
        self.push(msr, on, off);
        self
    }

    /// The same with the write to `msr`, if there is one, after all others on both sides.
    #[must_use]
    pub(in crate::pmu) fn with_last(mut self, msr: Msr) -> Self {
        for side in [&mut self.on, &mut self.off] {
            let writes = &mut side[..self.count];
            if let Some(at) = writes.iter().position(|one| one.msr == msr.0) {
                writes[at..].rotate_left(1);
            }
        }
        self
    }

    /// Another value of the first write that starts.
    #[inline]
    pub(in crate::pmu) fn follow(&mut self, on: u64) {
        self.on[0].value = on;
    }

    fn push(&mut self, msr: Msr, on: u64, off: u64) {
        if self.count < MAX_WRITES {
            self.on[self.count] = Write::new(msr, on);
            self.off[self.count] = Write::new(msr, off);
            self.count += 1;
        }
    }
}

/// An event select's bit 17, of Intel and AMD.
const OS: u64 = 1 << 17;
const EMPTY_WRITE: Write = Write::new(Msr(0), 0);

impl Driver {
    /// The gate of what is programmed now.
    #[must_use]
    pub fn gate(&self) -> Gate {
        let mut gate = Gate::EMPTY;
        if let Some(global) = self.layout.global {
            let off = self.free_running | self.foreign;
            gate.push(global.control, self.enabled | self.foreign, off);
            return gate;
        }
        for (n, &select) in (0..).zip(&self.selects) {
            if select != 0 && self.free_running & 1 << n == 0 {
                gate.push(self.layout.select(n), select, select & !ENABLE);
            }
        }
        gate
    }

    /// Whether `counter` is programmed to count in ring 0.
    pub(in crate::pmu) fn counts_ring_0(&self, counter: Counter) -> bool {
        match counter {
            Counter::General(n) => self.selects[usize::from(n)] & OS != 0,
            Counter::Fixed(i) => self.fixed.0 >> (4 * i) & 1 != 0,
        }
    }

    /// Takes `counter`, which is programmed, out of the gate: it runs from the first of these writes to the second,
    /// whether the gate is open or closed meanwhile.
    ///
    /// # Errors
    /// The counter is not programmed.
    pub fn free_run(&mut self, counter: Counter) -> Result<[Write; 2], PmuError> {
        if self.programmed() & counter.bit() == 0 {
            return Err(PmuError::NoCounter(counter));
        }
        self.free_running |= counter.bit();
        if let Some(global) = self.layout.global {
            let values = [self.free_running | self.foreign, self.foreign];
            return Ok(values.map(|value| Write::new(global.control, value)));
        }
        let (msr, select) =
            (self.layout.select(counter.index() as u8), self.selects[counter.index()]);
        Ok([select, select & !ENABLE].map(|value| Write::new(msr, value)))
    }

    /// Leaves these counters, as bits of the global registers, to somebody else: where there is a global control, they run
    /// whatever this driver starts and stops. It is to program none of them, and no fixed counter if one of them is.
    #[must_use]
    pub fn beside(mut self, counters: u64) -> Self {
        self.foreign = counters;
        self
    }

    /// Starts every programmed counter, as near to each other as the processor permits.
    ///
    /// # Errors
    /// A register refuses.
    pub fn start(&self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        self.gate().on().iter().try_for_each(|one| write(registers, Msr(one.msr), one.value))
    }

    /// Stops every programmed counter, but for free-running ones.
    ///
    /// # Errors
    /// A register refuses.
    pub fn stop(&self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        self.gate().off().iter().try_for_each(|one| write(registers, Msr(one.msr), one.value))
    }
}
