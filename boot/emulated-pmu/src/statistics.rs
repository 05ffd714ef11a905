//! How often what has cost the hypervisor its time: exits by what made the guest leave, ways to run, register accesses.
//! `statistics=N` among the options has a line of it written at each Nth exit: [`Statistics`] as text.

use crate::vmcb::exit;
use core::fmt::{self, Display, Formatter};

/// How the guest ran up to an exit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Nothing is counted.
    Free,
    /// Counted at full speed.
    Bulk,
    /// Counted at full speed in one page.
    Page,
    /// One instruction or delivery.
    Step,
}

/// Register accesses that are distinguished: the first that are seen.
const REGISTERS: usize = 48;
const WAYS: [&str; 4] = ["free", "bulk", "page", "step"];

/// What is counted.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// A line is due at each such exit. 0: never.
    each: u64,
    exits: u64,
    ways: [u64; WAYS.len()],
    /// By exit code, up to the last that an intercept vector has.
    codes: [u64; exit::LAST_INTERCEPT as usize + 1],
    nested_page_faults: u64,
    others: u64,
    /// RDMSR and WRMSR: number, whether it was written, and how often.
    registers: [(u32, bool, u64); REGISTERS],
    /// Changes of the mode in which code is translated.
    pub modes: u64,
    /// Counters that have overflowed.
    pub overflows: u64,
    /// Ticks of the hypervisor's own, and of the guest's.
    own: u64,
    guests: u64,
}

impl Statistics {
    /// None yet, with a line at each `each`th exit.
    #[must_use]
    pub const fn new(each: u64) -> Self {
        Self {
            each,
            exits: 0,
            ways: [0; WAYS.len()],
            codes: [0; exit::LAST_INTERCEPT as usize + 1],
            nested_page_faults: 0,
            others: 0,
            registers: [(0, false, 0); REGISTERS],
            modes: 0,
            overflows: 0,
            own: 0,
            guests: 0,
        }
    }

    /// Whether they are wanted.
    #[must_use]
    pub const fn are_wanted(&self) -> bool {
        self.each != 0
    }

    /// The guest is about to run.
    pub fn way(&mut self, way: Way) {
        self.ways[way as usize] += 1;
    }

    /// The guest has left, with this code, after so many ticks, and so many of the hypervisor's before. Whether a line is due.
    pub fn exit(&mut self, code: u64, own: u64, guests: u64) -> bool {
        self.exits += 1;
        self.own = self.own.wrapping_add(own);
        self.guests = self.guests.wrapping_add(guests);
        match usize::try_from(code).ok().and_then(|code| self.codes.get_mut(code)) {
            Some(count) => *count += 1,
            None if code == exit::NESTED_PAGE_FAULT => self.nested_page_faults += 1,
            None => self.others += 1,
        }
        self.are_wanted() && self.exits.is_multiple_of(self.each)
    }

    /// A register access. Those that come when the table is full are among the exits alone.
    pub fn register(&mut self, number: u32, writes: bool) {
        let is_own =
            |slot: &&mut (u32, bool, u64)| slot.2 == 0 || (slot.0, slot.1) == (number, writes);
        if let Some(slot) = self.registers.iter_mut().find(is_own) {
            *slot = (number, writes, slot.2 + 1);
        }
    }
}

/// Words `name=count`, those that are 0 left out: `exits`, the ways, `modes`, `overflows`, the ticks `own` and `guest`, exits by code
/// as `exit:0x7c`, and accesses to registers as `rdmsr:0x38f` and `wrmsr:0x38f`.
impl Display for Statistics {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        write!(out, "exits={}", self.exits)?;
        let ways = WAYS.into_iter().zip(self.ways);
        let ticks = [("own", self.own), ("guest", self.guests)];
        let others =
            [("modes", self.modes), ("overflows", self.overflows), ("exit:other", self.others)];
        for (name, count) in ways.chain(others).chain(ticks).filter(|(_, count)| *count > 0) {
            write!(out, " {name}={count}")?;
        }
        let faults = (exit::NESTED_PAGE_FAULT, self.nested_page_faults);
        let codes = (0..).zip(self.codes).chain([faults]);
        for (code, count) in codes.filter(|(_, count)| *count > 0) {
            write!(out, " exit:{code:#x}={count}")?;
        }
        for (number, writes, count) in self.registers.into_iter().filter(|(.., count)| *count > 0) {
            let name = if writes { "wrmsr" } else { "rdmsr" };
            write!(out, " {name}:{number:#x}={count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_at_each_nth_exit_and_names_what_there_was() {
        let mut seen = Statistics::new(2);
        seen.way(Way::Bulk);
        assert!(!seen.exit(exit::MSR, 10, 20));
        seen.way(Way::Step);
        seen.register(0x38f, true);
        seen.register(0x38f, true);
        seen.register(0x38f, false);
        assert!(seen.exit(exit::NESTED_PAGE_FAULT, 1, 2));
        assert!(!seen.exit(exit::INVALID, 0, 0));
        assert_eq!(
            seen.to_string(),
            "exits=3 bulk=1 step=1 exit:other=1 own=11 guest=22 exit:0x7c=1 exit:0x400=1 \
             wrmsr:0x38f=2 rdmsr:0x38f=1"
        );
        assert!(!Statistics::new(0).exit(exit::MSR, 0, 0), "they are not wanted");
    }

    #[test]
    fn what_the_table_of_registers_does_not_hold_is_left_out() {
        let mut seen = Statistics::new(1);
        (0..1000).for_each(|number| seen.register(number, false));
        seen.register(0, false);
        assert_eq!(seen.to_string().matches("rdmsr:").count(), REGISTERS);
        assert!(seen.to_string().contains("rdmsr:0x0=2"));
    }
}
