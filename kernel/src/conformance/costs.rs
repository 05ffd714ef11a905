//! What reading the counters and handing them on costs, in instructions of ring 0, with the platform that jobs count
//! with. A counter in addition to those of the set measures.

use super::check::{Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use crate::counting::job::Beside;
use crate::counting::snapshot::{self, Clocks, take};
use crate::counting::{Counts, Platform, Run, Session, Set};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::driver::Layout;
use arch::pmu::{Capabilities, Counter, Driver, Readable, Rings, Selection};
use core::hint::black_box;

/// A check of a cost: with a global control and a status register, and without, where counters are read, started and stopped
/// step by step.
macro_rules! check {
    ($name:literal, $what:ident, $counters:literal, $most:literal, $step_by_step:literal) => {
        Check {
            name: concat!("cost.", $name),
            source: concat!(
                "barecount: at most ",
                $most,
                " instructions; ",
                $step_by_step,
                " without a status register"
            ),
            run: |context| cost(context, What::$what, $counters, [$most, $step_by_step]),
        }
    };
}

pub(super) const CHECKS: &[Check] = &[
    check!("rdpmc", Rdpmc, 1, 15, 15),
    Check {
        name: "cost.rdpmc_ring_3",
        source: "barecount: RDPMC, loading its index, combining its halves, and leaving ring 3",
        run: in_ring_3,
    },
    check!("read_1", Read, 1, 60, 640),
    check!("read_4", Read, 4, 110, 1470),
    check!("read_8", Read, 8, 170, 3200),
    check!("turn_1", Turn, 1, 210, 4850),
    check!("turn_4", Turn, 4, 390, 9250),
    check!("turn_8", Turn, 8, 630, 15300),
    check!("snapshot", Snapshot, 4, 460, 1850),
];

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// The driver's RDPMC of one counter.
    Rdpmc,
    /// 64-bit counts of all requests, into a buffer.
    Read,
    /// From one group to another of as many counters.
    Turn,
    /// The counts and the machine's own figures.
    Snapshot,
}

/// What a counter takes of a turn where errata ask for other events before its own (Nehalem, Westmere: AAK100).
const RENEWAL: u64 = 700;

fn cost(context: &mut Context, what: What, counters: usize, most: [u64; 2]) -> Outcome {
    let has = context.has().clone();
    let [planned, step_by_step] = most;
    let renews = what == What::Turn && Driver::new(has.clone()).has_to_renew();
    let most = match (renews, has.has_global()) {
        (true, _) => step_by_step + RENEWAL * counters as u64,
        (false, true) => planned,
        (false, false) => step_by_step,
    };
    let fixed = Some(Counter::Fixed(0)).filter(|&counter| has.has(counter));
    let Some(meter) = fixed.or_else(|| has.generals().last()) else {
        return Ok(Finding::skip("a counter"));
    };
    let members: Vec<Counter> =
        has.generals().filter(|&counter| counter != meter).take(counters).collect();
    if members.len() < counters {
        return Ok(Finding::skip(format!("{counters} counters in addition to the measuring one")));
    }
    let mut seen = Ok(0);
    let ran = context
        .machine
        .on_platform(&mut |platform| seen = measure(platform, &has, meter, &members, what));
    if !ran {
        return Ok(Finding::skip("a machine that executes the firmware"));
    }
    Ok(match seen {
        Err(error) => Finding::fail("every access succeeds", error),
        // Each access that leaves the guest costs what the hypervisor makes of it, and some count it. The bounds are those
        // of the firmware's own instructions, which barecount's emulated PMU counts and nothing else.
        Ok(seen) if context.emulated.is_none() => figure(seen, most),
        Ok(seen) => Finding::when(
            (1..=most).contains(&seen),
            format!("at most {most} instructions"),
            format!("{seen} instructions"),
        ),
    })
}

/// A cost on a PMU of which nothing is known but that it counts.
pub(super) fn figure(seen: u64, most: u64) -> Finding {
    Finding::when(
        seen > 0,
        format!("a figure; at most {most} instructions on barecount's emulated PMU"),
        format!("{seen} instructions"),
    )
}

/// Instructions of one `what` with a set of `members`.
fn measure(
    platform: &mut dyn Platform,
    has: &Capabilities,
    meter: Counter,
    members: &[Counter],
    what: What,
) -> Result<u64, String> {
    let group: Vec<_> = members.iter().map(|&counter| (counter, INSTRUCTIONS)).collect();
    let groups = if what == What::Turn { [group.clone(), group].to_vec() } else { [group].into() };
    let set = Set::of_groups(&groups);
    let mut counts = Counts::new(&set);
    let mut taken = snapshot::Snapshot::EMPTY;
    let clocks = Clocks::read(platform);
    // The counter that measures continues when the session stops all of its own.
    let driver = Driver::new(has.clone()).beside(meter.bit());
    let mut session = Session::bind(set, Run::default(), driver, platform).map_err(text)?;
    // After the binding, which takes all counters.
    let mut own = Driver::new(has.clone());
    let selection = match meter {
        Counter::Fixed(_) => Selection::of(0, 0),
        Counter::General(_) => INSTRUCTIONS,
    };
    own.program(platform, meter, &selection).map_err(text)?;
    own.start(platform).map_err(text)?;
    session.start(platform).map_err(text)?;
    let [measures, first] = [meter, members[0]].map(|counter| own.readable(platform, counter));
    let (measures, first) = (measures.map_err(text)?, first.map_err(text)?);
    let mut failed = None;
    let empty = stretch(platform, measures, |_| ());
    let seen = match what {
        What::Rdpmc => stretch(platform, measures, |platform| {
            black_box(platform.rdpmc_again(first));
        }),
        What::Read => stretch(platform, measures, |platform| {
            note(&mut failed, session.sample(platform, &mut counts));
        }),
        What::Turn => stretch(platform, measures, |platform| {
            note(&mut failed, session.next(platform));
        }),
        What::Snapshot => stretch(platform, measures, |platform| {
            let session = &mut session;
            let mut beside = Beside { session, platform, switches: 0, clocks };
            note(&mut failed, take(&mut beside, &mut counts, &mut taken));
        }),
    };
    session.terminate(platform).map_err(text)?;
    // What is read is not a wider than the counter; the difference may be, where it wrapped.
    let [seen, empty] = [seen, empty].map(|count| count & has.mask(meter));
    failed.map_or(Ok(seen.saturating_sub(empty)), Err)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Keeps an error for later: an operation is measured, and not what becomes of it.
#[inline]
fn note<E: ToString>(failed: &mut Option<String>, done: Result<(), E>) {
    if let Err(error) = done {
        *failed = Some(error.to_string());
    }
}

/// What `meter` counts from reading it to reading it again, with `operation` in between: the least of several, as a
/// system management interrupt may come into one. A function of its own for each operation, which has the registers to itself.
#[inline(never)]
fn stretch(
    platform: &mut dyn Platform,
    meter: Readable,
    mut operation: impl FnMut(&mut dyn Platform),
) -> u64 {
    const TIMES: usize = 4;
    let mut least = u64::MAX;
    for _ in 0..TIMES {
        let before = platform.rdpmc_again(meter);
        operation(platform);
        least = least.min(platform.rdpmc_again(meter).wrapping_sub(before));
    }
    least
}

/// A read without the kernel, by what a counter of ring 3 sees. Whether the INT that leaves counts is the processor's
/// choice.
fn in_ring_3(context: &mut Context) -> Outcome {
    if !context.machine.counts_handlers() {
        return Ok(Finding::skip("a machine that executes ring 3"));
    }
    let first = context.first();
    let index = Layout::rdpmc_index(first);
    context.program(first, &INSTRUCTIONS.in_rings(Rings::USER))?;
    context.driver.start(context.machine)?;
    let read = context.machine.rdpmc_in_ring_3(index, true);
    context.driver.stop(context.machine)?;
    if read.is_none() {
        return Ok(Finding::fail("a count", "an exception"));
    }
    let seen = context.get(first)?;
    if context.emulated.is_none() {
        return Ok(figure(seen, 5));
    }
    let good = (4..=5).contains(&seen);
    Ok(Finding::when(good, "4 or 5 instructions", format!("{seen} instructions")))
}
