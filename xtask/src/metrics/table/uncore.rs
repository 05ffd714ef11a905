//! Perfmon's events of the uncore as the machine is requested them: by their codes, which no table of events has.

use super::Definition;
use serde::Deserialize;
use std::sync::LazyLock;

/// Facts of Intel's.
const FILE: &str = include_str!("../../../data/uncore.csv");

/// A line of them.
#[derive(Deserialize)]
struct Fact {
    /// Tables that have the event, with `|` between them.
    tables: String,
    name: String,
    unit: String,
    event: String,
    umask: String,
    config1: String,
}

static FACTS: LazyLock<Vec<Fact>> = LazyLock::new(|| {
    let lines = csv::Reader::from_reader(FILE.as_bytes()).into_deserialize();
    lines.collect::<Result<_, _>>().expect("a list of our own")
});

impl Fact {
    fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.split('|')
    }
}

/// What the machine's texts begin with.
const OURS: &str = "uncore_";
const NAME: &str = ",name=";

/// Whether an event is one of the uncore, as the machine is requested it.
pub fn is(event: &str) -> bool {
    event.starts_with(OURS)
}

/// What the report calls such an event: perfmon's name.
pub fn name(event: &str) -> &str {
    event.split_once(NAME).map_or(event, |(_, name)| name.trim_end_matches('/'))
}

/// The metric with the machine's texts for events of the uncore whose registers are known.
pub(super) fn of(mut metric: Definition, table: &str) -> Definition {
    for event in metric.events.values_mut() {
        if let Some(text) = text(event, table) {
            *event = text;
        }
    }
    metric
}

fn text(event: &str, table: &str) -> Option<String> {
    let (name, modifiers) = event.split_once(':').unwrap_or((event, ""));
    let mut facts = FACTS.iter().filter(|fact| fact.name == name);
    let fact = facts.find(|fact| fact.tables().any(|known| known == table))?;
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let (mut unit, mut filter, mut more) =
        (fact.unit.clone(), number(&fact.config1)?, String::new());
    for modifier in modifiers.split(':').filter(|modifier| !modifier.is_empty()) {
        let (key, value) = modifier.split_once('=').unwrap_or((modifier, ""));
        match (key, number(value), modifier.strip_prefix('c').and_then(number)) {
            ("one_unit", ..) => unit += "_0",
            // The filters' second register is from bit 32 on; Haswell's has the opcode from its bit 20 on.
            ("filter1", Some(bits), _) => filter |= bits << 32,
            ("opc", Some(code), _) => filter |= code << 52,
            ("tid", Some(thread), _) => filter |= thread,
            (_, _, Some(cycles)) => more += &format!(",cmask={cycles}"),
            _ => return None,
        }
    }
    if filter != 0 {
        more += &format!(",config1={filter:#x}");
    }
    Some(format!("{unit}/event={},umask={}{more}{NAME}{event}/", fact.event, fact.umask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table::table;
    use events::parse::parse_event;
    use events::uncore::{Event, Unit};

    /// Every text is read as the bits that Intel's list has, and has perfmon's name.
    #[test]
    fn s3_perfmons_events_of_the_uncore_are_requested_by_their_codes() {
        for (event, table, wanted) in [
            ("UNC_CLOCK.SOCKET", "skylake", (Unit::Clock, 0xff, 0, false)),
            (
                "UNC_ARB_TRK_OCCUPANCY.DATA_READ:c1",
                "skylake",
                (Unit::Arbiter, 0x100_0280, 0, false),
            ),
            ("UNC_CHA_CLOCKTICKS:one_unit", "sapphirerapids", (Unit::Caching, 1, 0, true)),
            (
                "UNC_CHA_TOR_INSERTS.IA_MISS:filter1=0x12CC0233",
                "skylakex",
                (Unit::Caching, 0x2135, 0x12cc_0233 << 32, false),
            ),
            (
                "UNC_C_TOR_INSERTS.OPCODE:opc=0x1c8:tid=0x3e",
                "haswellx",
                (Unit::Caching, 0x135, 0x1c8 << 52 | 0x3e, false),
            ),
            (
                "UNC_CHA_TOR_INSERTS.IO_PCIRDCUR_LOCAL",
                "icelakex",
                (Unit::Caching, 0xc8_f2ff_0000_0435, 0, false),
            ),
            ("UNC_M_CAS_COUNT.RD", "skylakex", (Unit::Memory, 0x304, 0, false)),
            ("UNC_M_CAS_COUNT.RD", "icelakex", (Unit::Memory, 0xf04, 0, false)),
            ("UNC_M_CAS_COUNT_SCH1.WR", "graniterapids", (Unit::Memory, 0xf006, 0, false)),
            ("UNC_M_TOTAL_DATA", "lioncove_arl", (Unit::Memory, 0x3c, 0, false)),
            ("UNC_M_CLOCKTICKS:one_unit", "cascadelakex", (Unit::Memory, 0, 0, true)),
            ("UNC_Q_TxL_FLITS_G0.DATA", "haswellx", (Unit::Link, 0x200, 0, false)),
            ("UNC_UPI_TxL_FLITS.ALL_DATA", "sierraforest", (Unit::Link, 0xf02, 0, false)),
            (
                "UNC_M2M_DIRECTORY_UPDATE.ANY",
                "emeraldrapids",
                (Unit::Mesh, 0x3_0000_0121, 0, false),
            ),
            ("UNC_I_MISC1.LOST_FWD", "clearwaterforest", (Unit::Coherence, 0x101f, 0, false)),
            ("UNC_P_CLOCKTICKS", "sapphirerapids", (Unit::Power, 1, 0, false)),
            // perf: ch_mask=0x2, fc_mask=0x7, which are bits 43:36 and 46:44 on Skylake; then 47:36 and 50:48.
            (
                "UNC_IIO_PAYLOAD_BYTES_IN.MEM_READ.PART1",
                "skylakex",
                (Unit::Io, 0x7020_0000_0483, 0, false),
            ),
            (
                "UNC_IIO_DATA_REQ_OF_CPU.MEM_WRITE.ALL_PARTS",
                "graniterapids",
                (Unit::Io, 0x7_0ff0_0000_0183, 0, false),
            ),
            ("UNC_ARB_DAT_OCCUPANCY.RD:c1", "redwoodcove", (Unit::Arbiter, 0x100_0285, 0, false)),
        ] {
            let text = text(event, table).unwrap();
            let request = parse_event(&text).unwrap();
            let (unit, select, filter, first) = wanted;
            let wanted = Event { unit, select, filter, first };
            assert_eq!(events::uncore::of(&request), Some(Ok(wanted)), "{text}");
            assert_eq!(request.attributes.label.as_deref(), Some(event));
            assert_eq!(name(&text), event);
        }
        assert_eq!(text("UNC_CLOCK.SOCKET", "lioncove_lnl"), None);
        assert_eq!(text("UNC_CLOCK.SOCKET:what", "skylake"), None);
    }

    /// A line of the list that no metric needs is a mistake in it.
    #[test]
    fn s3_every_line_of_the_list_is_of_some_metric_of_each_of_its_tables() {
        for fact in &*FACTS {
            for one in fact.tables() {
                let metrics = table(one).metrics;
                let mut events = metrics.iter().flat_map(|metric| metric.events.values());
                let is = |event: &String| {
                    is(event) && name(event).split(':').next() == Some(&*fact.name)
                };
                assert!(events.any(is), "{one}: {}", fact.name);
            }
        }
    }
}
