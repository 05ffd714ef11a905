//! The profile in pprof's form: a gzipped protocol buffer, `profile.proto` of github.com/google/pprof.

use super::Profile;
use super::processors::named;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;

/// The messages of `profile.proto`, as far as they are used here. Field numbers are the format's.
#[allow(missing_docs, reason = "the names are the format's")]
pub mod proto {
    use prost::Message;

    #[derive(Clone, PartialEq, Message)]
    pub struct Profile {
        #[prost(message, repeated, tag = "1")]
        pub sample_type: Vec<ValueType>,
        #[prost(message, repeated, tag = "2")]
        pub sample: Vec<Sample>,
        #[prost(message, repeated, tag = "3")]
        pub mapping: Vec<Mapping>,
        #[prost(message, repeated, tag = "4")]
        pub location: Vec<Location>,
        #[prost(message, repeated, tag = "5")]
        pub function: Vec<Function>,
        #[prost(string, repeated, tag = "6")]
        pub string_table: Vec<String>,
        #[prost(int64, tag = "14")]
        pub default_sample_type: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct ValueType {
        #[prost(int64, tag = "1")]
        pub r#type: i64,
        #[prost(int64, tag = "2")]
        pub unit: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Sample {
        #[prost(uint64, repeated, tag = "1")]
        pub location_id: Vec<u64>,
        #[prost(int64, repeated, tag = "2")]
        pub value: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub label: Vec<Label>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Label {
        #[prost(int64, tag = "1")]
        pub key: i64,
        #[prost(int64, tag = "2")]
        pub str: i64,
        #[prost(int64, tag = "3")]
        pub num: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Mapping {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub memory_start: u64,
        #[prost(uint64, tag = "3")]
        pub memory_limit: u64,
        #[prost(int64, tag = "5")]
        pub filename: i64,
        #[prost(bool, tag = "7")]
        pub has_functions: bool,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Location {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(uint64, tag = "2")]
        pub mapping_id: u64,
        #[prost(uint64, tag = "3")]
        pub address: u64,
        #[prost(message, repeated, tag = "4")]
        pub line: Vec<Line>,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Line {
        #[prost(uint64, tag = "1")]
        pub function_id: u64,
        #[prost(int64, tag = "2")]
        pub line: i64,
    }

    #[derive(Clone, PartialEq, Message)]
    pub struct Function {
        #[prost(uint64, tag = "1")]
        pub id: u64,
        #[prost(int64, tag = "2")]
        pub name: i64,
        #[prost(int64, tag = "3")]
        pub system_name: i64,
        #[prost(int64, tag = "4")]
        pub filename: i64,
    }
}

/// The profiles as one pprof file. Its values are samples of all events, then the events that each event's samples stand
/// for: samples times period. Items and instructions are labels; tasks are the outermost frames, or, where several processors were
/// sampled, these, which are labels as well.
///
/// # Errors
/// None but those of compression in memory.
pub fn write(profiles: &[Profile]) -> std::io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&message(profiles).encode_to_vec())?;
    gzip.finish()
}

fn message(profiles: &[Profile]) -> proto::Profile {
    let mut writer = Writer::default();
    writer.text("");
    let mut events: Vec<&str> = Vec::new();
    for event in profiles.iter().flat_map(|profile| &profile.result.events) {
        if !events.contains(&event.event.as_str()) {
            events.push(&event.event);
        }
    }
    let samples = writer.kind("samples", "count");
    writer.profile.sample_type.push(samples);
    for event in &events {
        let unit = if *event == "timer" { "nanoseconds" } else { "count" };
        let kind = writer.kind(event, unit);
        writer.profile.sample_type.push(kind);
    }
    for profile in profiles {
        let value = |event: usize, count: u64| {
            let event = profile.result.events.get(event);
            let mut value = vec![0; 1 + events.len()];
            value[0] = count as i64;
            let place = event.and_then(|event| events.iter().position(|name| *name == event.event));
            if let (Some(event), Some(place)) = (event, place) {
                value[1 + place] = count.saturating_mul(event.period) as i64;
            }
            value
        };
        for row in &profile.stacks {
            // The innermost frame comes first.
            let mut location_id = Vec::with_capacity(row.frames.len() + 1);
            for (address, place) in &row.frames {
                location_id.push(writer.location(*address, &place.symbol, place.line.as_deref()));
            }
            let task = format!("{} (ring {})", row.task, row.ring);
            location_id.push(writer.location(0, &task, None));
            let cpu = named(profile.result, row.cpu);
            location_id.extend(cpu.as_ref().map(|cpu| writer.location(0, cpu, None)));
            let instruction = row.frames.first().map_or("", |(_, place)| &place.instruction);
            let mut label = vec![
                writer.label("item", &profile.result.name),
                writer.label("instruction", instruction),
            ];
            label.extend(cpu.map(|_| writer.number("processor", row.cpu.into())));
            let value = value(row.event, row.count);
            writer.profile.sample.push(proto::Sample { location_id, value, label });
        }
        for row in profile.rows.iter().filter(|_| profile.stacks.is_empty()) {
            let value = value(row.event, row.count);
            let task = format!("{} (ring {}){}", row.task, row.ring, super::width(row.bits));
            // The innermost frame comes first.
            let leaf = writer.location(row.address, &row.place.symbol, row.place.line.as_deref());
            let root = writer.location(0, &task, None);
            let mut label = vec![
                writer.label("item", &profile.result.name),
                writer.label("instruction", &row.place.instruction),
            ];
            let mut location_id = vec![leaf, root];
            if let Some(cpu) = named(profile.result, row.cpu) {
                location_id.push(writer.location(0, &cpu, None));
                label.push(writer.number("processor", row.cpu.into()));
            }
            let sample = proto::Sample { location_id, value, label };
            writer.profile.sample.push(sample);
        }
    }
    writer.profile
}

/// A profile with an index of what is in it already.
#[derive(Default)]
struct Writer {
    profile: proto::Profile,
    texts: HashMap<String, i64>,
    functions: HashMap<(String, String), u64>,
    locations: HashMap<(u64, u64), u64>,
}

impl Writer {
    /// Index of a text.
    fn text(&mut self, text: &str) -> i64 {
        let table = &mut self.profile.string_table;
        *self.texts.entry(text.to_string()).or_insert_with(|| {
            table.push(text.to_string());
            table.len() as i64 - 1
        })
    }

    fn kind(&mut self, name: &str, unit: &str) -> proto::ValueType {
        proto::ValueType { r#type: self.text(name), unit: self.text(unit) }
    }

    fn label(&mut self, key: &str, value: &str) -> proto::Label {
        proto::Label { key: self.text(key), str: self.text(value), num: 0 }
    }

    fn number(&mut self, key: &str, value: i64) -> proto::Label {
        proto::Label { key: self.text(key), str: 0, num: value }
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        if let Some(&id) = self.functions.get(&(name.to_string(), file.to_string())) {
            return id;
        }
        let id = self.profile.function.len() as u64 + 1;
        let (name_at, filename) = (self.text(name), self.text(file));
        let function = proto::Function { id, name: name_at, system_name: name_at, filename };
        self.profile.function.push(function);
        self.functions.insert((name.to_string(), file.to_string()), id);
        id
    }

    /// Id of a location; `line` as `file:line`.
    fn location(&mut self, address: u64, symbol: &str, line: Option<&str>) -> u64 {
        let (file, line) = line.and_then(|line| line.rsplit_once(':')).unwrap_or(("", "0"));
        let function = self.function(symbol, file);
        let locations = &mut self.profile.location;
        *self.locations.entry((address, function)).or_insert_with(|| {
            let id = locations.len() as u64 + 1;
            let line = proto::Line { function_id: function, line: line.parse().unwrap_or(0) };
            locations.push(proto::Location { id, mapping_id: 0, address, line: vec![line] });
            id
        })
    }
}
