//! What the tests of several modules share: the real tables, packed once.

use crate::encode::{EncodeError, Encoded, encode};
use crate::pack::Sources;
use crate::parse::parse_event;
use crate::processor::{Pebs, Processor};
use crate::tables::{Core, Tables};
use std::sync::OnceLock;

/// The block with all tables.
pub(crate) fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| {
        Sources::embedded()
            .and_then(|sources| sources.pack())
            .unwrap()
    })
}

/// All tables.
pub(crate) fn tables() -> Tables<'static> {
    Tables::open(block()).unwrap()
}

/// One table.
pub(crate) fn core(name: &str) -> Core<'static> {
    tables().named(name).unwrap()
}

/// Skylake server with hyper-threading on: four counters, three fixed ones, TSX.
pub(crate) fn skylakex() -> Processor {
    Processor {
        pebs: Some(Pebs {
            gp_counters: 0xf,
            fixed_counters: 0,
            format: 3,
            distribution_gp: 2,
            distribution_fixed: 0,
        }),
        tsx: true,
        extra_msrs: core("skylakex").extra_msrs(),
        ..Processor::intel(4, 4, 3)
    }
}

/// Encodes one text.
pub(crate) fn on(
    processor: &Processor,
    core: Option<&Core<'_>>,
    text: &str,
) -> Result<Encoded, EncodeError> {
    let request = parse_event(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    encode(&request, processor, core)
}

/// Encodes one text on [`skylakex`].
pub(crate) fn skx(text: &str) -> Result<Encoded, EncodeError> {
    on(&skylakex(), Some(&core("skylakex")), text)
}
