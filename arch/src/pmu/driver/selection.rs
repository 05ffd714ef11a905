//! What a counter is to count.

use super::PmuError;
use crate::msr::Msr;
use crate::pmu::capabilities::{Capabilities, Counter};
use crate::pmu::registers::{AmdSelect, EventSelect, FixedField};
use bitflags::bitflags;

bitflags! {
    /// Where it counts.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Rings: u8 {
        /// Ring 0.
        const KERNEL = 1;
        /// Rings 1 to 3.
        const USER = 2;
    }
}

/// An event with all that the registers can say about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Selection {
    /// Event code: 8 bits on Intel, 12 on AMD. A fixed counter has one of its own and ignores this.
    pub event: u16,
    /// Unit mask: 8 bits, 16 with UMASK2. Ignored by fixed counters.
    pub umask: u16,
    /// Where it counts.
    pub rings: Rings,
    /// Counts rising edges of the condition.
    pub edge: bool,
    /// Inverts the comparison with the counter mask.
    pub invert: bool,
    /// The comparison is for equality.
    pub equal: bool,
    /// Counts cycles with at least so many occurrences; 0 counts the occurrences.
    pub cmask: u8,
    /// Counts for all threads of the core.
    pub any_thread: bool,
    /// An overflow raises a PMI.
    pub interrupt: bool,
    /// A register in addition to the counter that the event reads, and its value.
    pub extra: Option<(Msr, u64)>,
    /// The counter writes PEBS records instead of overflowing: see [`crate::pmu::pebs`].
    pub precise: bool,
}

impl Selection {
    /// An event in ring 0 and above, without attributes.
    #[must_use]
    pub const fn of(event: u16, umask: u16) -> Self {
        Self {
            event,
            umask,
            rings: Rings::all(),
            edge: false,
            invert: false,
            equal: false,
            cmask: 0,
            any_thread: false,
            interrupt: false,
            extra: None,
            precise: false,
        }
    }

    /// The same in other rings.
    #[must_use]
    pub const fn in_rings(self, rings: Rings) -> Self {
        Self { rings, ..self }
    }

    /// The same with a PMI at overflow.
    #[must_use]
    pub const fn with_interrupt(self) -> Self {
        Self { interrupt: true, ..self }
    }

    /// The same with PEBS records, and no PMI of its own.
    #[must_use]
    pub const fn with_records(self) -> Self {
        Self { precise: true, interrupt: false, ..self }
    }

    /// The select register's value, the counter switched on.
    ///
    /// # Errors
    /// An attribute, event or unit mask that the counter does not have.
    pub fn encode(&self, counter: Counter, has: &Capabilities) -> Result<u64, PmuError> {
        let lacks = |set: bool, offered: bool, attribute, reason| match set && !offered {
            true => Err(PmuError::Attribute { counter, attribute, reason }),
            false => Ok(()),
        };
        let deprecated = "it is not offered, or deprecated";
        lacks(self.any_thread, has.any_thread, "AnyThread", deprecated)?;
        lacks(self.equal, has.equal, "EQ", "CPUID leaf 0x23 does not offer it")?;
        if has.is_intel() {
            self.limit(counter, "event", self.event, 0xff)?;
            self.limit(counter, "unit mask", self.umask, if has.umask2 { 0xffff } else { 0xff })?;
            let mut select = EventSelect::of(self.event as u8, self.umask, self.cmask);
            select.insert(EventSelect::EN);
            select.set(EventSelect::USR, self.rings.contains(Rings::USER));
            select.set(EventSelect::OS, self.rings.contains(Rings::KERNEL));
            select.set(EventSelect::EDGE, self.edge);
            select.set(EventSelect::INV, self.invert);
            select.set(EventSelect::EQ, self.equal);
            select.set(EventSelect::ANY_THREAD, self.any_thread);
            select.set(EventSelect::INT, self.interrupt);
            select.set(EventSelect::ADAPTIVE, self.precise && has.has_adaptive_records());
            return Ok(select.bits());
        }
        self.limit(counter, "event", self.event, 0xfff)?;
        self.limit(counter, "unit mask", self.umask, 0xff)?;
        let mut select = AmdSelect::of(self.event, self.umask as u8, self.cmask);
        select.insert(AmdSelect::EN);
        select.set(AmdSelect::USR, self.rings.contains(Rings::USER));
        select.set(AmdSelect::OS, self.rings.contains(Rings::KERNEL));
        select.set(AmdSelect::EDGE, self.edge);
        select.set(AmdSelect::INV, self.invert);
        select.set(AmdSelect::INT, self.interrupt);
        Ok(select.bits())
    }

    fn limit(
        &self,
        counter: Counter,
        what: &'static str,
        value: u16,
        max: u16,
    ) -> Result<(), PmuError> {
        if value <= max {
            return Ok(());
        }
        Err(PmuError::TooLarge { counter, what, value: value.into(), max: max.into() })
    }

    /// The field of a fixed counter.
    ///
    /// # Errors
    /// An attribute that fixed counters do not have.
    pub fn field(&self, counter: Counter, has: &Capabilities) -> Result<FixedField, PmuError> {
        let general = "only general-purpose counters have it";
        let deprecated = "it is not offered, or deprecated";
        for (set, attribute, reason) in [
            (self.edge, "edge detection", general),
            (self.invert, "inversion", general),
            (self.equal, "EQ", general),
            (self.cmask != 0, "counter mask", general),
            (self.any_thread && !has.any_thread, "AnyThread", deprecated),
        ] {
            if set {
                return Err(PmuError::Attribute { counter, attribute, reason });
            }
        }
        let mut field = FixedField::empty();
        field.set(FixedField::OS, self.rings.contains(Rings::KERNEL));
        field.set(FixedField::USR, self.rings.contains(Rings::USER));
        field.set(FixedField::ANY_THREAD, self.any_thread);
        field.set(FixedField::PMI, self.interrupt);
        Ok(field)
    }
}
