//! What lines of the console do with the sets of a job.

use super::super::contexts::{ContextError, Contexts, Standing};
use super::super::owner::{Claim, Scope};
use super::super::{CountingError, Counts, Platform, Request, Session, Set, SetError};
use super::plan::too_often;
use super::{CountRun, Held, value};
use crate::events::Known;
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::msr::Msr;
use arch::pmu::PmuError;
use protocol::console::{Change, Command};
use protocol::hex::Hex;
use protocol::job::count::Count;
use protocol::record::{ConsoleBefore, ConsoleEvent, ConsoleSet, ConsoleState};

/// How much is told of a set.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Telling {
    Names,
    Counts,
    Everything,
}

/// A set that counts here: its number, its name, and for whom.
struct Found<'a> {
    number: usize,
    name: &'a str,
    claims: Vec<Claim>,
}

impl CountRun {
    /// TSC ticks since counting began.
    pub fn since_begin(&self, platform: &mut dyn Platform) -> u64 {
        platform.tsc().wrapping_sub(self.begin)
    }

    /// Nothing counts until [`CountRun::go_on`]: somebody waits.
    ///
    /// # Errors
    /// A register refuses.
    pub fn halt(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.contexts.halt(platform)
    }

    /// Counting goes on where it halted.
    ///
    /// # Errors
    /// A register refuses.
    pub fn go_on(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.contexts.go_on(platform)
    }

    /// Does what a line says about sets of `item`. Told in the kernel, between two tasks. Returns these sets, as they are then.
    ///
    /// # Errors
    /// Why that cannot be, in a sentence; nothing has changed.
    pub fn obey(
        &mut self,
        command: &Command,
        (item, known): (&Count, &Known),
        platform: &mut dyn Platform,
    ) -> Result<Vec<ConsoleSet>, String> {
        let telling = match command {
            Command::List => Telling::Names,
            Command::Status(_) => Telling::Everything,
            _ => Telling::Counts,
        };
        let named = match command {
            Command::Read(set) | Command::Status(set) => set.as_ref(),
            Command::Start(set)
            | Command::Stop(set)
            | Command::Next(set)
            | Command::Terminate(set) => Some(set),
            Command::Modify(change) => Some(&change.set),
            Command::Help | Command::List | Command::Go | Command::Quit => None,
        };
        let found = match named {
            Some(name) => Vec::from([self.find(name, item)?]),
            None => self.all(item),
        };
        let goes_on = matches!(command, Command::Start(_) | Command::Next(_) | Command::Modify(_));
        for claim in found.iter().filter(|_| goes_on).flat_map(|set| &set.claims) {
            // None of a set's claims is changed unless all of them can be.
            if self.contexts.standing(claim).map_err(|error| error.to_string())? == Standing::Ended
            {
                return Err(SetError::Ended.to_string());
            }
        }
        let mut told = Vec::new();
        for set in &found {
            let mut was = None;
            for claim in &set.claims {
                let contexts = &mut self.contexts;
                let done = match command {
                    Command::Start(_) => contexts.start(claim, platform),
                    Command::Stop(_) => contexts.stop(claim, platform),
                    Command::Next(_) => contexts.next(claim, platform),
                    Command::Terminate(_) => contexts.terminate(claim, platform),
                    Command::Modify(change) => {
                        was = Some(self.change(claim, change, (item, known), platform)?);
                        Ok(())
                    }
                    _ => Ok(()),
                };
                done.map_err(|error| error.to_string())?;
                let one = tell(set, claim, telling, &mut self.contexts, platform);
                let mut one = one.map_err(|error| error.to_string())?;
                if let Some((index, was)) = was.take() {
                    one.events[index].was = Some(was);
                }
                told.push(one);
            }
        }
        Ok(told)
    }

    fn all<'a>(&self, item: &'a Count) -> Vec<Found<'a>> {
        let found = |held: &Held| Found {
            number: held.number,
            name: item.sets.get(held.number).map_or(&item.name, |set| &set.name),
            claims: held.bindings.iter().filter_map(|&one| self.contexts.claim(one)).collect(),
        };
        self.held.iter().map(found).collect()
    }

    /// The set that counts here of this name, or else of this number from 1.
    fn find<'a>(&self, name: &str, item: &'a Count) -> Result<Found<'a>, String> {
        let all = self.all(item);
        let names: Vec<&str> = match &item.sets[..] {
            [] => Vec::from([&*item.name]),
            sets => sets.iter().map(|set| &*set.name).collect(),
        };
        let by_number = || name.parse::<usize>().ok()?.checked_sub(1).filter(|&n| n < names.len());
        let place = names.iter().position(|&one| one == name).or_else(by_number);
        let Some(number) = place else {
            let names = names.join("`, `");
            return Err(alloc::format!("there is no set `{name}`: there is `{names}`"));
        };
        let found = all.into_iter().find(|one| one.number == number);
        found.ok_or_else(|| alloc::format!("set `{name}` has no counters; the result says why"))
    }

    /// Puts another request into the place of one. Returns which, and what it was.
    fn change(
        &mut self,
        claim: &Claim,
        change: &Change,
        (item, known): (&Count, &Known),
        platform: &mut dyn Platform,
    ) -> Result<(usize, ConsoleBefore), String> {
        let words = |error: ContextError| error.to_string();
        let session = self.contexts.session(claim).map_err(words)?;
        let (index, request) = changed(session.set(), change)?;
        if request.every.is_some() {
            let mut set = session.set().clone();
            set.replace(index, request.clone(), known).map_err(|error| error.to_string())?;
            if let Some((_, reason)) = too_often(item.at_overflow, &set) {
                return Err(reason);
            }
        }
        let before = session.set().requests()[index].clone();
        let mut now = Counts::new(session.set());
        session.sample(platform, &mut now).map_err(|error| error.to_string())?;
        // A row of the series ends where the count does. If the change is refused, neither of them does.
        if let Some(series) = &mut self.series {
            series.gather(self.begin, &mut self.contexts, platform).map_err(words)?;
        }
        self.contexts.modify(claim, index, request.clone(), known, platform).map_err(words)?;
        if let Some(series) = &mut self.series {
            series.end_row();
            series.begins_anew(claim, index, request.preset);
        }
        let count = value(&now.counts()[index], before.preset);
        let number = self
            .held
            .iter()
            .find(|held| held.bindings.iter().any(|&one| self.contexts.claim(one) == Some(*claim)));
        if let Some(held) = number.filter(|_| before.text != request.text) {
            self.readings.changes([held.number, index], before.text.clone());
        }
        Ok((index, ConsoleBefore { event: before.text, every: before.every, count }))
    }
}

/// The number of the request that is to be changed, and what it is to be.
fn changed(set: &Set, change: &Change) -> Result<(usize, Request), String> {
    let Change { event, to, every, preset, .. } = change;
    let requests = set.requests();
    let is_named = |request: &&Request| request.text == *event;
    if requests.iter().filter(is_named).count() > 1 {
        return Err(alloc::format!("several events are `{event}`: name one by its number"));
    }
    let number = || event.parse::<usize>().ok()?.checked_sub(1).filter(|&n| n < requests.len());
    let place = requests.iter().position(|request| request.text == *event).or_else(number);
    let index = place.ok_or_else(|| {
        let texts: Vec<&str> = requests.iter().map(|request| &*request.text).collect();
        alloc::format!("the set has no event `{event}`: it has `{}`", texts.join("`, `"))
    })?;
    let mut request = requests[index].clone();
    if let Some(to) = to {
        request.text.clone_from(to);
    }
    if let Some(every) = *every {
        request.every = (every > 0).then_some(every);
    }
    request.preset = preset.unwrap_or(request.preset);
    Ok((index, request))
}

fn tell(
    set: &Found,
    claim: &Claim,
    telling: Telling,
    contexts: &mut Contexts,
    platform: &mut dyn Platform,
) -> Result<ConsoleSet, ContextError> {
    let state = match contexts.standing(claim)? {
        Standing::Counts => ConsoleState::Counts,
        Standing::Stopped => ConsoleState::Stopped,
        Standing::Ended => ConsoleState::Ended,
    };
    let session = contexts.session(claim)?;
    let status = session.status(platform)?;
    let mut told = ConsoleSet {
        set: set.number as u32 + 1,
        name: set.name.to_owned(),
        task: match claim.scope() {
            Scope::System => None,
            Scope::Task(task) => Some(task),
        },
        state,
        generation: session.generation(),
        group: [status.group, session.set().groups().len()].map(|group| group as u32),
        passes: status.passes,
        events: events(session)?,
        registers: Vec::new(),
    };
    let (counts, requests) = (status.now.counts(), session.set().requests());
    for (index, event) in told.events.iter_mut().enumerate() {
        if telling != Telling::Names {
            let preset = requests.get(index).map_or(0, |request| request.preset);
            event.now = counts.get(index).map(|count| value(count, preset));
        }
        if telling != Telling::Everything {
            event.control = None;
        } else if let Some(last) = &status.at_interrupt {
            event.at_overflow = last.counts().get(index).map(|count| count.raw);
        }
    }
    if telling == Telling::Everything {
        told.registers = registers(contexts.session(claim)?, &status.registers, platform)?;
    }
    Ok(told)
}

/// What was read of the PMU, and the registers of each request beside: a set that stands still has none of its own.
fn registers(
    session: &Session,
    read: &[(Msr, u64)],
    platform: &mut dyn Platform,
) -> Result<Vec<[Hex; 2]>, ContextError> {
    let mut all = read.to_vec();
    for one in session.query().map_err(CountingError::from)? {
        for msr in [one.control.0, session.driver().layout().counter(one.counter)] {
            if all.iter().all(|(known, _)| *known != msr) {
                let value = platform.rdmsr(msr).map_err(|_| PmuError::Read(msr));
                all.push((msr, value.map_err(CountingError::from)?));
            }
        }
    }
    Ok(all.into_iter().map(|(msr, value)| [Hex(msr.0.into()), Hex(value)]).collect())
}

/// The requests of a set, without counts.
fn events(session: &Session) -> Result<Vec<ConsoleEvent>, ContextError> {
    let programmed = session.query().map_err(CountingError::from)?;
    let requests = session.set().requests().iter().enumerate();
    let event = |(index, request): (usize, &Request)| {
        let place = programmed.iter().find(|one| one.request == index);
        ConsoleEvent {
            event: request.text.clone(),
            counter: place.map_or(String::new(), |one| one.counter.to_string()),
            group: place.map_or(0, |one| one.group as u32),
            every: request.every,
            overflows: request.every.map(|_| session.overflows()[index]),
            control: place.map(|one| [Hex(one.control.0.0.into()), Hex(one.control.1)]),
            ..ConsoleEvent::default()
        }
    };
    Ok(requests.map(event).collect())
}
