//! Writes that let counters run, put off until the kernel goes back to what it interrupted.
//!
//! Counters of ring 0 see the kernel itself. Where they are not to, the kernel's ways in stop them as the first thing and its
//! ways out start them as the last (`crate::interrupts::deferring`), always by the same few instructions. In between the kernel
//! programs the counters as ever, but what would start them goes here instead of to the processor.

use super::capabilities::Counter;
use super::driver::{Driver, MAX_WRITES, Write};
use crate::msr::Msr;
use core::mem::offset_of;

/// What a processor's counters are to do when the kernel is gone. The ways in and out read it in assembly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct Deferred {
    off: [Write; MAX_WRITES],
    on: [Write; MAX_WRITES],
    /// Writes that stop, and those that start; likewise.
    offs: u32,
    ons: u32,
    /// How often the way in has stopped counters that ran.
    closed: u64,
    /// Writes that start, while they are kept back.
    kept: u32,
    registers: Registers,
}

/// Registers that start counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Registers {
    /// The global control, and what it is while nothing counts.
    Global(u32, u64),
    /// The event selectors; 0: there is none.
    Selects([u32; MAX_WRITES]),
}

/// The enable of an event selector (SDM vol. 3, figure 20-1; APM vol. 2, 13.2.1).
const ENABLE: u64 = 1 << 22;

impl Deferred {
    /// For the counters of `driver`, none of which runs.
    #[must_use]
    pub fn new(driver: &Driver) -> Self {
        let none = Write::new(Msr(0), 0);
        let registers = match driver.layout().global {
            Some(global) => {
                let off = driver.gate().off().first().map_or(0, |write| write.value);
                Registers::Global(global.control.0, off)
            }
            None => {
                let mut selects = [0; MAX_WRITES];
                for (place, counter) in selects.iter_mut().zip(driver.capabilities().generals()) {
                    if let Counter::General(n) = counter {
                        *place = driver.layout().select(n).0;
                    }
                }
                Registers::Selects(selects)
            }
        };
        let writes = [none; MAX_WRITES];
        Self { off: writes, on: writes, offs: 0, ons: 0, closed: 0, kept: 0, registers }
    }

    /// The kernel writes this. Returns what is to be written now: the same, if it starts nothing.
    #[must_use]
    pub fn take(&mut self, write: Write) -> Write {
        match self.registers {
            Registers::Global(control, off) if write.msr == control => {
                self.ons = u32::from(write.value & !off != 0);
                self.on[0] = write;
                self.off[0] = Write::new(Msr(control), off);
                self.offs = 1;
                self.off[0]
            }
            Registers::Selects(selects) if write.msr != 0 && selects.contains(&write.msr) => {
                self.select(write)
            }
            _ => write,
        }
    }

    fn select(&mut self, write: Write) -> Write {
        let used = self.offs as usize;
        let place = self.off[..used].iter().position(|off| off.msr == write.msr);
        if write.value & ENABLE == 0 {
            if let Some(place) = place {
                for writes in [&mut self.off, &mut self.on] {
                    writes[place..used].rotate_left(1);
                }
                self.offs -= 1;
                self.ons = self.offs;
            }
            return write;
        }
        let place = place.unwrap_or(used);
        // There is a place for each selector.
        self.on[place] = write;
        self.off[place] = Write::new(Msr(write.msr), write.value & !ENABLE);
        self.offs = self.offs.max(place as u32 + 1);
        self.ons = self.offs;
        self.off[place]
    }

    /// Keeps the counters stopped, whatever was written.
    pub const fn keep(&mut self) {
        (self.kept, self.ons) = (self.ons, 0);
    }

    /// Lets them go on with the kernel's next way out, as before [`Deferred::keep`].
    pub const fn let_go(&mut self) {
        self.ons = self.kept;
    }

    /// The writes of a way in.
    #[must_use]
    pub fn off(&self) -> &[Write] {
        &self.off[..self.offs as usize]
    }

    /// The writes of a way out.
    #[must_use]
    pub fn on(&self) -> &[Write] {
        &self.on[..self.ons as usize]
    }

    /// A way in has stopped the counters.
    pub const fn close(&mut self) {
        self.closed += (self.ons != 0) as u64;
    }

    /// How often counters that ran were stopped since the last time.
    pub const fn closings(&mut self) -> u64 {
        core::mem::replace(&mut self.closed, 0)
    }

    pub(crate) const OFF: usize = offset_of!(Self, off);
    pub(crate) const ON: usize = offset_of!(Self, on);
    pub(crate) const OFFS: usize = offset_of!(Self, offs);
    pub(crate) const ONS: usize = offset_of!(Self, ons);
    pub(crate) const CLOSED: usize = offset_of!(Self, closed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Bit 22, without the code's own name of it.
    const ON: u64 = 0x40_0000;

    fn of(registers: Registers) -> Deferred {
        let writes = [Write::new(Msr(0), 0); MAX_WRITES];
        Deferred { off: writes, on: writes, offs: 0, ons: 0, closed: 0, kept: 0, registers }
    }

    #[test]
    fn m14_a_global_control_is_put_off_with_its_last_value() {
        let mut deferred = of(Registers::Global(0x38f, 1 << 32));
        let write = |value| Write::new(Msr(0x38f), value);
        assert_eq!(deferred.take(Write::new(Msr(0x186), 5)), Write::new(Msr(0x186), 5));
        assert_eq!(deferred.take(write(1 << 32 | 3)), write(1 << 32));
        assert_eq!(
            (deferred.on(), deferred.off()),
            (&[write(1 << 32 | 3)][..], &[write(1 << 32)][..])
        );
        deferred.close();
        deferred.keep();
        assert!(deferred.on().is_empty());
        deferred.close();
        deferred.let_go();
        assert_eq!(deferred.on(), [write(1 << 32 | 3)]);
        assert_eq!(deferred.take(write(1 << 32)), write(1 << 32));
        assert_eq!((deferred.on(), deferred.off()), (&[][..], &[write(1 << 32)][..]));
        assert_eq!((deferred.closings(), deferred.closings()), (1, 0));
    }

    proptest! {
        /// Whatever is written, nothing that was written lets a counter run; and with the way out every selector is what was
        /// written to it last. The ways in and out have the same registers in the same order.
        #[test]
        fn m14_selectors_are_put_off_one_by_one(
            writes in prop::collection::vec((0u32..7, 0u64..4, any::<bool>()), 0..60),
        ) {
            let mut deferred = of(Registers::Selects([0x10, 0x12, 0x14, 0x16, 0x18, 0x1a, 0, 0]));
            let (mut wanted, mut there) = (BTreeMap::new(), BTreeMap::new());
            for (n, event, on) in writes {
                // The last one is a counter's value, or something else.
                let write = Write::new(Msr(0x10 + 2 * n), event | (u64::from(on) * ON));
                let now = deferred.take(write);
                prop_assert_eq!(now.msr, write.msr);
                prop_assert!(n == 6 || now.value & ON == 0);
                wanted.insert(write.msr, write.value);
                there.insert(now.msr, now.value);
                let registers = |writes: &[Write]| writes.iter().map(|one| one.msr).collect::<Vec<_>>();
                prop_assert_eq!(registers(deferred.on()), registers(deferred.off()));
            }
            for write in deferred.off() {
                prop_assert_eq!(there[&write.msr], write.value);
            }
            for write in deferred.on() {
                there.insert(write.msr, write.value);
            }
            prop_assert_eq!(there, wanted);
        }
    }

    /// The places that are left have number 0, which no selector has.
    #[test]
    fn m14_another_register_than_a_selector_is_written_as_it_is() {
        let mut deferred = of(Registers::Selects([0x10, 0x12, 0, 0, 0, 0, 0, 0]));
        for msr in [0x14, 0] {
            let write = Write::new(Msr(msr), ON | 5);
            assert_eq!(deferred.take(write), write);
            assert!(deferred.off().is_empty() && deferred.on().is_empty(), "{msr:#x}");
        }
    }
}
