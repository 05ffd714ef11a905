//! Any text as a list of events: parsed, encoded on two processors, assigned, planned, decoded.
#![no_main]

use events::assign::assign;
use events::cpu::Vendor;
use events::decode;
use events::encode::{Counters, Encoded};
use events::pack::Sources;
use events::parse::parse_list;
use events::passes::{Effort, plan};
use events::processor::Processor;
use events::set::EventSet;
use events::tables::{Core, Tables};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

fn cores() -> &'static [(Core<'static>, Processor)] {
    static CORES: OnceLock<Vec<(Core<'static>, Processor)>> = OnceLock::new();
    CORES.get_or_init(|| {
        let block = Sources::embedded()
            .and_then(|sources| sources.pack())
            .unwrap();
        let tables = Tables::open(block.leak()).unwrap();
        let core = |name| {
            let core = tables.named(name).unwrap();
            (core, Processor::described_by(&core))
        };
        vec![core("goldencove"), core("zen4")]
    })
}

fn read_back(encoded: &Encoded, vendor: Vendor, core: &Core<'_>) {
    for choice in &encoded.choices {
        let msrs: Vec<_> = choice.msr.into_iter().collect();
        if let Counters::General { select, .. } = choice.counters {
            let bits = select.to_bits(vendor);
            let candidates = decode::general(bits, &msrs, vendor, Some(core)).unwrap();
            assert!(!candidates.is_empty());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let items = match parse_list(&text) {
        Ok(items) => items,
        Err(error) => {
            assert!(error.at <= text.len() && text.is_char_boundary(error.at));
            return;
        }
    };
    for (core, processor) in cores() {
        let Ok((set, refused)) = EventSet::from_list(&items, processor, Some(core)) else {
            continue;
        };
        for error in refused {
            assert!(error.at <= text.len(), "{error:?}");
            let _ = error.to_string();
        }
        for encoded in &set.requests {
            read_back(encoded, processor.vendor, core);
        }
        let _ = assign(&set.requests);
        let planned = plan(&set, Effort { sets: 200 }).unwrap();
        assert!(planned.passes.len() >= planned.lower_bound);
    }
    let _ = EventSet::from_list(&items, &cores()[0].1, None);
});
