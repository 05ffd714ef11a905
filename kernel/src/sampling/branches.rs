//! Branch records in samples: what the processor recorded before each overflow, counted by branch.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pmi::{ControlBlock, Edge, Edges};
use arch::pmu::registers::LbrSelect;
use arch::pmu::{Capabilities, Driver, Freeze, LbrKind, PmuError, Registers, lbr};
use protocol::record::{EdgeCount, Hex, RecordedBranches};
use protocol::sampling::Sampling;
use protocol::workload::Ring;

/// Why a timer's samples have none.
pub(super) const NO_EVENT: &str =
    "branches: they are read at the overflow of a counter, and not at a timer's tick";

/// Whether the item's samples can have them.
///
/// # Errors
/// Why not.
pub(super) fn check(item: &Sampling, has: &Capabilities, precise: bool) -> Result<(), String> {
    if !item.branches {
        return Ok(());
    }
    if matches!(has.lbr, LbrKind::None | LbrKind::Single) {
        let kind = if has.lbr == LbrKind::None { "none" } else { "a single one" };
        return Err(alloc::format!(
            "branches: this processor keeps no stack of branch records, but {kind}; without the key the item is sampled"
        ));
    }
    if precise {
        let text = "branches: they are read at the interrupt of a counter, and precise samples have none of their own";
        return Err(text.to_string());
    }
    if item.interval_ns > 0 {
        return Err(NO_EVENT.to_string());
    }
    Ok(())
}

/// What freezes by itself: the records with the counters, where they can.
pub(super) fn freeze(item: &Sampling) -> Freeze {
    if item.branches { Freeze::COUNTERS | Freeze::LBR } else { Freeze::COUNTERS }
}

/// What is kept out of the records: ring 0, if every task is of ring 3 and there is such a filter.
fn filter(item: &Sampling, has: &Capabilities) -> LbrSelect {
    let above = item.workload.tasks.iter().all(|task| task.ring == Ring::User);
    let filterable = match has.lbr {
        LbrKind::Legacy { filter, .. } => filter,
        LbrKind::Architectural { .. } | LbrKind::AmdV2 { .. } => true,
        LbrKind::None | LbrKind::Single => false,
    };
    if above && filterable { LbrSelect::NOT_KERNEL } else { LbrSelect::empty() }
}

/// Lets branches be recorded, if the item asks for them: of which kind.
///
/// # Errors
/// The PMU refuses.
pub(super) fn start(
    registers: &mut dyn Registers,
    driver: &Driver,
    item: &Sampling,
) -> Result<Option<(LbrKind, LbrSelect)>, PmuError> {
    if !item.branches {
        return Ok(None);
    }
    let has = driver.capabilities();
    let filter = filter(item, has);
    lbr::start(registers, has, filter)?;
    Ok(Some((has.lbr, filter)))
}

/// Lets the handler count them in `places`. What freezes is set already, as the switch may stand in the same register.
///
/// # Errors
/// The PMU refuses.
pub(super) fn count(
    registers: &mut dyn Registers,
    driver: &Driver,
    (kind, filter): (LbrKind, LbrSelect),
    places: &mut [Edge],
    block: &mut ControlBlock,
) -> Result<(), PmuError> {
    let switch = lbr::switch(registers, driver.capabilities(), filter)?;
    if let Some(edges) = Edges::new(kind, switch, places) {
        block.count_edges(edges);
    }
    Ok(())
}

/// Stops recording.
///
/// # Errors
/// The PMU refuses.
pub(super) fn stop(
    registers: &mut dyn Registers,
    driver: &Driver,
    block: &ControlBlock,
) -> Result<(), PmuError> {
    match block.edges() {
        Some(_) => lbr::stop(registers, driver.capabilities()),
        None => Ok(()),
    }
}

/// For the report.
pub(super) fn record(block: &ControlBlock, entries: u8) -> Option<RecordedBranches> {
    let edges = block.edges()?;
    let mut rows: Vec<EdgeCount> = edges
        .used()
        .map(|edge| EdgeCount {
            from: Hex(edge.from),
            to: Hex(edge.to),
            task: edge.task,
            count: edge.count,
            mispredicted: edge.mispredicted,
            cycles: edge.cycles,
        })
        .collect();
    rows.sort_by_key(|row| (core::cmp::Reverse(row.count), row.from.0, row.to.0, row.task));
    Some(RecordedBranches { entries, edges: rows, elsewhere: edges.elsewhere })
}
