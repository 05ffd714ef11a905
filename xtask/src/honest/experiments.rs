//! What the code of each experiment does, counted by hand.

/// True counts of one execution of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Truth {
    /// Instructions.
    pub instructions: u64,
    /// Branches of every kind, taken or not.
    pub branches: u64,
    /// Conditional branches, taken or not.
    pub conditional: u64,
}

/// Name of the snippet whose code a hypervisor may have to emulate.
pub const EXITS: &str = "honest: VM exits";
/// Name of the experiment with overflows.
pub const OVERFLOWS: &str = "honest: interrupts of a counter";
/// Instructions between two overflows, and in all.
pub const SAMPLED: (u64, u64) = (500, 20_000);
/// Name of the experiment with a timer.
pub const TIMER: &str = "honest: a task and a timer";
/// Instructions and branches of its task, whose end adds up to [`LEAVING`].
pub const TASK: [u64; 2] = [500_000, 100_000];
/// Instructions of a task's start and end that ring 3 may count.
pub const LEAVING: u64 = 3;

/// The snippets, in the job's order.
pub const SNIPPETS: [(&str, Truth); 7] = [
    ("honest: straight line", truth(8, 0, 0)),
    ("honest: short loops", truth(21, 10, 10)),
    ("honest: branches not taken", truth(8, 3, 3)),
    ("honest: jumps and calls", truth(5, 4, 0)),
    ("honest: branches that nobody can predict", truth(15, 2, 1)),
    ("honest: a long loop", truth(2001, 1000, 1000)),
    (EXITS, truth(3, 0, 0)),
];

const fn truth(instructions: u64, branches: u64, conditional: u64) -> Truth {
    Truth { instructions, branches, conditional }
}

/// What an event should count of a body; `None`: that is not known.
#[must_use]
pub fn expected(event: &str, truth: &Truth) -> Option<u64> {
    match event {
        "instructions" | "r00c0" => Some(truth.instructions),
        "branches" => Some(truth.branches),
        "br_inst_retired.conditional" | "br_inst_retired.cond" | "ex_ret_cond" => {
            Some(truth.conditional)
        }
        _ => None,
    }
}

/// The truth of the snippet with a name.
#[must_use]
pub fn of(name: &str) -> Option<&'static Truth> {
    SNIPPETS.iter().find(|(one, _)| *one == name).map(|(_, truth)| truth)
}
