//! Rows of what the `events` command lists, in a form that serialises to JSON and CSV alike.

use events::cpu::Vendor;
use events::event::{Event, Precise};
use events::generic::{Generic, Meaning, meanings};
use events::processor::Processor;
use events::register::EventSelect;
use events::tables::{Core, Tables, fold};
use serde::Serialize;
use wildmatch::WildMatch;

/// One event of a table, or a generic one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventRow {
    /// Its name.
    pub name: String,
    /// The event select register that counts it in all rings; empty for a fixed counter's event.
    pub select: String,
    /// Event code.
    pub event: String,
    /// Unit mask.
    pub umask: String,
    /// Counter mask.
    pub cmask: u8,
    /// Invert.
    pub invert: bool,
    /// Edge detect.
    pub edge: bool,
    /// Both hyper-threads.
    pub any_thread: bool,
    /// General-purpose counters that can count it: a bit mask.
    pub counters: String,
    /// The fixed counter that counts it.
    pub fixed: Option<u8>,
    /// Extra MSRs, one of which takes `msr_value`, joined by bars.
    pub msr: String,
    /// The value.
    pub msr_value: String,
    /// PEBS: `no`, `capable` or `only`.
    pub precise: &'static str,
    /// No other general-purpose counter may count meanwhile.
    pub taken_alone: bool,
    /// The vendor wants another name to be used.
    pub deprecated: bool,
    /// Errata, joined by bars.
    pub errata: String,
    /// The sources do not agree on its code.
    pub doubtful: bool,
    /// For a generic event: what it is here. Empty for an event of the table.
    pub stands_for: String,
}

impl EventRow {
    /// The row of `event`.
    #[must_use]
    pub fn of(event: &Event<'_>, vendor: Vendor) -> Self {
        let way = event.ways()[0];
        let msrs: Vec<String> =
            event.ways().iter().filter_map(|way| way.msr).map(|msr| format!("{msr:#x}")).collect();
        Self {
            name: event.name.to_string(),
            select: select(event).map_or(String::new(), |s| format!("{:#x}", s.to_bits(vendor))),
            event: format!("{:#x}", way.event),
            umask: format!("{:#x}", way.umask),
            cmask: event.cmask,
            invert: event.invert,
            edge: event.edge,
            any_thread: event.any_thread,
            counters: format!("{:#x}", event.counters),
            fixed: event.fixed,
            msr_value: if msrs.is_empty() {
                String::new()
            } else {
                format!("{:#x}", event.msr_value)
            },
            msr: msrs.join("|"),
            precise: match event.precise {
                Precise::No => "no",
                Precise::Capable => "capable",
                Precise::Only => "only",
            },
            taken_alone: event.taken_alone,
            deprecated: event.deprecated,
            errata: event.errata.to_string(),
            doubtful: event.doubtful,
            stands_for: String::new(),
        }
    }

    /// The row of a generic event; `None` if it means nothing here.
    fn of_generic(generic: Generic, processor: &Processor, core: &Core<'_>) -> Option<Self> {
        let vendor = core.vendor();
        let (row, stands_for) = match generic.meaning(processor, Some(core)) {
            Meaning::None => return None,
            Meaning::Event(event) => (Self::of(&event, vendor), event.name.to_string()),
            Meaning::Architectural(event) => {
                let fixed = event.fixed.filter(|_| generic.is_fixed());
                if let Some(fixed) = fixed
                    && processor.fixed_counters >> fixed & 1 == 0
                {
                    return None;
                }
                let way = event.way(vendor);
                let select = all_rings(way.event, way.umask).to_bits(vendor);
                let row = Self {
                    select: fixed.map_or(format!("{select:#x}"), |_| String::new()),
                    event: format!("{:#x}", way.event),
                    umask: format!("{:#x}", way.umask),
                    counters: format!("{:#x}", fixed.map_or(processor.gp_counters, |_| 0)),
                    fixed,
                    precise: "no",
                    ..Self::default()
                };
                (row, format!("{} (architectural)", event.name))
            }
        };
        Some(Self { name: generic.name().to_string(), stands_for, ..row })
    }

    /// What there is to know in addition to name and counters, for the table.
    #[must_use]
    pub fn remarks(&self) -> String {
        let mut parts = Vec::new();
        if !self.stands_for.is_empty() {
            parts.push(format!("generic: {}", self.stands_for));
        }
        parts.extend(self.fixed.map(|fixed| format!("fixed counter {fixed}")));
        if !self.msr.is_empty() {
            parts.push(format!("MSR {} = {}", self.msr, self.msr_value));
        }
        for (given, text) in [
            (self.precise == "capable", "PEBS"),
            (self.precise == "only", "PEBS only"),
            (self.taken_alone, "alone"),
            (self.deprecated, "deprecated"),
            (self.doubtful, "doubtful: the sources do not agree on its code"),
        ] {
            parts.extend(given.then(|| text.to_string()));
        }
        if !self.errata.is_empty() {
            parts.push(format!("errata {}", self.errata.replace('|', ", ")));
        }
        parts.join("; ")
    }
}

/// The register that counts an event in all rings; none for a fixed counter's.
fn select(event: &Event<'_>) -> Option<EventSelect> {
    let way = event.ways()[0];
    let (cmask, invert, edge) = (event.cmask, event.invert, event.edge);
    let any_thread = event.any_thread;
    let plain = all_rings(way.event, way.umask);
    event.fixed.is_none().then_some(EventSelect { cmask, invert, edge, any_thread, ..plain })
}

fn all_rings(event: u16, umask: u16) -> EventSelect {
    let [umask, umask2] = umask.to_le_bytes();
    let (user, kernel, enable) = (true, true, true);
    EventSelect { event, umask, umask2, user, kernel, enable, ..EventSelect::default() }
}

/// Events whose name fits `pattern`: with `*` or `?` the whole name, else any part of it, case and separators
/// forgiven. All, without a pattern.
#[must_use]
pub fn events(core: &Core<'_>, pattern: Option<&str>) -> Vec<EventRow> {
    let fits = matcher(pattern);
    let fitting = core.events().filter(|event| fits(event.name));
    fitting.map(|event| EventRow::of(&event, core.vendor())).collect()
}

/// Generic events whose name fits `pattern` and that mean something here: the names that most people want, before
/// those of the table.
#[must_use]
pub fn generic_events(core: &Core<'_>, pattern: Option<&str>) -> Vec<EventRow> {
    let (processor, fits) = (Processor::described_by(core), matcher(pattern));
    let fitting = Generic::all().filter(|generic| fits(generic.name()));
    fitting.filter_map(|generic| EventRow::of_generic(generic, &processor, core)).collect()
}

fn matcher(pattern: Option<&str>) -> Box<dyn Fn(&str) -> bool> {
    let Some(pattern) = pattern else { return Box::new(|_| true) };
    if pattern.contains(['*', '?']) {
        let whole = WildMatch::new(&pattern.to_lowercase());
        return Box::new(move |name| whole.matches(&name.to_lowercase()));
    }
    let part: Vec<u8> = fold::folded(pattern).collect();
    Box::new(move |name| {
        let name: Vec<u8> = fold::folded(name).collect();
        part.is_empty() || name.windows(part.len()).any(|window| window == part)
    })
}

/// A generic event on one processor.
#[derive(Clone, Debug, Serialize)]
pub struct GenericRow {
    /// Its number, the same everywhere.
    pub number: u8,
    /// Its name, the same everywhere.
    pub name: &'static str,
    /// What it is here: an event of the table, or an architectural event; empty if there is none.
    pub event: String,
    /// Where that comes from: `table`, `architectural` or empty.
    pub from: &'static str,
    /// The event select register that counts it in all rings; empty for a fixed counter's event.
    pub select: String,
    /// The fixed counter that counts it.
    pub fixed: Option<u8>,
}

/// What each generic event means here, blanks included.
#[must_use]
pub fn generics(core: &Core<'_>, pattern: Option<&str>) -> Vec<GenericRow> {
    let (processor, fits, vendor) =
        (Processor::described_by(core), matcher(pattern), core.vendor());
    let has_fixed =
        |index: Option<u8>| index.is_some_and(|index| processor.fixed_counters >> index & 1 == 1);
    let hex = |select: EventSelect| format!("{:#x}", select.to_bits(vendor));
    meanings(&processor, Some(core))
        .filter(|(generic, _)| fits(generic.name()))
        .map(|(generic, meaning)| {
            let row = GenericRow {
                number: generic.number(),
                name: generic.name(),
                event: String::new(),
                from: "",
                select: String::new(),
                fixed: None,
            };
            match meaning {
                Meaning::None => row,
                // AMD promises some of these events, but has no fixed counters.
                Meaning::Architectural(event) if generic.is_fixed() && !has_fixed(event.fixed) => {
                    row
                }
                Meaning::Event(event) => GenericRow {
                    event: event.name.to_string(),
                    from: "table",
                    select: select(&event).map_or(String::new(), hex),
                    fixed: event.fixed,
                    ..row
                },
                Meaning::Architectural(event) => {
                    let way = event.way(vendor);
                    let select = all_rings(way.event, way.umask);
                    let only_fixed = generic.is_fixed();
                    GenericRow {
                        event: event.name.to_string(),
                        from: "architectural",
                        select: if only_fixed { String::new() } else { hex(select) },
                        fixed: event.fixed.filter(|_| only_fixed),
                        ..row
                    }
                }
            }
        })
        .collect()
}

/// A processor that has a table.
#[derive(Clone, Debug, Serialize)]
pub struct CpuRow {
    /// The table's name.
    pub table: String,
    /// Maker.
    pub vendor: String,
    /// Families and models, `6.0x4e`, joined by blanks.
    pub processors: String,
    /// Events.
    pub events: usize,
    /// Where the facts come from.
    pub source: String,
    /// Version of that.
    pub version: String,
}

/// All processors.
#[must_use]
pub fn cpus(tables: &Tables<'_>) -> Vec<CpuRow> {
    let row = |core: Core<'_>| {
        let processors = core.processors().map(|entry| {
            let (first, last) = (entry.models.start(), entry.models.end());
            let models =
                if first == last { format!("{first:#x}") } else { format!("{first:#x}-{last:#x}") };
            let role = if entry.role.is_empty() { "" } else { ":" };
            format!("{:#x}.{models}{role}{}", entry.family, entry.role)
        });
        CpuRow {
            table: core.name().to_string(),
            vendor: core.vendor().to_string(),
            processors: processors.collect::<Vec<_>>().join(" "),
            events: core.len(),
            source: core.source().to_string(),
            version: core.version().to_string(),
        }
    };
    tables.cores().map(row).collect()
}

#[cfg(test)]
mod tests;
