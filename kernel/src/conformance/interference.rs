//! What interrupts and exceptions add to a count of ring 3, fitted from runs with k and with 2k of them.
//!
//! On processors, a hardware interrupt and a page fault add up to one instruction each to a count of ring 3
//! (V. Weaver, "Non-determinism and overcount on modern hardware performance counter implementations").

use super::check::{Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::interrupts::{IN_RING_3, in_ring_3};
use super::machine::Work;
use arch::pmu::Rings;
use arch::pmu::pmi::Delivery;
use arch::pmu::workload::Ring3Code;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "interference.software_interrupts",
        source: "the code's listing: two instructions an iteration; INT may count in ring 3; IRET adds at most one",
        run: software_interrupts,
    },
    Check {
        name: "interference.page_faults",
        source: "the code's listing: two instructions an iteration; a page fault adds at most one (Weaver)",
        run: page_faults,
    },
    Check {
        name: "interference.hardware_interrupts",
        source: "an interrupt adds at most one (Weaver)",
        run: hardware_interrupts,
    },
    Check { name: "interference.nmis", source: "an NMI adds at most one (Weaver)", run: nmis },
];

/// Turns of the shorter run.
const TURNS: u64 = 25;

/// Instructions of ring 3 that one more turn adds, if it is always the same.
fn slope(context: &mut Context, piece: Ring3Code) -> Result<Option<u64>, arch::pmu::PmuError> {
    let event = INSTRUCTIONS.in_rings(Rings::USER);
    let mut run = |turns| context.count_one(event, Work::user(piece, turns));
    let (one, two, four) = (run(TURNS)?, run(2 * TURNS)?, run(4 * TURNS)?);
    let (first, second) = (two.wrapping_sub(one), four.wrapping_sub(two));
    Ok((first % TURNS == 0 && second == 2 * first).then_some(first / TURNS))
}

fn fitted(context: &mut Context, piece: Ring3Code, most: u64) -> Outcome {
    /// The loop's own.
    const LOOP: u64 = 2;
    let expected = alloc::format!("{LOOP} to {most} instructions an iteration, always the same");
    Ok(match slope(context, piece)? {
        Some(each) => Finding::when(
            (LOOP..=most).contains(&each),
            expected,
            format_args!(
                "{each} an iteration: {} more than the loop's own",
                each.saturating_sub(LOOP)
            ),
        ),
        None => Finding::fail(expected, "not proportional to the iterations"),
    })
}

fn software_interrupts(context: &mut Context) -> Outcome {
    fitted(context, Ring3Code::Interrupts, 4)
}

fn page_faults(context: &mut Context) -> Outcome {
    let most = if context.emulated.is_some() { 2 } else { 3 };
    fitted(context, Ring3Code::Faults, most)
}

fn interrupted(context: &mut Context, delivery: Delivery) -> Outcome {
    let witness = context.second();
    context.program(witness, &INSTRUCTIONS.in_rings(Rings::USER))?;
    let block = in_ring_3(context, delivery, |_, _| Ok(()))?;
    let seen = context.get(witness)?;
    // One INT and one IRET at the edges.
    const EDGES: u64 = 2;
    let added = seen.saturating_sub(IN_RING_3);
    let most = if context.emulated.is_some() { EDGES } else { EDGES + block.pmis };
    let good = seen >= IN_RING_3 && added <= most && block.pmis > 0;
    let expected = alloc::format!("{IN_RING_3} instructions, at most {most} more");
    let seen = alloc::format!("{seen}, with {} interrupts", block.pmis);
    Ok(Finding::when(good, expected, seen))
}

fn hardware_interrupts(context: &mut Context) -> Outcome {
    interrupted(context, Delivery::Fixed)
}

fn nmis(context: &mut Context) -> Outcome {
    interrupted(context, Delivery::Nmi)
}
