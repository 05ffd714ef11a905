//! Counting that begins and ends at addresses of tasks, each for as long as it has the processor.

use super::address::{Act, AddressError, AddressGate, On, Point};
use super::depth::Depth;
use super::taken_out::TakenOut;
use super::{Platform, Session, Set, SetError};
use crate::snippet::events::Counted;
use alloc::vec::Vec;
use arch::pmu::Rings;
use protocol::job::count::Count;
use protocol::job::gate::{GateAct, GateAt, GateOn, REGISTERS};
use protocol::record::CountGate;

/// Why an event is not counted between addresses.
pub const IN_RING_0: &str = "between addresses an event with a period is counted in ring 3 only (`:u`): in ring 0 the handlers \
                             of its overflows would be counted as well";

/// The same of an event of ring 3: what starts the counters again after an overflow would be put off to the kernel's next entry.
pub const BESIDE_RING_0: &str = "between addresses an event with a period is not counted together with an event that counts ring 0: \
                                 give one of them an item of its own";

/// Where a task is in memory: its init code, and the registers that point to its data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Begin {
    /// The address of the init code.
    pub code: u64,
    /// The values of [`REGISTERS`].
    pub registers: [u64; REGISTERS.len()],
}

/// The gates of a job's tasks, and what became of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    tasks: Vec<TaskGate>,
    taken_out: TakenOut,
}

/// The gate of one task.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct TaskGate {
    task: u16,
    points: Vec<(GateAt, On, Act)>,
    addresses: AddressGate,
    depth: Depth,
    /// Debug exceptions.
    taken: u64,
}

impl Gate {
    /// The gates that `item` asks for, if it does; no address is known yet. `taken_out`: what is to be taken out of the counts.
    #[must_use]
    pub fn of(item: &Count, taken_out: TakenOut) -> Option<Self> {
        let mut tasks: Vec<TaskGate> = Vec::new();
        for point in &item.gate {
            let act = match point.act {
                GateAct::Start => Act::Start,
                GateAct::Stop => Act::Stop,
            };
            let on = match point.on {
                GateOn::Execute => On::Execute,
                GateOn::Write(bytes) => On::Write(bytes),
                GateOn::Access(bytes) => On::Access(bytes),
            };
            let point_of = (point.at, on, act);
            match tasks.iter_mut().find(|own| own.task == point.task) {
                Some(own) => own.points.push(point_of),
                None => tasks.push(TaskGate {
                    task: point.task,
                    points: Vec::from([point_of]),
                    depth: Depth::new(item.nested),
                    ..TaskGate::default()
                }),
            }
        }
        (!tasks.is_empty()).then_some(Self { tasks, taken_out })
    }

    /// Each task begins where `begins` says. Returns what the debug registers are to have during which task.
    ///
    /// # Errors
    /// The addresses cannot be watched.
    pub fn place(&mut self, begins: &[Begin]) -> Result<Vec<(u16, AddressGate)>, AddressError> {
        let mut all = Vec::new();
        for own in &mut self.tasks {
            let Some(begin) = begins.get(usize::from(own.task)) else { continue };
            let point = |&(at, on, act): &(GateAt, On, Act)| {
                let address = match at {
                    GateAt::Code(offset) => begin.code.wrapping_add(offset),
                    GateAt::Register(register, offset) => {
                        let base = begin.registers.get(usize::from(register)).copied();
                        base.unwrap_or_default().wrapping_add_signed(offset.into())
                    }
                };
                Point { address, on, act }
            };
            own.addresses = AddressGate::new(&own.points.iter().map(point).collect::<Vec<_>>())?;
            all.push((own.task, own.addresses));
        }
        Ok(all)
    }

    fn of_task(&mut self, task: Option<u16>) -> Option<&mut TaskGate> {
        self.tasks.iter_mut().find(|own| Some(own.task) == task)
    }

    /// The debug exception's handler, while `task` has the processor: starts or stops the session. Returns whether the exception
    /// was the gate's, and then whether it comes before an instruction: that one's frame needs [`arch::debug::RESUME_FLAG`], as
    /// it would be met again; behind an instruction the flag would let the next one's breakpoint pass.
    ///
    /// # Errors
    /// A register refuses.
    pub fn trapped(
        &mut self,
        task: Option<u16>,
        dr6: u64,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<Option<bool>, SetError> {
        self.settle(session, platform)?;
        let Some(own) = self.of_task(task) else { return Ok(None) };
        let Some(hit) = own.addresses.hit(dr6) else { return Ok(None) };
        own.taken += 1;
        own.depth.meet(hit);
        match own.depth.counts() {
            true if may_start(session) => session.start(platform)?,
            true => {}
            false => session.stop(platform)?,
        }
        Ok(Some(hit.before))
    }

    /// `task` is about to lose the processor.
    ///
    /// # Errors
    /// A register refuses.
    pub fn suspend(
        &mut self,
        task: Option<u16>,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        self.settle(session, platform)?;
        if self.of_task(task).is_some() { session.stop(platform) } else { Ok(()) }
    }

    /// `task` gets the processor; counting goes on if it did before.
    ///
    /// # Errors
    /// A register refuses.
    pub fn resume(
        &mut self,
        task: Option<u16>,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        let resumes = self.of_task(task).is_some_and(|own| own.depth.counts());
        if resumes && may_start(session) { session.start(platform) } else { Ok(()) }
    }

    /// The kernel's own way is taken out of what was counted since the last time.
    ///
    /// # Errors
    /// A register refuses.
    pub fn settle(
        &mut self,
        session: &mut Session,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        match platform.closings() {
            0 => Ok(()),
            closings => session.take_out(self.taken_out.of(session.group()), closings),
        }
    }

    /// What is taken out of request number `request` each time.
    #[must_use]
    pub fn taken_out(&self, request: usize) -> Option<u64> {
        self.taken_out.request(request)
    }

    /// For the record.
    #[must_use]
    pub fn results(&self) -> Vec<CountGate> {
        let result = |own: &TaskGate| {
            let (starts, stops, deepest) = own.depth.came_to();
            CountGate { task: own.task, starts, stops, taken: own.taken, deepest }
        };
        self.tasks.iter().map(result).collect()
    }
}

/// A request of `set` that counts ring 0, of those for which `which` holds.
pub fn in_ring_0(set: &Set, which: impl Fn(usize) -> bool) -> Option<usize> {
    let mut all = set.groups().iter().flatten();
    let counts = |counts: &&(usize, Counted)| {
        counts.1.selection.rings.contains(Rings::KERNEL) && which(counts.0)
    };
    Some(all.find(counts)?.0)
}

/// Whether an address lets it count: no overflow has ended that.
fn may_start(session: &Session) -> bool {
    !session.has_ended() && !session.was_stopped_by_overflow()
}
