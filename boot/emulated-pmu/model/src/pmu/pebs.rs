//! Precise event-based sampling: records that the processor itself writes into the debug store (Intel SDM volume 3,
//! 18.4.9 and 20.3.1 to 20.3.8; the layouts also in Linux, `arch/x86/events/intel/ds.c`).

use super::gate::Which;
use super::{Outcome, Pmu, Sampled};
use crate::model::Pebs;
use crate::mutation::Mutation;
use crate::selector::Selector;
use crate::{Delta, Ring};

/// DS area: base of the buffer, where the next record goes, the first byte after it, and the threshold.
const BUFFER: [u64; 4] = [0x20, 0x28, 0x30, 0x38];
/// DS area: reset values of the general-purpose counters.
const RESETS: u64 = 0x40;
/// Status bit 62: the threshold is reached.
const BUFFER_OVERFLOW: u64 = 1 << 62;
/// Unit mask bits 1:0 of the events of memory instructions that count stores alone; those of loads have bit 0.
const STORES: u16 = 2;
/// Words of XMM0 to XMM15.
pub(super) const STATE: usize = 32;
/// Most words of a record: an adaptive one with all groups, 32 branches and every counter.
pub(super) const MAX_WORDS: usize = 4 + 4 + 18 + 32 + 3 * 32 + 2 + 16 + 8 + 2;

/// Memory of the guest.
pub trait GuestMemory {
    /// Eight bytes by their linear address; `None` if they are not mapped.
    fn read(&mut self, linear: u64) -> Option<u64>;
    /// Writes eight bytes; `None` if they are not mapped.
    fn write(&mut self, linear: u64, value: u64) -> Option<()>;
    /// Writes eight bytes by their physical address, as architectural PEBS does; `None` if there is no memory.
    fn write_physical(&mut self, physical: u64, value: u64) -> Option<()>;
}

/// The instruction that a record is of, and the state after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retirement {
    /// Its linear address.
    pub ip: u64,
    /// The address of the instruction that comes after it.
    pub next: u64,
    /// It was not executed in 64-bit mode.
    pub outside_64_bit_mode: bool,
    /// RFLAGS.
    pub flags: u64,
    /// The general registers, in the order of their encoding: RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub registers: [u64; 16],
    /// Linear address of what it loaded first, if it loaded.
    pub load: Option<u64>,
    /// Linear address of what it stored to first, if it stored.
    pub store: Option<u64>,
    /// The TSC.
    pub tsc: u64,
    /// XMM0 to XMM15, two words each, the lower one first. Of use where [`Pmu::records_vectors`].
    pub vectors: [u64; STATE],
    /// The upper halves of YMM0 to YMM15, two words each, the lower one first; `None` if software has not enabled AVX in XCR0.
    /// Of use where [`Pmu::records_upper_halves`].
    pub ymm_upper: Option<[u64; STATE]>,
    /// What AMD's samples tell of it. Of use where there is instruction-based sampling.
    pub sampled: Sampled,
}

impl Pebs {
    /// Whether records of an event hold the data's address.
    fn has_data(&self, event: (u16, u16)) -> bool {
        self.data.contains(&event.0) || self.has_latency(event)
    }

    /// Whether records of an event hold the data's source and latency.
    pub(super) fn has_latency(&self, event: (u16, u16)) -> bool {
        [self.loads, self.stores].contains(&Some(event))
    }

    /// Which reset value of the DS area is a counter's: eight of general-purpose counters, with format 5 and later 32, are
    /// in front of those of the fixed ones.
    const fn reset_of(&self, which: Which) -> u64 {
        let general = if self.format >= 5 { 32 } else { 8 };
        match which {
            Which::General(n) => n as u64,
            Which::Fixed(n) => general + n as u64,
            Which::IbsFetch | Which::IbsOp => 0,
        }
    }
}

impl Pmu {
    pub(super) fn pebs(&self) -> Option<&'static Pebs> {
        self.spec().intel()?.pebs.as_ref()
    }

    /// Whether the counter's event is a precise one, and PEBS is on for it.
    pub(super) fn is_precise(&self, which: Which) -> bool {
        let Some(pebs) = self.pebs().filter(|_| self.is_on(which)) else {
            return false;
        };
        let Which::General(n) = which else {
            // INST_RETIRED.ANY and PREC_DIST.
            return which == Which::Fixed(0);
        };
        let selector = Selector(self.counters[n].selector);
        pebs.events.contains(&(selector.intel_code(), selector.intel_umask()))
    }

    /// Whether the counter writes records instead of overflowing: PEBS is on for it, and its event is a precise one, or any
    /// where records are adaptive (SDM volume 3, 20.9.1: extended PEBS).
    pub(super) fn writes_records(&self, which: Which) -> bool {
        if matches!(which, Which::IbsFetch | Which::IbsOp) {
            return true;
        }
        let all = self.pebs().is_some_and(Pebs::takes_every_event);
        self.is_precise(which) || all && self.is_on(which)
    }

    /// Whether PEBS is on for the counter.
    fn is_on(&self, which: Which) -> bool {
        let dead = matches!(which, Which::Fixed(_)) && self.is(Mutation::PebsFixedDead);
        self.pebs_enable & which.bit() != 0 && !dead
    }

    /// Whether the record of an armed counter, which counted so many events just now, is of this instruction: it is of one
    /// with a further event, or, of an event that is not precise, of the next one.
    pub(super) fn is_occasion(&self, which: Which, count: u64, delta: &Delta) -> bool {
        match self.is_precise(which) {
            true => count > 0 && delta.instructions <= 1,
            false => delta.instructions == 1,
        }
    }

    /// Whether a counter that runs in `ring` has overflowed, and its next event makes a record.
    #[must_use]
    pub fn awaits_record(&self, ring: Ring) -> bool {
        self.each().any(|which| self.is_armed(which) && self.gate(which).rings.contains(ring))
    }

    /// Whether the next event of this counter makes a record.
    pub(super) fn is_armed(&self, which: Which) -> bool {
        self.armed & which.bit() != 0
    }

    /// Writes the record or the sample that [`Outcome::due`] requests, of the instruction just reported, and gives those counters
    /// their reset values. A buffer without room keeps what it has. The outcome says whether that requests an interrupt.
    pub fn write_record(
        &mut self,
        due: u64,
        retired: &Retirement,
        memory: &mut dyn GuestMemory,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        self.armed &= !due;
        outcome.ibs = self.take_samples(due, retired);
        let Some(pebs) = self.pebs() else { return outcome };
        if !pebs.has_store() {
            // Of a sample alone nothing is due here.
            self.write_architectural(pebs, due, retired, memory, &mut outcome);
            return outcome;
        }
        let area = self.ds_area;
        let [Some(_), Some(index), Some(maximum), Some(threshold)] =
            BUFFER.map(|offset| memory.read(area.wrapping_add(offset)))
        else {
            return outcome;
        };
        let mut words = [0; MAX_WORDS];
        let count = match pebs.is_adaptive() {
            true => self.adaptive_record(pebs, due, retired, &mut words),
            false => self.record(pebs, due, retired, &mut words),
        };
        let end = index.wrapping_add(8 * count as u64);
        let fits = end <= maximum || self.is(Mutation::PebsMaximumIgnored);
        if fits {
            for (at, word) in (index..).step_by(8).zip(&words[..count]) {
                let _ = memory.write(at, *word);
            }
            let lost = self.is(Mutation::PebsRecordLost) && self.is_odd_record();
            if !lost {
                let _ = memory.write(area.wrapping_add(BUFFER[1]), end);
            }
        }
        for which in self.each().filter(|which| due & which.bit() != 0) {
            let place = area.wrapping_add(RESETS + 8 * pebs.reset_of(which));
            let lost = matches!(which, Which::Fixed(_)) && self.is(Mutation::PebsFixedResetLost);
            if let Some(reset) = memory.read(place).filter(|_| !lost) {
                let width = (1 << self.bits(which)) - 1;
                self.counter_mut(which).set(reset & width);
            }
        }
        let reached = if fits { end } else { index };
        if (reached >= threshold || !fits) && !self.is(Mutation::PebsThresholdIgnored) {
            self.status |= BUFFER_OVERFLOW;
            self.freeze_on_pmi();
            outcome.overflowed = BUFFER_OVERFLOW;
            outcome.pmi = true;
        }
        outcome
    }

    /// Every second time, for the planted fault that loses records.
    pub(super) fn is_odd_record(&mut self) -> bool {
        self.records = self.records.wrapping_add(1);
        self.records % 2 == 1
    }

    /// The words of a record, and how many there are.
    fn record(
        &self,
        pebs: &Pebs,
        due: u64,
        retired: &Retirement,
        words: &mut [u64; MAX_WORDS],
    ) -> usize {
        let late = self.is(Mutation::PebsAddressWrong);
        // Trap-like: the state is that after the instruction, and so is this address. The instruction's own came with
        // format 2.
        let (behind, eventing) =
            if late { (retired.ip, retired.next) } else { (retired.next, retired.ip) };
        let [ax, cx, dx, bx, sp, bp, si, di, rest @ ..] = retired.registers;
        words[..10].copy_from_slice(&[retired.flags, behind, ax, bx, cx, dx, si, di, bp, sp]);
        words[10..18].copy_from_slice(&rest);
        words[18] = due;
        words[19] = self.data_of(pebs, due, retired);
        // 23, transactions, is 0: this machine has none.
        [words[20], words[21]] = self.source_of(pebs, due);
        words[22] = eventing;
        words[24] = retired.tsc;
        match pebs.format {
            0 => 18,
            1 => 22,
            2 => 24,
            _ => 25,
        }
    }

    /// The events that a record is of, of general-purpose counters.
    pub(super) fn events_of(&self, due: u64) -> impl Iterator<Item = (u16, u16)> + '_ {
        let counters = self.counters.iter().enumerate().filter(move |(n, _)| due & 1 << n != 0);
        counters.map(|(_, counter)| {
            let selector = Selector(counter.selector);
            (selector.intel_code(), selector.intel_umask())
        })
    }

    /// The data's address, which only some events have: of the load, or of the store for those that count stores alone.
    pub(super) fn data_of(&self, pebs: &Pebs, due: u64, retired: &Retirement) -> u64 {
        let has = |event| pebs.has_data(event) || self.is_precise_store(pebs, event);
        let with_data = self.events_of(due).find(|event| has(*event));
        let data = with_data.and_then(|(_, umask)| match umask & 3 {
            STORES => retired.store,
            _ => retired.load.or(retired.store),
        });
        data.unwrap_or(0)
    }
}
