//! Any text as a file of events in perfmon's form: what is taken packs, opens and can be requested, and what is said of
//! the rest does not steer a terminal.
#![no_main]

use events::cpu::Vendor;
use events::pack::Sources;
use events::tables::Tables;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for vendor in [Vendor::Intel, Vendor::Amd] {
        let mut sources = Sources::default();
        // The table is made by a first merge; the vendor is its own.
        sources.merge_perfmon("mine", "[]").expect("an empty list");
        sources.tables[0].vendor = Some(vendor);
        let Ok(merged) = sources.merge_perfmon("mine", &text) else { continue };
        for line in &merged.refused {
            assert!(!line.to_string().chars().any(char::is_control));
        }
        let block = sources.pack().expect("what is taken packs");
        let core = Tables::open(&block).expect("what is packed opens").named("mine").expect("made");
        for name in &merged.added {
            assert!(core.find(name).is_some(), "{name}");
            assert!(events::parse::parse_event(name).is_ok(), "{name}");
        }
    }
});
