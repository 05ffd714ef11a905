//! Bounds of counting between addresses.

use super::{LimitError, range};
use crate::job::count::{Bind, Count};
use crate::job::gate::{GateAct, GateAt, GateOn, GatePoint, REGISTERS};
use crate::job::workload::Task;
use alloc::string::ToString;

/// Addresses of one task at which counting can start or stop: a processor has so many debug registers (SDM vol. 3, 17.2).
pub const MAX_GATE_POINTS: usize = 4;
/// Bytes on either side of where a register points to at the start of a task, RSP first: half of the stack, and half of a
/// memory area.
const AROUND: [i64; REGISTERS.len()] = [16 << 10, 8 << 10, 8 << 10, 8 << 10, 8 << 10];
/// Code begins at a multiple of this many bytes, behind the init code.
const CODE_ALIGN: u64 = 64;

/// Checks the gate of `count`, whose tasks have been checked.
pub(super) fn check(count: &Count) -> Result<(), LimitError> {
    if count.gate.is_empty() {
        return if count.nested { Err(LimitError::GateNested) } else { Ok(()) };
    }
    if count.bind != Bind::System || !count.sets.is_empty() {
        return Err(LimitError::GateBound);
    }
    let tasks = &count.workload.tasks;
    for (index, point) in count.gate.iter().enumerate() {
        range("an address's task", point.task.into(), 0, tasks.len() as u64 - 1)?;
        let task = &tasks[usize::from(point.task)];
        let name = || task.name.to_string();
        check_point(point, task)?;
        let own = || count.gate.iter().filter(|other| other.task == point.task);
        if own().count() > MAX_GATE_POINTS {
            return Err(LimitError::GatePoints(name(), own().count()));
        }
        let mut before = count.gate[..index].iter().filter(|other| other.task == point.task);
        if before.any(|other| (other.at, other.on) == (point.at, point.on)) {
            return Err(LimitError::GateTwice(name(), words(point.at)));
        }
        if !own().any(|point| point.act == GateAct::Start) {
            return Err(LimitError::GateNeverStarts(name()));
        }
    }
    Ok(())
}

fn check_point(point: &GatePoint, task: &Task) -> Result<(), LimitError> {
    let field = "the offset of an address that starts or stops";
    let bytes = u64::from(point.on.bytes().unwrap_or(1));
    if !matches!(bytes, 1 | 2 | 4 | 8) {
        return Err(LimitError::GateBytes(bytes));
    }
    let aligned = match point.at {
        GateAt::Code(offset) => {
            let all = (task.init.len() + task.body.len()) as u64;
            range(field, offset, 0, all.saturating_sub(1))?;
            if matches!(point.on, GateOn::Write(_)) {
                return Err(LimitError::GateCode(task.name.to_string()));
            }
            // The body is at a multiple.
            let init = task.init.len() as u64 % CODE_ALIGN;
            (offset + CODE_ALIGN - init).is_multiple_of(bytes)
        }
        GateAt::Register(register, offset) => {
            range("the register of an address", register.into(), 0, REGISTERS.len() as u64 - 1)?;
            let around = AROUND[usize::from(register)];
            if !(-around..=around - bytes as i64).contains(&offset.into()) {
                return Err(LimitError::GateBeyond(
                    words(point.at),
                    REGISTERS[usize::from(register)],
                    around,
                ));
            }
            if point.on == GateOn::Execute {
                return Err(LimitError::GateData(words(point.at)));
            }
            i64::from(offset).rem_euclid(bytes as i64) == 0
        }
    };
    if aligned { Ok(()) } else { Err(LimitError::GateAlign(words(point.at), bytes)) }
}

/// An address as a job has it, without its task.
fn words(at: GateAt) -> alloc::string::String {
    match at {
        GateAt::Code(offset) => alloc::format!("offset {offset:#x}"),
        GateAt::Register(register, offset) => {
            let name = REGISTERS.get(usize::from(register)).unwrap_or(&"");
            alloc::format!("{name}{offset:+}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::workload::tests::task;
    use crate::job::workload::{Ring, Workload};
    use alloc::vec;
    use alloc::vec::Vec;

    const START: GateAct = GateAct::Start;
    const STOP: GateAct = GateAct::Stop;

    fn check_points(points: &[(u16, GateAt, GateOn, GateAct)]) -> Result<(), LimitError> {
        let user = |name: &str| Task { ring: Ring::User, ..task(name, None) };
        let init = alloc::borrow::Cow::Borrowed(&[0x90; 2][..]);
        let body = alloc::borrow::Cow::Borrowed(&[0x90; 20][..]);
        let tasks = vec![user("a"), Task { init, body, ..user("b") }, task("low", None)];
        let workload = Workload { tasks, ..Workload::default() };
        let point = |&(task, at, on, act): &_| GatePoint { task, at, on, act };
        let gate: Vec<GatePoint> = points.iter().map(point).collect();
        check(&Count { gate, workload, ..Count::default() })
    }

    #[test]
    fn m14_m3_bounds_of_a_gate_name_the_task_and_the_reason() {
        let code = |task, offset, act| (task, GateAt::Code(offset), GateOn::Execute, act);
        assert_eq!(check_points(&[]), Ok(()));
        // Four in each of several tasks, ring 0 among them.
        let four = |task| [0, 1, 2, 3].map(|offset| code(task, offset, START));
        assert_eq!(
            check_points(&[&four(1)[..], &[code(0, 0, START), code(2, 0, START)]].concat()),
            Ok(())
        );
        for (points, part) in [
            (
                &[
                    code(1, 0, START),
                    code(1, 1, START),
                    code(1, 2, START),
                    code(1, 3, START),
                    code(1, 4, STOP),
                ][..],
                "task `b` has 5 addresses",
            ),
            (&[code(3, 0, START)], "an address's task is 3"),
            (
                &[code(0, 1, START)],
                "offset of an address that starts or stops is 1; it must be 0 to 0",
            ),
            (&[code(1, 0, START), code(1, 0, STOP)], "offset 0x0 of task `b` is given twice"),
            (
                &[code(0, 0, START), code(1, 0, STOP)],
                "counting of task `b` stops at addresses, but starts at none",
            ),
        ] {
            let error = check_points(points).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        // Init and body lie one after the other.
        assert!(check_points(&[code(1, 21, START)]).is_ok());
        assert!(check_points(&[code(1, 22, START)]).is_err());
        let gate =
            vec![GatePoint { task: 0, at: GateAt::Code(0), on: GateOn::Execute, act: START }];
        let bound = Count { gate, bind: Bind::AllProcessors, ..Count::default() };
        assert!(check(&bound).unwrap_err().to_string().contains("stand beside bind"));
        let nested = Count { nested: true, ..Count::default() };
        assert!(check(&nested).unwrap_err().to_string().contains("nested is for"));
    }

    #[test]
    fn m14_bounds_of_data_addresses_are_those_of_the_memory_and_of_the_registers() {
        let data = |at, on| check_points(&[(1, at, on, START)]);
        let register = |register, offset| GateAt::Register(register, offset);
        for (at, on) in [
            (register(4, 0), GateOn::Write(8)),
            (register(4, 8192 - 8), GateOn::Write(8)),
            (register(1, -8192), GateOn::Access(1)),
            (register(0, 16384 - 4), GateOn::Access(4)),
            // The body is at a multiple of 64, behind two bytes.
            (GateAt::Code(2 + 8), GateOn::Access(8)),
            (GateAt::Code(1), GateOn::Access(1)),
        ] {
            assert_eq!(data(at, on), Ok(()), "{at:?} {on:?}");
        }
        // RSP has half of the stack on either side, each other one half of its memory area.
        for (number, around) in (0..).zip([16 << 10, 8 << 10, 8 << 10, 8 << 10, 8 << 10]) {
            for (offset, fits) in
                [(-around, true), (around - 1, true), (-around - 1, false), (around, false)]
            {
                let answer = data(register(number, offset), GateOn::Write(1));
                assert_eq!(answer.is_ok(), fits, "{number} {offset}: {answer:?}");
            }
        }
        for (at, on, part) in [
            (
                register(4, 8192 - 4),
                GateOn::Write(8),
                "r14+8188 is not in memory: r14 has 8192 bytes",
            ),
            (register(0, -16385), GateOn::Write(1), "rsp-16385 is not in memory"),
            (register(5, 0), GateOn::Write(1), "the register of an address is 5"),
            (register(2, 2), GateOn::Access(4), "rdi+2 is no multiple of 4"),
            (register(2, 0), GateOn::Access(3), "3 bytes of data"),
            (register(2, 0), GateOn::Execute, "rdi+0 is data"),
            (GateAt::Code(8), GateOn::Access(8), "offset 0x8 is no multiple of 8"),
            (GateAt::Code(2), GateOn::Write(1), "the code of task `b` is never written to"),
        ] {
            let error = data(at, on).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
