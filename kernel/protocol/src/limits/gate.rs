//! Bounds of counting between addresses.

use super::{LimitError, range};
use crate::count::{Bind, Count, GateAct};
use crate::workload::Ring;
use alloc::string::ToString;

/// Addresses at which counting can start or stop: a processor has so many debug registers (SDM vol. 3, 17.2).
pub const MAX_GATE_POINTS: usize = 4;

/// Checks the gate of `count`, whose tasks have been checked.
pub(super) fn check(count: &Count) -> Result<(), LimitError> {
    let Some(first) = count.gate.first() else { return Ok(()) };
    if count.bind != Bind::System || !count.sets.is_empty() {
        return Err(LimitError::GateBound);
    }
    let (tasks, points) = (&count.workload.tasks, count.gate.len() as u64);
    range("the number of addresses that start or stop", points, 1, MAX_GATE_POINTS as u64)?;
    for (index, point) in count.gate.iter().enumerate() {
        range("an address's task", point.task.into(), 0, tasks.len() as u64 - 1)?;
        let task = &tasks[usize::from(point.task)];
        if point.task != first.task {
            let first = &tasks[usize::from(first.task)];
            return Err(LimitError::GateTasks(first.name.to_string(), task.name.to_string()));
        }
        if task.ring != Ring::User {
            return Err(LimitError::GateRing(task.name.to_string()));
        }
        let bytes = (task.init.len() + task.body.len()) as u64;
        let field = "the offset of an address that starts or stops";
        range(field, point.offset, 0, bytes.saturating_sub(1))?;
        if count.gate[..index].iter().any(|other| other.offset == point.offset) {
            return Err(LimitError::GateTwice(point.offset));
        }
    }
    let starts = count.gate.iter().any(|point| point.act == GateAct::Start);
    if starts { Ok(()) } else { Err(LimitError::GateNeverStarts) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::GatePoint;
    use crate::workload::tests::task;
    use crate::workload::{Task, Workload};
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn m14_m3_bounds_of_a_gate_name_the_task_and_the_reason() {
        let user = |name: &str| Task { ring: Ring::User, ..task(name, None) };
        let count = |points: &[(u16, u64, GateAct)]| {
            let tasks = vec![user("a"), user("b"), task("low", None)];
            let workload = Workload { tasks, ..Workload::default() };
            let point = |&(task, offset, act): &_| GatePoint { task, offset, act };
            let gate: Vec<GatePoint> = points.iter().map(point).collect();
            check(&Count { gate, workload, ..Count::default() })
        };
        let (start, stop) = (GateAct::Start, GateAct::Stop);
        assert_eq!(count(&[]), Ok(()));
        assert_eq!(count(&[(1, 0, start)]), Ok(()));
        for (points, part) in [
            (&[(0, 0, start); 5][..], "the number of addresses that start or stop is 5"),
            (&[(3, 0, start)], "an address's task is 3"),
            (&[(0, 0, start), (1, 0, stop)], "they are in `a` and `b`"),
            (&[(2, 0, start)], "task `low` runs in ring 0"),
            (&[(0, 1, start)], "offset of an address that starts or stops is 1; it must be 0 to 0"),
            (&[(0, 0, start), (0, 0, stop)], "the address at offset 0x0 is given twice"),
            (&[(0, 0, stop)], "start-at is missing"),
        ] {
            let error = count(points).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        // Init and body lie one after the other.
        let longer = |offset| {
            let init = alloc::borrow::Cow::Borrowed(&[0x90; 2][..]);
            let tasks = vec![Task { init, ..user("a") }];
            let workload = Workload { tasks, ..Workload::default() };
            let gate = vec![GatePoint { task: 0, offset, act: start }];
            check(&Count { gate, workload, ..Count::default() }).is_ok()
        };
        assert_eq!([2, 3].map(longer), [true, false]);
        let gate = vec![GatePoint { task: 0, offset: 0, act: start }];
        let bound = Count { gate, bind: Bind::AllProcessors, ..Count::default() };
        assert!(check(&bound).unwrap_err().to_string().contains("cannot be given with bind"));
    }
}
