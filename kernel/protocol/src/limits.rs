//! Bounds of a job. The host checks them for a good error with line and column; the target checks
//! them again, because a ramdisk can come from anywhere.

use crate::exact::Exact;
use crate::job::{Conformance, Difference, Item, Job, Processors, Snippet};
use thiserror::Error;

/// Longest name of a job or an item, in bytes.
pub const MAX_NAME_BYTES: usize = 200;
/// Most items in a job.
pub const MAX_ITEMS: usize = 100_000;
/// Longest machine code of one part (body or init) of a snippet, in bytes.
pub const MAX_CODE_BYTES: usize = 1 << 20;
/// Executable memory on the target, in bytes: the init code, the unrolled body and the measuring
/// code around them have to fit.
pub const CODE_AREA_BYTES: u64 = 16 << 20;
/// Room kept in the code area for the measuring code.
pub const HARNESS_BYTES: u64 = 4096;
/// Copies of the body, as asked for; differencing runs up to twice as many.
pub const MAX_UNROLL: u32 = 1_000_000;
/// Iterations of the loop around the copies.
pub const MAX_LOOP: u64 = 1_000_000_000_000;
/// Names of checks in one item.
pub const MAX_CHECKS: usize = 1000;
/// Events of one snippet, each comma in their texts taken for one more: what does not fit into the counters at once
/// takes further passes, so this bounds the time and the length of the result's line.
pub const MAX_EVENTS: usize = 500;
/// Longest text of an event or a group of events, in bytes.
pub const MAX_EVENT_BYTES: usize = 1000;
/// Opcodes of a filter.
pub const MAX_OPCODES: usize = 100;
/// Instructions that exact mode steps over in one run, those of the measuring code among them.
pub const MAX_STEPS: u64 = 1_000_000;
/// Rows of a listing of instructions: some 50 bytes each on the serial line.
pub const MAX_LISTED_INSTRUCTIONS: usize = 1_000;
/// Runs before measuring.
pub const MAX_WARMUP: u32 = 1_000_000;
/// Bytes that a body may start behind a multiple of 64.
pub const MAX_ALIGNMENT_OFFSET: u8 = 63;
/// Measured runs.
pub const MAX_RUNS: u32 = 100_000;
/// Most runs whose single values go into the report: two series of 20 digits each make a line of
/// 40 kB, 4 s at 115,200 baud.
pub const MAX_LISTED_RUNS: u32 = 1_000;
/// Greatest number of a processor.
pub const MAX_CPU: u16 = 255;
/// Instructions from one interrupt to the next: several times the handler's own sixty, so that work goes on between.
pub const MIN_INTERRUPT_EVERY: u64 = 500;
/// The loop that is interrupted is not much longer.
pub const MAX_INTERRUPT_EVERY: u64 = 1_000_000;
/// Rates that a 16550 with its standard 1.8432 MHz clock can make: 115,200 divided by a whole number.
pub const MAX_BAUD: u32 = 115_200;
/// Slowest rate accepted.
pub const MIN_BAUD: u32 = 300;

/// A value outside its bounds. The text names the thing, the value and the bound.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum LimitError {
    /// A whole number outside its range.
    #[error("{field} is {value}; it must be {min} to {max}")]
    Range { field: &'static str, value: u64, min: u64, max: u64 },
    /// A text or code that is too long.
    #[error("{field} is {bytes} bytes long; at most {max} are allowed")]
    TooLong { field: &'static str, bytes: u64, max: u64 },
    /// All copies together do not fit into executable memory.
    #[error(
        "{copies} copies of a body of {body} bytes make {total} bytes; the code area holds {max}: \
         lower unroll, or use loop"
    )]
    CodeArea { copies: u64, body: u64, total: u64, max: u64 },
    /// A rate that the UART cannot make.
    #[error(
        "baud is {0}; it must divide 115200 without remainder (115200, 57600, 38400, 9600, ...)"
    )]
    Baud(u32),
    /// An expectation that no value can meet.
    #[error("expect.min is {min}, above expect.max, which is {max}")]
    EmptyExpectation { min: f64, max: f64 },
    /// An expectation that is not a number.
    #[error("expect.{0} is not a finite number")]
    NotFinite(&'static str),
    /// A range of instructions that hangs on a register.
    #[error(
        "exact.instructions is counted from a register; it must be counted from the start of the body"
    )]
    InstructionBase,
    /// Bounds for ticks that are not counted.
    #[error("expect bounds TSC ticks, which exact mode does not count; give one of the two")]
    ExactExpectation,
    /// Bounds for one figure where there are several.
    #[error("expect bounds one figure; [[processors]] gives one for each processor")]
    ProcessorsExpectation,
    /// The PMU cannot filter as exact mode does.
    #[error("exact.verify compares with the PMU, which has no such filter; give one of the two")]
    VerifyFiltered,
    /// An empty name.
    #[error("the name is empty")]
    EmptyName,
}

fn range(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), LimitError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(LimitError::Range { field, value, min, max })
}

fn length(field: &'static str, bytes: usize, max: usize) -> Result<(), LimitError> {
    if bytes <= max {
        return Ok(());
    }
    Err(LimitError::TooLong { field, bytes: bytes as u64, max: max as u64 })
}

fn name(text: &str) -> Result<(), LimitError> {
    if text.is_empty() {
        return Err(LimitError::EmptyName);
    }
    length("the name", text.len(), MAX_NAME_BYTES)
}

/// Checks what belongs to the whole job, but not its items.
///
/// # Errors
/// The first value outside its bounds.
pub fn check_job(job: &Job) -> Result<(), LimitError> {
    name(&job.name)?;
    check_baud(job.baud)?;
    range("the number of items", job.items.len() as u64, 0, MAX_ITEMS as u64)
}

/// Checks one rate of the serial line, in bits per second.
///
/// # Errors
/// A rate outside 300 to 115,200 or that does not divide 115,200.
pub fn check_baud(baud: u32) -> Result<(), LimitError> {
    range("baud", u64::from(baud), u64::from(MIN_BAUD), u64::from(MAX_BAUD))?;
    if MAX_BAUD.is_multiple_of(baud) { Ok(()) } else { Err(LimitError::Baud(baud)) }
}

/// Checks one item.
///
/// # Errors
/// The first value outside its bounds.
pub fn check_item(item: &Item) -> Result<(), LimitError> {
    match item {
        Item::Snippet(snippet) => check_snippet(snippet),
        Item::Conformance(conformance) => check_conformance(conformance),
        Item::Exact(exact) => check_exact(exact),
        Item::Processors(processors) => check_processors(processors),
    }
}

fn check_processors(processors: &Processors) -> Result<(), LimitError> {
    check_snippet(&processors.snippet)?;
    range("cpu", processors.cpu.unwrap_or(0).into(), 0, MAX_CPU.into())?;
    let (least, most) = (MIN_INTERRUPT_EVERY, MAX_INTERRUPT_EVERY);
    range("interrupt-every", processors.interrupt_every.unwrap_or(least), least, most)?;
    if processors.snippet.expect.is_some() {
        return Err(LimitError::ProcessorsExpectation);
    }
    Ok(())
}

fn check_exact(exact: &Exact) -> Result<(), LimitError> {
    check_snippet(&exact.snippet)?;
    let opcodes = &exact.filter.opcodes;
    range("the number of opcodes", opcodes.len() as u64, 0, MAX_OPCODES as u64)?;
    opcodes.iter().try_for_each(|opcode| name(opcode))?;
    if exact.filter.instructions.is_some_and(|range| range.base.is_some()) {
        return Err(LimitError::InstructionBase);
    }
    if exact.snippet.expect.is_some() {
        return Err(LimitError::ExactExpectation);
    }
    if exact.verify && !exact.filter.is_empty() {
        return Err(LimitError::VerifyFiltered);
    }
    Ok(())
}

fn check_conformance(conformance: &Conformance) -> Result<(), LimitError> {
    name(&conformance.name)?;
    range("the number of checks", conformance.checks.len() as u64, 0, MAX_CHECKS as u64)?;
    conformance.checks.iter().try_for_each(|check| name(check))
}

fn check_snippet(snippet: &Snippet) -> Result<(), LimitError> {
    name(&snippet.name)?;
    length("the body's machine code", snippet.body.len(), MAX_CODE_BYTES)?;
    length("the init code", snippet.init.len(), MAX_CODE_BYTES)?;
    let setup = &snippet.setup;
    length("the one-time init code", setup.one_time_init.len(), MAX_CODE_BYTES)?;
    length("the late init code", setup.late_init.len(), MAX_CODE_BYTES)?;
    range("initial-warmup", u64::from(setup.initial_warmup), 0, u64::from(MAX_WARMUP))?;
    let (offset, max) = (u64::from(setup.alignment_offset), u64::from(MAX_ALIGNMENT_OFFSET));
    range("alignment-offset", offset, 0, max)?;
    range("unroll", u64::from(snippet.unroll), 1, u64::from(MAX_UNROLL))?;
    range("loop", snippet.loop_count, 0, MAX_LOOP)?;
    range("warmup", u64::from(snippet.warmup), 0, u64::from(MAX_WARMUP))?;
    range("runs", u64::from(snippet.runs), 1, u64::from(MAX_RUNS))?;
    if snippet.values {
        range("runs (with values listed)", u64::from(snippet.runs), 1, u64::from(MAX_LISTED_RUNS))?;
    }
    let events = |text: &str| 1 + text.matches(',').count() as u64;
    let events = snippet.events.iter().map(|text| events(text)).sum();
    range("the number of events", events, 0, MAX_EVENTS as u64)?;
    snippet
        .events
        .iter()
        .try_for_each(|text| length("the text of an event", text.len(), MAX_EVENT_BYTES))?;
    if let Some(expect) = &snippet.expect {
        for (field, value) in [("min", expect.min), ("max", expect.max)] {
            if !value.is_finite() {
                return Err(LimitError::NotFinite(field));
            }
        }
        if expect.min > expect.max {
            return Err(LimitError::EmptyExpectation { min: expect.min, max: expect.max });
        }
    }
    code_area(snippet)
}

fn code_area(snippet: &Snippet) -> Result<(), LimitError> {
    let copies = match snippet.difference {
        Difference::Double => 2 * u64::from(snippet.unroll),
        Difference::Empty => u64::from(snippet.unroll),
    };
    let body = snippet.body.len() as u64;
    let inits = snippet.init.len() + snippet.setup.late_init.len();
    let total = copies * body + inits as u64 + HARNESS_BYTES;
    if total <= CODE_AREA_BYTES {
        return Ok(());
    }
    Err(LimitError::CodeArea { copies, body, total, max: CODE_AREA_BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Filter;
    use crate::job::tests::{any_job, snippet};
    use alloc::string::ToString;

    #[test]
    fn the_largest_snippet_that_fits_is_taken_and_one_more_copy_is_not() {
        let body = 1000;
        let fits = (CODE_AREA_BYTES - HARNESS_BYTES) / (2 * body);
        let mut item = snippet("s", &alloc::vec![0x90; body as usize]);
        item.unroll = fits as u32;
        assert_eq!(check_item(&Item::Snippet(item.clone())), Ok(()));
        item.unroll += 1;
        let error = check_item(&Item::Snippet(item)).unwrap_err();
        assert!(matches!(error, LimitError::CodeArea { .. }), "{error}");
    }

    #[test]
    fn each_number_has_both_bounds() {
        let check = |change: fn(&mut Snippet)| {
            let mut item = snippet("s", &[0x90]);
            change(&mut item);
            check_item(&Item::Snippet(item))
        };
        assert_eq!(check(|_| ()), Ok(()));
        for (change, field) in [
            ((|s| s.unroll = 0) as fn(&mut Snippet), "unroll"),
            (|s| s.unroll = MAX_UNROLL + 1, "unroll"),
            (|s| s.loop_count = MAX_LOOP + 1, "loop"),
            (|s| s.warmup = MAX_WARMUP + 1, "warmup"),
            (|s| s.setup.initial_warmup = MAX_WARMUP + 1, "initial-warmup"),
            (|s| s.setup.alignment_offset = 64, "alignment-offset"),
            (|s| s.runs = 0, "runs"),
            (|s| s.runs = MAX_RUNS + 1, "runs"),
        ] {
            let error = check(change).unwrap_err();
            assert!(matches!(error, LimitError::Range { field: f, .. } if f == field), "{error}");
        }
    }

    #[test]
    fn n2_events_are_bounded_in_number_and_length() {
        let check = |events: &[&str]| {
            let mut item = snippet("s", &[0x90]);
            item.events = events.iter().map(|text| text.to_string().into()).collect();
            check_item(&Item::Snippet(item))
        };
        let many = ["cycles"; MAX_EVENTS + 1];
        assert_eq!(check(&many[1..]), Ok(()));
        assert!(matches!(check(&many), Err(LimitError::Range { value: 501, .. })));
        let group = alloc::format!("{{a{}}}", ",a".repeat(400));
        assert_eq!(check(&[&group, "b"]), Ok(()));
        assert!(matches!(check(&[&group, &group]), Err(LimitError::Range { value: 802, .. })));
        assert!(matches!(check(&[&"a".repeat(1001)]), Err(LimitError::TooLong { .. })));
    }

    #[test]
    fn t8_a_filter_that_cannot_be_applied_is_refused() {
        let filter = |instructions: &str, verify| {
            let filter = Filter { instructions: instructions.parse().ok(), ..Filter::default() };
            check_item(&Item::Exact(Exact { snippet: snippet("s", &[0x90]), filter, verify }))
        };
        assert_eq!(filter("0..4", false), Ok(()));
        assert_eq!(filter("", true), Ok(()));
        assert_eq!(filter("rsp:0..4", false), Err(LimitError::InstructionBase));
        assert_eq!(filter("0..4", true), Err(LimitError::VerifyFiltered));
        let expect = Some(crate::job::Expect { min: 1.0, max: 2.0 });
        let snippet = Snippet { expect, ..snippet("s", &[0x90]) };
        let exact = Exact { snippet, filter: Filter::default(), verify: false };
        assert_eq!(check_item(&Item::Exact(exact)), Err(LimitError::ExactExpectation));
    }

    #[test]
    fn bauds_are_the_ones_a_16550_can_make() {
        for good in [300, 9600, 38400, 57600, 115_200] {
            assert_eq!(check_baud(good), Ok(()));
        }
        for bad in [0, 299, 100_000, 115_201, 921_600] {
            assert!(check_baud(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_job_makes_the_check_panic(job in any_job()) {
            let _ = check_job(&job);
            for item in &job.items {
                let _ = check_item(item);
            }
        }
    }
}
