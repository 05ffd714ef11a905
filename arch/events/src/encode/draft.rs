//! An event on its way to registers: what it is, before it is known what the processor makes of it.

use crate::architectural::Architectural;
use crate::cpu::Vendor;
use crate::event::{Event, Precise, Way};
use crate::perf_metrics::Field;
use crate::processor::Processor;
use crate::register::EventSelect;
use crate::tables::Core;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// See [`Event`] for the fields that have the same name there.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub name: String,
    pub ways: Vec<Way>,
    pub cmask: u64,
    pub invert: bool,
    pub edge: bool,
    pub any_thread: bool,
    pub equal: bool,
    pub pin_control: bool,
    pub in_tx: bool,
    pub in_tx_checkpointed: bool,
    /// Counters that the event can be counted on, before the processor's own are known.
    pub counters: u64,
    /// The fixed counter that it is, or that counts the same.
    pub fixed: Option<u8>,
    /// The field of MSR_PERF_METRICS that it is.
    pub metric: Option<u8>,
    /// It was requested by the fixed counter's number: nothing else will do.
    pub only_fixed: bool,
    pub msr_value: Option<u64>,
    pub precise: Precise,
    /// It is an event of the table, not a code that somebody wrote down.
    pub from_table: bool,
    /// Whether [`Self::precise`] is known.
    pub precise_known: bool,
    pub taken_alone: bool,
    pub deprecated: bool,
    pub doubtful: bool,
    pub errata: String,
}

impl Draft {
    /// A bare code, as raw forms have it.
    pub fn code(name: String, event: u16, umask: u16) -> Self {
        Self {
            name,
            ways: vec![Way { event, umask, msr: None }],
            cmask: 0,
            invert: false,
            edge: false,
            any_thread: false,
            equal: false,
            pin_control: false,
            in_tx: false,
            in_tx_checkpointed: false,
            counters: u64::MAX,
            fixed: None,
            metric: None,
            only_fixed: false,
            msr_value: None,
            precise: Precise::No,
            from_table: false,
            precise_known: false,
            taken_alone: false,
            deprecated: false,
            doubtful: false,
            errata: String::new(),
        }
    }

    /// Takes over, for a bare code, what the table says about events with the same code: the same
    /// silicon counts it, so it has the same restrictions. Where events of one code differ in their
    /// counter mask and in their counters, the event with this draft's counter mask is meant. Where
    /// no event has the code, other unit masks of the same event say which counters there are at
    /// most.
    pub fn learn(&mut self, core: &Core<'_>) {
        let code = self.ways[0];
        let codes = |event: &Event<'_>| {
            let same = |way: &Way| (way.event, way.umask) == (code.event, code.umask);
            event.ways().iter().any(same)
        };
        let known: Vec<Event<'_>> = core.with_code(code.event).filter(codes).collect();
        let like = |event: &&Event<'_>| {
            (u64::from(event.cmask), event.invert, event.edge)
                == (self.cmask, self.invert, self.edge)
        };
        let exact = known.iter().filter(like).map(|event| u64::from(event.counters));
        let common = exact.reduce(|a, b| a & b).unwrap_or_else(|| {
            let all = || known.iter().map(|event| u64::from(event.counters));
            match all().reduce(|a, b| a & b) {
                Some(0) => all().fold(0, |a, b| a | b),
                Some(common) => common,
                None => core
                    .with_code(code.event)
                    .map(|event| u64::from(event.counters))
                    .reduce(|a, b| a | b)
                    .unwrap_or(u64::MAX),
            }
        });
        self.counters &= common;
        self.precise_known = !known.is_empty();
        self.taken_alone |= !known.is_empty() && known.iter().all(|event| event.taken_alone);
        let precise = known.iter().map(|event| event.precise.min(Precise::Capable)).max();
        self.precise = precise.unwrap_or(Precise::No);
    }

    /// An event of a table.
    pub fn event(event: &Event<'_>) -> Self {
        Self {
            name: event.name.to_string(),
            ways: event.ways().to_vec(),
            cmask: event.cmask.into(),
            invert: event.invert,
            edge: event.edge,
            any_thread: event.any_thread,
            equal: false,
            pin_control: false,
            in_tx: false,
            in_tx_checkpointed: false,
            counters: event.counters.into(),
            fixed: event.fixed,
            metric: None,
            only_fixed: false,
            msr_value: event.ways()[0].msr.map(|_| event.msr_value),
            precise: event.precise,
            from_table: true,
            precise_known: true,
            taken_alone: event.taken_alone,
            deprecated: event.deprecated,
            doubtful: event.doubtful,
            errata: event.errata.to_string(),
        }
    }

    /// An architectural event. `fixed`: it was requested as what the fixed counter counts. Where its code means something else,
    /// there is no other way.
    pub fn architectural(
        event: &Architectural,
        name: &str,
        fixed: bool,
        processor: &Processor,
    ) -> Self {
        let way = event.way(processor.vendor);
        let mut draft = Self::code(name.to_string(), way.event, way.umask);
        if processor.vendor == Vendor::Intel && (fixed || !event.is_coded(processor)) {
            draft.fixed = event.fixed;
            draft.counters = 0;
        }
        draft
    }

    /// A fixed counter by its number.
    pub fn fixed(index: u8) -> Self {
        let mut draft = Self::code(alloc::format!("fixed{index}"), 0, 0);
        draft.fixed = Some(index);
        draft.only_fixed = true;
        draft.counters = 0;
        draft
    }

    /// A field of MSR_PERF_METRICS.
    pub fn metric(field: &Field) -> Self {
        let mut draft = Self::code(field.name.to_string(), 0, 0);
        draft.metric = Some(field.index);
        draft.counters = 0;
        draft
    }

    /// A raw code in the form of the event select register.
    pub fn raw(name: String, select: &EventSelect) -> Self {
        Self {
            cmask: select.cmask.into(),
            invert: select.invert,
            edge: select.edge,
            any_thread: select.any_thread,
            equal: select.equal,
            in_tx: select.in_tx,
            in_tx_checkpointed: select.in_tx_checkpointed,
            ..Self::code(name, select.event, select.wide_umask())
        }
    }

    /// Whether it requests anything that fixed counters do not have, and what.
    pub fn beyond_fixed(&self) -> Option<&'static str> {
        [
            (self.cmask != 0, "counter mask"),
            (self.invert, "invert"),
            (self.edge, "edge detection"),
            (self.equal, "comparison for equality"),
            (self.pin_control, "pin control"),
            (self.in_tx || self.in_tx_checkpointed, "transaction qualifier"),
            (self.msr_value.is_some(), "extra MSR"),
        ]
        .into_iter()
        .find_map(|(asked, what)| asked.then_some(what))
    }
}
