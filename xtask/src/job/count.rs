//! Counting over tasks in a job: `[[count]]`.

mod gate;

use super::errors::{JobError, Place};
use super::file::lines;
use super::workload::{DEFAULT_LIMIT_US, RawTask, WorkloadFile};
use crate::events::EventText;
use ::events::parse::parse_event;
use protocol::count::{AtOverflow, Count, CountRequest, GateAct};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use toml::Spanned;

/// An item as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawCount {
    name: Option<String>,
    events: Vec<RawEvent>,
    #[serde(default)]
    together: bool,
    #[serde(default)]
    at_overflow: AtOverflow,
    #[serde(default)]
    passes: u64,
    #[serde(default)]
    interval_ns: u64,
    tick_ns: Option<u64>,
    jitter: Option<u64>,
    limit_us: Option<u64>,
    #[serde(default)]
    start_at: Vec<String>,
    #[serde(default)]
    stop_at: Vec<String>,
    #[serde(default)]
    task: Vec<Spanned<RawTask>>,
}

/// An event with what follows from its overflows, as written: its text alone, or a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EventTable {
    event: EventText,
    #[serde(default)]
    preset: u64,
    every: Option<u64>,
    #[serde(default)]
    starts: Vec<String>,
    #[serde(default)]
    correlate: bool,
}

#[derive(Clone, Debug)]
struct RawEvent(EventTable);

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawEvent;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an event, or a table with event, preset, every, starts or correlate")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawEvent, E> {
                let event = EventText::deserialize(StrDeserializer::new(text))?;
                let starts = Vec::new();
                Ok(RawEvent(EventTable { event, preset: 0, every: None, starts, correlate: false }))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawEvent, M::Error> {
                EventTable::deserialize(MapAccessDeserializer::new(map)).map(RawEvent)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// An item, all decided but its tasks' machine code.
#[derive(Clone, Debug)]
pub struct CountFile {
    name: String,
    events: Vec<EventTable>,
    together: bool,
    at_overflow: AtOverflow,
    passes: u64,
    interval_ns: u64,
    limit_us: u64,
    /// Where counting starts and stops, as written.
    gate: Vec<(String, GateAct)>,
    workload: WorkloadFile,
    place: Place,
}

impl CountFile {
    /// Decides what `raw` leaves open. `number`: its place among all counts of the job, from 1.
    pub(super) fn decide(raw: Spanned<RawCount>, number: usize, text: &str, source: &str) -> Self {
        let whole = lines(text, &raw.span());
        let place = Place { file: source.to_string(), position: Some((whole.line, whole.column)) };
        let raw = raw.into_inner();
        let starts = raw.start_at.into_iter().map(|text| (text, GateAct::Start));
        let stops = raw.stop_at.into_iter().map(|text| (text, GateAct::Stop));
        Self {
            gate: starts.chain(stops).collect(),
            name: raw.name.unwrap_or_else(|| format!("count {number}")),
            events: raw.events.into_iter().map(|event| event.0).collect(),
            together: raw.together,
            at_overflow: raw.at_overflow,
            passes: raw.passes,
            interval_ns: raw.interval_ns,
            limit_us: raw.limit_us.unwrap_or(DEFAULT_LIMIT_US),
            workload: WorkloadFile::decide(raw.task, raw.tick_ns, raw.jitter, text, source),
            place,
        }
    }

    /// The texts of its events.
    pub fn events(&self) -> impl Iterator<Item = &EventText> {
        self.events.iter().map(|event| &event.event)
    }

    /// The item.
    ///
    /// # Errors
    /// An event that is several, one that starts another that is not there, an address that no task has, or what is wrong
    /// with the tasks.
    pub fn item(&self) -> Result<Count<'static>, JobError> {
        let requests = self.events.iter().map(|event| self.request(event));
        let assembled = self.workload.assemble()?;
        let gate = self.gate.iter().map(|(text, act)| {
            gate::point(text, *act, &assembled).map_err(|message| self.refused(message))
        });
        let gate = gate.collect::<Result<_, _>>()?;
        Ok(Count {
            name: Cow::Owned(self.name.clone()),
            requests: requests.collect::<Result<_, _>>()?,
            together: self.together,
            at_overflow: self.at_overflow,
            passes: self.passes,
            interval_ns: self.interval_ns,
            limit_us: self.limit_us,
            workload: assembled.workload,
            gate,
        })
    }

    fn request(&self, event: &EventTable) -> Result<CountRequest<'static>, JobError> {
        let text = event.event.to_string();
        if let Err(error) = parse_event(&text) {
            let hint = "each event of a count stands for itself; what must be counted at the same time needs \
                        together = true";
            return Err(self.refused(format!("`{text}` is not one event: {error}; {hint}")));
        }
        let starts = event.starts.iter().map(|name| {
            let at = self.events.iter().position(|other| other.event.to_string() == *name);
            let missing = || format!("`{text}` starts `{name}`, which is no event of this count");
            at.map(|at| at as u16).ok_or_else(|| self.refused(missing()))
        });
        Ok(CountRequest {
            starts: starts.collect::<Result<_, _>>()?,
            event: Cow::Owned(text),
            preset: event.preset,
            every: event.every,
            correlate: event.correlate,
        })
    }

    /// The error that `message` says, with the item's place.
    pub(super) fn refused(&self, message: String) -> JobError {
        JobError::Count { place: self.place.clone(), count: self.name.clone(), message }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::super::{Purpose, pack};
    use protocol::count::{GateAct, GatePoint};
    use protocol::job::Item;
    use protocol::workload::Ring;

    const JOB: &str = r#"
[[count]]
name = "two tasks"
events = ["instructions:u", { event = "cycles", every = 1000, starts = ["r00c4"] }, { event = "r00c4", correlate = true }]
interval-ns = 2_000_000
at-overflow = "next"
passes = 3

[[count.task]]
name = "first"
asm = "inc rax"
turns = 1000

[[count.task]]
name = "second"
asm = "addpd xmm0, xmm1"
parent = "first"
ring = 3
"#;

    #[test]
    fn c1_m3_m6_a_count_comes_out_as_it_is_written() {
        let packed = pack(&parse(JOB, "job.toml").unwrap(), Purpose::Qemu).unwrap();
        let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
        assert_eq!(
            (count.name.as_ref(), count.passes, count.interval_ns),
            ("two tasks", 3, 2_000_000)
        );
        assert_eq!(count.requests[1].starts, [2]);
        assert_eq!((count.requests[1].every, count.requests[2].correlate), (Some(1000), true));
        let [first, second] = &count.workload.tasks[..] else { panic!() };
        assert_eq!(
            (&first.body[..], first.turns, first.ring),
            (&[0x48, 0xff, 0xc0][..], 1000, Ring::Kernel)
        );
        assert_eq!(
            (second.parent, second.ring, second.extended_state),
            (Some(0), Ring::User, true)
        );
        assert_eq!(count.workload.tick_ns, super::super::workload::DEFAULT_TICK_NS);
    }

    #[test]
    fn m14_m3_addresses_are_labels_and_offsets_of_a_task() {
        let gate = "start-at = [\"second:go\", \"second:+0\"]\nstop-at = [\"second:go+2\", \"second:0x5\"]";
        let text = JOB.replace("passes = 3", gate).replace(
            "asm = \"addpd xmm0, xmm1\"",
            "init = \"cld\"\nasm = \"nop; go: nop; nop; nop; nop; nop\"",
        );
        let packed = pack(&parse(&text, "job.toml").unwrap(), Purpose::Qemu).unwrap();
        let [Item::Count(count)] = &packed.job.items[..] else { panic!("{:?}", packed.job.items) };
        let (start, stop) = (GateAct::Start, GateAct::Stop);
        let point = |offset, act| GatePoint { task: 1, offset, act };
        // Behind the CLD of the init code.
        assert_eq!(count.gate, [point(2, start), point(1, start), point(4, stop), point(6, stop)]);
    }

    #[test]
    fn the_example_can_be_packed() {
        let file = parse(include_str!("../../jobs/count.toml"), "count.toml").unwrap();
        let packed = pack(&file, Purpose::Qemu).unwrap();
        let names: Vec<&str> = packed.job.items.iter().map(Item::name).collect();
        assert_eq!(names, ["by task", "in turns", "between addresses", "trigger"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (from, to, parts) in [
            (
                "starts = [\"r00c4\"]",
                "starts = [\"x\"]",
                &["job.toml:2", "two tasks", "starts `x`"][..],
            ),
            ("\"instructions:u\"", "\"{a,b}\"", &["job.toml:2", "`{a,b}` is not one event"]),
            ("\"instructions:u\"", "\"\"", &["is no event"]),
            ("every = 1000", "every = 0", &["every is 0"]),
            ("every = 1000", "often = 1000", &["unknown field `often`"]),
            (
                "parent = \"first\"",
                "parent = \"third\"",
                &["second", "parent `third` does not exist"],
            ),
            ("inc rax", "inc nonsense", &["job.toml:11", "first"]),
            ("ring = 3", "ring = 1", &["ring is 1"]),
            ("passes = 3", "start-at = [\"go\"]", &["job.toml:2", "two tasks", "which task's?"]),
            ("passes = 3", "start-at = [\"third:go\"]", &["there is no task `third`"]),
            (
                "passes = 3",
                "start-at = [\"first:go\"]",
                &["start-at `first:go`: task `first` has no label `go`; it has no labels"],
            ),
            ("passes = 3", "start-at = [\"second:3\"]", &["no instruction begins there"]),
            ("passes = 3", "start-at = [\"second:9\"]", &["is 9; it must be 0 to 3"]),
            ("passes = 3", "stop-at = [\"second:+x\"]", &["`x` is not a number of bytes"]),
            ("passes = 3", "stop-at = [\"second:0\"]", &["start-at is missing"]),
            ("passes = 3", "start-at = [\"first:0\"]", &["task `first` runs in ring 0"]),
            (
                "passes = 3",
                "start-at = [\"second:0\", \"first:0\"]",
                &["of one task", "`second` and `first`"],
            ),
            ("passes = 3", "tick-ns = 0", &["tick-ns is 0"]),
            ("passes = 3", "tick-ns = 5", &["tick-ns is 5"]),
        ] {
            let text = JOB.replace(from, to);
            assert_ne!(text, JOB, "{from}");
            let error = match parse(&text, "job.toml") {
                Ok(file) => pack(&file, Purpose::Qemu).unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            for part in parts {
                assert!(error.contains(part), "{to}: {part}: {error}");
            }
        }
    }
}
