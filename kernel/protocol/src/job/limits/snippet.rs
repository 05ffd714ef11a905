//! Bounds of a snippet.

use super::*;
use crate::bits::Bits;
use crate::job::control::{PageSize, Ring};
use crate::job::{Difference, LoopCounter, Snippet};
use crate::marker::{STUB_BYTES, markers};
use crate::program::{END, LOWEST, MAX_PROGRAMS};

pub(crate) fn check_snippet(snippet: &Snippet) -> Result<(), LimitError> {
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
    if snippet.loop_count == 0 || setup.bits == Bits::SixtyFour {
        range("loop", snippet.loop_count, 0, MAX_LOOP)?;
    } else {
        workload::check_turns("loop", snippet.loop_count, setup.bits, snippet.loop_counter)?;
    }
    range("warmup", u64::from(snippet.warmup), 0, u64::from(MAX_WARMUP))?;
    range("runs", u64::from(snippet.runs), 1, u64::from(MAX_RUNS))?;
    if snippet.values {
        range("runs (with values listed)", u64::from(snippet.runs), 1, u64::from(MAX_LISTED_RUNS))?;
    }
    check_control(snippet)?;
    check_call(snippet)?;
    let events = |text: &str| 1 + text.matches(',').count() as u64;
    let events = snippet.events.iter().map(|text| events(text)).sum();
    range("the number of events", events, 0, MAX_EVENTS as u64)?;
    snippet
        .events
        .iter()
        .try_for_each(|text| length("the text of an event", text.len(), MAX_EVENT_BYTES))?;
    code_area(snippet)
}

fn check_control(snippet: &Snippet) -> Result<(), LimitError> {
    let control = &snippet.setup.control;
    for (field, value, max) in [
        ("time-limit", control.time_limit_ms, MAX_TIME_LIMIT_MS),
        ("frequency", control.frequency_mhz, MAX_FREQUENCY_MHZ),
        ("smi-repeats", control.smi_repeats, MAX_SMI_REPEATS),
        ("the number of msrs", control.msrs.len() as u32, MAX_MSRS as u32),
    ] {
        range(field, u64::from(value), 0, u64::from(max))?;
    }
    control.msrs.iter().try_for_each(|msr| name(&msr.name))?;
    let pauses = !markers(&snippet.body).is_empty();
    if snippet.setup.no_memory && !control.msrs.is_empty() {
        return Err(LimitError::NoMemory("what the msrs were before"));
    }
    if snippet.setup.no_memory && pauses {
        return Err(LimitError::NoMemory("registers at a pause of counting"));
    }
    if snippet.setup.bits == Bits::Compatibility {
        if snippet.setup.no_memory {
            return Err(LimitError::Compatibility(
                "no-memory mode keeps values in R9 to R13, which 32-bit code need not preserve",
            ));
        }
        if pauses {
            return Err(LimitError::Compatibility(
                "counting cannot be paused: the code that does it is 64-bit",
            ));
        }
        if control.page_size == PageSize::Giant {
            return Err(LimitError::Compatibility(
                "page-size = \"1g\" puts the memory areas above 4 GiB, out of its reach",
            ));
        }
    }
    if control.ring == Ring::Kernel {
        return Ok(());
    }
    if snippet.setup.no_memory {
        return Err(LimitError::UserRing("no-memory mode cannot save the return to ring 0"));
    }
    if snippet.loop_count > 0 && snippet.loop_counter == LoopCounter::Memory {
        return Err(LimitError::UserRing(
            "the loop's count must be in R15, which the snippet uses or, as 32-bit code, does not have",
        ));
    }
    if pauses {
        return Err(LimitError::UserRing("counting cannot be paused: WRMSR needs ring 0"));
    }
    Ok(())
}

/// A function is called once in each run, as it finds its arguments in registers that it need not keep.
fn check_call(snippet: &Snippet) -> Result<(), LimitError> {
    let setup = &snippet.setup;
    let Some(call) = &setup.call else { return Ok(()) };
    length("the teardown code", call.teardown.len(), MAX_CODE_BYTES)?;
    range("the function's address", call.function, LOWEST, END - 1)?;
    range("the program's number", call.program.into(), 0, MAX_PROGRAMS as u64 - 1)?;
    let refused = |is: bool, why| if is { Err(LimitError::Call(why)) } else { Ok(()) };
    refused(!snippet.body.is_empty(), "it replaces the body")?;
    refused(snippet.unroll != 1, "it is called once in each run; unroll must be 1")?;
    refused(snippet.loop_count != 0, "it is called once in each run; loop must be 0")?;
    refused(
        snippet.difference != Difference::Empty,
        "an empty call is subtracted; difference must be \"empty\"",
    )?;
    refused(setup.bits == Bits::Compatibility, "it is 64-bit code; bits must be 64")?;
    refused(setup.no_memory, "no-memory keeps values in registers that hold arguments")?;
    refused(!setup.late_init.is_empty(), "late init would run between its arguments and its call")
}

fn code_area(snippet: &Snippet) -> Result<(), LimitError> {
    let copies = match snippet.difference {
        Difference::Double => 2 * u64::from(snippet.unroll),
        Difference::Empty => u64::from(snippet.unroll),
    };
    let stubs = markers(&snippet.body).len() as u64 * STUB_BYTES;
    let body = snippet.body.len() as u64 + stubs;
    let teardown = snippet.setup.call.as_ref().map_or(0, |call| call.teardown.len());
    let inits = snippet.init.len() + snippet.setup.late_init.len() + teardown;
    let total = copies * body + inits as u64 + HARNESS_BYTES;
    if total <= CODE_AREA_BYTES {
        return Ok(());
    }
    Err(LimitError::CodeArea { copies, body, total, max: CODE_AREA_BYTES })
}
