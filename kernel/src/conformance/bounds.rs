//! How far a processor's counters may be off without being wrong: nothing on the emulated PMU, what is assumed of a processor
//! that nobody has measured, or what was measured before the checks.

use super::context::{Context, INSTRUCTIONS};
use super::interrupts::{far, once};
use super::machine::Work;
use alloc::vec::Vec;
use arch::pmu::pmi::Delivery;
use arch::pmu::workload::Ring0Code;
use arch::pmu::{Counter, PmuError};

/// The bounds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// Instructions of a loop between the one that overflows a counter and the interrupt, and between it and a freeze.
    pub skid: u64,
    /// The same of straight code, of which a processor executes more in the same time.
    pub straight: u64,
    /// Instructions by which counters differ that one write starts and another one stops.
    pub skew: u64,
    /// Cycles by which two counters of cycles differ.
    pub clocks: u64,
    /// The same where one of them counts cycles in which little happens.
    pub idle: u64,
}

impl Bounds {
    /// Nothing is off.
    pub const EXACT: Self = Self { skid: 0, straight: 0, skew: 0, clocks: 0, idle: 0 };
    /// Of a processor: several hundred instructions fit into an out-of-order core.
    pub const ASSUMED: Self = Self { skid: 250, straight: 400, skew: 32, clocks: 64, idle: 500 };
}

/// So often is each thing measured.
pub const RUNS: usize = 64;

/// What was measured, with the greatest value that the checks take for sound.
pub struct Measured {
    /// Name, `family.subject`.
    pub name: &'static str,
    /// What the values are.
    pub unit: &'static str,
    /// Every value.
    pub values: Vec<u64>,
    /// `None`: no check goes by it.
    pub bound: Option<u64>,
}

impl Measured {
    /// Twice the greatest value: the next one may be greater than all before.
    pub(super) fn new(name: &'static str, unit: &'static str, values: Vec<u64>) -> Self {
        let bound = values.iter().max().map(|most| 2 * most);
        Self { name, unit, values, bound }
    }
}

/// Where a counter overflows, in NOPs.
const AT: u64 = 64;
/// Instructions from the opening WRMSR to the first NOP: see `arch::pmu::window`.
const BEFORE: u64 = 4;

/// An overflow in straight code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow {
    /// Instructions from the one that should overflow to the interrupt: less than 0 if that came early.
    pub skid: i64,
    /// TSC ticks from before the window to the handler.
    pub ticks: u64,
}

/// Makes one. `None`: no interrupt, or several.
pub(super) fn overflow(context: &mut Context) -> Result<Option<Overflow>, PmuError> {
    let counter = context.first();
    context.fresh()?;
    once(context, counter, INSTRUCTIONS.with_interrupt(), BEFORE + AT)?;
    let log = context.machine.log();
    let start = log.as_ptr();
    context.deliver(Delivery::Fixed, |block, driver| {
        block.log_to(log);
        far(block, driver)
    })?;
    let before = context.machine.tsc();
    context.run(Work::kernel(Ring0Code::Straight, 1));
    let block = context.machine.withdraw();
    if block.logged(start) != 1 {
        return Ok(None);
    }
    // SAFETY: the log lives for ever, and the handler has written its first entry.
    let sample = unsafe { *start };
    let skid = sample.rip.wrapping_sub(Ring0Code::Straight.address() + AT) as i64;
    Ok(Some(Overflow { skid, ticks: sample.tsc.wrapping_sub(before) }))
}

/// By how much counters of the same event differ that run over the same code.
fn apart(
    context: &mut Context,
    counters: &[(Counter, arch::pmu::Selection)],
) -> Result<u64, PmuError> {
    let seen = context.count(counters, Work::kernel(Ring0Code::Loop, 1000))?;
    let (least, most) = (seen.iter().min(), seen.iter().max());
    Ok(most.zip(least).map_or(0, |(most, least)| most - least))
}

/// Measures what the checks go by. What cannot be measured keeps the bound that is assumed.
pub(super) fn measure(context: &mut Context, report: &mut dyn FnMut(Measured)) -> Bounds {
    // Straight code is the worst case of a skid, and a counter that counts all cycles that of one that counts some.
    let mut bounds = Bounds::ASSUMED;
    let mut note = |measured: Measured| {
        let bound = measured.bound;
        if !measured.values.is_empty() {
            report(measured);
        }
        bound
    };
    let overflows: Vec<_> = (0..RUNS).filter_map(|_| overflow(context).ok().flatten()).collect();
    let skids = overflows.iter().map(|one| one.skid.max(0) as u64).collect();
    let ticks = overflows.iter().map(|one| one.ticks).collect();
    if let Some(bound) = note(Measured::new("skid.interrupt", "instructions", skids)) {
        (bounds.skid, bounds.straight) = (bound, bound);
    }
    note(Measured { bound: None, ..Measured::new("latency.interrupt", "TSC ticks", ticks) });
    let instructions: Vec<_> =
        context.has().generals().map(|counter| (counter, INSTRUCTIONS)).collect();
    let values = (0..RUNS).filter_map(|_| apart(context, &instructions).ok()).collect();
    if let Some(bound) = note(Measured::new("skew.counters", "instructions", values)) {
        bounds.skew = bound;
    }
    if context.has().has(Counter::Fixed(1)) {
        let cycles = [(Counter::Fixed(1), INSTRUCTIONS), (context.first(), context.cycles())];
        let values = (0..RUNS).filter_map(|_| apart(context, &cycles).ok()).collect();
        if let Some(bound) = note(Measured::new("skew.cycles", "cycles", values)) {
            (bounds.clocks, bounds.idle) = (bound, bound);
        }
    }
    let _ = context.fresh();
    bounds
}
