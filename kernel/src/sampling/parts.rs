//! What one processor samples: its counters, programmed on it, its control block, and its part of the result.

use super::{Armed, Besides, Sampler, Session, account, branches, capability, ibs, memory};
use crate::snippet::measure::Unmeasured;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pmi::{ControlBlock, Interval, Times};
use arch::pmu::{Driver, Gate, PmuError, Registers};
use protocol::job::sampling::Sampling;
use protocol::record::{SampledCount, SamplingCapability};

/// One processor's part.
pub(super) struct Part {
    /// Its number.
    pub(super) cpu: u16,
    /// Its counters and its log.
    pub(super) session: Session,
    /// What its handler works with, or has left: 6 KiB, too much for the stack, on which each move would make a copy.
    pub(super) block: Box<ControlBlock>,
}

/// What a part came to.
pub(super) struct Counted {
    pub(super) counts: Vec<SampledCount>,
    pub(super) capability: SamplingCapability,
    /// Branch records that the processor keeps.
    pub(super) entries: u8,
    pub(super) latencies: Option<[String; 2]>,
}

/// Samples at intervals of time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Every {
    /// What the timer of its own is set to; `None`: the scheduler's timer takes them.
    pub(super) timer: Option<Interval>,
    /// The interval that this makes, in ticks of the TSC and in nanoseconds.
    pub(super) ticks: u64,
    pub(super) ns: u64,
}

impl Every {
    /// The interval of an item, if it has one. Under a scheduler it is one of the TSC, which the scheduler's ticks are timed by as
    /// well; else what the timer's counts make.
    ///
    /// # Errors
    /// The timer makes no such interval.
    pub(super) fn of(
        item: &Sampling,
        scheduled: bool,
        [tsc_hz, timer_hz]: [u64; 2],
    ) -> Result<Option<Self>, String> {
        const SECOND: u128 = 1_000_000_000;
        let ns = match item.interval_ns {
            0 => return Ok(None),
            ns => ns,
        };
        let hz = u128::from(tsc_hz.max(1));
        if scheduled {
            let ticks = ((u128::from(ns) * hz + SECOND / 2) / SECOND).max(1);
            let ns = (ticks * SECOND + hz / 2) / hz;
            return Ok(Some(Self { timer: None, ticks: ticks as u64, ns: ns as u64 }));
        }
        let interval = Interval::nearest(ns, timer_hz).ok_or_else(|| {
            format!("the local APIC's timer, which counts at {timer_hz} Hz, makes no interval of {ns} ns")
        })?;
        let ticks = u128::from(interval.ns) * hz / SECOND;
        Ok(Some(Self { timer: Some(interval), ticks: ticks as u64, ns: interval.ns }))
    }
}

impl Part {
    /// Programs the counters of a processor. `planned`: what is sampled by; `None`: there is no PMU, and a timer samples alone. Also
    /// returns the gate that is open while a task runs.
    ///
    /// # Errors
    /// The PMU refuses.
    pub(super) fn arm(
        machine: &mut impl Sampler,
        cpu: u16,
        item: &Sampling,
        planned: Option<&(Vec<Armed>, Besides)>,
        every: Option<Every>,
    ) -> Result<(Self, Gate), Unmeasured> {
        let [tsc_hz, _] = machine.clocks();
        let (mut session, mut block, gate) = match planned {
            None => {
                let (session, block) = Session::without_counters(item, tsc_hz);
                (session, block, Gate::EMPTY)
            }
            Some(planned) => on(machine, cpu, |registers, driver| {
                let armed = Session::arm(registers, driver, item, planned.clone(), tsc_hz)?;
                Ok((armed.0, armed.1, driver.gate()))
            })?,
        };
        let gate = match planned.filter(|_| item.call_graph.is_some()) {
            Some(_) => block.with_records(gate),
            None => gate,
        };
        if let Some(every) = every {
            block.times = Times::watching(every.ticks, session.times());
        }
        Ok((Self { cpu, session, block }, gate))
    }

    /// Stops the counters and reads what they came to. The PMU is the next item's then. `pmu`: there is one, or why not.
    ///
    /// # Errors
    /// The PMU refuses.
    pub(super) fn count(
        &self,
        machine: &mut impl Sampler,
        pmu: Result<(), &str>,
        every: Option<Every>,
    ) -> Result<Counted, Unmeasured> {
        let Self { cpu, session, block } = self;
        let ns = every.map(|every| every.ns);
        if let Err(reason) = pmu {
            let counts = account::timer_alone(session, block, ns);
            let capability = capability::none(reason);
            return Ok(Counted { counts, capability, entries: 0, latencies: None });
        }
        let emulated = machine.has_emulated_pmu();
        on(machine, *cpu, |registers, driver| {
            driver.stop(registers)?;
            ibs::disarm(registers, driver.capabilities(), &session.events)?;
            let counts = account::account(registers, driver, session, block, ns)?;
            branches::stop(registers, driver, block)?;
            driver.reset(registers)?;
            let has = driver.capabilities();
            Ok(Counted {
                counts,
                capability: capability::capability(has, emulated),
                entries: has.lbr.entries(),
                latencies: block.accesses().map(|_| memory::latencies(has)),
            })
        })
    }

    /// Whether every overflow is accounted for.
    ///
    /// # Errors
    /// Which are not, or that the interrupt never stopped.
    pub(super) fn check(&self, counts: &[SampledCount]) -> Result<(), Unmeasured> {
        let said = if self.block.storms() {
            Err(format!(
                "the PMU's interrupt came {} times without an overflow, so it was masked: what came after that is not sampled",
                self.block.spurious
            ))
        } else {
            account::check(counts, &self.block)
        };
        said.map_err(|text| self.refused(&text))
    }

    fn refused(&self, text: &str) -> Unmeasured {
        refused(self.cpu, text)
    }
}

/// A refusal, which names the processor if it is another than the boot processor.
fn refused(cpu: u16, text: &str) -> Unmeasured {
    Unmeasured::Refused(match cpu {
        0 => text.to_string(),
        _ => format!("on processor {cpu}: {text}"),
    })
}

/// Calls `work` on a processor with its PMU.
///
/// # Errors
/// There is none, or it refuses.
pub(super) fn on<R>(
    machine: &mut impl Sampler,
    cpu: u16,
    mut work: impl FnMut(&mut dyn Registers, &mut Driver) -> Result<R, PmuError>,
) -> Result<R, Unmeasured> {
    let mut done = None;
    let called = machine.on(cpu, &mut |registers, driver| done = Some(work(registers, driver)));
    called.map_err(|text| refused(cpu, &text))?;
    let done = done.expect("it was called");
    done.map_err(|error| refused(cpu, &error.to_string()))
}
