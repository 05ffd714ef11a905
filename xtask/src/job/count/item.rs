//! The item of a count, for the firmware.

use super::CountFile;
use super::event::EventTable;
use super::set::SetFile;
use crate::job::errors::JobError;
use crate::job::whole;
use ::events::parse::parse_event;
use protocol::job::count::{Bind, Count, CountRequest, CountSet, Schedule};
use std::borrow::Cow;

impl CountFile {
    /// The item.
    ///
    /// # Errors
    /// An event that is several, one that starts another that is not there, a bind to what is not there, an address that no
    /// task has, or what is wrong
    /// with the tasks.
    pub fn item(&self) -> Result<Count<'static>, JobError> {
        let refused = |message| self.refused_at(&self.place, message);
        let assembled = self.workload.assemble().map_err(|error| error.in_item(refused))?;
        if let Some(at) = self.own.bind.place().filter(|_| !self.sets.is_empty()) {
            let message = "bind stands beside sets; give each set its own".to_string();
            return Err(self.refused_at(at, message));
        }
        if self.own.together && !self.sets.is_empty() {
            let message = "together stands beside sets; give it to each set that it is for";
            return Err(refused(message.to_string()));
        }
        let own = self.set(&self.own)?;
        let sets = self.sets.iter().map(|set| self.set(set));
        let gate = self.gate.iter().map(|point| {
            point.point(&assembled).map_err(|message| self.refused_at(&point.place, message))
        });
        let gate = gate.collect::<Result<_, _>>()?;
        let [energy, uncore] = whole::split(&self.whole);
        Ok(Count {
            name: Cow::Owned(self.name.clone()),
            requests: own.requests,
            together: own.together,
            at_overflow: self.at_overflow,
            passes: self.passes,
            interval_ns: self.interval_ns,
            limit_us: self.limit_us,
            workload: assembled.workload,
            gate,
            nested: self.nested,
            bind: own.bind,
            alone: own.alone,
            sets: sets.collect::<Result<_, _>>()?,
            console: self.console,
            energy,
            uncore,
        })
    }

    /// What of a set's energy and uncore cannot be told, which are of everything that runs from the item's beginning to its end.
    fn check_whole(&self, set: &SetFile) -> Result<(), String> {
        let Some(first) = set.whole.first() else { return Ok(()) };
        let what = whole::what(first);
        let comes = set.schedule.as_ref().is_ok_and(Schedule::is_given);
        let nearest = format!("give {first} to the item's own events");
        match set {
            _ if comes => Err(format!(
                "set `{}` comes and goes, and {what} is read before and after the whole item; {nearest}",
                set.name
            )),
            SetFile { events, .. } if events.is_empty() => Err(format!(
                "set `{}` counts nothing but {what}, which is of the whole item; {nearest}",
                set.name
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn set(&self, set: &SetFile) -> Result<CountSet<'static>, JobError> {
        if !self.sets.is_empty() {
            self.check_whole(set).map_err(|message| self.refused_at(&set.place, message))?;
        }
        let requests = set.events.iter().map(|event| self.request(event, set));
        let bind = set.bind.bind(&self.workload);
        if set.inherit.is_some() && !matches!(bind, Ok(Bind::Tasks(_)) | Err(_)) {
            let message = "inherit is for what is bound to tasks".to_string();
            return Err(self.refused_at(&set.place, message));
        }
        Ok(CountSet {
            name: Cow::Owned(set.name.clone()),
            requests: requests.collect::<Result<_, _>>()?,
            together: set.together,
            bind: bind.map_err(|(place, message)| self.refused_at(&place, message))?,
            alone: set.inherit == Some(false),
            force: set.force,
            schedule: set
                .schedule
                .clone()
                .map_err(|(place, message)| self.refused_at(&place, message))?,
        })
    }

    fn request(
        &self,
        event: &EventTable,
        set: &SetFile,
    ) -> Result<CountRequest<'static>, JobError> {
        let text = event.event.to_string();
        if let Err(error) = parse_event(&text) {
            let hint = "each event of a count stands for itself; what must be counted at the same time needs \
                        together = true";
            let message = format!("`{text}` is not one event: {error}; {hint}");
            return Err(self.refused_at(&set.place, message));
        }
        let starts = event.starts.iter().map(|name| {
            let at = set.events.iter().position(|other| other.event.to_string() == *name);
            let missing = || format!("`{text}` starts `{name}`, which is no event of this count");
            at.map(|at| at as u16).ok_or_else(|| self.refused_at(&set.place, missing()))
        });
        Ok(CountRequest {
            starts: starts.collect::<Result<_, _>>()?,
            event: Cow::Owned(text),
            preset: event.preset,
            every: event.every,
            correlate: event.correlate,
        })
    }
}
