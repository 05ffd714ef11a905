//! The events of an item, as they are requested of the PMU.

use crate::events::Known;
use crate::sampling::{ibs, memory, shares};
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::Capabilities;
use events::parse::parse_list;
use events::request::{Item, Request};
use protocol::job::sampling::{Rate, Sampling};
use protocol::record::Uncounted;

/// Whether this text is of several events, one of which is `event`: a group in braces or a list.
fn holds(text: &str, event: &str) -> bool {
    let named = |request: &Request| {
        request.text == event || request.attributes.label.as_deref() == Some(event)
    };
    let requests = |items: Vec<Item>| items.into_iter().flat_map(|item| item.requests);
    parse_list(text).is_ok_and(|items| requests(items).any(|request| named(&request)))
}

/// The events of an item, with those that instruction-based sampling takes as what counts beside it.
pub(super) struct Requested<'a> {
    pub(super) texts: Vec<Cow<'a, str>>,
    /// Texts of the job that others stand for: by their number among the events.
    pub(super) renamed: Vec<(usize, String)>,
    /// The one that it takes: its number among all, and what is sampled.
    pub(super) ibs: Option<(usize, ibs::IbsEvent)>,
    pub(super) refused: Vec<Uncounted>,
    /// What is counted beside, and not sampled by.
    beside: Vec<&'a Cow<'a, str>>,
}

impl<'a> Requested<'a> {
    pub(super) fn of(item: &'a Sampling, known: &Known, has: &Capabilities) -> Self {
        let (texts, renamed, refused) = (Vec::new(), Vec::new(), Vec::new());
        let beside = shares::texts(item, known);
        let mut requested = Self { texts, renamed, ibs: None, refused, beside };
        for (number, event) in item.events.iter().enumerate() {
            let text = &event.event;
            if requested.beside.contains(&text) {
                continue;
            }
            let by_ibs = match memory::requested(text, has) {
                Some(Ok(memory::Requested::Event(stands))) => {
                    requested.texts.push(Cow::Owned(stands.clone()));
                    requested.renamed.push((number, stands));
                    continue;
                }
                Some(Ok(memory::Requested::Ibs(event))) => Some(Ok(event)),
                Some(Err(reason)) => Some(Err(reason)),
                None => ibs::requested(text, item.precise, known, has),
            };
            match by_ibs {
                None => requested.texts.push(text.clone()),
                Some(Ok(ibs_event)) if requested.ibs.is_none() => {
                    requested.texts.push(Cow::Borrowed(ibs_event.beside()));
                    requested.ibs = Some((number, ibs_event));
                }
                Some(result) => {
                    let reason = result.err().unwrap_or_else(|| ibs::ONE.to_string());
                    requested.refused.push(Uncounted { event: text.to_string(), reason });
                }
            }
        }
        requested
    }

    /// The rate of the event with this number among all that are sampled by, or of the last one.
    pub(super) fn rate(&self, item: &Sampling, number: usize, event: &str) -> Rate {
        let sampled = || item.events.iter().filter(|one| !self.beside.contains(&&one.event));
        let by_text = sampled().find(|one| one.event == event);
        let by_member = || sampled().find(|one| holds(&one.event, event));
        let by_number = || sampled().nth(number).or_else(|| sampled().next_back());
        let found = by_text.or_else(by_member).or_else(by_number);
        found.map_or(Rate::Period(1), |one| one.rate)
    }

    /// What an event is called in the report: as the job has it.
    pub(super) fn name(&self, item: &Sampling, event: String) -> String {
        let stands = self.renamed.iter().find(|(_, text)| *text == event);
        stands.map_or(event, |(number, _)| item.events[*number].event.to_string())
    }
}
