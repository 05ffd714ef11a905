//! How a task went, in the report's form.

use super::scheduler::Account;
use super::{Emitted, Left};
use crate::snippet::fault::{bits_of, instruction, registers};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;
use protocol::hex::Hex;
use protocol::job::LoopCounter;
use protocol::job::workload::Task;
use protocol::record::{Fault, TaskEnd, TaskResult};

/// Puts it together.
pub(super) fn task(
    task: &Task,
    emitted: &Emitted,
    account: Account,
    left: &Left,
    cpu: u16,
) -> TaskResult {
    // A task that never ended would still be running.
    let end = account.end.unwrap_or(TaskEnd::Limit);
    let ended = bits_of(&left.frame);
    TaskResult {
        name: task.name.to_string(),
        entry: Hex(emitted.init.start),
        end,
        turns: turns(task, emitted, left),
        switches: account.switches,
        time: account.time,
        value: Hex(left.value),
        memory_crc32: Hex(u64::from(left.memory_crc32)),
        fault: (end == TaskEnd::Fault).then(|| fault(task, emitted, left)),
        user_instructions: None,
        child_user_instructions: None,
        added_to: account.heir,
        outlived: task.parent.filter(|&parent| account.heir != Some(parent)),
        cpu: u32::from(cpu),
        moves: None,
        shares: Vec::new(),
        bits: task.bits.number(),
        ended_bits: Some(ended).filter(|_| ended != task.bits.number()),
    }
}

/// Turns that were completed: the count goes down at the end of each.
fn turns(task: &Task, emitted: &Emitted, left: &Left) -> u64 {
    let left = match (task.turns, task.loop_counter) {
        // INT n leaves the address behind it.
        (0, _) => {
            return u64::from(left.frame.rip > emitted.exit && left.frame.rip <= emitted.exit + 2);
        }
        (_, LoopCounter::R15) => left.frame.r15,
        (_, LoopCounter::Memory) => left.count,
    };
    task.turns.saturating_sub(left)
}

fn fault(task: &Task, emitted: &Emitted, left: &Left) -> Fault {
    let (frame, rip) = (&left.frame, left.frame.rip);
    let mut fault = Fault {
        vector: frame.vector as u8,
        mnemonic: frame.exception().mnemonic().to_string(),
        error_code: frame.error().map(Hex),
        part: "outside".to_string(),
        offset: None,
        copy: None,
        bytes: None,
        registers: registers(frame, left.cr2),
        bits: bits_of(frame),
        ..Fault::default()
    };
    let parts: [(_, &Range<u64>, &[u8]); 2] =
        [("init", &emitted.init, &task.init), ("body", &emitted.body, &task.body)];
    for (part, range, code) in parts {
        if range.contains(&rip) {
            let offset = rip - range.start;
            fault.part = part.to_string();
            fault.offset = Some(offset);
            fault.bytes = Some(instruction(code, offset as usize));
        }
    }
    fault
}
