//! Branch records in samples: what the processor recorded before each overflow, counted by branch.

use super::{Armed, Session};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pebs::Groups;
use arch::pmu::pmi::{ControlBlock, Edge, Edges};
use arch::pmu::registers::LbrSelect;
use arch::pmu::{Capabilities, Driver, Freeze, LbrKind, PmuError, Registers, lbr};
use protocol::hex::Hex;
use protocol::job::sampling::{CallGraph, Sampling};
use protocol::job::workload::Ring;
use protocol::record::{EdgeCount, RecordedBranches, SampledStacks, StackCount};

/// Why a timer's samples have none.
pub(super) const NO_EVENT: &str =
    "branches: they are read at the overflow of a counter, and not at a timer's tick";

/// Stacks that are told apart.
const CHAINS: usize = 512;

/// Whether branches are recorded: to be counted, or as a stack of calls.
pub(super) fn are_recorded(item: &Sampling) -> bool {
    item.branches || item.call_graph.is_some()
}

/// Places for branches that are counted. As a stack of calls they are not, and one place is the least that there is.
pub(super) fn edges(item: &Sampling) -> usize {
    if item.branches { (item.capacity as usize).next_power_of_two() } else { 1 }
}

/// Places for stacks.
pub(super) fn chains(item: &Sampling) -> usize {
    match item.call_graph {
        Some(_) => (item.capacity as usize).next_power_of_two().min(CHAINS),
        None => 0,
    }
}

/// Places for the stacks of tasks that do not run; `None`: one task has all records. Other records than stacks are emptied at a switch.
pub(super) fn apart(item: &Sampling) -> Option<usize> {
    let tasks = item.workload.tasks.len();
    let several = are_recorded(item) && tasks > 1;
    several.then_some(if item.call_graph.is_some() { tasks } else { 0 })
}

/// Whether samples can have the calls that led to them.
fn check_stacks(item: &Sampling, has: &Capabilities) -> Result<(), String> {
    if item.call_graph.is_none() {
        return Ok(());
    }
    if item.branches {
        let text = "call-graph: in call-stack mode there are no other branches in the records; ask for one of branches and call-graph";
        return Err(text.to_string());
    }
    if !has.call_stacks {
        let text = match (has.is_intel(), has.lbr) {
            (_, LbrKind::None) => "call-graph: this processor keeps no branch records",
            (true, _) => {
                "call-graph: this processor's branch records have no call-stack mode (LBR_SELECT[9] came with Haswell); the nearest is branches = true"
            }
            (false, LbrKind::AmdV2 { .. }) => {
                "call-graph: AMD's branch records have no call-stack mode; the nearest is branches = true"
            }
            (false, _) => "call-graph: this processor keeps a single branch record",
        };
        return Err(text.to_string());
    }
    match &item.workload.tasks[..] {
        [task] if !item.is_scheduled() || task.ring == Ring::User => Ok(()),
        [_] => Err("call-graph: a task of ring 0 runs alone, without ticks, as the scheduler's own calls and returns would be in its stack".to_string()),
        several if several.iter().all(|task| task.ring == Ring::User) => Ok(()),
        _ => Err("call-graph: several tasks have stacks of calls in ring 3; one of ring 0 has the scheduler's calls and returns in its own".to_string()),
    }
}

/// Whether the item's samples can have them.
///
/// # Errors
/// Why not.
pub(super) fn check(item: &Sampling, has: &Capabilities, armed: &[Armed]) -> Result<(), String> {
    if !are_recorded(item) {
        return Ok(());
    }
    check_stacks(item, has)?;
    if matches!(has.lbr, LbrKind::None | LbrKind::Single) {
        let kind = if has.lbr == LbrKind::None { "none" } else { "a single one" };
        return Err(alloc::format!(
            "branches: this processor keeps no stack of branch records, but {kind}; without the key the item is sampled"
        ));
    }
    let precise = armed.iter().any(|one| one.selection.precise || one.ibs.is_some());
    if precise && !has.record_groups().contains(Groups::BRANCHES) {
        let text = "branches: they are read at the interrupt of a counter, and precise samples have none of their own: PEBS records have them from format 4 on, samples of IBS never";
        return Err(text.to_string());
    }
    if item.interval_ns > 0 {
        return Err(NO_EVENT.to_string());
    }
    Ok(())
}

/// What freezes by itself: the records with the counters, where they can.
///
/// Not in call-stack mode: a call or return near the interrupt would be counted twice (Linux, `__intel_pmu_lbr_enable`). The
/// handler switches the records off then.
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
    let ring = if above && filterable { LbrSelect::NOT_KERNEL } else { LbrSelect::empty() };
    match item.call_graph {
        Some(CallGraph::Lbr) => ring | STACK,
        None => ring,
    }
}

/// Near calls and returns as a stack.
const STACK: LbrSelect = LbrSelect::CALL_STACK
    .union(LbrSelect::NOT_CONDITIONAL)
    .union(LbrSelect::NOT_INDIRECT_JUMP)
    .union(LbrSelect::NOT_RELATIVE_JUMP)
    .union(LbrSelect::NOT_FAR);

/// Lets branches be recorded, if the item asks for them: of which kind.
///
/// # Errors
/// The PMU refuses.
pub(super) fn start(
    registers: &mut dyn Registers,
    driver: &Driver,
    item: &Sampling,
) -> Result<Option<(LbrKind, LbrSelect)>, PmuError> {
    if !are_recorded(item) {
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
    if filter.contains(LbrSelect::CALL_STACK) {
        // The kernel's calls on the way to the task are none of its stack: the task's gate begins.
        lbr::stop(registers, driver.capabilities())?;
    }
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

/// The stacks for the report.
pub(super) fn stacks(
    session: &Session,
    block: &ControlBlock,
    entries: u8,
) -> Option<SampledStacks> {
    let table = block.chains()?;
    let number =
        |bit: u8| session.events.iter().position(|one| one.counter.index() == usize::from(bit));
    let mut stacks = Vec::new();
    for chain in table.used() {
        let Some(event) = number(chain.bit) else { continue };
        stacks.push(StackCount {
            event: event as u32,
            task: chain.task,
            ring: (chain.cs & 3) as u8,
            frames: chain.frames().iter().copied().map(Hex).collect(),
            count: chain.count,
        });
    }
    Some(SampledStacks { entries, stacks, elsewhere: table.elsewhere })
}

/// For the report.
pub(super) fn record(block: &ControlBlock, entries: u8) -> Option<RecordedBranches> {
    let edges = block.edges().filter(|_| block.chains().is_none())?;
    let rows: Vec<EdgeCount> = edges
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
    Some(RecordedBranches { entries, edges: rows, elsewhere: edges.elsewhere })
}
