//! Work for other processors.

use super::mailbox::Call;
use super::{Processor, count, in_use, processor, this};
use crate::apic;
use crate::trap::TrapFrame;
use crate::vectors::CALL_VECTOR;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Why nothing was run.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum CallError {
    /// No such processor is in use.
    #[error("there is no processor {0} in use; {1} are")]
    NoProcessor(usize, usize),
    /// The boot processor gives work and takes none.
    #[error("processor {1} cannot give work to processor {0}: only the boot processor can")]
    NotTheBoot(usize, usize),
}

/// Runs `work` on processor `index` and waits for it. On this one, it is a call. Interrupts are off there.
///
/// # Errors
/// There is no such processor, or this is not the boot processor.
pub fn run_on<R: Send>(index: usize, work: impl FnOnce() -> R + Send) -> Result<R, CallError> {
    let target = processor(index).ok_or(CallError::NoProcessor(index, count()))?;
    if target.index() == this().index() {
        return Ok(work());
    }
    if this().index() != 0 {
        return Err(CallError::NotTheBoot(index, this().index()));
    }
    let (mut work, mut result) = (Some(work), None);
    let mut once = || result = work.take().map(|work| work());
    {
        let call = Call::new(&mut once);
        post(target, &call);
        wait(&call);
    }
    Ok(result.expect("the work was done"))
}

/// Runs `work` on every processor at the same time, this one included, and waits for all. It gets the processor's
/// place among those in use ([`super::in_use`]), by which the results are ordered too. Only the boot processor may call
/// this.
///
/// # Errors
/// This is not the boot processor.
pub fn on_all<R: Send>(work: impl Fn(usize) -> R + Sync) -> Result<Vec<R>, CallError> {
    let done = on_some(|_| true, work)?;
    Ok(done.into_iter().map(|result| result.expect("the work was done")).collect())
}

/// The same on those whose place is chosen. The others stay halted; results of theirs are `None`.
///
/// # Errors
/// This is not the boot processor.
pub fn on_some<R: Send>(
    is_chosen: impl Fn(usize) -> bool,
    work: impl Fn(usize) -> R + Sync,
) -> Result<Vec<Option<R>>, CallError> {
    if this().index() != 0 {
        return Err(CallError::NotTheBoot(0, this().index()));
    }
    let mut results: Vec<Option<R>> = (0..count()).map(|_| None).collect();
    let (own, others) = results.split_first_mut().expect("there is always one");
    let work = &work;
    let chosen = others.iter_mut().zip(1..).filter(|(_, place)| is_chosen(*place));
    let (mut pieces, mut places) = (Vec::new(), Vec::new());
    for (slot, place) in chosen {
        pieces.push(move || *slot = Some(work(place)));
        places.push(place);
    }
    let calls: Vec<Call> = pieces.iter_mut().map(|piece| Call::new(piece)).collect();
    let targets = in_use().enumerate().filter(|(place, _)| places.contains(place));
    for (call, (_, target)) in calls.iter().zip(targets) {
        post(target, call);
    }
    if is_chosen(0) {
        *own = Some(work(0));
    }
    calls.iter().for_each(wait);
    drop(calls);
    drop(pieces);
    Ok(results)
}

/// Hands the call over. The caller has to [`wait`] for it before the call goes.
fn post(target: &Processor, call: &Call) {
    // SAFETY: both callers wait for the call before it goes.
    unsafe { target.mailbox.put(call) };
    apic::send(target.apic_id(), CALL_VECTOR);
}

/// Whether the boot processor halts while it waits.
static HALTS: AtomicBool = AtomicBool::new(false);

/// From now on, the boot processor halts while it waits for others instead of looking again and again. That takes
/// longer, and is for a machine whose clock counts the instructions of all processors.
pub fn halt_while_waiting() {
    HALTS.store(true, Ordering::Relaxed);
}

/// Has the boot processor halt where it waits for others within `work`: nothing then runs at the same time as their measurement.
pub fn halting<R>(work: impl FnOnce() -> R) -> R {
    let before = HALTS.swap(true, Ordering::Relaxed);
    let result = work();
    HALTS.store(before, Ordering::Relaxed);
    result
}

fn wait(call: &Call) {
    call.wait(&HALTS, halt_unless_done);
}

/// Halts until the next interrupt, if the call is not done yet. Interrupts are off before and after.
fn halt_unless_done(call: &Call) {
    use x86_64::instructions::interrupts::{disable, enable_and_hlt};
    disable();
    if !call.is_done() {
        // The processor that is done sends an interrupt, which STI holds back until HLT.
        enable_and_hlt();
        disable();
    }
}

/// Does what is in this processor's mailbox, if there is something.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "host tests have one processor"))]
pub(super) fn serve(processor: &Processor) -> bool {
    processor.mailbox.serve(&HALTS, || apic::send(super::boot().apic_id(), CALL_VECTOR))
}

/// The interrupt only wakes.
#[cfg_attr(not(target_os = "none"), allow(dead_code, reason = "as above"))]
pub(super) fn on_call(_: &mut TrapFrame) {
    apic::end_of_interrupt();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_work_for_this_processor_is_a_call_and_for_none_an_error() {
        assert_eq!(run_on(0, || 7), Ok(7));
        let error = run_on(5, || ()).unwrap_err();
        assert_eq!(error, CallError::NoProcessor(5, 1));
        assert!(error.to_string().contains("no processor 5"));
        assert_eq!(on_all(|place| place * 2 + 7), Ok(vec![7]));
        assert_eq!(on_some(|place| place > 0, |place| place), Ok(vec![None]));
        assert_eq!(halting(|| on_some(|_| true, |place| place)), Ok(vec![Some(0)]));
    }

    #[test]
    fn i7_what_lies_in_a_mailbox_is_done_once() {
        let target = Processor::new(1);
        let mut done = 0;
        let mut work = || done += 1;
        let call = Call::new(&mut work);
        assert!(!serve(&target));
        // SAFETY: the call outlives what follows.
        unsafe { target.mailbox.put(&call) };
        assert!(serve(&target) && call.is_done());
        assert!(!serve(&target));
        assert_eq!(done, 1);
    }
}
